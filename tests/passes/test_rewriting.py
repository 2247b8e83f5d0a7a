"""The pattern driver: dispatch, bounded rewriting, locations, errors."""

from __future__ import annotations

import time
from typing import Any

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tests.passes.support import ops_named, parse
from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.verify import verify_module
from tilewright.passes.core import error_at
from tilewright.passes.rewriting import Pattern, Rewriter, apply_patterns, pattern

CHAIN = """func.func @f(%a: i32, %b: i32) -> i32 {
  %x = arith.addi %a, %b : i32
  %y = arith.muli %x, %b : i32
  %z = arith.addi %y, %a : i32
  func.return %z : i32
}
"""


@pattern(arith.AddiOp)
def add_to_multiply(op: arith.AddiOp, rewriter: Rewriter) -> None:
    rewriter.replace(op, arith.MuliOp(op.lhs, op.rhs))


@pattern(arith.MuliOp)
def multiply_to_add(op: arith.MuliOp, rewriter: Rewriter) -> None:
    rewriter.replace(op, arith.AddiOp(op.lhs, op.rhs))


@pattern(arith.AddiOp)
def two_constants_more(op: arith.AddiOp, rewriter: Rewriter) -> None:
    if op.lhs.type != i32 or isinstance(op.rhs.owner, arith.ConstantOp):
        return
    one = arith.ConstantOp(IntegerAttr(1, i32))
    inner = arith.MuliOp(op.rhs, one)
    rewriter.replace(op, (one, inner, arith.SubiOp(op.lhs, inner)))


def names(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("arith.")]


def test_a_pattern_sees_ops_of_its_class_alone() -> None:
    seen: list[str] = []

    @pattern(arith.AddiOp, arith.SubiOp)
    def look(op: Operation, rewriter: Rewriter) -> None:
        seen.append(op.name)

    assert not apply_patterns(parse(CHAIN), (look,))
    assert seen == ["arith.addi", "arith.addi"]


def test_a_pattern_of_a_base_class_sees_subclasses_in_program_order() -> None:
    seen: list[str] = []

    @pattern()
    def look(op: Operation, rewriter: Rewriter) -> None:
        seen.append(op.name)

    apply_patterns(parse(CHAIN), (look,))
    assert seen == ["func.func", "arith.addi", "arith.muli", "arith.addi", "func.return"]


def test_an_op_with_nothing_inside_is_left_as_it_is() -> None:
    (declared,) = ops_named(parse("func.func private @g()"), "func.func")
    assert not apply_patterns(declared, (add_to_multiply,), erase_dead=True)
    assert ops_named(declared, "func.func") == [declared]


def test_patterns_apply_until_nothing_changes() -> None:
    module = parse(CHAIN)
    assert apply_patterns(module, (add_to_multiply,))
    assert names(module) == ["arith.muli"] * 3
    assert not apply_patterns(module, (add_to_multiply,))
    verify_module(module)


def test_once_does_not_visit_new_ops() -> None:
    module = parse(CHAIN)
    assert apply_patterns(module, (add_to_multiply, multiply_to_add), recursive=False)
    assert names(module) == ["arith.muli", "arith.addi", "arith.muli"]


def test_patterns_that_undo_one_another_are_named() -> None:
    with pytest.raises(TilewrightError) as caught:
        apply_patterns(parse(CHAIN), (add_to_multiply, multiply_to_add), max_rewrites=100)
    assert "does not settle: 100 rewrites" in caught.value.message
    assert "add_to_multiply" in caught.value.message
    assert "multiply_to_add" in caught.value.message
    assert caught.value.location is not None


def test_patterns_that_fired_earlier_only_are_not_named() -> None:
    @pattern(arith.SubiOp)
    def only_once(op: arith.SubiOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, arith.AndIOp(op.lhs, op.rhs))

    text = CHAIN.replace("%y = arith.muli %x, %b", "%y = arith.subi %x, %b")
    with pytest.raises(TilewrightError) as caught:
        apply_patterns(parse(text), (only_once, add_to_multiply, multiply_to_add), max_rewrites=200)
    assert "only_once" not in caught.value.message


def test_inserted_ops_get_the_location_of_the_matched_op() -> None:
    module = parse(CHAIN)
    apply_patterns(module, (two_constants_more,))
    assert len(ops_named(module, "arith.constant")) == 2
    lines = {"arith.constant": [2, 4], "arith.subi": [2, 4], "arith.muli": [2, 3, 4]}
    for name, expected in lines.items():
        places = [location_of(op) for op in ops_named(module, name)]
        assert places == [SourceLocation("test.mlir", line, 3) for line in expected]


def test_an_op_that_has_a_location_keeps_it() -> None:
    module = parse(CHAIN)
    other = ops_named(module, "func.return")[0].location

    @pattern(arith.MuliOp)
    def replace(op: arith.MuliOp, rewriter: Rewriter) -> None:
        made = arith.AndIOp(op.lhs, op.rhs)
        made.location = other
        rewriter.replace(op, made)

    apply_patterns(module, (replace,))
    assert ops_named(module, "arith.andi")[0].location == other


def test_an_error_in_a_pattern_is_one_line_at_the_op_with_the_pattern_s_name() -> None:
    @pattern(arith.MuliOp)
    def broken(op: arith.MuliOp, rewriter: Rewriter) -> None:
        raise ValueError("no such thing\nand more lines")

    with pytest.raises(TilewrightError) as caught:
        apply_patterns(parse(CHAIN), (broken,))
    assert str(caught.value) == "test.mlir:3:3: error: pattern broken failed at arith.muli: no such thing"
    assert not getattr(caught.value, "__notes__", [])


def test_a_user_error_in_a_pattern_keeps_its_message() -> None:
    @pattern(arith.MuliOp)
    def refuse(op: arith.MuliOp, rewriter: Rewriter) -> None:
        raise TilewrightError("expected less, got more")

    with pytest.raises(TilewrightError) as caught:
        apply_patterns(parse(CHAIN), (refuse,))
    assert str(caught.value) == "test.mlir:3:3: error: expected less, got more"


def test_error_at_names_the_place_of_the_op_or_of_the_op_around_it() -> None:
    module = parse(CHAIN)
    fresh = arith.ConstantOp(IntegerAttr(1, i32))
    block = ops_named(module, "func.func")[0].regions[0].block
    block.insert_op_before(fresh, ops_named(module, "func.return")[0])
    assert str(error_at(fresh, "wrong")) == "test.mlir:1:1: error: wrong"


def test_dead_ops_go_with_what_only_they_used() -> None:
    module = parse(CHAIN.replace("func.return %z", "func.return %a"))
    assert apply_patterns(module, (), erase_dead=True)
    assert names(module) == []


def test_erasing_the_op_around_is_no_trouble() -> None:
    module = parse(
        "func.func @f(%c: i1, %a: i32) -> i32 {\n"
        "  %r = scf.if %c -> (i32) {\n    %x = arith.addi %a, %a : i32\n    scf.yield %x : i32\n"
        "  } else {\n    scf.yield %a : i32\n  }\n  func.return %r : i32\n}\n"
    )

    @pattern()
    def drop_if(op: Operation, rewriter: Rewriter) -> None:
        if op.name == "scf.if":
            rewriter.replace(op, (), (ops_named(module, "func.func")[0].regions[0].block.args[1],))

    visited: list[str] = []

    @pattern(arith.AddiOp)
    def look(op: Operation, rewriter: Rewriter) -> None:
        visited.append(op.name)

    apply_patterns(module, (drop_if, look))
    assert visited == []
    assert names(module) == []


def test_visiting_costs_well_below_a_tenth_of_a_millisecond_an_op() -> None:
    lines = "\n".join(f"  %v{i + 1} = arith.addi %v{i}, %v0 : i32" for i in range(2000))
    module = parse(f"func.func @f(%v0: i32) -> i32 {{\n{lines}\n  func.return %v2000 : i32\n}}\n")

    @pattern(arith.AddiOp)
    def look(op: Operation, rewriter: Rewriter) -> None:
        pass

    best = min(_timed(module, look) for _ in range(3))
    # Measured 4 us on a quiet machine; the bound leaves room for a shared one.
    assert best / 2000 < 60e-6


def _timed(module: ModuleOp, look: Pattern[Any]) -> float:
    start = time.perf_counter()
    apply_patterns(module, (look,), erase_dead=True)
    return time.perf_counter() - start
