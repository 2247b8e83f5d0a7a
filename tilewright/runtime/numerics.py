"""How NumPy carries the scalar types of the IR: carrier dtypes, one correct rounding, ulps and overflow.

Floats of up to 32 bits are carried as float32 (typed mode) or float64 (exact mode), f16 and bf16 among them: their
values are float32 values already. i1 is bool, i32 int32, i64 and index int64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """An IEEE-like binary format: its bits of significand (the hidden one included) and its exponent range."""

    dtype: np.dtype[Any]
    """What holds it in memory."""
    precision: int
    min_exponent: int
    """Exponent of the least normal number."""
    max_exponent: int
    """Exponent of the greatest number."""

    @property
    def unit_roundoff(self) -> float:
        """Half an ulp of 1: the greatest relative error of one rounding."""
        return 2.0**-self.precision

    @property
    def overflow(self) -> float:
        """The least magnitude that rounds to infinity."""
        return (2.0 - 2.0**-self.precision) * 2.0**self.max_exponent


_FORMATS: dict[type[Attribute], FloatFormat] = {
    Float64Type: FloatFormat(np.dtype(np.float64), 53, -1022, 1023),
    Float32Type: FloatFormat(np.dtype(np.float32), 24, -126, 127),
    Float16Type: FloatFormat(np.dtype(np.float16), 11, -14, 15),
    BFloat16Type: FloatFormat(np.dtype(ml_dtypes.bfloat16), 8, -126, 127),
}


def float_format(element_type: Attribute) -> FloatFormat | None:
    """The format of a float type; None for integers and index."""
    return _FORMATS.get(type(element_type))


def integer_width(element_type: Attribute) -> int:
    """Bits of an integer type; index counts 64."""
    if isinstance(element_type, IndexType):
        return 64
    if isinstance(element_type, IntegerType):
        return cast("IntegerType[int]", element_type).width.data
    raise TilewrightError(f"expected an integer or index type, got {element_type}")


def integer_dtype(element_type: Attribute) -> np.dtype[Any]:
    """The signed dtype that holds an integer type exactly; bool for i1."""
    width = integer_width(element_type)
    if width == 1:
        return np.dtype(np.bool_)
    if width not in (8, 16, 32, 64):
        raise TilewrightError(f"expected an integer of 1, 8, 16, 32 or 64 bits, got {element_type}")
    return np.dtype(f"int{width}")


def storage_dtype(element_type: Attribute) -> np.dtype[Any]:
    """The dtype of an array that holds elements of this type in memory."""
    found = float_format(element_type)
    return integer_dtype(element_type) if found is None else found.dtype


def round_to(element_type: Attribute, values: Array) -> Array:
    """float64 or float32 values rounded once, to nearest even, to a float type; float64 out, inf beyond its range."""
    wide = np.asarray(values, np.float64)
    found = float_format(element_type)
    if found is None:
        raise TilewrightError(f"expected a float type to round to, got {element_type}")
    with np.errstate(all="ignore"):
        if isinstance(element_type, BFloat16Type):
            # ml_dtypes narrows through float32; rounding to odd first keeps that from rounding twice.
            return _to_odd_float32(wide).astype(found.dtype).astype(np.float64)
        return wide.astype(found.dtype).astype(np.float64)


def _to_odd_float32(wide: Array) -> Array:
    """float64 to float32, rounded to odd: an inexact result has its last bit set (Boldo and Melquiond, 2008)."""
    near = np.atleast_1d(wide.astype(np.float32))
    exact = np.atleast_1d(wide)
    bits = near.view(np.uint32).copy()
    inexact = (near != exact) & ~np.isnan(exact)
    bits[np.abs(near) > np.abs(exact)] -= 1
    bits[inexact] |= 1
    return bits.view(np.float32).reshape(wide.shape)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32 arrays rounded once to float32, as one fused multiply-add; under `errstate`."""
    # The product is exact in float64. The sum is rounded to float64 and then again, which goes wrong only where the
    # first result is halfway between two float32 values (29 bits are dropped), or near their subnormal ones.
    total = np.asarray(np.multiply(a, b, dtype=np.float64))
    if total.shape == np.broadcast_shapes(total.shape, c.shape):
        np.add(total, c, out=total)
    else:
        total = np.asarray(np.add(total, c, dtype=np.float64))
    result = total.astype(np.float32)
    dropped = total.view(np.int64) & 0x1FFFFFFF
    doubtful = dropped == 0x10000000
    tiny = np.abs(result) < np.float32(2.0**-125)
    if tiny.any():
        doubtful |= tiny & (total != 0)
    if doubtful.any():
        x, y, z = (np.broadcast_to(each, total.shape)[doubtful].astype(np.float64) for each in (a, b, c))
        result[doubtful] = _sum_to_odd(x * y, z).astype(np.float32)
    return result


def _sum_to_odd(a: Array, b: Array) -> Array:
    """a + b in float64, where inexact with the last bit set: rounding that once more is one rounding (Boldo and
    Melquiond, 2008). What the sum lacks is known exactly (TwoSum, Knuth)."""
    total = a + b
    back = total - a
    missing = (a - (total - back)) + (b - back)
    inexact = np.isfinite(missing) & (missing != 0)
    away = inexact & ((missing < 0) == (total > 0))
    toward = np.where(away, np.nextafter(total, 0.0), total)
    return (toward.view(np.int64) | inexact).view(np.float64)


def ulp(element_type: Attribute, values: Array) -> Array:
    """The distance between neighbours of a float type at each magnitude, as float64; 0 at inf and NaN."""
    found = float_format(element_type)
    if found is None:
        raise TilewrightError(f"expected a float type, got {element_type}")
    magnitude = np.abs(np.asarray(values, np.float64))
    _, exponent = np.frexp(magnitude)
    # frexp gives [0.5, 1), so the leading bit has weight 2^(exponent - 1); below the normal range spacing is constant.
    # frexp gives zero the exponent 0.
    exponent = np.where(magnitude == 0, found.min_exponent, exponent)
    leading = np.clip(exponent - 1, found.min_exponent, found.max_exponent)
    return np.where(np.isfinite(magnitude), np.ldexp(1.0, leading - (found.precision - 1)), 0.0)


def overflow_to_inf(element_type: Attribute, values: Array) -> Array:
    """float64 values with those that round beyond the type's range replaced by inf; the others stay unrounded."""
    found = float_format(element_type)
    if found is None or found.precision == 53:
        return values
    return np.where(np.abs(values) >= found.overflow, np.copysign(np.inf, values), values)


def expect_possible(shape: tuple[int, ...], size: int) -> None:
    """An error for a tensor that no memory holds: of a negative size, or of more bytes than an address space has."""
    if min(shape, default=0) < 0:
        raise TilewrightError(f"expected sizes of at least 0, got a tensor of shape {shape}")
    if size >= 1 << 62:
        raise TilewrightError(f"out of memory: a tensor of shape {shape} takes {size} bytes")
