"""From a scheduled tile kernel to what each thread does. Decides nothing: every choice is read off the ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.passes.core import TilewrightPass


@dataclass(frozen=True)
class TileToSimtPass(TilewrightPass):
    """Lowers each scheduled `tile.kernel` to a `simt.kernel` of the same name.

    Relies on a schedule without gaps (an error names the op and what is open) and on an index width with which no
    address wraps. Buffers become pointers, shared and register arrays; copies become loads and stores with masks where
    bounds say `clip`; expressions over symbols become scalar arguments. Other ops of the module stay as they are.
    """

    name = "tile-to-simt"
    level = "tile"
    anchors = ("builtin.module",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from tilewright.dialects.tile.structure import KernelOp
        from tilewright.lowering.tile_to_simt.kernel import lower_kernel

        for kernel in [inner for inner in op.walk() if isinstance(inner, KernelOp)]:
            new = lower_kernel(kernel)
            block = kernel.parent
            assert block is not None
            block.insert_op_before(new, kernel)
            kernel.detach()
            kernel.erase()
