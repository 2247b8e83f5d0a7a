"""The pass `prove-bounds`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from tilewright.dialects.assembly import int_array
from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.tile.compute import CopyOp, MapOp, ReduceOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, global_side, kernels_of


@dataclass(frozen=True)
class ProveBoundsPass(TilewrightPass):
    """Removes tail masks that cannot be needed: `clip` becomes `proved`, and a `valid` limit goes, where the tile is proved to be inside.

    What cannot be proved stays a mask. Relies on the module's facts, what the kernel assumes, and the ranges of coordinates and loop variables.
    """

    name = "prove-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for inner in list(kernel.walk()):
                if isinstance(inner, CopyOp):
                    self._copy(inner, scopes)
                elif isinstance(inner, MapOp | ReduceOp):
                    self._limits(inner, scopes)

    def _copy(self, copy: CopyOp, scopes: KernelScopes) -> None:
        side = global_side(copy)
        if side is None or "clip" not in copy.bound_words:
            return
        buffer, offsets = side
        scope, words = scopes.at(copy), list(copy.bound_words)
        for d, size in enumerate(copy.tile_type.sizes):
            start = scope.expr(offsets[d]) if offsets else Expr.const(0)
            if words[d] == "clip" and scopes.proved(copy, Relation(start + (size - 1), "<", buf(buffer).dims[d])):
                words[d] = "proved"
        if tuple(words) != copy.bound_words:
            copy.properties["bounds"] = ArrayAttr([StringAttr(w) for w in words])
            left = [f"dim {d}" for d, w in enumerate(words) if w == "clip"]
            remark(copy, self.name, f"masked along {', '.join(left)}" if left else "no mask needed")

    def _limits(self, op: MapOp | ReduceOp, scopes: KernelScopes) -> None:
        kept: dict[int, SSAValue] = {}
        for d, limit in op.valid_limits.items():
            size = op.sizes[d]
            assert size is not None
            if not scopes.proved(op, Relation(scopes.at(op).expr(limit), ">=", Expr.const(size))):
                kept[d] = limit
        if len(kept) < len(op.valid.data):
            op.properties["valid"] = int_array(list(kept))
            op.limits = list(kept.values())
