"""The pass `interchange-loops`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.sym.analysis import value_symbol
from tilewright.dialects.tile.compute import MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import ForOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, contiguous_dim, global_side, kernels_of, space

COMBINATIONS = (
    arith.AddfOp,
    arith.MulfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.AddiOp,
    arith.MuliOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)
"""Ops that may combine many values in any order."""


@dataclass(frozen=True)
class InterchangeLoopsPass(TilewrightPass):
    """Orders perfectly nested loops over summed dims so that the innermost walks along contiguous global memory.

    Such loops come from reduction iterators, whose combination may be done in any order; only nests whose body
    accumulates (`tile.mma`, `tile.reduce`, or a `tile.map` that adds to what it holds, multiplies it, or takes the
    greater or lesser) are touched, and only loops whose bounds do not depend on each other. Results may differ in the
    last bits.
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
    """Whether the turns of a loop may run in any order, since accumulations are all that they leave behind.

    A buffer from outside that a turn writes is either an accumulator, which one op of the body combines with something
    and no other op touches, or it is written anew before the turn reads it.
    """
    body = loop.body.block
    touched: dict[SSAValue, list[Operation]] = {}
    for op in body.walk():
        if isinstance(op, CopyOp) and op.spaces[1] == "global":
            return False
        for value in set(op.operands):
            owner = value.owner
            if space(value) in ("shared", "fragment") and isinstance(owner, Operation) and owner.parent is not body:
                touched.setdefault(value, []).append(op)
    for buffer, users in touched.items():
        if not any(buffer in written(op) for op in users):
            continue
        first = users[0]
        if not (first.parent is body and overwrites(first, buffer)) and not (
            len(users) == 1 and combines(first, buffer)
        ):
            return False
    return any(isinstance(op, MmaOp | MapOp) for op in body.walk())


def written(op: Operation) -> list[SSAValue]:
    """The buffers that an op writes."""
    if isinstance(op, CopyOp | GatherOp | FillOp | ReduceOp):
        return [op.target]
    if isinstance(op, MapOp):
        return list(op.outputs)
    return [op.acc] if isinstance(op, MmaOp) else []


def overwrites(op: Operation, buffer: SSAValue) -> bool:
    """Whether an op writes all of a buffer and reads nothing of it."""
    if isinstance(op, FillOp | GatherOp):
        return op.target is buffer
    if isinstance(op, CopyOp):
        return op.target is buffer and not op.target_offsets and op.tile_type.sizes == buf(buffer).sizes
    return isinstance(op, MapOp) and buffer in op.outputs and buffer not in op.inputs and not op.valid.data


def combines(op: Operation, buffer: SSAValue) -> bool:
    """Whether an op makes of each element its combination with something else, such that the order does not matter."""
    if isinstance(op, MmaOp):
        return op.acc is buffer and buffer not in (op.lhs, op.rhs)
    if isinstance(op, ReduceOp):
        return op.target is buffer and op.source is not buffer
    if not isinstance(op, MapOp):
        return False
    read = [(n, dims) for n, (value, dims) in enumerate(op.mapped_inputs) if value is buffer]
    made = [(n, dims) for n, (value, dims) in enumerate(op.mapped_outputs) if value is buffer]
    if len(read) != 1 or len(made) != 1 or read[0][1] != made[0][1]:
        return False
    body = op.body.block
    argument, last = body.args[read[0][0]], body.last_op
    assert last is not None
    step = last.operands[made[0][0]].owner
    return isinstance(step, COMBINATIONS) and argument in step.operands and len(list(argument.uses)) == 1


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
