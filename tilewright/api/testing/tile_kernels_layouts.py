"""Layouts by hand: the fragments of a kernel spread over threads in a random way, as no pass would choose it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from xdsl.dialects.builtin import UnitAttr

from tilewright.api.testing.execute import context
from tilewright.api.testing.tile_kernels import TileProgram, tile_kernels
from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import DimDistribution, distributed
from tilewright.passes.element_size import bytes_of
from tilewright.passes.layout_rewrite import ALONE, spread_fragments
from tilewright.passes.thread_spread import summed_dims
from tilewright.passes.tile_analysis import IterationDims, buf, copies, gathers, iteration_dims, kernels_of, space

THREADS = (32, 64, 128, 256)
VECTORS = (1, 2, 4)


@st.composite
def spread_tile_kernels(draw: st.DrawFn) -> TileProgram:
    """`tile_kernels()` with a block size, a layout of each fragment, a distribution of each copy into shared memory.

    The kernels are `mapped`, so that all passes keep what is written. Each
    iteration dim is spread in one way everywhere; no two dims of a fragment share bits of the thread number; a summed
    dim of `tile.mma` lies in one thread.
    """
    program = draw(tile_kernels())
    module = parse_module(program.text, "kernel.mlir", context())
    for kernel in kernels_of(module):
        _spread(draw, kernel)
    return replace(program, text="\n".join(str(op) for op in module.ops) + "\n")


def _spread(draw: st.DrawFn, kernel: KernelOp) -> None:
    """Decides on the layouts of one kernel."""
    threads = draw(st.sampled_from(THREADS))
    bits = threads.bit_length() - 1
    kernel.properties["threads"] = i64_attr(threads)
    kernel.properties["mapped"] = UnitAttr()
    dims = iteration_dims(kernel)
    # No spread of a dim would fit two dims of one fragment.
    twice = {d for own in dims.dims.values() for d in own if d is not None and own.count(d) > 1}
    alone = summed_dims(kernel, dims) | twice
    spread = [ALONE] * len(dims.sizes)
    for d in draw(st.permutations(range(len(dims.sizes)))):
        spread[d] = _dim(draw, dims.sizes[d], [] if d in alone else _free(dims, spread, d, bits))
    spread_fragments(dims, spread)
    for copy in (*copies(kernel), *gathers(kernel)):
        if space(copy.target) == "shared" and not (isinstance(copy, CopyOp) and space(copy.source) == "fragment"):
            copy.properties["dist"] = distributed(_whole(draw, copy.tile_type.sizes, bits))
    for copy in copies(kernel):
        _widen(draw, copy)


def _widen(draw: st.DrawFn, copy: CopyOp) -> None:
    """Accesses of several elements to shared memory that is laid out by hand, where the layout allows them."""
    shared = next((v for v in (copy.source, copy.target) if space(v) == "shared"), None)
    strides = None if shared is None else buf(shared).strides
    layout = copy.distribution
    if strides is None or layout is None or copy.source_offsets or copy.target_offsets or "global" in copy.spaces:
        return
    size = bytes_of(copy.tile_type.element)
    for d, (dim, length) in enumerate(zip(layout.dims, copy.tile_type.sizes, strict=True)):
        run = dim.vector if dim.threads > 1 else dim.elements_per_thread(length)
        others = [s.constant or 0 for n, s in enumerate(strides) if n != d]
        fitting = [w for w in (2, 4, 8) if w * size <= 16 and run % w == 0 and all(s % w == 0 for s in others)]
        if strides[d].constant == 1 and fitting and draw(st.booleans()):
            copy.properties["width"] = i64_attr(draw(st.sampled_from(fitting)))
            copy.properties["along"] = i64_attr(d)
            return


def _free(dims: IterationDims, spread: Sequence[DimDistribution], d: int, bits: int) -> list[int]:
    """Bits of the thread number that no dim uses which meets `d` in some fragment."""
    taken: set[int] = set()
    for own in dims.dims.values():
        if d in own:
            for other in own:
                if other is not None:
                    taken |= _bits(spread[other])
    return [b for b in range(bits) if b not in taken]


def _bits(dim: DimDistribution) -> set[int]:
    low = dim.stride.bit_length() - 1
    return set(range(low, low + dim.threads.bit_length() - 1))


def _dim(draw: st.DrawFn, size: int, free: Sequence[int]) -> DimDistribution:
    """A random spread of a dim over a run of free bits, with neighbouring elements in one thread."""
    vector = draw(st.sampled_from([v for v in VECTORS if size % v == 0]))
    rest = size // vector
    most = (rest & -rest).bit_length() - 1
    if not free or not most:
        return DimDistribution(1, 1, vector)
    first = draw(st.sampled_from(list(free)))
    count = 0
    while count < most and first + count in free:
        count += 1
    count = draw(st.integers(0, count))
    return DimDistribution(1 << count, 1 << first if count else 1, vector)


def _whole(draw: st.DrawFn, sizes: Sequence[int], bits: int) -> list[DimDistribution]:
    """A random spread of a tile that is moved without registers of its own."""
    spread = [ALONE] * len(sizes)
    free = list(range(bits))
    for d in draw(st.permutations(range(len(sizes)))):
        spread[d] = _dim(draw, sizes[d], free)
        free = [b for b in free if b not in _bits(spread[d])]
    return spread
