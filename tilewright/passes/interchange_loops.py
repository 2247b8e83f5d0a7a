"""The pass `interchange-loops`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.sym.analysis import value_symbol
from tilewright.dialects.tile.compute import MapOp, MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import ForOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, contiguous_dim, global_side, kernels_of


@dataclass(frozen=True)
class InterchangeLoopsPass(TilewrightPass):
    """Orders perfectly nested loops over summed dims so that the innermost walks along contiguous global memory.

    Such loops come from reduction iterators, whose combination may be done in any order; only nests whose body
    accumulates (`tile.mma`, or a `tile.map` that reads what it writes) are touched, and only loops whose bounds do not
    depend on each other. Results may differ in the last bits.
    """

    name = "interchange-loops"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for loop in [o for o in kernel.walk() if isinstance(o, ForOp)]:
                nest = perfect_nest(loop)
                if len(nest) > 1 and not isinstance(loop.parent_op(), ForOp) and accumulates(nest[-1]):
                    self._order(nest, scopes)

    def _order(self, nest: list[ForOp], scopes: KernelScopes) -> None:
        if any(loop.where for loop in nest):
            return
        weight = {loop: contiguous_bytes(loop, scopes) for loop in nest}
        wanted = sorted(nest, key=lambda loop: weight[loop])
        if wanted == nest:
            return
        # The loops keep their places; bounds and variables move.
        headers = [(loop.properties["lower"], loop.properties["upper"], loop.properties["step"]) for loop in wanted]
        uses = [list(loop.variable.uses) for loop in wanted]
        hints = [loop.variable.name_hint for loop in wanted]
        for place, (lower, upper, step), used, hint in zip(nest, headers, uses, hints, strict=True):
            place.properties.update({"lower": lower, "upper": upper, "step": step})
            place.variable.name_hint = hint
            for use in used:
                use.operation.operands[use.index] = place.variable
        remark(nest[0], self.name, "the loop along contiguous memory goes innermost")


def perfect_nest(loop: ForOp) -> list[ForOp]:
    """A loop and the loops inside it, as long as each body is one loop."""
    nest = [loop]
    while True:
        inner = list(nest[-1].body.block.ops)
        if len(inner) != 1 or not isinstance(inner[0], ForOp):
            return nest
        nest.append(inner[0])


def accumulates(loop: ForOp) -> bool:
    """Whether all that a loop's body leaves behind is an accumulation."""
    for op in loop.body.block.walk():
        if isinstance(op, CopyOp) and op.spaces[1] == "global":
            return False
        if isinstance(op, MapOp) and not _is_local(op, loop) and not set(op.outputs) <= set(op.inputs):
            return False
    return any(isinstance(op, MmaOp | MapOp) for op in loop.body.block.walk())


def _is_local(op: MapOp, loop: ForOp) -> bool:
    """Whether a map writes only fragments that are made anew in each turn."""
    for value in op.outputs:
        owner = value.owner
        if not isinstance(owner, Operation) or owner.parent is not loop.body.block:
            return False
    return True


def contiguous_bytes(loop: ForOp, scopes: KernelScopes) -> int:
    """Bytes of the tiles that move along contiguous global memory as the loop's variable grows."""
    total = 0
    for op in loop.walk():
        if not isinstance(op, CopyOp):
            continue
        side, d = global_side(op), contiguous_dim(op, scopes)
        if side is None or d is None or not side[1]:
            continue
        scope = scopes.at(op)
        if scope.expr(side[1][d]).symbols & value_symbol(loop.variable).symbols:
            total += op.tile_type.count * bytes_of(op.tile_type.element)
    return total
