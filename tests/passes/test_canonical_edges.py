"""Canonicalization of what random programs seldom hold: each pair of texts is one program, before and after."""

from __future__ import annotations

import pytest

from tests.passes.support import parse, run

FOLDS = {
    "a select between equal values": (
        "func.func @f(%c: i1, %a: i32) -> i32 { %r = arith.select %c, %a, %a : i32 func.return %r : i32 }",
        "func.func @f(%c: i1, %a: i32) -> i32 { func.return %a : i32 }",
    ),
    "a select between true and false": (
        "func.func @f(%c: i1) -> i1 { %t = arith.constant true %e = arith.constant false"
        " %r = arith.select %c, %t, %e : i1 func.return %r : i1 }",
        "func.func @f(%c: i1) -> i1 { func.return %c : i1 }",
    ),
    "a constant is extended with its sign": (
        "func.func @f() -> i32 { %a = arith.constant -3 : i8 %r = arith.extsi %a : i8 to i32 func.return %r : i32 }",
        "func.func @f() -> i32 { %r = arith.constant -3 : i32 func.return %r : i32 }",
    ),
    "a constant is extended with zeros": (
        "func.func @f() -> i32 { %a = arith.constant -3 : i8 %r = arith.extui %a : i8 to i32 func.return %r : i32 }",
        "func.func @f() -> i32 { %r = arith.constant 253 : i32 func.return %r : i32 }",
    ),
    "widened and back": (
        "func.func @f(%a: f16) -> f16 { %w = arith.extf %a : f16 to f32 %r = arith.truncf %w : f32 to f16"
        " func.return %r : f16 }",
        "func.func @f(%a: f16) -> f16 { func.return %a : f16 }",
    ),
    "a value less itself": (
        "func.func @f(%a: i32) -> i32 { %r = arith.subi %a, %a : i32 func.return %r : i32 }",
        "func.func @f(%a: i32) -> i32 { %r = arith.constant 0 : i32 func.return %r : i32 }",
    ),
    "a value and itself are not one less than the other": (
        "func.func @f(%a: i32) -> i1 { %r = arith.cmpi slt, %a, %a : i32 func.return %r : i1 }",
        "func.func @f(%a: i32) -> i1 { %r = arith.constant false func.return %r : i1 }",
    ),
    "a value is at most itself": (
        "func.func @f(%a: i32) -> i1 { %r = arith.cmpi ule, %a, %a : i32 func.return %r : i1 }",
        "func.func @f(%a: i32) -> i1 { %r = arith.constant true func.return %r : i1 }",
    ),
    "an integer with zeros in front, and back": (
        "func.func @f(%a: i8) -> i8 { %w = arith.extui %a : i8 to i32 %r = arith.trunci %w : i32 to i8"
        " func.return %r : i8 }",
        "func.func @f(%a: i8) -> i8 { func.return %a : i8 }",
    ),
    "an integer as an index, and back": (
        "func.func @f(%a: i32) -> i32 { %w = arith.index_cast %a : i32 to index"
        " %r = arith.index_cast %w : index to i32 func.return %r : i32 }",
        "func.func @f(%a: i32) -> i32 { func.return %a : i32 }",
    ),
    "a branch that is never taken": (
        "func.func private @g() func.func @f() { %c = arith.constant false"
        " scf.if %c { func.call @g() : () -> () } func.return }",
        "func.func private @g() func.func @f() { func.return }",
    ),
    "a cast of tensors to the same type": (
        "func.func @f(%a: tensor<4xf16>) -> tensor<4xf16> { %r = lin.cast %a : tensor<4xf16> -> tensor<4xf16>"
        " func.return %r : tensor<4xf16> }",
        "func.func @f(%a: tensor<4xf16>) -> tensor<4xf16> { func.return %a : tensor<4xf16> }",
    ),
    "widening first changes nothing": (
        "func.func @f(%a: tensor<4xf16>) -> tensor<4xbf16> { %w = lin.cast %a : tensor<4xf16> -> tensor<4xf32>"
        " %r = lin.cast %w : tensor<4xf32> -> tensor<4xbf16> func.return %r : tensor<4xbf16> }",
        "func.func @f(%a: tensor<4xf16>) -> tensor<4xbf16> { %r = lin.cast %a : tensor<4xf16> -> tensor<4xbf16>"
        " func.return %r : tensor<4xbf16> }",
    ),
    "a reduction over no axis": (
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {"
        " %r = lin.reduce sum %a axes [] : tensor<4xf32> -> tensor<4xf32> func.return %r : tensor<4xf32> }",
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { func.return %a : tensor<4xf32> }",
    ),
    "a scalar that a map does not read": (
        "func.func @f(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {"
        " %r = lin.map ins(%a, %s : tensor<4xf32>, f32) -> tensor<4xf32> {"
        " ^bb0(%p: f32, %q: f32): %n = arith.negf %p : f32 lin.yield %n : f32 } func.return %r : tensor<4xf32> }",
        "func.func @f(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {"
        " %r = lin.map ins(%a : tensor<4xf32>) -> tensor<4xf32> {"
        " ^bb0(%p: f32): %n = arith.negf %p : f32 lin.yield %n : f32 } func.return %r : tensor<4xf32> }",
    ),
    "two names for one value": (
        "func.func @f(%a: index) -> index { %r = sym.apply i + j where i = %a, j = %a func.return %r : index }",
        "func.func @f(%a: index) -> index { %r = sym.apply 2*i where i = %a func.return %r : index }",
    ),
    "a value that both expressions read": (
        "func.func @f(%a: index) -> index { %x = sym.apply i floordiv 2 where i = %a"
        " %r = sym.apply i + x where i = %a, x = %x func.return %r : index }",
        "func.func @f(%a: index) -> index { %r = sym.apply i + i floordiv 2 where i = %a func.return %r : index }",
    ),
    "one name for three values, inside": (
        "func.func @f(%a: index, %b: index, %c: index) -> index { %x = sym.apply i floordiv 2 where i = %a"
        " %y = sym.apply i floordiv 3 where i = %b %z = sym.apply i floordiv 5 where i = %c"
        " %r = sym.apply x + y + z where x = %x, y = %y, z = %z func.return %r : index }",
        "func.func @f(%a: index, %b: index, %c: index) -> index {"
        " %r = sym.apply i floordiv 2 + i0 floordiv 3 + i1 floordiv 5 where i = %a, i0 = %b, i1 = %c"
        " func.return %r : index }",
    ),
    "one name for two values, inside, beside a symbol that the second could be called": (
        "sym.symbol @i0 sym.require i0 >= 2 func.func @f(%a: index, %b: index) -> index {"
        " %x = sym.apply i floordiv 2 where i = %a %y = sym.apply i floordiv 3 where i = %b"
        " %r = sym.apply x + y where x = %x, y = %y func.return %r : index }",
        "sym.symbol @i0 sym.require i0 >= 2 func.func @f(%a: index, %b: index) -> index {"
        " %r = sym.apply i floordiv 2 + i1 floordiv 3 where i = %a, i1 = %b func.return %r : index }",
    ),
    "a constant beyond 64 bits that names a value, taken away again": (
        "func.func @f(%a: index, %b: index) -> index { %x = sym.apply 9223372036854775808 where i = %a"
        " %r = sym.apply x + j - 9223372036854775807 where x = %x, j = %b func.return %r : index }",
        "func.func @f(%a: index, %b: index) -> index { %r = sym.apply j + 1 where j = %b func.return %r : index }",
    ),
    "a cast of sizes to the same type": (
        "sym.symbol @M func.func @f(%a: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {"
        " %r = sym.cast %a : tensor<?xf32, #sym.dims<M>> to tensor<?xf32, #sym.dims<M>>"
        " func.return %r : tensor<?xf32, #sym.dims<M>> }",
        "sym.symbol @M func.func @f(%a: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {"
        " func.return %a : tensor<?xf32, #sym.dims<M>> }",
    ),
}

STAYS = {
    "vectors are not folded": (
        "func.func @f(%a: vector<2xi32>, %x: vector<2xf32>) -> (vector<2xi32>, vector<2xf32>) {"
        " %o = arith.constant dense<0> : vector<2xi32> %r = arith.addi %a, %o : vector<2xi32>"
        " %p = arith.constant dense<1.0> : vector<2xf32> %s = arith.mulf %x, %p : vector<2xf32>"
        " func.return %r, %s : vector<2xi32>, vector<2xf32> }"
    ),
    "a transpose of nothing that says more of the sizes": (
        "sym.symbol @M func.func @f(%a: tensor<?xf32>) -> tensor<?xf32, #sym.dims<M>> {"
        " %r = lin.transpose %a perm [0] : tensor<?xf32> -> tensor<?xf32, #sym.dims<M>>"
        " func.return %r : tensor<?xf32, #sym.dims<M>> }"
    ),
    "widened, and narrowed to a third type": (
        "func.func @f(%a: i8) -> i16 { %w = arith.extsi %a : i8 to i32 %r = arith.trunci %w : i32 to i16"
        " func.return %r : i16 }"
    ),
    "an integer with zeros in front, and not back to its width": (
        "func.func @f(%a: i8) -> i16 { %w = arith.extui %a : i8 to i32 %r = arith.trunci %w : i32 to i16"
        " func.return %r : i16 }"
    ),
    "an index as 32 bits, and back": (
        "func.func @f(%a: index) -> index { %w = arith.index_cast %a : index to i32"
        " %r = arith.index_cast %w : i32 to index func.return %r : index }"
    ),
    "widened, and narrowed to another float": (
        "func.func @f(%a: f16) -> bf16 { %w = arith.extf %a : f16 to f32 %r = arith.truncf %w : f32 to bf16"
        " func.return %r : bf16 }"
    ),
    "a cast of sizes to other sizes": (
        "sym.symbol @M sym.symbol @N func.func @f(%a: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<N>> {"
        " %r = sym.cast %a : tensor<?xf32, #sym.dims<M>> to tensor<?xf32, #sym.dims<N>>"
        " func.return %r : tensor<?xf32, #sym.dims<N>> }"
    ),
    "a constant beyond 64 bits": (
        "func.func @f() -> index { %r = sym.apply 9223372036854775808 func.return %r : index }"
    ),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folds(name: str) -> None:
    before, after = FOLDS[name]
    assert str(run(parse(before), "canonicalize")) == str(parse(after))


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    assert str(run(parse(STAYS[name]), "canonicalize")) == str(parse(STAYS[name]))
