"""Scalar ops on arrays, held to Python's own integers and floats."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, bf16, f16, f32, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.erf import erf
from tilewright.runtime.numerics import round_to, ulp
from tilewright.runtime.scalar_ops import Mode, evaluate


def binary(op: type[Operation], element_type: Attribute, *args: object, mode: Mode = "typed") -> np.ndarray:
    values = Block(arg_types=[element_type] * len(args)).args
    dtype = {f32: np.float32, f16: np.float32, bf16: np.float32, i32: np.int32, i1: np.bool_}[element_type]
    return evaluate(op(*values), [np.asarray(a, dtype) for a in args], mode)


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def truncated(a: int, b: int) -> int:
    return int(Fraction(a, b))


UNSIGNED = 2**32
INTEGERS = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: lambda a, b: truncated(a, b) if b else 0,
    arith.FloorDivSIOp: lambda a, b: a // b if b else 0,
    arith.CeilDivSIOp: lambda a, b: -(-a // b) if b else 0,
    arith.RemSIOp: lambda a, b: a - truncated(a, b) * b if b else 0,
    arith.DivUIOp: lambda a, b: (a % UNSIGNED) // (b % UNSIGNED) if b else 0,
    arith.RemUIOp: lambda a, b: (a % UNSIGNED) % (b % UNSIGNED) if b else 0,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    arith.MaxUIOp: lambda a, b: max(a % UNSIGNED, b % UNSIGNED),
    arith.MinUIOp: lambda a, b: min(a % UNSIGNED, b % UNSIGNED),
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.ShLIOp: lambda a, b: a << b if 0 <= b < 32 else 0,
    arith.ShRSIOp: lambda a, b: a >> b if 0 <= b < 32 else -1 if a < 0 else 0,
    arith.ShRUIOp: lambda a, b: (a % UNSIGNED) >> b if 0 <= b < 32 else 0,
}
EDGES = [0, 1, -1, 2, -2, 3, 31, 32, -7, 7, 2**31 - 1, -(2**31)]
int32 = st.one_of(st.sampled_from(EDGES), st.integers(-(2**31), 2**31 - 1))


@pytest.mark.parametrize("op", INTEGERS)
@given(pairs=st.lists(st.tuples(int32, int32), min_size=1, max_size=20))
def test_integers_wrap_and_divide_as_python_says(op: type[Operation], pairs: list[tuple[int, int]]) -> None:
    got = binary(op, i32, [a for a, _ in pairs], [b for _, b in pairs])
    assert got.dtype == np.int32
    assert got.tolist() == [wrap(INTEGERS[op](a, b)) for a, b in pairs]


def test_a_zero_dimensional_overflow_warns_of_nothing() -> None:
    assert binary(arith.AddiOp, i32, 2**31 - 1, 1) == -(2**31)


def test_maximum_propagates_nan_and_orders_zeros() -> None:
    a, b = [pymath.nan, 1.0, -0.0, 0.0], [1.0, pymath.nan, 0.0, -0.0]
    greater, lesser = binary(arith.MaximumfOp, f32, a, b), binary(arith.MinimumfOp, f32, a, b)
    assert np.isnan(greater[:2]).all()
    assert np.isnan(lesser[:2]).all()
    assert np.signbit(greater[2:]).tolist() == [False, False]
    assert np.signbit(lesser[2:]).tolist() == [True, True]
    assert binary(arith.MaxnumfOp, f32, a, b)[:2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("predicate", "expected"), [("olt", False), ("ult", True), ("one", False), ("une", True)])
def test_comparisons_with_nan(predicate: str, expected: bool) -> None:
    a, b = Block(arg_types=[f32, f32]).args
    got = evaluate(arith.CmpfOp(a, b, predicate), [np.asarray(pymath.nan), np.asarray(1.0)], "typed")
    assert bool(got) is expected


def test_signed_and_unsigned_comparison_of_negative_numbers() -> None:
    a, b = Block(arg_types=[i32, i32]).args
    pair = [np.asarray([-1], np.int32), np.asarray([1], np.int32)]
    assert evaluate(arith.CmpiOp(a, b, "slt"), pair, "typed").tolist() == [True]
    assert evaluate(arith.CmpiOp(a, b, "ult"), pair, "typed").tolist() == [False]


def test_float_to_integer_truncates_and_saturates() -> None:
    (x,) = Block(arg_types=[f32]).args
    values = np.asarray([1.9, -1.9, 3e9, -3e9, pymath.nan, pymath.inf], np.float32)
    got = evaluate(arith.FPToSIOp(x, i32), [values], "typed")
    assert got.tolist() == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1]


def test_widening_casts_of_truth_values() -> None:
    (x,) = Block(arg_types=[i1]).args
    assert evaluate(arith.ExtUIOp(x, i32), [np.asarray([True, False])], "typed").tolist() == [1, 0]
    assert evaluate(arith.ExtSIOp(x, i32), [np.asarray([True, False])], "typed").tolist() == [-1, 0]


def test_int64_to_f32_rounds_once() -> None:
    # 2^60 + 2^36 + 1 lies just above the midpoint of two float32 values, and on it once rounded to float64.
    (x,) = Block(arg_types=[i64]).args
    value = 2**60 + 2**36 + 1
    assert int(evaluate(arith.SIToFPOp(x, f32), [np.asarray(value)], "typed")) == 2**60 + 2**37


def nearest(value: float, candidates: np.ndarray) -> set[float]:
    gaps = [abs(Fraction(value) - Fraction(float(c))) for c in candidates]
    return {float(c) for c, gap in zip(candidates, gaps, strict=True) if gap == min(gaps)}


def finite_values(dtype: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # signalling NaN, which is dropped below
        found = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float64)
    return np.unique(found[np.isfinite(found)])


@pytest.mark.parametrize(("element_type", "dtype"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16)])
@given(value=st.floats(-6e4, 6e4))
def test_rounding_finds_the_nearest_value(element_type: Attribute, dtype: Any, value: float) -> None:
    values = finite_values(dtype)
    at = int(np.searchsorted(values, value))
    assert float(round_to(element_type, np.asarray(value))) in nearest(value, values[max(0, at - 2) : at + 2])


def test_bf16_rounds_once_from_float64() -> None:
    # Through float32 this would first become the midpoint 1 + 2^-8, then the even neighbour 1.
    assert float(round_to(bf16, np.asarray(1 + 2**-8 + 2**-40))) == 1 + 2**-7
    assert float(round_to(bf16, np.asarray(1 + 2**-8))) == 1


def test_typed_bf16_rounds_each_result() -> None:
    got = binary(arith.AddfOp, bf16, [256.0], [1.0])
    assert got.tolist() == [256.0]
    assert got.dtype == np.float32


def test_exact_mode_keeps_what_the_type_cannot_hold_but_overflow() -> None:
    (x,) = Block(arg_types=[f32]).args
    third = arith.DivfOp(x, x)
    assert float(evaluate(third, [np.asarray(1.0), np.asarray(3.0)], "exact")) == 1 / 3
    assert float(evaluate(math.ExpOp(x), [np.asarray(100.0)], "exact")) == pymath.inf
    assert float(evaluate(math.ExpOp(x), [np.asarray(88.0)], "exact")) == pymath.exp(88)


def test_constants_take_the_values_of_their_type() -> None:
    tenth = evaluate(arith.ConstantOp(FloatAttr(0.1, f32)), [], "exact")
    assert float(tenth) == float(np.float32(0.1))
    assert int(evaluate(arith.ConstantOp(IntegerAttr(-1, i32)), [], "typed")) == -1
    assert evaluate(arith.ConstantOp(IntegerAttr(7, IndexType())), [], "typed").dtype == np.int64


@pytest.mark.parametrize(
    ("op", "fn"),
    [
        (math.ExpOp, pymath.exp),
        (math.TanhOp, pymath.tanh),
        (math.ErfOp, pymath.erf),
        (math.SinOp, pymath.sin),
        (math.CosOp, pymath.cos),
        (math.RsqrtOp, lambda x: 1 / pymath.sqrt(x)),
        (math.LogOp, pymath.log),
        (math.Exp2Op, pymath.exp2),
        (math.Log2Op, pymath.log2),
    ],
)
def test_functions_round_once_to_f32(op: type[Operation], fn: Callable[[float], float]) -> None:
    xs = np.linspace(0.01, 5, 97, dtype=np.float32)
    got = binary(op, f32, xs)
    expected = np.asarray([fn(float(x)) for x in xs])
    assert got.dtype == np.float32
    # Half an ulp of f32 and what a float64 function may be off, which only moves a result near a midpoint.
    assert np.all(np.abs(got - expected) <= 0.5000001 * ulp(f32, expected))


@given(x=st.floats(-7, 7))
def test_erf_is_within_an_ulp_of_float64(x: float) -> None:
    assert abs(float(erf(np.asarray(x))) - pymath.erf(x)) <= np.spacing(abs(pymath.erf(x)))


def test_an_op_without_a_meaning_is_an_error() -> None:
    from xdsl.dialects.test import TestOp

    with pytest.raises(TilewrightError, match="arith or math op"):
        evaluate(TestOp(), [], "typed")
