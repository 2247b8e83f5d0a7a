"""The pass `insert-barriers`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.tile.channels import AcquireOp
from tilewright.dialects.tile.structure import SyncOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.tile_analysis import copies, gathers, kernels_of, space


@dataclass(frozen=True)
class InsertBarriersPass(TilewrightPass):
    """Puts `tile.sync` before and after every copy and gather that writes shared memory.

    A read after the write then sees it, and the write waits for every earlier read, loops included. More barriers than
    needed: `remove-barriers` takes the redundant ones away. Slots of channels have a protocol of their own.
    """

    name = "insert-barriers"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            for copy in [*copies(kernel), *gathers(kernel)]:
                if space(copy.target) == "shared" and not isinstance(copy.target.owner, AcquireOp):
                    block = copy.parent
                    assert block is not None
                    before, after = SyncOp(), SyncOp()
                    before.location = after.location = copy.location
                    block.insert_op_before(before, copy)
                    block.insert_op_after(after, copy)
