"""The pass `share-copies`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.sym import ApplyOp, Expr, floordiv
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import buf, kernels_of

ROWS = 8
"""Rows after which the pattern of a swizzled panel repeats: parts of a panel are multiples of them."""


@dataclass(frozen=True)
class ShareCopiesPass(TilewrightPass):
    """Lets blocks of a cluster fetch what all of them need once: a copy into a slot becomes `multicast`.

    Each block then asks for its part of the rectangle, which lands in the slots of all; a slot is free when all blocks
    have released it. Only copies by tensor maps whose place is the same in all blocks of a cluster, in loops that all
    of them run equally often. Relies on `form-clusters` and `pipeline-copies`.
    """

    name = "share-copies"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            if not kernel.is_clustered:
                continue
            same = _Sameness(kernel)
            for channel in [o for o in kernel.walk() if isinstance(o, ChannelOp) and o.is_loaded]:
                acquires = [u.operation for u in channel.res.uses if isinstance(u.operation, AcquireOp)]
                if not all(same.runs_equally(o) for o in acquires):
                    remark(channel, self.name, "left as it is: blocks of a cluster fill it in turns of their own")
                    continue
                for copy in channel.fills:
                    self._share(copy, same, kernel.cluster_size)

    def _share(self, copy: CopyOp, same: _Sameness, size: int) -> None:
        if copy.via is None or copy.via.data != "tma" or not same.runs_equally(copy):
            return
        if not all(same.holds(v) for v in copy.source_offsets):
            remark(copy, self.name, "left as it is: each block of a cluster needs its own")
        elif part_of(buf(copy.target), size) is None:
            remark(copy, self.name, f"left as it is: {buf(copy.target)} has no {size} parts of whole rows")
        else:
            copy.properties["multicast"] = UnitAttr()
            remark(copy, self.name, f"each of {size} blocks fetches its part for all")


def part_of(type_: BufType, blocks: int) -> tuple[int, int | None] | None:
    """What a block of a cluster fetches of a swizzled buffer: (panels, None), or (1, the dim whose rows are shared out)
    where the panels cannot be; None where neither can."""
    layout = type_.swizzle
    if layout is None:
        return None
    span = layout.bytes.data // bytes_of(type_.element)
    panels = type_.sizes[layout.along.data] // span
    if panels % blocks == 0:
        return panels // blocks, None
    long = [d for d, n in enumerate(type_.sizes) if d != layout.along.data and n > 1]
    if len(long) == 1 and type_.sizes[long[0]] % (blocks * ROWS) == 0:
        return panels, long[0]
    return None


@dataclass
class _Sameness:
    """Which index values are the same in all blocks of a cluster."""

    kernel: KernelOp
    known: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])

    def holds(self, value: SSAValue) -> bool:
        """Whether a value is."""
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._find(value)
        return found

    def runs_equally(self, op: Operation) -> bool:
        """Whether the loops around an op make the same turns."""
        outer = op.parent_op()
        while outer is not None and outer is not self.kernel:
            if isinstance(outer, ForOp) and not self._same_bounds(outer):
                return False
            outer = outer.parent_op()
        return True

    def _find(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, ForOp):
                return self._same_bounds(loop)
            return value not in self.kernel.coordinates[-1:]
        if isinstance(owner, ApplyOp):
            return self._same(owner.expr.data, owner.where)
        if isinstance(owner, RasterOp):
            return self.holds(owner.place)
        return isinstance(owner, BlockCountOp)

    def _same_bounds(self, loop: ForOp) -> bool:
        return all(self._same(e.data, loop.where) for e in (loop.lower, loop.upper, loop.step))

    def _same(self, expr: Expr, where: Mapping[str, SSAValue]) -> bool:
        differs = [name for name, value in where.items() if name in expr.symbols and not self.holds(value)]
        if not differs:
            return True
        # Blocks of a cluster follow one another: the cluster's number is the same in all.
        is_block = len(differs) == 1 and where[differs[0]] in self.kernel.coordinates
        return is_block and expr == floordiv(Expr.symbol(differs[0]), self.kernel.cluster_size)
