"""Operands for the scalar kernels, where the op is defined on them, and how near a result must be."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.lowering.scalar_cases import Case

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


def assert_near(case: Case, got: np.ndarray, expected: np.ndarray) -> None:
    """Bits where the op rounds once; a few units in the last place where it approximates. A NaN is a NaN."""
    if case.result in _BITS:
        np.testing.assert_array_equal(got, expected, case.name)
        return
    a, b = got.astype(np.float64), expected.astype(np.float64)
    if case.op.startswith(EXACT):
        np.testing.assert_array_equal(a, b, case.name)
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), case.name)
        return
    rtol = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-14}[case.result]
    tiny = {"f16": 1e-7, "bf16": 1e-38, "f32": 1e-38, "f64": 1e-300}[case.result]
    np.testing.assert_allclose(a, b, rtol, tiny, err_msg=case.name)
