"""The pass `map-threads`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import AllocOp, KernelOp
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.instruction_layout import spread_accumulators
from tilewright.passes.layout_rewrite import drop_widths, set_dist, spread_fragments, thread_count
from tilewright.passes.thread_layout import MAX_THREADS, WARP, block_threads, fill_in_order, with_strides
from tilewright.passes.thread_spread import product_of, spread_threads
from tilewright.passes.tile_analysis import IterationDims, buf, copies, gathers, iteration_dims, kernels_of, space

PER_THREAD = 4
"""Elements a thread has at least, so that loads can be 16 bytes wide in f32. Accumulators of a product too, though
4 x 4 make better use of operands: a tile of 32 x 32 on 64 threads took 5 us for 64 steps of the sum, mostly waiting
(H200)."""


@dataclass(frozen=True)
class MapThreadsPass(TilewrightPass):
    """Chooses the block size and spreads every fragment, and every global-to-shared copy, over the block's threads.

    The widest fragment (the accumulators, if there is a product) decides; the others take the entries of their
    iteration dims, so that a value and what it is combined with sit in the same thread. Thread numbers run along the
    first dim; `coalesce` turns them. `threads` bounds the block size. Where matrix instructions multiply, they say
    which thread holds which accumulator, and all fragments follow.

    Widths and distributions of copies that were written go, as they went by other layouts. A kernel that says `mapped`
    keeps all that is written; only copies between global and shared memory without a `dist` get one.
    """

    name = "map-threads"
    level = "tile"
    threads: int = MAX_THREADS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not 32 <= self.threads <= 1024 or self.threads & (self.threads - 1):
            raise error_at(
                op, f"map-threads: expected threads to be a power of two from 32 to 1024, got {self.threads}"
            )
        for kernel in kernels_of(op):
            if kernel.mapped is not None:
                self._complete(kernel)
                continue
            for copy in (*copies(kernel), *gathers(kernel)):
                copy.properties.pop("dist", None)
                if isinstance(copy, CopyOp):
                    drop_widths(copy)
            dims = iteration_dims(kernel)
            product = product_of(kernel)
            if product is not None and product.inst is not None and product.inst.data != "fma":
                spread_accumulators(kernel, dims, product)
                _spread_staging(kernel)
                continue
            threads = self._block_size(kernel, dims)
            naive = range(len(dims.sizes))
            spread_fragments(dims, spread_threads(kernel, dims, threads, naive, [1] * len(dims.sizes)))
            kernel.properties["threads"] = i64_attr(threads)
            _spread_staging(kernel)

    def _complete(self, kernel: KernelOp) -> None:
        """What the author of a mapped kernel left open."""
        for op in kernel.walk():
            if isinstance(op, AllocOp) and space(op.res) == "fragment" and op.type.distribution is None:
                raise error_at(op, "map-threads: the kernel is mapped, but this fragment has no layout")
        _spread_staging(kernel)

    def _block_size(self, kernel: KernelOp, dims: IterationDims) -> int:
        """Threads for the widest fragment, or for the accumulators of a product."""
        product = product_of(kernel)
        anchor = dims.widest() if product is None else product.acc
        if anchor is None:
            return WARP
        return block_threads(buf(anchor).count, PER_THREAD, self.threads)


def _spread_staging(kernel: KernelOp) -> None:
    """A distribution for each copy and gather that no fragment takes part in and that has none."""
    threads = thread_count(kernel)
    assert threads is not None
    for copy in (*copies(kernel), *gathers(kernel)):
        if copy.distribution is not None or (isinstance(copy, CopyOp) and not copy.by_threads):
            continue
        sizes = copy.tile_type.sizes
        order = range(len(sizes))
        set_dist(copy, with_strides(fill_in_order(sizes, order, threads), [1] * len(sizes), order))
