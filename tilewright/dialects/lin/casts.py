"""Conversion between scalar element types, as ops of `arith`."""

from __future__ import annotations

from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from tilewright.diagnostics import TilewrightError


def accumulator_type(element_type: Attribute) -> Attribute:
    """The type in which values of `element_type` are added and multiplied: f32 for f16 and bf16, else the type."""
    return f32 if isinstance(element_type, Float16Type | BFloat16Type) else element_type


def constant(builder: Builder, value: float, element_type: Attribute) -> SSAValue:
    """A scalar constant of a float, integer or index type."""
    return builder.insert(arith.ConstantOp(constant_attribute(value, element_type))).result


def constant_attribute(value: float, element_type: Attribute) -> FloatAttr | IntegerAttr:
    """`value` as a constant of a float, integer or index type."""
    if isinstance(element_type, AnyFloat):
        return FloatAttr(float(value), element_type)
    if isinstance(element_type, IntegerType | IndexType):
        return IntegerAttr(int(value), cast("IntegerType[int] | IndexType", element_type))
    raise TilewrightError(f"expected a float, integer or index element type, got {element_type}")


def cast_scalar(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    """`value` converted to `target`.

    Floats round to nearest even; f16 and bf16 meet through f32. Integers become floats through f32 as well: one
    rounding to f32, one to the target. Floats become integers by truncation towards zero; i1 is unsigned, and a number
    becomes true when it is not zero.
    """
    source = value.type
    if source == target:
        return value
    if isinstance(source, AnyFloat):
        return _from_float(builder, value, target)
    if isinstance(source, IntegerType | IndexType):
        return _from_integer(builder, value, target)
    raise TilewrightError(f"expected a float, integer or index to cast, got {source}")


def _from_float(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    if target == i1:
        zero = constant(builder, 0, value.type)
        return builder.insert(arith.CmpfOp(value, zero, "une")).result
    if value.type != f32:
        value = builder.insert(arith.ExtFOp(value, f32)).result
    if target == f32:
        return value
    if isinstance(target, AnyFloat):
        return builder.insert(arith.TruncFOp(value, target)).result
    if isinstance(target, IndexType):
        wide = builder.insert(arith.FPToSIOp(value, i64)).result
        return builder.insert(arith.IndexCastOp(wide, target)).result
    if not isinstance(target, IntegerType):
        raise TilewrightError(f"expected a cast between element types of lin, got {value.type} to {target}")
    return builder.insert(arith.FPToSIOp(value, cast("IntegerType[int]", target))).result


def _from_integer(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    if target == i1:
        zero = constant(builder, 0, value.type)
        return builder.insert(arith.CmpiOp(value, zero, "ne")).result
    if value.type == i1:
        value = builder.insert(arith.ExtUIOp(value, i64 if isinstance(target, IndexType) else i32)).result
        return cast_scalar(builder, value, target)
    if isinstance(target, AnyFloat):
        if isinstance(value.type, IndexType):
            value = builder.insert(arith.IndexCastOp(value, i64)).result
        single = builder.insert(arith.SIToFPOp(value, f32)).result
        return cast_scalar(builder, single, target)
    if isinstance(target, IndexType) or isinstance(value.type, IndexType):
        return builder.insert(arith.IndexCastOp(value, target)).result
    raise TilewrightError(f"expected a cast between element types of lin, got {value.type} to {target}")
