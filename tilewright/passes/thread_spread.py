"""Spreading all fragments of a kernel over the threads of a block, each iteration dim in one way everywhere.

The widest fragment is served first; a fragment that has other dims (the columns of another walk over the same rows) is
served with the threads that its settled dims leave. The bits of the thread number are handed out: a dim takes
neighbouring bits, the first dim the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import DimDistribution
from tilewright.passes.thread_layout import fill_evenly
from tilewright.passes.tile_analysis import IterationDims, buf


def product_of(kernel: KernelOp) -> MmaOp | None:
    """The first multiplication of a kernel, whose accumulators decide the spread."""
    return next((o for o in kernel.walk() if isinstance(o, MmaOp)), None)


def summed_dims(kernel: KernelOp, dims: IterationDims) -> set[int]:
    """Iteration dims that a multiplication sums over: each thread has all of them."""
    found: set[int] = set()
    for op in kernel.walk():
        if isinstance(op, MmaOp):
            for value, own in zip((op.lhs, op.rhs), op.operand_dims[:2], strict=True):
                for c, d in zip(dims.dims[value], own, strict=True):
                    if c is not None and d in op.reduced_dims:
                        found.add(c)
    return found


def spread_threads(
    kernel: KernelOp, dims: IterationDims, threads: int, order: Sequence[int], vectors: Sequence[int]
) -> list[DimDistribution]:
    """One distribution an iteration dim.

    `order` ranks iteration dims: neighbouring threads run along the first. `vectors` are the neighbouring elements that
    a thread has along each.
    """
    spread = [DimDistribution(1, 1, v) for v in vectors]
    product, local = product_of(kernel), summed_dims(kernel, dims)
    # A dim that a fragment has twice cannot be spread: the same threads would have to hold both.
    twice = {d for own in dims.dims.values() for d in own if d is not None and own.count(d) > 1}
    settled: set[int] = local | twice
    anchors = sorted(dims.fragments(), key=lambda v: -buf(v).count)
    if product is not None:
        anchors.insert(0, product.acc)
    rank = {d: n for n, d in enumerate(order)}
    for anchor in anchors:
        own = [d for d in dims.dims[anchor] if d is not None]
        new = sorted((d for d in dict.fromkeys(own) if d not in settled), key=lambda d: rank[d])
        if not new:
            continue
        settled.update(new)
        free = free_bits(dims, spread, new, threads)
        room = [dims.sizes[d] // vectors[d] for d in new]
        counts = fill_evenly(room, threads) if product is not None and anchor is product.acc else room
        for d, wanted in zip(new, counts, strict=True):
            bits = neighbouring(free, wanted)
            if bits:
                free = [b for b in free if b not in bits]
                spread[d] = DimDistribution(1 << len(bits), 1 << bits[0], vectors[d])
    return spread


def free_bits(dims: IterationDims, spread: Sequence[DimDistribution], new: Sequence[int], threads: int) -> list[int]:
    """Bits of the thread number that no dim uses which meets one of `new` in some fragment."""
    taken: set[int] = set()
    for own in dims.dims.values():
        if any(d in own for d in new):
            for d in own:
                if d is not None and spread[d].threads > 1:
                    low = spread[d].stride.bit_length() - 1
                    taken.update(range(low, low + spread[d].threads.bit_length() - 1))
    return [b for b in range(threads.bit_length() - 1) if b not in taken]


def neighbouring(free: Sequence[int], wanted: int) -> list[int]:
    """The lowest run of neighbouring free bits that makes at most `wanted` threads (its factors of two)."""
    most = (wanted & -wanted).bit_length() - 1 if wanted else 0
    run: list[int] = []
    for b in free:
        if len(run) == most or (run and b != run[-1] + 1):
            break
        run.append(b)
    return run


def order_of(spread: Sequence[DimDistribution]) -> list[int]:
    """The ranking that a spread was made with: dims by thread stride, those with one thread last."""
    return sorted(range(len(spread)), key=lambda d: (spread[d].threads == 1, spread[d].stride, d))
