"""The pass `finish-schedule`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.tile.compute import MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, KernelOp
from tilewright.dialects.tile.types import buf_type, strided
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.layout_rewrite import set_type
from tilewright.passes.tile_analysis import buf, kernels_of

WARP = 32
SAFE_INDEX_WIDTH = 64


@dataclass(frozen=True)
class FinishSchedulePass(TilewrightPass):
    """Fills in what no pass decided with its plain default.

    Shared buffers become row-major, accesses one element wide, indices 64 bits, products multiply-adds. Each reduction
    that spans several warps gets its scratch in shared memory. It cannot spread work over threads: a kernel that
    `map-threads` has not seen is an error.
    """

    name = "finish-schedule"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            if kernel.threads is None:
                raise error_at(
                    kernel, f"finish-schedule: @{kernel.sym_name.data} has no threads; run map-threads first"
                )
            if kernel.index_width is None:
                kernel.properties["index_width"] = i64_attr(SAFE_INDEX_WIDTH)
            for inner in list(kernel.walk()):
                self._finish(inner, kernel)

    def _finish(self, op: Operation, kernel: KernelOp) -> None:
        if isinstance(op, AllocOp):
            if op.type.space.data == "shared" and op.type.layout_is_open:
                set_type(op.res, op.type.with_layout(strided(row_major(op.type.sizes))))
            elif op.type.space.data == "fragment" and op.type.distribution is None:
                raise error_at(op, "finish-schedule: a fragment has no layout; run map-threads first")
        elif isinstance(op, CopyOp):
            op.properties.setdefault("via", StringAttr("thread"))
            if not op.by_threads:
                return
            op.properties.setdefault("width", i64_attr(1))
            if op.distribution is None:
                raise error_at(op, "finish-schedule: a copy has no distribution over threads; run map-threads first")
        elif isinstance(op, GatherOp):
            if op.distribution is None:
                raise error_at(op, "finish-schedule: a gather has no distribution over threads; run map-threads first")
        elif isinstance(op, MmaOp):
            op.properties.setdefault("inst", StringAttr("fma"))
        elif isinstance(op, ReduceOp):
            self._give_scratch(op, kernel)

    def _give_scratch(self, op: ReduceOp, kernel: KernelOp) -> None:
        """Shared memory for one partial result a warp and target element, when warps must exchange them."""
        count = 0 if op.scratch is not None else exchanged_elements(op)
        if not count:
            return
        alloc = AllocOp(buf_type([count], buf(op.target).element, "shared", strided([1])))
        alloc.res.name_hint = "scratch"
        alloc.location = op.location
        first = kernel.body.block.first_op
        assert first is not None
        kernel.body.block.insert_op_before(alloc, first)
        new = ReduceOp(
            op.combine.data,
            op.iteration.value.data,
            (op.source, op.source_map),
            (op.target, op.target_map),
            valid=op.valid_limits,
            scratch=alloc.res,
        )
        new.location = op.location
        block = op.parent
        assert block is not None
        block.insert_op_before(new, op)
        op.detach()
        op.erase()


def exchanged_elements(op: ReduceOp) -> int:
    """Elements of shared memory through which warps exchange partial results of a reduction: one a warp that takes part
    and target element; 0 where one warp has all, or threads are not chosen yet."""
    source = buf(op.source)
    warps = 1
    for entry, size, d in zip(
        source.distribution or (), source.sizes, op.source_map, strict=source.distribution is not None
    ):
        for digit in entry.factors(size) if d in op.reduced_dims else ():
            warps *= max(1, digit.count * digit.stride // max(digit.stride, WARP))
    return 0 if warps == 1 else warps * buf(op.target).count


def row_major(sizes: tuple[int, ...]) -> list[int]:
    """Element strides of a row-major buffer without padding."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return strides
