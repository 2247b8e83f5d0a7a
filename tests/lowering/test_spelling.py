"""Constants as CUDA C++ spells them, at the ends of their ranges, and types that have no spelling."""

from __future__ import annotations

import math

import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float80Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.lowering import host_variants
from tilewright.lowering.lin_to_tile.builder import constant_attribute
from tilewright.lowering.simt_to_cuda.types import CUDA_CPP, literal
from tilewright.lowering.tile_to_simt import state
from tilewright.passes.element_size import bytes_of

F16, BF16 = Float16Type(), BFloat16Type()


# Bits as IEEE 754 has them: sign, exponent, fraction; beyond the greatest finite number lies infinity.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (IntegerAttr(-1, i1), "true"),
        (IntegerAttr(0, i1), "false"),
        (IntegerAttr(-(1 << 31), i32), "(-2147483647 - 1)"),
        (IntegerAttr(-(1 << 63), i64), "(-9223372036854775807LL - 1)"),
        (FloatAttr(1e300, f32), "__int_as_float(0x7f800000)"),
        (FloatAttr(-1e300, f32), "__int_as_float(0xff800000)"),
        (FloatAttr(math.inf, f64), "__longlong_as_double(0x7ff0000000000000LL)"),
        (FloatAttr(-math.inf, f64), "__longlong_as_double(0xfff0000000000000LL)"),
        (FloatAttr(1e6, F16), "tw_f16_bits(0x7c00)"),
        (FloatAttr(-1e6, F16), "tw_f16_bits(0xfc00)"),
        (FloatAttr(math.nan, BF16), "tw_bf16_bits(0x7fc0)"),
        (FloatAttr(math.copysign(math.nan, -1.0), BF16), "tw_bf16_bits(0xffc0)"),
        (FloatAttr(-math.inf, BF16), "tw_bf16_bits(0xff80)"),
        (FloatAttr(1e39, BF16), "tw_bf16_bits(0x7f80)"),
        (FloatAttr(-0.0, BF16), "tw_bf16_bits(0x8000)"),
    ],
)
def test_constants(value: Attribute, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (StringAttr("1"), 'expected an integer or float constant, got "1"'),
        (IntegerAttr(1, 7), "expected an integer constant of 1, 8, 16, 32 or 64 bits, got i7"),
        (FloatAttr(1.0, Float80Type()), "expected a constant of type f16, bf16, f32 or f64, got f80"),
    ],
)
def test_what_is_no_constant(value: Attribute, message: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        literal(value)
    assert caught.value.message == message


def test_types_without_a_name() -> None:
    with pytest.raises(TilewrightError, match=r"expected a scalar of type i1, i8, i16, i32, i64, .*f64, got index"):
        CUDA_CPP.type(IndexType())
    with pytest.raises(TilewrightError, match="expected an integer of 1, 8, 16, 32 or 64 bits, got f32"):
        CUDA_CPP.unsigned_type(f32)


def test_bytes_of_elements() -> None:
    assert [bytes_of(t) for t in (i1, i32, F16, f64, IndexType())] == [1, 4, 2, 8, 8]
    assert [host_variants.element_bytes(t) for t in (i1, i32, F16, f64, IndexType())] == [1, 4, 2, 8, 8]
    assert [state.element_bytes(t) for t in (i1, i32, F16, f64, IndexType())] == [1, 4, 2, 8, 8]


def test_what_is_no_element() -> None:
    what = StringAttr("x")
    with pytest.raises(TilewrightError, match="expected a float or integer element type"):
        bytes_of(what)
    with pytest.raises(TilewrightError, match="expected a float or integer element type"):
        state.element_bytes(what)
    with pytest.raises(TilewrightError, match="expected a float or integer element type"):
        constant_attribute(0.0, what)
    with pytest.raises(TypeError, match="no element of a buffer"):
        host_variants.element_bytes(what)


def test_a_constant_of_type_index() -> None:
    assert constant_attribute(3.0, IndexType()) == IntegerAttr(3, IndexType())
