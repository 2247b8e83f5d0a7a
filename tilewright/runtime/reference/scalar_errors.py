"""How errors pass through the scalar ops of `arith` and `math`: one table beside the table of their values.

A smooth op brings what its operands' errors become and 4 ulps of its type, which covers one rounding, contraction to
fma and the errors that CUDA documents for its single precision functions (C++ Programming Guide, mathematical
functions: 2 ulp for exp, log, tanh, erf, sin, cos; 4 for pow).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.numerics import Array, float_format, ulp
from tilewright.runtime.reference.bounded import NO_ERROR, Bounded, distance, monotone, settle
from tilewright.runtime.scalar_ops import SCALAR_OPS

ErrorFn: TypeAlias = Callable[[Operation, Sequence[Bounded], Array], Array]

ULPS = 4.0
"""What one scalar op may be off by itself, in ulps of its type."""


def evaluate_bounded(op: Operation, args: Sequence[Bounded]) -> Bounded:
    """One scalar op on bounded values; TilewrightError for an op without an entry. Call it inside `quiet()`."""
    value_fn, error_fn = SCALAR_OPS.get(type(op)), ERRORS.get(type(op))
    if value_fn is None or error_fn is None:
        raise TilewrightError(f"expected an arith or math op with a meaning on scalars, got {op.name}")
    value = np.asarray(value_fn(op, [a.value for a in args], "exact"))
    return Bounded(value, settle(op.results[0].type, value, error_fn(op, args, value)))


def _own(op: Operation, value: Array) -> Array:
    return ULPS * ulp(op.results[0].type, value)


def _overflowed(args: Sequence[Bounded], value: Array, error: Array) -> Array:
    """inf where finite operands that are not exact gave an infinity: a nearby execution may stay finite."""
    finite = np.ones((), np.bool_)
    uncertain = np.zeros((), np.bool_)
    for a in args:
        finite = finite & np.isfinite(a.value)
        uncertain = uncertain | (a.error > 0)
    return np.where(finite & uncertain & ~np.isfinite(value), np.inf, error)


def _none(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return NO_ERROR


def _first(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return args[0].error


def _greatest(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return np.maximum(args[0].error, args[1].error)


def _sum(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return _overflowed(args, value, args[0].error + args[1].error + _own(op, value))


def product_error(a: Bounded, b: Bounded) -> Array:
    """|a'b' - ab| for a' and b' within their bounds; an exact factor 0 or inf brings no error of its own."""
    if a.is_exact and b.is_exact:
        return NO_ERROR
    left = np.where(b.error == 0, 0.0, np.abs(a.value) * b.error)
    right = np.where(a.error == 0, 0.0, np.abs(b.value) * a.error)
    both = np.where((a.error == 0) | (b.error == 0), 0.0, a.error * b.error)
    # inf times a factor that is certain not to be 0 is that infinity.
    certain = (np.isinf(a.value) | np.isinf(b.value)) & (np.abs(a.value) > a.error) & (np.abs(b.value) > b.error)
    return np.where(certain, 0.0, left + right + both)


def _product(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return _overflowed(args, value, product_error(args[0], args[1]) + _own(op, value))


def _fma(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return _overflowed(args, value, product_error(args[0], args[1]) + args[2].error + _own(op, value))


def _quotient(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    # |a'/b' - a/b| <= (ea + |a/b| eb) / (|b| - eb); unknown when b' may be 0.
    a, b = args
    room = np.abs(b.value) - b.error
    top = a.error + np.where(b.error == 0, 0.0, np.abs(value) * b.error)
    error = np.where(top == 0, 0.0, np.where(room > 0, top / room, np.inf))
    error = np.where((b.error > 0) & (room <= 0), np.inf, error)
    return _overflowed(args, value, error + _own(op, value))


def _monotone(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return _steps(op, args, value) + _own(op, value)


def _steps(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """A monotone op that is exact: rounding to integers and to narrower types."""

    def fn(x: Array) -> Array:
        return np.asarray(SCALAR_OPS[type(op)](op, [x], "exact"), np.float64)

    return monotone(fn, args[0], np.asarray(value, np.float64))


def _from_integer(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    error = args[0].error
    return np.where(error == 0, 0.0, error + ulp(op.results[0].type, value))


def _periodic(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """sin and cos: the slope is at most 1, the range 2, but what is not known may be NaN."""
    error = args[0].error
    return np.where(np.isinf(error), np.inf, np.minimum(error, 2.0)) + _own(op, value)


def _power(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """x^y is monotone in x and in y for x > 0: the corners of the box bound it; unknown where x may be 0 or less."""
    x, y = args
    error = NO_ERROR
    for side_x in (-1.0, 1.0):
        for side_y in (-1.0, 1.0):
            corner = np.power(x.value + side_x * x.error, y.value + side_y * y.error)
            error = np.maximum(error, distance(corner, value))
    uncertain = (x.error > 0) | (y.error > 0)
    known = np.where(x.value - x.error > 0, error, np.inf)
    return np.where(uncertain, known, 0.0) + _own(op, value)


def _comparison(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """1 where the operands are so near that the comparison may go the other way."""
    a, b = args
    slack = a.error + b.error
    gap = np.abs(np.asarray(a.value, np.float64) - np.asarray(b.value, np.float64))
    return np.where((slack > 0) & ((gap <= slack) | np.isinf(slack)), 1.0, 0.0)


def _select(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """The chosen side's error; where the condition may flip, the distance of the sides as well."""
    condition, a, b = args
    chosen = np.where(condition.value, a.error, b.error)
    if condition.is_exact:
        return chosen
    gap = distance(np.asarray(a.value, np.float64), np.asarray(b.value, np.float64))
    return np.where(condition.error > 0, gap + np.maximum(a.error, b.error), chosen)


def _integer_sum(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    return args[0].error + args[1].error


def _unknown(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """Exact operands give an exact result; of others nothing is known, but that a truth value is off by 1 at most."""
    uncertain = np.zeros((), np.bool_)
    for a in args:
        uncertain = uncertain | (a.error > 0)
    return np.where(uncertain, 1.0 if value.dtype == np.bool_ else np.inf, 0.0)


def _extension(op: Operation, args: Sequence[Bounded], value: Array) -> Array:
    """extsi, extui, trunci and index casts: a small error stays, wrap-around apart, which nothing bounds."""
    error = args[0].error
    if float_format(op.operands[0].type) is None and np.asarray(args[0].value).dtype.itemsize > value.dtype.itemsize:
        return _unknown(op, args, value)
    return error


ERRORS: dict[type[Operation], ErrorFn] = {
    arith.ConstantOp: _none,
    arith.AddfOp: _sum,
    arith.SubfOp: _sum,
    arith.MulfOp: _product,
    arith.DivfOp: _quotient,
    arith.NegfOp: _first,
    arith.MaximumfOp: _greatest,
    arith.MinimumfOp: _greatest,
    arith.MaxnumfOp: _greatest,
    arith.MinnumfOp: _greatest,
    arith.AddiOp: _integer_sum,
    arith.SubiOp: _integer_sum,
    arith.MuliOp: _unknown,
    arith.DivSIOp: _unknown,
    arith.FloorDivSIOp: _unknown,
    arith.CeilDivSIOp: _unknown,
    arith.RemSIOp: _unknown,
    arith.DivUIOp: _unknown,
    arith.CeilDivUIOp: _unknown,
    arith.RemUIOp: _unknown,
    arith.MaxSIOp: _greatest,
    arith.MinSIOp: _greatest,
    arith.MaxUIOp: _unknown,
    arith.MinUIOp: _unknown,
    arith.AndIOp: _unknown,
    arith.OrIOp: _unknown,
    arith.XOrIOp: _unknown,
    arith.ShLIOp: _unknown,
    arith.ShRSIOp: _unknown,
    arith.ShRUIOp: _unknown,
    arith.CmpfOp: _comparison,
    arith.CmpiOp: _comparison,
    arith.SelectOp: _select,
    arith.ExtFOp: _first,
    arith.TruncFOp: _steps,
    arith.SIToFPOp: _from_integer,
    arith.UIToFPOp: _from_integer,
    arith.FPToSIOp: _steps,
    arith.ExtSIOp: _extension,
    arith.ExtUIOp: _extension,
    arith.TruncIOp: _extension,
    arith.IndexCastOp: _extension,
    math.AbsFOp: _first,
    math.AbsIOp: _first,
    math.SqrtOp: _monotone,
    math.FloorOp: _steps,
    math.CeilOp: _steps,
    math.RoundEvenOp: _steps,
    math.ExpOp: _monotone,
    math.Exp2Op: _monotone,
    math.LogOp: _monotone,
    math.Log2Op: _monotone,
    math.RsqrtOp: _monotone,
    math.TanhOp: _monotone,
    math.ErfOp: _monotone,
    math.SinOp: _periodic,
    math.CosOp: _periodic,
    math.PowFOp: _power,
    math.FmaOp: _fma,
}
"""One entry for each scalar op: (op, operands, value of the result) to the bound of the result."""
