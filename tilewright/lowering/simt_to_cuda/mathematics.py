"""`math` ops as C++: the functions of the CUDA math library for f32 and f64; f16 and bf16 compute in f32 and round."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import math
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Attribute, Operation

from tilewright.lowering.simt_to_cuda.arithmetic import narrowed, unsigned, widened
from tilewright.lowering.simt_to_cuda.types import integer_width
from tilewright.lowering.simt_to_cuda.writer import Write, Writer
from tilewright.passes.core import error_at

# The name for f64; the one for f32 has an f behind.
_FUNCTIONS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.Atan2Op: "atan2",
    math.AtanhOp: "atanh",
    math.CbrtOp: "cbrt",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.FloorOp: "floor",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.Log2Op: "log2",
    math.PowFOp: "pow",
    math.RoundEvenOp: "rint",
    math.RoundOp: "round",
    math.RsqrtOp: "rsqrt",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.SqrtOp: "sqrt",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.TruncOp: "trunc",
}


def _suffix(w: Writer, type_: Attribute) -> str:
    return "" if isinstance(type_, Float64Type) else w.spelling.function_suffix


def _call(function: str) -> Write:
    def write(w: Writer, op: Operation) -> None:
        t = op.results[0].type
        arguments = ", ".join(widened(t, w.name(v)) for v in op.operands)
        w.result(op, narrowed(t, f"{function}{_suffix(w, t)}({arguments})"))

    return write


def _erf(w: Writer, op: math.ErfOp) -> None:
    t = op.results[0].type
    w.result(op, narrowed(t, f"tw_erf({widened(t, w.name(op.operands[0]))})"))


def _fma(w: Writer, op: math.FmaOp) -> None:
    w.result(op, f"tw_fma({w.name(op.a)}, {w.name(op.b)}, {w.name(op.c)})")


def _power_of_integer(w: Writer, op: math.FPowIOp) -> None:
    t = op.results[0].type
    base, exponent = op.operands
    computing = w.spelling.floats[Float64Type if isinstance(t, Float64Type) else Float32Type]
    power = w.spelling.cast.format(type=computing, value=w.name(exponent))
    w.result(op, narrowed(t, f"pow{_suffix(w, t)}({widened(t, w.name(base))}, {power})"))


def _integer_power(w: Writer, op: math.IPowIOp) -> None:
    t = op.results[0].type
    a, b = (w.name(v) for v in op.operands)
    w.result(op, f"tw_ipow<{w.c_type(t)}, {w.unsigned_type(t)}>({a}, {b})")


def _absolute(w: Writer, op: math.AbsIOp) -> None:
    t = op.results[0].type
    value = w.name(op.operands[0])
    w.result(op, f"{value} < 0 ? {w.cast_to(t, f'0 - {unsigned(w, t, value)}')} : {value}")


def _count(function: str) -> Write:
    """Bit counts, of 32 and 64 bits."""

    def write(w: Writer, op: Any) -> None:
        t = op.results[0].type
        if (integer_width(t) or 0) < 32:
            raise error_at(op, f"{op.name}: expected i32 or i64, got {t}")
        w.result(op, f"{function}({w.name(op.operands[0])})")

    return write


MATHEMATICS: dict[type[Operation], Write] = {
    **{op: _call(function) for op, function in _FUNCTIONS.items()},
    math.FmaOp: _fma,
    math.FPowIOp: _power_of_integer,
    math.IPowIOp: _integer_power,
    math.AbsIOp: _absolute,
    math.CountLeadingZerosOp: _count("tw_count_leading_zeros"),
    math.CountTrailingZerosOp: _count("tw_count_trailing_zeros"),
    math.CtPopOp: _count("tw_count_ones"),
}
"""Each op of `math` that kernels may hold."""

CUDA_MATHEMATICS: dict[type[Operation], Write] = {math.ErfOp: _erf}
"""Functions that `tilewright_intrinsics.cuh` computes itself, quicker than the CUDA math library."""
