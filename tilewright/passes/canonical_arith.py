"""Canonicalization patterns for scalars: integer arithmetic of `arith`, and what holds exactly for floats."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilewright.passes.integer_folds import (
    ASSOCIATIVE,
    BINARY,
    COMMUTATIVE,
    COMPARISONS,
    EQUAL_OPERANDS,
    RIGHT_ABSORBING,
    RIGHT_UNIT,
    TRUE_ON_EQUAL,
    unsigned,
    wrap,
)
from tilewright.passes.rewriting import Pattern, Rewriter, pattern

_INDEX_WIDTH = 64


def width_of(type_: Attribute) -> int | None:
    """Bits of an integer or index type; None for any other."""
    if isinstance(type_, IntegerType):
        return type_.bitwidth
    return _INDEX_WIDTH if isinstance(type_, IndexType) else None


def constant_integer(value: SSAValue) -> int | None:
    """The signed integer that a value is, if an `arith.constant` of integer or index type defines it."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr):
        return None
    width = width_of(value.type)
    assert width is not None  # it is the attribute's type
    return wrap(op.value.value.data, width)


def constant_float(value: SSAValue) -> float | None:
    """The number that a value is, if an `arith.constant` of float type defines it."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.value
        if isinstance(attribute, FloatAttr):
            return attribute.value.data
    return None


def replace_by_constant(op: Operation, value: int, rewriter: Rewriter) -> None:
    """Replace the single result of `op` by an integer constant of its type, wrapped to its width."""
    type_ = op.results[0].type
    width = width_of(type_)
    assert width is not None  # those who call it looked
    attribute = IntegerAttr(wrap(value, width), cast("IntegerType | IndexType", type_))
    rewriter.replace(op, arith.ConstantOp(attribute))


@pattern(*BINARY)
def fold_integer_binary(op: Operation, rewriter: Rewriter) -> None:
    """Constants fold; units, absorbing elements and equal operands go; constants move to the right and meet there."""
    op_class = type(op)
    left, right = op.operands
    width = width_of(op.results[0].type)
    if width is None:
        return
    if left is right and op_class in EQUAL_OPERANDS:
        value = EQUAL_OPERANDS[op_class]
        if value is None:
            rewriter.replace(op, (), (left,))
        else:
            replace_by_constant(op, value, rewriter)
        return
    right_value = constant_integer(right)
    left_value = constant_integer(left)
    if right_value is None:
        if left_value is None:
            return
        if op_class in COMMUTATIVE:
            op.operands = (right, left)
            rewriter.notify_op_modified(op)
        return
    if left_value is not None:
        folded = BINARY[op_class](left_value, right_value, width)
        if folded is not None:
            replace_by_constant(op, folded, rewriter)
        return
    # In i1 the one is -1, and so is all ones: `wrap` makes the tables right for it.
    unit = RIGHT_UNIT.get(op_class)
    if unit is not None and right_value == wrap(unit, width):
        rewriter.replace(op, (), (left,))
        return
    for absorbing, result in RIGHT_ABSORBING.get(op_class, {}).items():
        if right_value == wrap(absorbing, width):
            replace_by_constant(op, result, rewriter)
            return
    if op_class in ASSOCIATIVE and isinstance(left, OpResult) and type(left.op) is op_class:
        inner_left, inner_right = left.op.operands
        inner_value = constant_integer(inner_right)
        folded = None if inner_value is None else BINARY[op_class](inner_value, right_value, width)
        if folded is not None:
            constant = arith.ConstantOp(IntegerAttr(wrap(folded, width), cast("IntegerType", right.type)))
            # The overflow flags of the two ops say nothing about the sum of their constants: the new op has none.
            flags = {"overflowFlags": arith.IntegerOverflowAttr("none")} if "overflowFlags" in op.properties else {}
            joined = op_class.create(
                operands=[inner_left, constant.result], result_types=[op.results[0].type], properties=flags
            )
            rewriter.replace(op, (constant, joined))


@pattern(arith.CmpiOp)
def fold_comparison(op: arith.CmpiOp, rewriter: Rewriter) -> None:
    """A comparison of constants, or of a value with itself, is a constant."""
    predicate = op.predicate.value.data
    if op.lhs is op.rhs:
        replace_by_constant(op, -int(predicate in TRUE_ON_EQUAL), rewriter)
        return
    left, right = constant_integer(op.lhs), constant_integer(op.rhs)
    width = width_of(op.lhs.type)
    if left is None or right is None or width is None:
        return
    replace_by_constant(op, -int(COMPARISONS[predicate](left, right, width)), rewriter)


@pattern(arith.SelectOp)
def fold_select(op: arith.SelectOp, rewriter: Rewriter) -> None:
    """A select by a constant, between equal values, or between true and false."""
    condition = constant_integer(op.cond)
    if condition is not None:
        rewriter.replace(op, (), (op.lhs if condition else op.rhs,))
    elif op.lhs is op.rhs:
        rewriter.replace(op, (), (op.lhs,))
    elif op.result.type == op.cond.type and constant_integer(op.lhs) == -1 and constant_integer(op.rhs) == 0:
        rewriter.replace(op, (), (op.cond,))


@pattern(arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
def fold_integer_cast(op: Operation, rewriter: Rewriter) -> None:
    """A cast of a constant is a constant; a cast there and back through a type as wide is the value."""
    source = op.operands[0]
    value = constant_integer(source)
    source_width = width_of(source.type)
    assert source_width is not None  # these ops take no vectors
    if value is not None:
        replace_by_constant(op, unsigned(value, source_width) if isinstance(op, arith.ExtUIOp) else value, rewriter)
        return
    if isinstance(source, OpResult) and isinstance(source.op, arith.IndexCastOp | arith.ExtSIOp | arith.ExtUIOp):
        original = source.op.operands[0]
        original_width = width_of(original.type)
        # Widening kept all bits, so narrowing back to the same type gives them.
        if (
            original.type == op.results[0].type
            and original_width is not None
            and original_width <= source_width
            and isinstance(op, arith.IndexCastOp | arith.TruncIOp)
        ):
            rewriter.replace(op, (), (original,))


@pattern(arith.MulfOp, arith.DivfOp)
def fold_float_unit(op: arith.MulfOp | arith.DivfOp, rewriter: Rewriter) -> None:
    """x * 1 and x / 1 are x exactly; x + 0 is not (x may be -0), and stays."""
    if constant_float(op.rhs) == 1.0:
        rewriter.replace(op, (), (op.lhs,))
    elif isinstance(op, arith.MulfOp) and constant_float(op.lhs) == 1.0:
        rewriter.replace(op, (), (op.rhs,))


@pattern(arith.TruncFOp)
def fold_widened_and_back(op: arith.TruncFOp, rewriter: Rewriter) -> None:
    """Widening a float is exact: narrowing back to the same type is the value. The other way round rounds."""
    source = op.input
    if isinstance(source, OpResult) and isinstance(source.op, arith.ExtFOp):
        original = source.op.input
        if isinstance(original.type, AnyFloat) and original.type == op.result.type:
            rewriter.replace(op, (), (original,))


PATTERNS: tuple[Pattern[Operation], ...] = (
    fold_integer_binary,
    fold_comparison,
    fold_select,
    fold_integer_cast,
    fold_float_unit,
    fold_widened_and_back,
)
"""All of them, for `apply_patterns`."""
