"""C types and literals of scalar types. Literals are exact: a float is written such that it reads back as its bits."""

from __future__ import annotations

import math
import struct
from typing import Any, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError

_INTEGERS = {1: "bool", 8: "signed char", 16: "short", 32: "int", 64: "long long"}
_UNSIGNED = {1: "bool", 8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}
_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "__half",
    BFloat16Type: "__nv_bfloat16",
    Float32Type: "float",
    Float64Type: "double",
}


def integer_width(type_: Attribute) -> int | None:
    """Bits of an integer type that C++ has, else None."""
    if isinstance(type_, IntegerType):
        width = cast("IntegerType[int]", type_).width.data
        return width if width in _INTEGERS else None
    return None


def c_type(type_: Attribute) -> str:
    """The C++ type of a scalar; TilewrightError for a type that has none (`index`, tensors)."""
    width = integer_width(type_)
    found = _INTEGERS[width] if width is not None else _FLOATS.get(type(type_))
    if found is None:
        raise TilewrightError(f"expected a scalar of type i1, i8, i16, i32, i64, f16, bf16, f32 or f64, got {type_}")
    return found


def unsigned_type(type_: Attribute) -> str:
    """The unsigned C++ type of an integer type's width."""
    width = integer_width(type_)
    if width is None:
        raise TilewrightError(f"expected an integer of 1, 8, 16, 32 or 64 bits, got {type_}")
    return _UNSIGNED[width]


def is_short_float(type_: Attribute) -> bool:
    """Whether the type is f16 or bf16, which compute in f32."""
    return isinstance(type_, Float16Type | BFloat16Type)


def literal(value: Attribute) -> str:
    """A constant attribute as a C++ expression of its type."""
    if isinstance(value, IntegerAttr):
        integer = cast("IntegerAttr[Any]", value)
        return _integer(integer.value.data, integer.type)
    if isinstance(value, FloatAttr):
        floating = cast("FloatAttr[Any]", value)
        return _float(floating.value.data, floating.type)
    raise TilewrightError(f"expected an integer or float constant, got {value}")


def _integer(value: int, type_: Attribute) -> str:
    width = integer_width(type_)
    if width is None:
        raise TilewrightError(f"expected an integer constant of 1, 8, 16, 32 or 64 bits, got {type_}")
    if width == 1:
        return "true" if value else "false"
    # Attributes may hold the unsigned reading of the same bits.
    value = (value + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    suffix = "LL" if width == 64 else ""
    if value == -(1 << (width - 1)) and width >= 32:
        # The literal without its sign does not fit the type.
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def _float(value: float, type_: Attribute) -> str:
    if isinstance(type_, Float32Type):
        bits = round_to_f32(value)
        exact: float = struct.unpack("<f", struct.pack("<I", bits))[0]
        if not math.isfinite(exact):
            return f"__int_as_float(0x{bits:08x})"
        return _signed(f"{exact!r}f")
    if isinstance(type_, Float64Type):
        if not math.isfinite(value):
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
            return f"__longlong_as_double(0x{bits:016x}LL)"
        return _signed(repr(value))
    if isinstance(type_, Float16Type):
        return f"tw_f16_bits(0x{_f16_bits(value):04x})"
    if isinstance(type_, BFloat16Type):
        return f"tw_bf16_bits(0x{_bf16_bits(value):04x})"
    raise TilewrightError(f"expected a constant of type f16, bf16, f32 or f64, got {type_}")


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def round_to_f32(value: float) -> int:
    """The bits of the nearest f32, ties to even; beyond the range an infinity."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def _f16_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0xFC00 if value < 0 else 0x7C00


def _bf16_bits(value: float) -> int:
    """The nearest bf16, ties to even, straight from the f64 so that it rounds once."""
    if math.isnan(value):
        return 0xFFC0 if math.copysign(1.0, value) < 0 else 0x7FC0
    sign = 0x8000 if math.copysign(1.0, value) < 0 else 0
    magnitude = abs(value)
    if math.isinf(magnitude):
        return sign | 0x7F80
    if magnitude == 0.0:
        return sign
    # 8 significant bits; below the least normal 2^-126 the unit stays 2^-133.
    exponent = max(math.frexp(magnitude)[1] - 8, -133)
    units = round(math.ldexp(magnitude, -exponent))  # exact scaling, then ties to even
    bits = units if exponent == -133 else units + ((exponent + 133) << 7)
    return sign | min(bits, 0x7F80)
