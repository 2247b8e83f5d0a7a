"""What the scalar ops of `arith` and `math` mean on NumPy arrays: one table for every executor.

`SCALAR_OPS[type(op)](op, args, mode)` takes one array for each operand (any shapes that broadcast) and returns the
result, in the carrier dtypes of `runtime.numerics`.
- "exact": floats are float64 and stay unrounded, but for values beyond the type's range, which become inf, and for
  the casts to a narrower float and from an integer, which round.
- "typed": f32 is computed in float32. f16 and bf16 are float32 arrays whose values the type has; each result is rounded
  to the type again, which for + - * / and sqrt is one correct rounding (Figueroa 1995: 24 >= 2*11 + 2 bits). Other
  functions, and fma, are computed in float64 and rounded once.

Chosen where MLIR leaves a result undefined: an integer division or remainder by zero is 0; the least integer divided by
-1 wraps; a shift by the width or more gives 0 (the sign for shrsi); float to integer saturates and NaN becomes 0.

Call `evaluate`, or hold `quiet()` around many calls: NumPy warns of what IEEE 754 defines (inf, NaN, wrapped integers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.erf import erf
from tilewright.runtime.numerics import (
    Array,
    float_format,
    fma_f32,
    integer_dtype,
    integer_width,
    overflow_to_inf,
    round_to,
)

Mode: TypeAlias = Literal["exact", "typed"]
ScalarFn: TypeAlias = Callable[[Operation, Sequence[Array], Mode], Array]
_Binary: TypeAlias = Callable[[Any, Any], Any]
_Unary: TypeAlias = Callable[[Any], Any]


def quiet() -> np.errstate:
    """A context in which NumPy computes inf, NaN and wrapped integers without a warning."""
    return np.errstate(all="ignore")


def evaluate(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    """The result of one scalar op on arrays; TilewrightError for an op that has no entry."""
    fn = SCALAR_OPS.get(type(op))
    if fn is None:
        raise TilewrightError(f"expected an arith or math op with a meaning on scalars, got {op.name}")
    with quiet():
        return fn(op, args, mode)


def carrier_dtype(element_type: Attribute, mode: Mode) -> np.dtype[Any]:
    """The dtype of arrays that carry values of this scalar type."""
    found = float_format(element_type)
    if found is None:
        return integer_dtype(element_type)
    return np.dtype(np.float64 if mode == "exact" or found.precision > 24 else np.float32)


def _result_type(op: Operation) -> Attribute:
    return op.results[0].type


def _settle(element_type: Attribute, values: Array, mode: Mode) -> Array:
    """A float result as the mode carries it: unrounded but for overflow, or rounded once to the type."""
    if mode == "exact":
        return overflow_to_inf(element_type, np.asarray(values, np.float64))
    dtype = carrier_dtype(element_type, mode)
    found = float_format(element_type)
    if found is not None and found.precision >= 24:
        return np.asarray(values).astype(dtype, copy=False)
    return round_to(element_type, np.asarray(values)).astype(dtype)


def _float_binary(fn: _Binary) -> ScalarFn:
    """Computed in the carrier dtype: correctly rounded functions, and exact ones."""

    def run(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
        return _settle(_result_type(op), fn(args[0], args[1]), mode)

    return run


def _float_unary(fn: _Unary) -> ScalarFn:
    def run(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
        return _settle(_result_type(op), fn(args[0]), mode)

    return run


def _wide(fn: Callable[..., Any]) -> ScalarFn:
    """Computed in float64 and rounded once: functions that no hardware rounds correctly."""

    def run(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
        return _settle(_result_type(op), fn(*(np.asarray(a, np.float64) for a in args)), mode)

    return run


def _maximum(a: Array, b: Array) -> Array:
    # NumPy leaves the sign of the greater zero open; +0 is greater than -0 here, as in IEEE 754-2019 maximum.
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), -(-a + -b), np.minimum(a, b))


def _integer(fn: _Binary) -> ScalarFn:
    """Signed integers of the operand's width; results wrap. i1 is -1 or 0 in 8 bits, of which the last counts."""

    def run(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
        element_type = op.operands[0].type
        if integer_width(element_type) == 1:
            narrow = np.asarray(fn(*(-np.asarray(a).astype(np.int8) for a in args)))
            return (narrow & 1).astype(np.bool_)
        return np.asarray(fn(args[0], args[1])).astype(integer_dtype(element_type), copy=False)

    return run


def _unsigned(fn: _Binary) -> ScalarFn:
    """The same bits seen as unsigned integers."""

    def run(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
        element_type = op.operands[0].type
        left, right = (_as_unsigned(element_type, a) for a in args)
        result = np.asarray(fn(left, right))
        if integer_width(element_type) == 1:
            return (result & 1).astype(np.bool_)
        return result.astype(left.dtype, copy=False).view(integer_dtype(element_type))

    return run


def _as_unsigned(element_type: Attribute, values: Array) -> Array:
    width = integer_width(element_type)
    if width == 1:
        return np.asarray(values).astype(np.uint8)
    return np.asarray(values, integer_dtype(element_type)).view(np.dtype(f"uint{width}"))


def _guarded(fn: _Binary) -> _Binary:
    """A division that gives 0 where the divisor is 0."""

    def run(a: Array, b: Array) -> Array:
        zero = b == 0
        return np.where(zero, 0, fn(a, np.where(zero, 1, b)))

    return run


def _truncated_quotient(a: Array, b: Array) -> Array:
    quotient: Array = np.floor_divide(a, b)
    # Floor and truncation differ by one where the exact quotient is negative and no integer.
    return quotient + (((a < 0) != (b < 0)) & (quotient * b != a))


def _ceil_quotient(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0)


def _shift(fn: _Binary, over: _Unary) -> _Binary:
    """A shift whose amount counts as unsigned; from the width on the result is `over(value)`."""

    def run(a: Array, b: Array) -> Array:
        width = 8 * a.dtype.itemsize
        legal = (b >= 0) & (b < width)
        shifted: Array = fn(a, np.where(legal, b, 0).astype(a.dtype))
        return np.where(legal, shifted, over(a))

    return run


def _constant(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    value = cast(arith.ConstantOp, op).value
    element_type = _result_type(op)
    if isinstance(value, FloatAttr):
        number = cast("FloatAttr[Any]", value).value.data
        return round_to(element_type, np.asarray(number)).astype(carrier_dtype(element_type, mode))
    if isinstance(value, IntegerAttr):
        bits = cast("IntegerAttr[Any]", value).value.data
        width = integer_width(element_type)
        if width == 1:
            return np.asarray(bool(bits & 1))
        wrapped = ((bits + (1 << (width - 1))) & ((1 << width) - 1)) - (1 << (width - 1))
        return np.asarray(wrapped, integer_dtype(element_type))
    raise TilewrightError(f"arith.constant: expected a float or integer value, got {value}")


def _cmpf(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return CMPF[cast(arith.CmpfOp, op).predicate.value.data](args[0], args[1])


def _cmpi(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    predicate = cast(arith.CmpiOp, op).predicate.value.data
    element_type = op.operands[0].type
    left, right = args
    if predicate >= 6:
        left, right = _as_unsigned(element_type, left), _as_unsigned(element_type, right)
    elif integer_width(element_type) == 1:
        # Signed i1 has the values 0 and -1.
        left, right = -np.asarray(left).astype(np.int8), -np.asarray(right).astype(np.int8)
    return CMPI[predicate](left, right)


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


CMPF: dict[int, _Binary] = {
    0: lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), np.bool_),
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: lambda a, b: (a != b) & ~_unordered(a, b),
    7: lambda a, b: ~_unordered(a, b),
    8: lambda a, b: (a == b) | _unordered(a, b),
    9: lambda a, b: (a > b) | _unordered(a, b),
    10: lambda a, b: (a >= b) | _unordered(a, b),
    11: lambda a, b: (a < b) | _unordered(a, b),
    12: lambda a, b: (a <= b) | _unordered(a, b),
    13: np.not_equal,
    14: _unordered,
    15: lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), np.bool_),
}
"""By the number of the predicate: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true."""

CMPI: dict[int, _Binary] = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
    6: np.less,
    7: np.less_equal,
    8: np.greater,
    9: np.greater_equal,
}
"""By the number of the predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""


def _select(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return np.where(args[0], args[1], args[2])


def _extf(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return np.asarray(args[0]).astype(carrier_dtype(_result_type(op), mode), copy=False)


def _round_cast(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    element_type = _result_type(op)
    return round_to(element_type, np.asarray(args[0])).astype(carrier_dtype(element_type, mode))


def _sitofp(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    source = np.asarray(args[0])
    if source.dtype == np.bool_:
        source = -source.astype(np.int8)
    element_type = _result_type(op)
    found = float_format(element_type)
    if source.dtype == np.int64 and found is not None and found.precision == 24:
        # float64 does not hold every int64; the direct cast rounds once.
        return source.astype(np.float32).astype(carrier_dtype(element_type, mode))
    return _round_cast(op, [source.astype(np.float64)], mode)


def _uitofp(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return _round_cast(op, [_as_unsigned(op.operands[0].type, args[0]).astype(np.float64)], mode)


def _fptosi(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    element_type = _result_type(op)
    width = integer_width(element_type)
    whole = np.trunc(np.asarray(args[0], np.float64))
    if width == 1:
        return (whole != 0) & ~np.isnan(whole)
    limit = 2.0 ** (width - 1)
    dtype = integer_dtype(element_type)
    info = np.iinfo(dtype)
    inside = (whole >= -limit) & (whole < limit)
    result = np.where(inside, whole, 0.0).astype(dtype)
    return np.where(whole >= limit, info.max, np.where(whole < -limit, info.min, result)).astype(dtype)


def _signed_cast(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    """Sign extension, truncation and index casts: the value modulo two to the width."""
    source, target = np.asarray(args[0]), _result_type(op)
    if source.dtype == np.bool_:
        source = -source.astype(np.int8)
    if integer_width(target) == 1:
        return (source & 1).astype(np.bool_)
    return source.astype(integer_dtype(target))


def _extui(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return _as_unsigned(op.operands[0].type, args[0]).astype(integer_dtype(_result_type(op)))


def _absi(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    return np.abs(args[0])


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _fma(op: Operation, args: Sequence[Array], mode: Mode) -> Array:
    if mode == "typed" and isinstance(_result_type(op), Float32Type):
        return fma_f32(args[0], args[1], args[2])
    a, b, c = (np.asarray(x, np.float64) for x in args)
    return _settle(_result_type(op), a * b + c, mode)


SCALAR_OPS: dict[type[Operation], ScalarFn] = {
    arith.ConstantOp: _constant,
    arith.AddfOp: _float_binary(np.add),
    arith.SubfOp: _float_binary(np.subtract),
    arith.MulfOp: _float_binary(np.multiply),
    arith.DivfOp: _float_binary(np.divide),
    arith.NegfOp: _float_unary(np.negative),
    arith.MaximumfOp: _float_binary(_maximum),
    arith.MinimumfOp: _float_binary(_minimum),
    arith.MaxnumfOp: _float_binary(np.fmax),
    arith.MinnumfOp: _float_binary(np.fmin),
    arith.AddiOp: _integer(np.add),
    arith.SubiOp: _integer(np.subtract),
    arith.MuliOp: _integer(np.multiply),
    arith.DivSIOp: _integer(_guarded(_truncated_quotient)),
    arith.FloorDivSIOp: _integer(_guarded(np.floor_divide)),
    arith.CeilDivSIOp: _integer(_guarded(_ceil_quotient)),
    arith.RemSIOp: _integer(_guarded(np.fmod)),
    arith.DivUIOp: _unsigned(_guarded(np.floor_divide)),
    arith.CeilDivUIOp: _unsigned(_guarded(_ceil_quotient)),
    arith.RemUIOp: _unsigned(_guarded(np.remainder)),
    arith.MaxSIOp: _integer(np.maximum),
    arith.MinSIOp: _integer(np.minimum),
    arith.MaxUIOp: _unsigned(np.maximum),
    arith.MinUIOp: _unsigned(np.minimum),
    arith.AndIOp: _integer(np.bitwise_and),
    arith.OrIOp: _integer(np.bitwise_or),
    arith.XOrIOp: _integer(np.bitwise_xor),
    arith.ShLIOp: _integer(_shift(np.left_shift, np.zeros_like)),
    arith.ShRSIOp: _integer(_shift(np.right_shift, lambda a: np.where(a < 0, -1, 0))),
    arith.ShRUIOp: _unsigned(_shift(np.right_shift, np.zeros_like)),
    arith.CmpfOp: _cmpf,
    arith.CmpiOp: _cmpi,
    arith.SelectOp: _select,
    arith.ExtFOp: _extf,
    arith.TruncFOp: _round_cast,
    arith.SIToFPOp: _sitofp,
    arith.UIToFPOp: _uitofp,
    arith.FPToSIOp: _fptosi,
    arith.ExtSIOp: _signed_cast,
    arith.ExtUIOp: _extui,
    arith.TruncIOp: _signed_cast,
    arith.IndexCastOp: _signed_cast,
    math.AbsFOp: _float_unary(np.abs),
    math.AbsIOp: _absi,
    math.SqrtOp: _float_unary(np.sqrt),
    math.FloorOp: _float_unary(np.floor),
    math.CeilOp: _float_unary(np.ceil),
    math.RoundEvenOp: _float_unary(np.rint),
    math.ExpOp: _wide(np.exp),
    math.Exp2Op: _wide(np.exp2),
    math.LogOp: _wide(np.log),
    math.Log2Op: _wide(np.log2),
    math.RsqrtOp: _wide(_rsqrt),
    math.TanhOp: _wide(np.tanh),
    math.ErfOp: _wide(erf),
    math.SinOp: _wide(np.sin),
    math.CosOp: _wide(np.cos),
    math.PowFOp: _wide(np.power),
    math.FmaOp: _fma,
}
"""The one table; each entry is called as `fn(op, args, mode)` inside `quiet()`."""
