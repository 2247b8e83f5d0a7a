"""The reference against NumPy formulas in float64, for sizes of 0 and 1 as well."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.reference.programs import run
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.reference import generic as generic_module

Array = np.ndarray[Any, Any]
SIZES = [(5, 7, 3), (1, 1, 1), (0, 4, 3), (4, 0, 3), (4, 3, 0)]


def random(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def assert_rounds_to(got: Array, exact: Array) -> None:
    """`got` is the float32 nearest to `exact`, up to what float64 itself may be off."""
    assert got.dtype == np.float32
    assert got.shape == exact.shape
    np.testing.assert_allclose(got, exact.astype(np.float32), rtol=2**-23, atol=1e-12)


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_matmul(m: int, k: int, n: int) -> None:
    a, b = random(m, k), random(k, n)
    (c,) = run("(%a: !A, %b: !B) -> !C", "%c = lin.matmul %a, %b : !A, !B -> !C\nfunc.return %c : !C", [a, b], N=n)
    assert_rounds_to(c.rounded, np.einsum("ik,kj->ij", a.astype(np.float64), b.astype(np.float64)))


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_softmax_along_either_axis(m: int, k: int, n: int) -> None:
    x = 10 * random(m, k)
    for axis in (0, 1):
        body = f"%y = lin.softmax %x axis {axis} : !A -> !A\nfunc.return %y : !A"
        (y,) = run("(%x: !A) -> !A", body, [x])
        powers = np.exp(x.astype(np.float64))
        assert_rounds_to(y.rounded, powers / powers.sum(axis=axis, keepdims=True))


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_clamp(m: int, k: int, n: int) -> None:
    x = random(m, k)
    (y,) = run("(%x: !A) -> !A", "%y = lin.clamp %x low -0.5 high 0.25 : !A -> !A\nfunc.return %y : !A", [x])
    assert_rounds_to(y.rounded, np.clip(x.astype(np.float64), -0.5, 0.25))
    assert not y.bound.any()


@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_clamp_keeps_nan_and_rounds_its_bounds(element: str, dtype: Any) -> None:
    x = np.asarray([math.nan, -math.inf, -2, 0.05, 2, math.inf]).astype(dtype)
    row = f"tensor<?x{element}, #sym.dims<M>>"
    body = f"%y = lin.clamp %x low -0.1 high 0.3 : {row} -> {row}\nfunc.return %y : {row}"
    (y,) = run(f"(%x: {row}) -> {row}", body, [x])
    assert y.rounded.dtype == dtype
    expected = np.asarray([math.nan, -0.1, -0.1, 0.05, 0.3, 0.3], np.float32).astype(dtype)
    # NumPy does not take two NaN of bfloat16 for equal.
    np.testing.assert_array_equal(y.rounded.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize(("combine", "fn", "initial"), [
    ("sum", np.sum, 0.0), ("prod", np.prod, 1.0), ("max", np.max, -math.inf), ("min", np.min, math.inf),
])  # fmt: skip
def test_reductions(combine: str, fn: Any, initial: float, m: int, k: int, n: int) -> None:
    x = random(m, k)
    body = f"""%r = lin.reduce {combine} %x axes [1] : !A -> !R
      %s = lin.reduce {combine} %x axes [0, 1] : !A -> !S
      func.return %r, %s : !R, !S"""
    rows, total = run("(%x: !A) -> (!R, !S)", body, [x])
    wide = x.astype(np.float64)
    assert_rounds_to(rows.rounded, fn(wide, axis=1, initial=initial))
    assert_rounds_to(total.rounded, np.asarray(fn(wide, initial=initial)))


def test_integer_reductions_wrap_and_have_limits_as_identities() -> None:
    signature = "(%x: tensor<?x?xi32, #sym.dims<M, K>>) -> (tensor<?xi32, #sym.dims<M>>, tensor<?xi32, #sym.dims<M>>)"
    body = """%s = lin.reduce sum %x axes [1] : tensor<?x?xi32, #sym.dims<M, K>> -> tensor<?xi32, #sym.dims<M>>
      %m = lin.reduce max %x axes [1] : tensor<?x?xi32, #sym.dims<M, K>> -> tensor<?xi32, #sym.dims<M>>
      func.return %s, %m : tensor<?xi32, #sym.dims<M>>, tensor<?xi32, #sym.dims<M>>"""
    x = np.asarray([[2**31 - 1, 1], [3, -5]], np.int32)
    total, greatest = run(signature, body, [x])
    assert total.rounded.tolist() == [-(2**31), -2]
    assert greatest.rounded.tolist() == [2**31 - 1, 3]
    assert not total.bound.any()
    _, empty = run(signature, body, [np.zeros((2, 0), np.int32)])
    assert empty.rounded.tolist() == [-(2**31)] * 2


def test_max_propagates_nan_and_sums_of_infinities_are_nan() -> None:
    x = np.asarray([[1, math.nan, 2], [math.inf, -math.inf, 0], [math.inf, 1, 2]], np.float32)
    body = """%m = lin.reduce max %x axes [1] : !A -> !R
      %s = lin.reduce sum %x axes [1] : !A -> !R
      func.return %m, %s : !R, !R"""
    greatest, total = run("(%x: !A) -> (!R, !R)", body, [x])
    np.testing.assert_array_equal(greatest.rounded, np.asarray([math.nan, math.inf, math.inf], np.float32))
    np.testing.assert_array_equal(total.rounded, np.asarray([math.nan, math.nan, math.inf], np.float32))
    assert not greatest.bound.any()
    assert not total.bound.any()


MAP = """%y = lin.map ins(%x, %row, %s : !A, tensor<?xf32, #sym.dims<K>>, f32) -> !A {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %e = math.exp %a : f32
    %p = arith.mulf %e, %b : f32
    %q = arith.addf %p, %c : f32
    lin.yield %q : f32
  }
  func.return %y : !A"""


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_map_broadcasts_rows_and_scalars(m: int, k: int, n: int) -> None:
    x, row, s = random(m, k), random(k), np.float32(0.5)
    (y,) = run("(%x: !A, %row: tensor<?xf32, #sym.dims<K>>, %s: f32) -> !A", MAP, [x, row, np.asarray(s)])
    wide = x.astype(np.float64)
    assert_rounds_to(y.rounded, np.exp(wide) * row.astype(np.float64) + 0.5)


def test_results_do_not_depend_on_how_the_space_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    x, row = random(13, 17), random(17)
    signature = "(%x: !A, %row: tensor<?xf32, #sym.dims<K>>, %s: f32) -> !A"
    reduce = "%r = lin.reduce sum %x axes [0] : !A -> tensor<?xf32, #sym.dims<K>>\n"
    reduce += "func.return %r : tensor<?xf32, #sym.dims<K>>"
    inputs = [x, row, np.asarray(2, np.float32)]
    whole = run(signature, MAP, inputs), run("(%x: !A) -> tensor<?xf32, #sym.dims<K>>", reduce, [x])
    monkeypatch.setattr(generic_module, "BLOCK_ELEMENTS", 10)
    cut = run(signature, MAP, inputs), run("(%x: !A) -> tensor<?xf32, #sym.dims<K>>", reduce, [x])
    for (before,), (after,) in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(before.rounded, after.rounded)
        np.testing.assert_allclose(before.bound, after.bound)


def test_generic_reads_diagonals_index_zero_and_dims_of_the_result_alone() -> None:
    square = "tensor<4x4xf32>"
    body = f"""%d = lin.generic (i) ins(%x[i, i] : {square}) out[i] : tensor<4xf32> {{
      ^bb0(%a: f32):
        lin.yield %a : f32
      }}
      %u = lin.generic (i, j) ins(%y[i, 0] : tensor<4x1xf32>) out[j, i] : tensor<2x4xf32> {{
      ^bb0(%a: f32):
        lin.yield %a : f32
      }}
      func.return %d, %u : tensor<4xf32>, tensor<2x4xf32>"""
    x, y = random(4, 4), random(4, 1)
    signature = f"(%x: {square}, %y: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<2x4xf32>)"
    diagonal, spread = run(signature, body, [x, y])
    np.testing.assert_array_equal(diagonal.rounded, np.diagonal(x))
    np.testing.assert_array_equal(spread.rounded, np.stack([y[:, 0], y[:, 0]]))
    assert not diagonal.bound.any()


def test_a_contraction_with_batch_and_a_dim_of_each_side_alone() -> None:
    types = "tensor<3x2x5xf32>", "tensor<2x4x5xf32>", "tensor<4x2x3xf32>"
    ins = f"ins(%x[m, b, k] : {types[0]}, %y[b, n, k] : {types[1]})"
    body = f"""%c = lin.generic (b, m, n, k) {ins} out[n, b, m] combine sum : {types[2]} {{
      ^bb0(%p: f32, %q: f32):
        %r = arith.mulf %q, %p : f32
        lin.yield %r : f32
      }}
      func.return %c : {types[2]}"""
    x, y = random(3, 2, 5), random(2, 4, 5)
    (c,) = run(f"(%x: {types[0]}, %y: {types[1]}) -> {types[2]}", body, [x, y])
    assert_rounds_to(c.rounded, np.einsum("mbk,bnk->nbm", x.astype(np.float64), y.astype(np.float64)))


def test_each_op_rounds_once_to_its_type() -> None:
    half = "tensor<?x?xbf16, #sym.dims<M, K>>"
    body = f"""%h = lin.cast %x : !A -> {half}
      %w = lin.cast %h : {half} -> !A
      %i = lin.cast %x : !A -> tensor<?x?xi32, #sym.dims<M, K>>
      func.return %h, %w, %i : {half}, !A, tensor<?x?xi32, #sym.dims<M, K>>"""
    x = 10 * random(6, 9)
    h, w, i = run(f"(%x: !A) -> ({half}, !A, tensor<?x?xi32, #sym.dims<M, K>>)", body, [x])
    np.testing.assert_array_equal(h.rounded, x.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(w.rounded, x.astype(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_array_equal(i.rounded, np.trunc(x).astype(np.int32))
    assert not h.bound.any()
    assert not i.bound.any()


def test_bf16_matmul_accumulates_before_it_rounds() -> None:
    # 256 + 1 + 1 ... is 256 in bf16 all the way; in f32 it is 256 + 64.
    a = np.asarray([[256.0, *[1.0] * 64]], ml_dtypes.bfloat16)
    b = np.ones((65, 1), ml_dtypes.bfloat16)
    types = "tensor<1x65xbf16>, tensor<65x1xbf16> -> tensor<1x1xbf16>"
    body = f"%c = lin.matmul %a, %b : {types}\nfunc.return %c : tensor<1x1xbf16>"
    (c,) = run("(%a: tensor<1x65xbf16>, %b: tensor<65x1xbf16>) -> tensor<1x1xbf16>", body, [a, b])
    assert float(c.rounded[0, 0]) == 320.0


def test_groups_and_casts_of_shapes() -> None:
    twice = "tensor<?xf32, #sym.dims<2*K>>"
    body = f"""%c = sym.cast %x : !R to {twice}
      %y, %z = lin.group ins(%c : {twice}) -> {twice}, !S {{
      ^bb0(%v: {twice}):
        %s = lin.generic (i) ins(%v[i] : {twice}) out[] combine sum : !S {{
        ^bb0(%a: f32):
          lin.yield %a : f32
        }}
        %d = lin.generic (i) ins(%v[i] : {twice}, %s[] : !S) out[i] : {twice} {{
        ^bb0(%a: f32, %b: f32):
          %q = arith.divf %a, %b : f32
          lin.yield %q : f32
        }}
        lin.yield %d, %s : {twice}, !S
      }}
      func.return %y, %z : {twice}, !S"""
    x = np.asarray([1, 2, 3, 2], np.float32)
    y, z = run(f"(%x: !R) -> ({twice}, !S)", body, [x], K=2)
    np.testing.assert_array_equal(y.rounded, x / np.float32(8))
    assert float(z.rounded) == 8.0
    with pytest.raises(TilewrightError, match=r"expected M == 2\*K, got K = 3, M = 4"):
        run(f"(%x: !R) -> ({twice}, !S)", body, [x], K=3)


@pytest.mark.parametrize(("inputs", "message"), [
    ([], "expected 2 inputs, got 0"),
    ([np.zeros(3, np.float32), np.zeros((3, 2), np.float32)], "argument 0: expected an array of rank 2, got 1"),
    ([np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)], "argument 1 dim 0: expected size K = 3, got 2"),
    ([np.zeros((2, 3)), np.zeros((3, 3))], "argument 0: expected dtype float32, got float64"),
])  # fmt: skip
def test_inputs_that_do_not_fit(inputs: list[Array], message: str) -> None:
    body = "%c = lin.matmul %a, %b : !A, !B -> !C\nfunc.return %c : !C"
    with pytest.raises(TilewrightError, match=message):
        run("(%a: !A, %b: !B) -> !C", body, inputs)
