"""The pass `coalesce`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.layout_rewrite import set_dist, spread_fragments, spread_of, thread_count
from tilewright.passes.remarks import remark
from tilewright.passes.thread_layout import fill_in_order, with_strides
from tilewright.passes.thread_spread import spread_threads
from tilewright.passes.tile_analysis import (
    IterationDims,
    KernelScopes,
    buf,
    contiguous_dim,
    copies,
    fast_dim,
    gathers,
    iteration_dims,
    kernels_of,
)


@dataclass(frozen=True)
class CoalescePass(TilewrightPass):
    """Turns thread numbers so that neighbouring threads touch neighbouring elements of global memory.

    Each iteration dim gets the bytes of the copies that are contiguous along it; thread numbers run fastest along the
    dim with most. Copies into shared memory are turned one by one. Relies on layouts from `map-threads`; a tensor whose
    strides are unknown counts as row-major. Layouts of a kernel that its author mapped stay.
    """

    name = "coalesce"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            threads = thread_count(kernel)
            if threads is None or kernel.mapped is not None:
                continue
            scopes, dims = KernelScopes(kernel), iteration_dims(kernel)
            self._turn_fragments(kernel, dims, scopes, threads)
            for copy in copies(kernel):
                if "global" in copy.spaces and "fragment" not in copy.spaces and copy.by_threads:
                    _turn_copy(copy, contiguous_dim(copy, scopes), threads)
            for gather in gathers(kernel):
                if gather.dist is not None:
                    _turn_copy(gather, fast_dim(gather, scopes), threads)

    def _turn_fragments(self, kernel: KernelOp, dims: IterationDims, scopes: KernelScopes, threads: int) -> None:
        votes = fast_dims(kernel, dims, scopes)
        spread = spread_of(dims)
        if not votes or spread is None:
            return
        ranked = sorted(votes, key=lambda d: -votes[d])
        order = [*ranked, *(d for d in reversed(range(len(dims.sizes))) if d not in votes)]
        spread_fragments(dims, spread_threads(kernel, dims, threads, order, [e.vector for e in spread]))
        remark(kernel, self.name, f"threads run along iteration dim {ranked[0]}: {votes[ranked[0]]} bytes a tile")


def fast_dims(kernel: KernelOp, dims: IterationDims, scopes: KernelScopes) -> dict[int, int]:
    """For each iteration dim the bytes a tile of the fragment copies that are contiguous along it in global memory."""
    votes: dict[int, int] = {}
    for copy in copies(kernel):
        if "global" not in copy.spaces or "fragment" not in copy.spaces:
            continue
        d = contiguous_dim(copy, scopes)
        fragment = copy.target if copy.spaces[1] == "fragment" else copy.source
        own = None if d is None else dims.dims[fragment][d]
        if own is not None:
            type_ = buf(fragment)
            votes[own] = votes.get(own, 0) + type_.count * bytes_of(type_.element)
    return votes


def _turn_copy(copy: CopyOp | GatherOp, d: int | None, threads: int) -> None:
    """Thread numbers run fastest along dim `d` of what is moved into shared memory."""
    sizes = copy.tile_type.sizes
    if d is None:
        return
    order = [d, *(e for e in reversed(range(len(sizes))) if e != d)]
    counts = fill_in_order(sizes, order, threads)
    set_dist(copy, with_strides(counts, [1] * len(sizes), order))
