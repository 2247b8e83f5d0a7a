"""cse: what may be one op, and what must not."""

from __future__ import annotations

import pytest
from xdsl.dialects import memref, test
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import CONTEXT, ops_named, parse, run
from tilewright.dialects.verify import verify_module
from tilewright.passes.effects import may_write

CONTEXT.register_dialect("memref", lambda: memref.MemRef)
CONTEXT.register_dialect("test", lambda: test.Test)


def simplified(body: str, arguments: str = "%m: memref<4xf32>, %i: index, %x: f32", result: str = "f32") -> ModuleOp:
    return run(parse(f"func.func @f({arguments}) -> {result} {{\n{body}\n}}\n"), "cse")


def test_two_loads_of_one_place_are_one() -> None:
    module = simplified(
        "  %a = memref.load %m[%i] : memref<4xf32>\n  %b = memref.load %m[%i] : memref<4xf32>\n"
        "  %c = arith.addf %a, %b : f32\n  func.return %c : f32"
    )
    assert len(ops_named(module, "memref.load")) == 1


def test_a_store_between_two_loads_keeps_both() -> None:
    module = simplified(
        "  %a = memref.load %m[%i] : memref<4xf32>\n  memref.store %x, %m[%i] : memref<4xf32>\n"
        "  %b = memref.load %m[%i] : memref<4xf32>\n  %c = arith.addf %a, %b : f32\n  func.return %c : f32"
    )
    assert len(ops_named(module, "memref.load")) == 2


def test_a_store_in_a_branch_between_two_loads_keeps_both() -> None:
    module = simplified(
        "  %a = memref.load %m[%i] : memref<4xf32>\n"
        "  scf.if %p {\n    memref.store %x, %m[%i] : memref<4xf32>\n  }\n"
        "  %b = memref.load %m[%i] : memref<4xf32>\n  %c = arith.addf %a, %b : f32\n  func.return %c : f32",
        "%m: memref<4xf32>, %i: index, %x: f32, %p: i1",
    )
    assert len(ops_named(module, "memref.load")) == 2


def test_two_allocations_are_two() -> None:
    module = simplified(
        "  %a = memref.alloc() : memref<4xf32>\n  %b = memref.alloc() : memref<4xf32>\n"
        "  memref.store %x, %a[%i] : memref<4xf32>\n  memref.store %x, %b[%i] : memref<4xf32>\n  func.return %x : f32"
    )
    assert len(ops_named(module, "memref.alloc")) == 2


@pytest.mark.parametrize("flags", ["", " overflow<nsw>"])
def test_attributes_tell_ops_apart(flags: str) -> None:
    module = simplified(
        f"  %a = arith.addi %i, %i : index\n  %b = arith.addi %i, %i{flags} : index\n"
        "  %c = arith.muli %a, %b : index\n  func.return %c : index",
        "%i: index",
        "index",
    )
    assert len(ops_named(module, "arith.addi")) == (2 if flags else 1)


def test_what_is_inside_an_isolated_op_uses_nothing_from_outside() -> None:
    module = run(
        parse(
            "func.func @f(%x: tensor<4xf32, #sym.dims<4>>) -> (tensor<4xf32, #sym.dims<4>>, f32) {\n"
            "  %c = arith.constant 2.0 : f32\n"
            "  %y = lin.map ins(%x : tensor<4xf32, #sym.dims<4>>) -> tensor<4xf32, #sym.dims<4>> {\n"
            "  ^bb0(%p: f32):\n    %k = arith.constant 2.0 : f32\n    %r = arith.mulf %p, %k : f32\n"
            "    lin.yield %r : f32\n  }\n"
            "  func.return %y, %c : tensor<4xf32, #sym.dims<4>>, f32\n}\n"
        ),
        "cse",
    )
    assert len(ops_named(module, "arith.constant")) == 2
    verify_module(module)


@pytest.mark.parametrize(("more", "left"), [("", 1), ('"test.termop"() : () -> () ^end: ', 2)])
def test_regions_are_compared_when_they_are_one_block(more: str, left: int) -> None:
    one = f'"test.pureop"() ({{ %s = arith.addf %x, %x : f32 {more}"test.termop"() : () -> () }}) : () -> f32'
    module = simplified(f"  %a = {one}\n  %b = {one}\n  %c = arith.addf %a, %b : f32\n  func.return %c : f32")
    assert len(ops_named(module, "test.pureop")) == left


def test_what_only_reads_goes_when_nobody_uses_it() -> None:
    module = simplified(
        "  %a = memref.load %m[%i] : memref<4xf32>\n  memref.store %x, %m[%i] : memref<4xf32>\n  func.return %x : f32"
    )
    assert [op.name for op in module.walk()][2:] == ["memref.store", "func.return"]


def test_who_may_write() -> None:
    module = parse(
        "func.func @f(%m: memref<4xf32>, %i: index, %x: f32) -> f32 {\n  memref.store %x, %m[%i] : memref<4xf32>\n"
        "  %a = memref.load %m[%i] : memref<4xf32>\n  %b = arith.addf %a, %x : f32\n"
        "  %c = func.call @f(%m, %i, %b) : (memref<4xf32>, index, f32) -> f32\n  func.return %c : f32\n}\n"
    )
    told = {op.name: may_write(op) for op in module.walk() if op.name.startswith(("memref", "arith", "func.call"))}
    assert told == {"memref.store": True, "memref.load": False, "arith.addf": False, "func.call": True}
