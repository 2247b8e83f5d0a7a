"""Canonicalization patterns for `lin`: ops that change nothing, and operands that a generic does not need."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import Block, Operation, OpResult
from xdsl.rewriter import InsertPoint

from tilewright.dialects.lin.elementwise import CastOp, MapOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.reduction import ReduceOp
from tilewright.dialects.lin.shapes import as_tensor, is_tensor
from tilewright.dialects.lin.transpose import TransposeOp
from tilewright.passes.generic_fusion import tidy_operands
from tilewright.passes.rewriting import Pattern, Rewriter, pattern


@pattern(TransposeOp)
def fold_transpose(op: TransposeOp, rewriter: Rewriter) -> None:
    """The identity permutation is the operand; a transpose of a transpose is one transpose."""
    if op.perm == tuple(range(len(op.perm))):
        if op.operand.type == op.result.type:
            rewriter.replace(op, (), (op.operand,))
        return
    source = op.operand
    if isinstance(source, OpResult) and isinstance(source.op, TransposeOp):
        inner = source.op
        # Result dim d is dim perm[d] of the value between, which is dim inner.perm[perm[d]] of the source.
        perm = [inner.perm[d] for d in op.perm]
        rewriter.replace(op, TransposeOp(inner.operand, perm, op.result.type))


@pattern(CastOp)
def fold_cast(op: CastOp, rewriter: Rewriter) -> None:
    """A cast to the operand's own type is the operand; widening from f16 or bf16 to f32 first changes nothing."""
    if op.operand.type == op.result.type:
        rewriter.replace(op, (), (op.operand,))
        return
    source = op.operand
    if isinstance(source, OpResult) and isinstance(source.op, CastOp):
        inner = source.op
        narrow = as_tensor(inner.operand.type).element_type
        if isinstance(narrow, Float16Type | BFloat16Type) and as_tensor(source.type).element_type == f32:
            if inner.operand.type == op.result.type:
                rewriter.replace(op, (), (inner.operand,))
            else:
                cast = CastOp.create(operands=[inner.operand], result_types=[op.result.type])
                rewriter.replace(op, cast)


@pattern(ReduceOp)
def fold_reduce_of_no_axis(op: ReduceOp, rewriter: Rewriter) -> None:
    """A reduction over no axis is the operand."""
    if not op.axes and op.operand.type == op.result.type:
        rewriter.replace(op, (), (op.operand,))


@pattern(MapOp, GenericOp)
def fold_identity_body(op: MapOp | GenericOp, rewriter: Rewriter) -> None:
    """An elementwise op that yields its argument, of the result's own type and in its own order, is that operand."""
    last = op.body.block.last_op
    assert last is not None  # a body ends in a yield of one value
    yielded = last.operands[0]
    if not isinstance(yielded.owner, Block) or yielded.owner is not op.body.block:
        return
    position = op.body.block.args.index(yielded)
    operand = op.ins[position]
    if operand.type != op.result.type:
        return
    if isinstance(op, GenericOp) and (
        op.combine_attr is not None or op.accesses[position] is not None or op.operand_maps[position] != op.out_map
    ):
        return
    rewriter.replace(op, (), (operand,))


@pattern(MapOp, GenericOp)
def move_constant_into_body(op: MapOp | GenericOp, rewriter: Rewriter) -> None:
    """A scalar operand that is a constant becomes a constant of the body."""
    for position, value in enumerate(op.ins):
        if is_tensor(value.type) or not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
            continue
        argument = op.body.block.args[position]
        if argument.first_use is None:
            continue
        constant = value.op.clone()
        rewriter.insert(constant, InsertPoint.at_start(op.body.block))
        rewriter.replace_all_uses_with(argument, constant.result)
        return


@pattern(GenericOp)
def tidy_generic(op: GenericOp, rewriter: Rewriter) -> None:
    """Operands that the body does not read, and those read twice at the same indices, go."""
    tidied = tidy_operands(op)
    if tidied is not None:
        rewriter.replace(op, tidied)


@pattern(MapOp)
def drop_unread_scalar(op: MapOp, rewriter: Rewriter) -> None:
    """A scalar operand of a map that its body does not read goes; a tensor stays, since it may give the shape."""
    kept = [
        position
        for position, value in enumerate(op.ins)
        if is_tensor(value.type) or op.body.block.args[position].first_use is not None
    ]
    if len(kept) == len(op.ins):
        return
    body = op.body.clone()
    for position in reversed(range(len(op.ins))):
        if position not in kept:
            body.block.erase_arg(body.block.args[position])
    rewriter.replace(op, MapOp([op.ins[p] for p in kept], op.result.type, body, dict(op.attributes)))


PATTERNS: tuple[Pattern[Operation], ...] = (
    fold_transpose,
    fold_cast,
    fold_reduce_of_no_axis,
    fold_identity_body,
    move_constant_into_body,
    tidy_generic,
    drop_unread_scalar,
)
"""All of them, for `apply_patterns`."""
