"""The pass `lin-to-tile`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.lowering.lin_to_tile.entry import EntryLowering
from tilewright.lowering.targets.limits import Limits, cuda_limits
from tilewright.passes.core import TilewrightPass, error_at


@dataclass(frozen=True)
class LinToTilePass(TilewrightPass):
    """Turns each group into a tile kernel over a symbolic grid, and each function into a host function with launches.

    `tile-sizes` gives the sizes for a group's parallel dims in order, then its reduced dims (powers of two); without it
    they are chosen from what is known of the extents. Relies on `decompose`; groups are the kernels that `fuse-groups`
    made, a lin.generic outside of one becomes a kernel of its own. `arch` is the architecture whose matrix instructions
    kernels are made for; operands that these cannot read as they lie are copied first, as far as the scratch that this
    takes is within `max-workspace` bytes (no limit by default). Elementwise groups that make an operand for one product
    are kernels too, beside others that compute the operand where they load it: for small products, and for what exceeds
    `max-workspace`. Costs are reckoned for a device of so many `processors`
    (the architecture's by default).
    """

    name = "lin-to-tile"
    level = "tensor"
    anchors = ("builtin.module",)
    tile_sizes: tuple[int, ...] = ()
    arch: str | None = None
    max_workspace: int | None = None
    processors: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        processors = self.processors
        if processors is None:
            processors = Limits.processors if self.arch is None else cuda_limits(self.arch).processors
        if self.max_workspace is not None and self.max_workspace < 0:
            raise error_at(op, f"lin-to-tile: max-workspace expected at least 0, got {self.max_workspace}")
        if processors < 1:
            raise error_at(op, f"lin-to-tile: processors expected at least 1, got {processors}")
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            lowering = EntryLowering(op, function, tuple(self.tile_sizes), self.arch, self.max_workspace, processors)
            lowered = lowering.lower()
            lowered.location = function.location
            op.body.block.insert_ops_before([*lowering.kernels, lowered], function)
            function.detach()
            function.erase(safe_erase=False)
