"""Generics that are no kernel together, with the reason that the remark gives; and what passes leave where it is."""

from __future__ import annotations

import pytest
from xdsl.dialects import func

from tests.passes.support import ops_named, parse, run
from tilewright.passes.grouping import Plan

NEGATE = "{ ^bb0(%p: f32): %n = arith.negf %p : f32 lin.yield %n : f32 }"
ADD = "{ ^bb0(%p: f32, %q: f32): %s = arith.addf %p, %q : f32 lin.yield %s : f32 }"
MULTIPLY = "{ ^bb0(%p: f32, %q: f32): %s = arith.mulf %p, %q : f32 lin.yield %s : f32 }"
ITSELF = "{ ^bb0(%p: f32): lin.yield %p : f32 }"

REFUSED = {
    "a value is read at index 0 of a stretched dim": (
        "(%a: tensor<8x1xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32>",
        f"%x = lin.generic (i, j) ins(%a[i, j] : tensor<8x1xf32>) out[i, j] : tensor<8x1xf32> {NEGATE}"
        " %r = lin.generic (i, j) ins(%x[i, 0] : tensor<8x1xf32>, %b[i, j] : tensor<8x4xf32>) out[i, j]"
        f" : tensor<8x4xf32> {ADD}",
        "tensor<8x4xf32>",
    ),
    "a generic walks other dims than the contraction's result": (
        "(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<2x8x4xf32>) -> tensor<2x8x4xf32>",
        "%x = lin.generic (i, j, k) ins(%a[i, k] : tensor<8x16xf32>, %b[k, j] : tensor<16x4xf32>) out[i, j]"
        f" combine sum : tensor<8x4xf32> {MULTIPLY}"
        " %r = lin.generic (n, i, j) ins(%x[i, j] : tensor<8x4xf32>, %c[n, i, j] : tensor<2x8x4xf32>) out[n, i, j]"
        f" : tensor<2x8x4xf32> {ADD}",
        "tensor<2x8x4xf32>",
    ),
    "a value is read through two different maps": (
        "(%a: tensor<8x8xf32>) -> tensor<8x8xf32>",
        f"%x = lin.generic (i, j) ins(%a[i, j] : tensor<8x8xf32>) out[i, j] : tensor<8x8xf32> {NEGATE}"
        " %r = lin.generic (i, j) ins(%x[i, j] : tensor<8x8xf32>, %x[j, i] : tensor<8x8xf32>) out[i, j]"
        f" : tensor<8x8xf32> {ADD}",
        "tensor<8x8xf32>",
    ),
    "elementwise generics over different dims": (
        "(%a: tensor<8xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32>",
        f"%x = lin.generic (i) ins(%a[i] : tensor<8xf32>) out[i] : tensor<8xf32> {NEGATE}"
        " %r = lin.generic (i, j) ins(%x[i] : tensor<8xf32>, %b[i, j] : tensor<8x4xf32>) out[i, j]"
        f" : tensor<8x4xf32> {ADD}",
        "tensor<8x4xf32>",
    ),
    "a generic walks other dims than the reduction's rows and columns": (
        "(%a: tensor<8x4xf32>, %b: tensor<8x2xf32>) -> tensor<8x2xf32>",
        f"%x = lin.generic (i, j) ins(%a[i, j] : tensor<8x4xf32>) out[i] combine sum : tensor<8xf32> {ITSELF}"
        " %r = lin.generic (i, k) ins(%x[i] : tensor<8xf32>, %b[i, k] : tensor<8x2xf32>) out[i, k]"
        f" : tensor<8x2xf32> {ADD}",
        "tensor<8x2xf32>",
    ),
    "reductions over different dims": (
        "(%a: tensor<8x4x2xf32>) -> tensor<8xf32>",
        "%x = lin.generic (i, j, k) ins(%a[i, j, k] : tensor<8x4x2xf32>) out[i, j] combine sum"
        f" : tensor<8x4xf32> {ITSELF}"
        f" %r = lin.generic (i, j) ins(%x[i, j] : tensor<8x4xf32>) out[i] combine max : tensor<8xf32> {ITSELF}",
        "tensor<8xf32>",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_the_reason_is_given(reason: str) -> None:
    signature, body, type_ = REFUSED[reason]
    module = parse(f"func.func @f{signature} {{ {body} func.return %r : {type_} }}")
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    plan = Plan(function.body.block.ops)
    assert [why for _, why in plan.refusals] == [reason]
    assert [len(group.members) for group in plan.groups()] == [1, 1]


def test_a_reduction_over_more_dims_walks_the_rows_of_another_kernel() -> None:
    module = parse(
        "func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4x2xf32>) -> tensor<8xf32> {"
        f" %x = lin.generic (i, j) ins(%a[i, j] : tensor<8x4xf32>) out[i] combine sum : tensor<8xf32> {ITSELF}"
        " %r = lin.generic (i, j, k) ins(%b[i, j, k] : tensor<8x4x2xf32>, %x[i] : tensor<8xf32>) out[i] combine max"
        f" : tensor<8xf32> {ADD} func.return %r : tensor<8xf32> }}"
    )
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    assert [why for _, why in Plan(function.body.block.ops).refusals] == ["reductions over different dims"]


def test_a_product_that_is_added_to_its_transpose_is_not_its_epilogue() -> None:
    module = parse(
        "func.func @f(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {"
        " %x = lin.generic (i, j, k) ins(%a[i, k] : tensor<8x16xf32>, %b[k, j] : tensor<16x8xf32>) out[i, j]"
        f" combine sum : tensor<8x8xf32> {MULTIPLY}"
        " %r = lin.generic (i, j) ins(%x[i, j] : tensor<8x8xf32>, %x[j, i] : tensor<8x8xf32>) out[i, j]"
        f" : tensor<8x8xf32> {ADD} func.return %r : tensor<8x8xf32> }}"
    )
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    assert [why for _, why in Plan(function.body.block.ops).refusals] == ["a value is read through two different maps"]


@pytest.mark.parametrize("name", ["fuse-elementwise", "fuse-groups"])
def test_a_value_that_nobody_reads_is_not_computed(name: str) -> None:
    module = parse(
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {"
        f" %x = lin.generic (i) ins(%a[i] : tensor<4xf32>) out[i] : tensor<4xf32> {NEGATE}"
        " func.return %a : tensor<4xf32> }"
    )
    assert ops_named(run(module, name), "lin.generic") == []


def test_shapes_of_a_function_that_returns_nothing_are_inferred() -> None:
    module = parse(
        "sym.symbol @M func.func @f(%a: tensor<?x4xf32, #sym.dims<M, 4>>) {"
        " %t = lin.transpose %a perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32>"
        " %c = arith.constant 1.0 : f32 lin.yield }"
    )
    (transposed,) = ops_named(run(module, "infer-shapes"), "lin.transpose")
    assert str(transposed.results[0].type) == "tensor<4x?xf32, #sym.dims<4, M>>"
