"""Spreading a tile over the threads of a block. Plain arithmetic, no IR: sizes and thread counts are powers of two."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dialects.tile.types import DimDistribution

WARP = 32
MAX_THREADS = 256
"""Default block size: 8 warps; several blocks fit a processor, and 64 accumulators a thread fit the registers."""


def block_threads(elements: int, per_thread: int, most: int = MAX_THREADS) -> int:
    """Threads for a tile so that each has at least `per_thread` elements: a power of two from one warp to `most`."""
    threads = WARP
    while threads < most and threads * 2 * per_thread <= elements:
        threads *= 2
    return threads


def fill_in_order(sizes: Sequence[int], order: Sequence[int], threads: int) -> list[int]:
    """Threads a dim: the dims of `order` take as many as they have elements, until the threads are used up."""
    counts = [1] * len(sizes)
    for d in order:
        while threads > 1 and counts[d] * 2 <= sizes[d] and sizes[d] % (counts[d] * 2) == 0:
            counts[d] *= 2
            threads //= 2
    return counts


def fill_evenly(sizes: Sequence[int], threads: int) -> list[int]:
    """Threads a dim such that a thread's share is as square as can be: operands of a product are then reused most."""
    counts = [1] * len(sizes)
    while threads > 1:
        open_dims = [d for d in range(len(sizes)) if counts[d] * 2 <= sizes[d]]
        if not open_dims:
            break
        widest = max(open_dims, key=lambda d: (sizes[d] // counts[d], d))
        counts[widest] *= 2
        threads //= 2
    return counts


def with_strides(counts: Sequence[int], vectors: Sequence[int], order: Sequence[int]) -> list[DimDistribution]:
    """The distribution in which thread numbers run fastest along `order[0]`, then along `order[1]`, ..."""
    strides, step = [1] * len(counts), 1
    for d in order:
        strides[d] = step
        step *= counts[d]
    return [DimDistribution(t, s, v) for t, s, v in zip(counts, strides, vectors, strict=True)]


def fastest_first(dims: Sequence[DimDistribution]) -> list[int]:
    """Dims from the one with the least thread stride on; dims with one thread come last, in order."""
    return sorted(range(len(dims)), key=lambda d: (dims[d].threads == 1, dims[d].stride, d))
