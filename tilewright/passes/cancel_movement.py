"""Pass `cancel-movement`: pairs of data movements that undo one another, or are one movement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilewright.dialects.lin.concat import ConcatOp
from tilewright.dialects.lin.pad import PadOp
from tilewright.dialects.lin.requirements import facts_around, require
from tilewright.dialects.lin.reshape import ReshapeOp
from tilewright.dialects.lin.shapes import equal_dims, shape_of
from tilewright.dialects.lin.slice import SliceOp
from tilewright.dialects.sym import Answer, CastOp, Expr, Relation
from tilewright.passes.canonical_lin import fold_transpose
from tilewright.passes.core import TilewrightPass
from tilewright.passes.rewriting import Pattern, Rewriter, apply_patterns, pattern

_OpT = TypeVar("_OpT", bound=Operation)


@dataclass(frozen=True)
class CancelMovementPass(TilewrightPass):
    """Removes movements of data that earlier ones make superfluous, where the sizes are proved to fit.

    A transpose of a transpose, a reshape of a reshape and a slice of a slice become one; a slice of everything is its
    operand; neighbouring slices of one tensor that are joined again are one slice; a slice that takes a single operand
    of a concat, or nothing of what a pad added, skips it. What the removed ops required of the sizes stays, as
    `sym.require` where it is not proved. Relies on infer-shapes.
    """

    name = "cancel-movement"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, PATTERNS, erase_dead=True)


def _made_by(value: SSAValue, op_class: type[_OpT]) -> _OpT | None:
    """The op of this class that makes a value, if one does."""
    return value.op if isinstance(value, OpResult) and isinstance(value.op, op_class) else None


def _replace(op: Operation, rewriter: Rewriter, value: SSAValue, type_: Attribute) -> None:
    """`value` in the place of the op's result, in the type that its users know."""
    if value.type == type_:
        rewriter.replace(op, (), (value,))
    else:
        rewriter.replace(op, CastOp(value, type_))


def _proved(op: Operation, relations: Sequence[Relation]) -> bool:
    """Whether all relations hold for certain."""
    facts = facts_around(op)
    return all(facts.prove(r) is Answer.PROVED for r in relations)


@pattern(ReshapeOp)
def fold_reshape(op: ReshapeOp, rewriter: Rewriter) -> None:
    """A reshape of a reshape is one reshape; a reshape to the sizes that are there is the operand."""
    before, after = shape_of(op.operand.type), shape_of(op.result.type)
    if len(before) == len(after) and all(equal_dims(op, a, b) for a, b in zip(before, after, strict=True)):
        _replace(op, rewriter, op.operand, op.result.type)
        return
    inner = _made_by(op.operand, ReshapeOp)
    if inner is not None:
        require(inner, rewriter, inner.requirements())
        rewriter.replace(op, ReshapeOp(inner.operand, after))


@pattern(SliceOp)
def fold_whole_slice(op: SliceOp, rewriter: Rewriter) -> None:
    """A slice of everything is the operand."""
    whole = all(
        offset.constant == 0 and step == 1 and equal_dims(op, n, size)
        for offset, step, n, size in zip(op.offsets, op.strides, op.sizes, shape_of(op.operand.type), strict=True)
    )
    if whole:
        _replace(op, rewriter, op.operand, op.result.type)


@pattern(SliceOp)
def fold_slice_of_slice(op: SliceOp, rewriter: Rewriter) -> None:
    """A slice of a slice is one slice."""
    inner = _made_by(op.operand, SliceOp)
    if inner is None:
        return
    require(inner, rewriter, inner.requirements())
    require(op, rewriter, op.requirements())
    offsets = [a + s * b for a, s, b in zip(inner.offsets, inner.strides, op.offsets, strict=True)]
    strides = [s * t for s, t in zip(inner.strides, op.strides, strict=True)]
    rewriter.replace(op, SliceOp(inner.operand, offsets, op.sizes, strides, op.result.type))


@pattern(SliceOp)
def fold_slice_of_pad(op: SliceOp, rewriter: Rewriter) -> None:
    """A slice that takes nothing of what a pad added is a slice of what was padded."""
    inner = _made_by(op.operand, PadOp)
    if inner is None:
        return
    offsets = [a - low for a, low in zip(op.offsets, inner.low, strict=True)]
    moved = SliceOp(inner.operand, offsets, op.sizes, op.strides, op.result.type)
    if _proved(op, moved.requirements()):
        require(inner, rewriter, inner.requirements())
        rewriter.replace(op, moved)
    else:
        moved.erase()


@pattern(SliceOp)
def fold_slice_of_concat(op: SliceOp, rewriter: Rewriter) -> None:
    """A slice that lies in one operand of a concat is a slice of that operand."""
    inner = _made_by(op.operand, ConcatOp)
    if inner is None:
        return
    require_rest = op.requirements()
    for operand, start in zip(inner.ins, inner.starts(), strict=True):
        offsets = [a - start if d == inner.axis else a for d, a in enumerate(op.offsets)]
        moved = SliceOp(operand, offsets, op.sizes, op.strides, op.result.type)
        # Along the other dims the operand is as large as the result.
        wanted = moved.requirements()[3 * inner.axis : 3 * inner.axis + 3]
        if _proved(op, wanted):
            require(op, rewriter, require_rest)
            rewriter.replace(op, moved)
            return
        moved.erase()


@pattern(ConcatOp)
def fold_concat_of_slices(op: ConcatOp, rewriter: Rewriter) -> None:
    """One operand is the result; slices of one tensor that follow one another along the axis are one slice."""
    if len(op.ins) == 1:
        _replace(op, rewriter, op.ins[0], op.result.type)
        return
    values: list[SSAValue] = []
    for value in op.ins:
        joined = _joined(op, values[-1], value, rewriter) if values else None
        if joined is None:
            values.append(value)
        else:
            values[-1] = joined
    if len(values) < len(op.ins):
        rewriter.replace(op, ConcatOp(values, op.axis, op.result.type))


def _joined(op: ConcatOp, left: SSAValue, right: SSAValue, rewriter: Rewriter) -> SSAValue | None:
    """The slice that two neighbouring operands of a concat are together, or None."""
    a, b = _made_by(left, SliceOp), _made_by(right, SliceOp)
    if a is None or b is None or a.operand is not b.operand or any(s != 1 for s in (*a.strides, *b.strides)):
        return None
    for d in range(len(a.offsets)):
        expected = a.offsets[d] + (a.sizes[d] if d == op.axis else 0)
        if not equal_dims(op, b.offsets[d], expected):
            return None
    require(a, rewriter, a.requirements())
    require(b, rewriter, b.requirements())
    sizes: list[Expr] = [n + b.sizes[d] if d == op.axis else n for d, n in enumerate(a.sizes)]
    return rewriter.insert(SliceOp(a.operand, a.offsets, sizes)).result


PATTERNS: tuple[Pattern[Operation], ...] = (
    fold_transpose,
    fold_reshape,
    fold_whole_slice,
    fold_slice_of_slice,
    fold_slice_of_pad,
    fold_slice_of_concat,
    fold_concat_of_slices,
)
"""All of them, for `apply_patterns`."""
