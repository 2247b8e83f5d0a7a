"""Operands for the scalar kernels where the op is defined, what they give, and how near a result must be."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from tests.lowering.scalar_cases import Case
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

THREADS = 64
DTYPES = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64},
}
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
EXACT = ("arith.", "math.absf", "math.ceil", "math.floor", "math.round", "math.trunc", "math.copysign", "math.fma")


def operands(case: Case) -> np.ndarray:
    """192 elements: %a, %b and %c of each thread, with the edges of the type among them."""
    generator = np.random.default_rng(len(case.text))
    short = case.op.partition(".")[2]
    if case.source in _BITS:
        return _integers(case, short, generator)
    x = generator.standard_normal(3 * THREADS) * np.exp(generator.uniform(-6, 6, 3 * THREADS))
    if short in ("fptosi", "fptoui"):
        # Outside the range of the integer type the op promises nothing.
        limit = 2.0 ** (min(_BITS[case.result], 16) - 2)
        x = np.clip(x * 8, 0 if short == "fptoui" else -limit, limit)
    else:
        x[:16] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, 1e-7, 6e-8, -6e-8, 65504.0, 3e-6]
        x[64:80] = [-0.0, 0.0, np.inf, np.inf, 1.0, np.nan, -1.0, 0.5, 2.5, 1.5, np.nan, 2.0, -2.0, 3.0, 1e-7, 0.25]
    with np.errstate(all="ignore"):
        return x.astype(DTYPES[case.source])


def _integers(case: Case, short: str, generator: np.random.Generator) -> np.ndarray:
    bits = _BITS[case.source]
    if bits == 1:
        x = generator.integers(0, 2, 3 * THREADS).astype(np.bool_)
        if short in _DIVISIONS:
            # The signed i1 -1 divided by -1 overflows.
            x[THREADS:] = True
            x[:THREADS] &= short.endswith("ui")
        elif short.startswith("sh"):
            x[THREADS:] = False
        return x
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    x = generator.integers(low, high, 3 * THREADS, DTYPES[case.source], endpoint=True)
    x[:6] = [0, 1, -1, high, low + 1, low if short not in _DIVISIONS else 7]
    x[64:70] = [1, -1, high, 2, -2, 3]
    if short.startswith("sh"):
        x[THREADS:] &= bits - 1
    elif short == "ipowi":
        x[:THREADS] %= 100
        x[THREADS:] = generator.integers(-3, 12, 2 * THREADS)
        x[:3] = [1, -1, 2]
    elif short in _DIVISIONS:
        x[x == low] += 1
        x[x == 0] = 5
    return x


def _round_half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# What the simulator does not know, in f64 of NumPy.
_NUMPY: dict[str, Callable[..., Any]] = {
    "math.acos": np.arccos,
    "math.acosh": np.arccosh,
    "math.asin": np.arcsin,
    "math.asinh": np.arcsinh,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.atanh": np.arctanh,
    "math.cbrt": np.cbrt,
    "math.copysign": np.copysign,
    "math.cosh": np.cosh,
    "math.expm1": np.expm1,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.round": _round_half_away,
    "math.sinh": np.sinh,
    "math.tan": np.tan,
    "math.trunc": np.trunc,
    "arith.fptoui": np.trunc,
}
_BINARY = ("math.atan2", "math.copysign")


def _power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return base**exponent
    return base ** (-exponent) if abs(base) == 1 else 0


# Python integers of the two's complement bits of %a, and of %a and %b.
_BIT_COUNTS: dict[str, Callable[[int, int], int]] = {
    "math.ctlz": lambda bits, width: width - bits.bit_length(),
    "math.cttz": lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width,
    "math.ctpop": lambda bits, width: bits.bit_count(),
}


def _fused(a: float, b: float, c: float) -> float:
    """a * b + c rounded once. A zero result of finite operands keeps the sign that the plain operations give."""
    plain = a * b + c
    if not all(map(math.isfinite, (a, b, c))) or plain == 0.0:
        return plain
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def _integer_results(case: Case, x: np.ndarray) -> list[int] | None:
    width = _BITS.get(case.source, 0)
    if case.op == "math.ipowi":
        wrap = [_power(int(a), int(b)) % (1 << width) for a, b in zip(x[:THREADS], x[THREADS:], strict=False)]
        return [v - (1 << width) if v >> (width - 1) else v for v in wrap]
    count = _BIT_COUNTS.get(case.op)
    return None if count is None else [count(int(a) % (1 << width), width) for a in x[:THREADS]]


def expected(case: Case, kernel: KernelOp, x: np.ndarray) -> np.ndarray:
    """The 64 results by NumPy in f64 or by Python where listed here, else by the simulator."""
    if case.op == "arith.bitcast":
        return x[:THREADS].view(DTYPES[case.result])
    if case.source == "i1" and case.op in ("arith.maxsi", "arith.minsi"):
        # The signed i1 true is -1, the lesser of the two.
        a, b = x[:THREADS], x[THREADS : 2 * THREADS]
        return a & b if case.op == "arith.maxsi" else a | b
    if case.op == "math.fma" and case.source == "f64":
        return np.array([_fused(*abc) for abc in x.reshape(3, THREADS).T.tolist()])
    if (integers := _integer_results(case, x)) is not None:
        return np.array(integers, DTYPES[case.result])
    function = _NUMPY.get(case.op)
    if function is None:
        y = np.zeros(THREADS, DTYPES[case.result])
        simulate(kernel, [Buffer(x), Buffer(y)], [], grid=1)
        return y
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        operands_ = (wide[:THREADS], wide[THREADS : 2 * THREADS])[: 2 if case.op in _BINARY else 1]
        return np.asarray(function(*operands_)).astype(DTYPES[case.result])


def assert_near(case: Case, got: np.ndarray, expected: np.ndarray) -> None:
    """Bits where the op rounds once; a few units in the last place where it approximates. A NaN is a NaN."""
    if case.result in _BITS:
        np.testing.assert_array_equal(got, expected, case.name)
        return
    a, b = got.astype(np.float64), expected.astype(np.float64)
    if case.op.startswith(EXACT):
        np.testing.assert_array_equal(a, b, case.name)
        # The sign of the greater of 0.0 and -0.0 is open in maxnum, not in maximum.
        zero = (b == 0) & (case.op not in ("arith.maxnumf", "arith.minnumf"))
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), case.name)
        return
    rtol = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-14}[case.result]
    tiny = {"f16": 1e-7, "bf16": 1e-38, "f32": 1e-38, "f64": 1e-300}[case.result]
    np.testing.assert_allclose(a, b, rtol, tiny, err_msg=case.name)
