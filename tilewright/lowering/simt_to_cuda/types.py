"""How scalar types and constants are spelled. Literals are exact: a float reads back as its bits."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Spelling:
    """How a language of the C++ family spells scalar types, casts and constants. Types are found by width or class."""

    integers: Mapping[int, str]
    """Signed integers: 8, 16, 32 and 64 bits as the language has them; 1 is a bool."""
    unsigned: Mapping[int, str]
    floats: Mapping[type[Attribute], str]
    cast: str = "static_cast<{type}>({value})"
    long_suffix: str = "LL"
    """Behind a constant of 64 bits."""
    function_suffix: str = "f"
    """Behind the name of a mathematical function of f32; those of f64 have none."""

    def type(self, type_: Attribute) -> str:
        """The type's name; TilewrightError for a type that has none (`index`, tensors)."""
        width = integer_width(type_)
        found = self.integers.get(width) if width is not None else self.floats.get(type(type_))
        if found is None:
            names = ", ".join([*(f"i{width}" for width in self.integers), *(f.name for f in self.floats)])
            raise TilewrightError(f"expected a scalar of type {names}, got {type_}")
        return found

    def unsigned_type(self, type_: Attribute) -> str:
        """The name of the unsigned integer of an integer type's width."""
        width = integer_width(type_)
        if width is None or width not in self.unsigned:
            raise TilewrightError(f"expected an integer of {_widths(self.unsigned)} bits, got {type_}")
        return self.unsigned[width]

    def cast_to(self, type_: Attribute, value: str) -> str:
        """A value converted to a scalar type."""
        return self.cast.format(type=self.type(type_), value=value)

    def literal(self, value: Attribute) -> str:
        """A constant attribute as an expression of its type, exact: a float reads back as its bits."""
        if isinstance(value, IntegerAttr):
            integer = cast("IntegerAttr[Any]", value)
            return _integer(integer.value.data, integer.type, self.long_suffix)
        if isinstance(value, FloatAttr):
            floating = cast("FloatAttr[Any]", value)
            return _float(floating.value.data, floating.type)
        raise TilewrightError(f"expected an integer or float constant, got {value}")


CUDA_CPP = Spelling(
    integers={1: "bool", 8: "signed char", 16: "short", 32: "int", 64: "long long"},
    unsigned={1: "bool", 8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"},
    floats={Float16Type: "__half", BFloat16Type: "__nv_bfloat16", Float32Type: "float", Float64Type: "double"},
)
"""CUDA C++, with the types of NVIDIA's headers for 16-bit floats."""


def integer_width(type_: Attribute) -> int | None:
    """Bits of an integer type that kernels may have, else None."""
    if isinstance(type_, IntegerType):
        width = cast("IntegerType[int]", type_).width.data
        return width if width in (1, 8, 16, 32, 64) else None
    return None


def _widths(widths: Iterable[int]) -> str:
    *others, last = (str(width) for width in widths)
    return f"{', '.join(others)} or {last}" if others else last


def is_short_float(type_: Attribute) -> bool:
    """Whether the type is f16 or bf16, which compute in f32."""
    return isinstance(type_, Float16Type | BFloat16Type)


def literal(value: Attribute) -> str:
    """A constant attribute as a CUDA C++ expression of its type."""
    return CUDA_CPP.literal(value)


def _integer(value: int, type_: Attribute, long_suffix: str) -> str:
    width = integer_width(type_)
    if width is None:
        raise TilewrightError(f"expected an integer constant of 1, 8, 16, 32 or 64 bits, got {type_}")
    if width == 1:
        return "true" if value else "false"
    # Attributes may hold the unsigned reading of the same bits.
    value = (value + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    suffix = long_suffix if width == 64 else ""
    if value == -(1 << (width - 1)) and width >= 32:
        # The literal without its sign does not fit the type.
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def _float(value: float, type_: Attribute) -> str:
    # FloatAttr has rounded the value to its type.
    if isinstance(type_, Float32Type):
        if not math.isfinite(value):
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            return f"__int_as_float(0x{bits:08x})"
        return _signed(f"{value!r}f")
    if isinstance(type_, Float64Type):
        if not math.isfinite(value):
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
            return f"__longlong_as_double(0x{bits:016x}LL)"
        return _signed(repr(value))
    if isinstance(type_, Float16Type):
        bits = struct.unpack("<H", struct.pack("<e", value))[0]
        return f"tw_f16_bits(0x{bits:04x})"
    if isinstance(type_, BFloat16Type):
        return f"tw_bf16_bits(0x{_bf16_bits(value):04x})"
    raise TilewrightError(f"expected a constant of type f16, bf16, f32 or f64, got {type_}")


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


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
