"""Pass `fuse-elementwise`: elementwise generics move into the bodies of their users."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult
from xdsl.rewriter import Rewriter

from tilewright.dialects.lin.generic import GenericOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.effects import is_dead
from tilewright.passes.generic_fusion import (
    fuse_producer,
    has_outer_product,
    is_cheap,
    is_elementwise,
    moves_data_only,
    reads_at_positions,
)
from tilewright.passes.grouping import Plan
from tilewright.passes.remarks import remark


@dataclass(frozen=True)
class FuseElementwisePass(TilewrightPass):
    """Moves an all-parallel generic into its user's body: one user, or a cheap body and users of one later kernel.

    The user is elementwise or a reduction. A contraction takes in only what leaves it a contraction (a transpose, a
    widening cast): its operands are otherwise computed before it. What can be the epilogue of a contraction stays
    that, unless its user can be too. Values keep their types, and so their roundings. Relies on decompose: other ops
    than `lin.generic` are left alone.
    """

    name = "fuse-elementwise"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    while _fuse_once(block):
                        pass


def _fuse_once(block: Block) -> bool:
    """Go through the block from its end once, and say whether something was fused.

    From the end, so that the product of a broadcast matmul meets its sum before its own operands meet it.
    """
    changed = False
    for producer in reversed(tuple(block.ops)):
        if not is_elementwise(producer) or not isinstance(producer, GenericOp):
            continue
        if is_dead(producer):
            Rewriter.erase_op(producer)
            continue
        fused = _fused_users(producer, block)
        if not fused:
            continue
        for user, replacement in fused:
            Rewriter.replace_op(user, replacement)
        users = "its user" if len(fused) == 1 else f"its {len(fused)} users"
        remark(producer, FuseElementwisePass.name, f"moved into the body of {users}")
        Rewriter.erase_op(producer)
        changed = True
    return changed


def _fused_users(producer: GenericOp, block: Block) -> list[tuple[GenericOp, GenericOp]]:
    """Every user of the producer with what replaces it; empty unless it can and should be fused into all of them."""
    users: list[GenericOp] = []
    for user in dict.fromkeys(use.operation for use in producer.result.uses):
        if not isinstance(user, GenericOp) or user.parent is not block or not _pays(producer, user):
            return []
        users.append(user)
    if len(users) > 1 and not (is_cheap(producer) and _end_up_together(producer, users)):
        return []
    fused: list[tuple[GenericOp, GenericOp]] = []
    for user in users:
        replacement = fuse_producer(user, producer)
        if replacement is not None:
            fused.append((user, replacement))
            if _stays_computable(user, replacement):
                continue
        for _, unwanted in fused:
            unwanted.erase()  # it counts as a user of its operands as long as it lives
        return []
    return fused


def _end_up_together(producer: GenericOp, users: list[GenericOp]) -> bool:
    """Whether the users are one kernel without the producer, as far as they and those that read them show."""
    awaited = set[Operation](users)
    for user in users:
        awaited.update(use.operation for use in user.result.uses)
    window: list[Operation] = []
    op: Operation | None = producer
    while op is not None and awaited:
        window.append(op)
        awaited.discard(op)
        op = op.next_op
    return Plan(window, alone=producer).same_group(users)


def _pays(producer: GenericOp, user: GenericOp) -> bool:
    """Whether the producer's value is better computed where this user reads it than stored."""
    if reads_at_positions(user, producer.result):
        return False
    if user.is_contraction and producer.access_attrs is not None:
        return False  # a contraction reads each element many times, and a plain operand in wide accesses
    reads = {indices for value, indices in zip(user.ins, user.operand_maps, strict=True) if value is producer.result}
    if len(reads) > 1 and not is_cheap(producer):
        return False  # it would be computed once for each map
    if moves_data_only(producer):
        return True
    if user.is_contraction and not _only_widens(producer):
        return False
    if any(_comes_from_contraction(value, producer) for value in producer.ins):
        # As an epilogue it costs no memory traffic; its value is mostly narrower than the accumulator.
        indices = next(iter(reads))
        same_dims = sorted(d for d in indices if d is not None) == list(range(user.iteration_dims))
        return is_elementwise(user) and same_dims and len(reads) == 1
    return True


def _only_widens(op: GenericOp) -> bool:
    """Whether the body is one widening cast, which a contraction may hold."""
    return isinstance(op.yielded.owner, arith.ExtFOp | arith.ExtSIOp) and len(op.body.block.ops) == 2


def _comes_from_contraction(value: Operation | object, reader: GenericOp) -> bool:
    return (
        isinstance(value, OpResult)
        and isinstance(value.op, GenericOp)
        and value.op.parent is reader.parent
        and value.op.is_contraction
    )


def _stays_computable(user: GenericOp, fused: GenericOp) -> bool:
    """Whether fusion leaves contractions alone: none is lost, and a new one is a matmul, not a dot product of rows."""
    if user.is_contraction:
        stretched = any(d is None for m in fused.operand_maps for d in m)
        return fused.is_contraction and not stretched
    return not fused.is_contraction or has_outer_product(fused)
