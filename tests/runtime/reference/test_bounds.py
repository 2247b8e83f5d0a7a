"""Bounds hold against float32 in any order, and do not accept what is plainly wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.reference.programs import run
from tilewright.runtime.reference import compare
from tilewright.runtime.reference.executor import ReferenceValue

Array = np.ndarray[Any, Any]
seeds = st.integers(0, 2**32 - 1)


def cancelling(rng: np.random.Generator, *shape: int) -> Array:
    """float32 values over many magnitudes and both signs: sums of them cancel."""
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 4, shape)).astype(np.float32)


def sequential(terms: Array) -> Array:
    """The sum over axis 0 in float32, one term after the other."""
    total = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        total = total + term
    return total


def orders(rng: np.random.Generator, terms: Array) -> list[Array]:
    """float32 sums over axis 0: shuffled, by rising and by falling magnitude, and greatest positive terms first."""
    by_size = np.argsort(np.abs(terms), axis=0)
    by_value = np.argsort(-terms, axis=0)
    return [
        sequential(terms[rng.permutation(len(terms))]),
        sequential(np.take_along_axis(terms, by_size, axis=0)),
        sequential(np.take_along_axis(terms, by_size[::-1], axis=0)),
        sequential(np.take_along_axis(terms, by_value, axis=0)),
    ]


def assert_within(got: Array, reference: ReferenceValue) -> None:
    mismatch = compare(got, reference)
    assert mismatch is None, str(mismatch)


SUM = "%r = lin.reduce sum %x axes [1] : !A -> !R\nfunc.return %r : !R"


@given(seed=seeds, length=st.sampled_from([1, 2, 17, 300]))
def test_sums_in_any_order(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    x = cancelling(rng, 4, length)
    (reference,) = run("(%x: !A) -> !R", SUM, [x])
    for got in orders(rng, np.moveaxis(x, 1, 0)):
        assert_within(got, reference)


@given(seed=seeds, length=st.sampled_from([1, 3, 64]))
def test_contractions_in_any_order(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = cancelling(rng, 3, length), cancelling(rng, length, 4)
    body = "%c = lin.matmul %a, %b : !A, !B -> !C\nfunc.return %c : !C"
    (reference,) = run("(%a: !A, %b: !B) -> !C", body, [a, b])
    products = a.T[:, :, None] * b[:, None, :]
    for got in orders(rng, products):
        assert_within(got, reference)


def without_low_bits(x: Array) -> Array:
    """Without the 13 lowest bits of the fraction, as tensor cores read tf32."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def to_nearest_tf32(x: Array) -> Array:
    """Rounded to 10 bits of fraction, ties away from zero, as `cvt.rna.tf32` does."""
    return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@given(seed=seeds, length=st.sampled_from([1, 3, 64]))
def test_contractions_in_tf32(seed: int, length: int) -> None:
    """Factors may lose bits, one of them or both, or none; what loses more is wrong."""
    rng = np.random.default_rng(seed)
    a, b = cancelling(rng, 3, length), cancelling(rng, length, 4)
    body = "%c = lin.matmul %a, %b{} : !A, !B -> !C\nfunc.return %c : !C"
    (reference,) = run("(%a: !A, %b: !B) -> !C", body.format(" precision tf32"), [a, b])
    (exact,) = run("(%a: !A, %b: !B) -> !C", body.format(""), [a, b])
    np.testing.assert_array_equal(reference.rounded, exact.rounded)
    for cut in (without_low_bits, to_nearest_tf32):
        for left, right in ((cut(a), cut(b)), (a, cut(b)), (cut(a), b), (a, b)):
            for got in orders(rng, left.T[:, :, None] * right[:, None, :]):
                assert_within(got, reference)
    size = np.abs(a).astype(np.float64) @ np.abs(b)
    assert np.all(reference.bound <= 2.1 * 2.0**-10 * size + 1e-30)


def test_tf32_of_numbers_below_the_normal_ones_and_of_infinities() -> None:
    a = np.asarray([[2.0**-140, 1.0], [np.inf, 1.0], [0.0, np.nan]], np.float32)
    b = np.asarray([[1.0], [2.0]], np.float32)
    body = "%c = lin.matmul %a, %b precision tf32 : !A, !B -> !C\nfunc.return %c : !C"
    (reference,) = run("(%a: !A, %b: !B) -> !C", body, [a, b])
    assert_within(np.asarray([[2.0], [np.inf], [np.nan]], np.float32), reference)
    assert compare(np.asarray([[2.1], [np.inf], [np.nan]], np.float32), reference) is not None


CHAIN = """%s = lin.reduce sum %x axes [1] : !A -> !R
  %y = lin.map ins(%s, %t : !R, !R) -> !R {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    %q = math.tanh %p : f32
    %d = arith.subf %q, %a : f32
    %e = arith.divf %d, %b : f32
    lin.yield %e : f32
  }
  %h = lin.cast %y : !R -> tensor<?xbf16, #sym.dims<M>>
  func.return %y, %h : !R, tensor<?xbf16, #sym.dims<M>>"""


@given(seed=seeds)
def test_errors_pass_through_a_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, t = cancelling(rng, 5, 40), rng.uniform(0.5, 2, 5).astype(np.float32)
    y, h = run("(%x: !A, %t: !R) -> (!R, tensor<?xbf16, #sym.dims<M>>)", CHAIN, [x, t])
    for total in orders(rng, np.moveaxis(x, 1, 0)):
        got = (np.tanh(total * t) - total) / t
        assert_within(got, y)
        assert_within(got.astype(ml_dtypes.bfloat16), h)


GELU = """%y = lin.map ins(%x : !R) -> !R {
  ^bb0(%a: f32):
    %h = arith.constant 0.5 : f32
    %o = arith.constant 1.0 : f32
    %z = arith.negf %a : f32
    %e = math.exp %z : f32
    %d = arith.addf %e, %o : f32
    %g = arith.divf %o, %d : f32
    %l = math.log %d : f32
    %s = math.sqrt %d : f32
    %r = math.rsqrt %s : f32
    %f = math.fma %g, %l, %r : f32
    %m = arith.mulf %f, %h : f32
    lin.yield %m : f32
  }
  func.return %y : !R"""


@given(seed=seeds)
def test_elementwise_chains_in_f32(seed: int) -> None:
    x = np.random.default_rng(seed).uniform(-80, 80, 50).astype(np.float32)
    (reference,) = run("(%x: !R) -> !R", GELU, [x])
    one = np.float32(1)
    d = np.exp(-x) + one
    got = ((one / d) * np.log(d) + one / np.sqrt(np.sqrt(d))) * np.float32(0.5)
    assert_within(got, reference)
    assert np.all(reference.bound <= 1e-3 * np.maximum(np.abs(reference.value), 1e-6))


@given(seed=seeds, scale=st.sampled_from([1.0, 30.0]))
def test_softmax_of_a_rounded_sum(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((4, 20)).astype(np.float32), rng.standard_normal((20, 6)).astype(np.float32)
    a = (a * np.float32(scale)).astype(np.float32)
    body = """%c = lin.matmul %a, %b : !A, !B -> !C
      %y = lin.softmax %c axis 1 : !C -> !C
      func.return %y : !C"""
    (reference,) = run("(%a: !A, %b: !B) -> !C", body, [a, b])
    for product in orders(rng, a.T[:, :, None] * b[:, None, :]):
        powers = np.exp(product - product.max(axis=1, keepdims=True))
        assert_within(powers / powers.sum(axis=1, keepdims=True), reference)


SIGN = """%s = lin.reduce sum %x axes [1] : !A -> !R
  %y = lin.map ins(%s : !R) -> !R {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.cmpf ogt, %a, %zero : f32
    %r = arith.select %c, %one, %zero : f32
    lin.yield %r : f32
  }
  func.return %y : !R"""


def test_a_comparison_that_may_flip_accepts_both_sides_and_no_other_does() -> None:
    # 2^24 + 1 - 2^24 is 0 or 1 in float32, by the order; the second row is far from 0.
    x = np.asarray([[2.0**24, 1.0, -(2.0**24)], [5.0, 1.0, 1.0]], np.float32)
    (reference,) = run("(%x: !A) -> !R", SIGN, [x])
    assert reference.bound.tolist() == [1.0, 0.0]
    assert_within(np.asarray([0, 1], np.float32), reference)
    assert_within(np.asarray([1, 1], np.float32), reference)
    assert compare(np.asarray([1, 0], np.float32), reference) is not None


def test_exact_ops_are_held_to_every_bit() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    body = """%t = lin.transpose %x perm [1, 0] : !A -> tensor<?x?xf32, #sym.dims<K, M>>
      %m = lin.reduce max %x axes [1] : !A -> !R
      func.return %t, %m : tensor<?x?xf32, #sym.dims<K, M>>, !R"""
    t, m = run("(%x: !A) -> (tensor<?x?xf32, #sym.dims<K, M>>, !R)", body, [x])
    assert not t.bound.any()
    assert not m.bound.any()
    wrong = x.T.copy()
    wrong[2, 1] = np.nextafter(wrong[2, 1], np.float32(9))
    mismatch = compare(wrong, t)
    assert mismatch is not None
    assert mismatch.index == (2, 1)
    assert mismatch.count == 1
    assert "worst at [2, 1]" in str(mismatch)


def test_the_bound_of_a_sum_is_sharp_enough_to_see_a_missing_term() -> None:
    x = np.random.default_rng(1).uniform(0.5, 1, (8, 1000)).astype(np.float32)
    (reference,) = run("(%x: !A) -> !R", SUM, [x])
    assert_within(x.sum(axis=1), reference)
    assert compare(x[:, 1:].sum(axis=1), reference) is not None


def test_bf16_softmax_is_within_one_ulp() -> None:
    x = np.random.default_rng(2).standard_normal((3, 9)).astype(ml_dtypes.bfloat16)
    half = "tensor<?x?xbf16, #sym.dims<M, K>>"
    (y,) = run(
        f"(%x: {half}) -> {half}", f"%y = lin.softmax %x axis 1 : {half} -> {half}\nfunc.return %y : {half}", [x]
    )
    wide = x.astype(np.float32)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    right = powers / powers.sum(axis=1, keepdims=True)
    assert_within(right.astype(ml_dtypes.bfloat16), y)
    assert compare((right * np.float32(1.02)).astype(ml_dtypes.bfloat16), y) is not None


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_must_be_met(value: float) -> None:
    x = np.asarray([[1.0, value]], np.float32)
    (reference,) = run("(%x: !A) -> !R", SUM, [x])
    assert_within(np.asarray([value], np.float32), reference)
    assert compare(np.asarray([1.0], np.float32), reference) is not None


def test_overflow_of_the_type_is_infinity() -> None:
    x = np.asarray([[3e38, 3e38, 3e38]], np.float32)
    (reference,) = run("(%x: !A) -> !R", SUM, [x])
    assert_within(np.asarray([np.inf], np.float32), reference)


def test_a_wrong_shape_or_dtype_is_a_mismatch() -> None:
    (reference,) = run("(%x: !A) -> !R", SUM, [np.ones((2, 3), np.float32)])
    assert compare(np.ones(3, np.float32), reference) is not None
    assert compare(np.full(2, 3.0), reference) is not None


@pytest.mark.parametrize("op", ["math.tanh", "math.erf", "math.sin", "math.cos"])
def test_a_function_of_bounded_range_may_be_nan_where_a_partial_sum_may_overflow(op: str) -> None:
    """largest - largest + largest - largest is 0 in some orders, inf - inf in others."""
    largest = np.finfo(np.float32).max
    x = np.array([[largest, -largest, largest, -largest]], np.float32)
    body = (
        "%s = lin.reduce sum %x axes [1] : !A -> !R\n"
        f"%r = lin.map ins(%s : !R) -> !R {{\n^bb0(%p: f32):\n%q = {op} %p : f32\nlin.yield %q : f32\n}}\n"
        "func.return %r : !R"
    )
    (reference,) = run("(%x: !A) -> !R", body, [x])
    assert_within(np.array([np.nan], np.float32), reference)
    assert_within(np.array([0.0], np.float32), reference)
