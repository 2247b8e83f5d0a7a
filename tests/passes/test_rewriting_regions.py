"""The pattern driver where ops hold regions: new nested ops, moved blocks, block arguments, several blocks."""

from __future__ import annotations

from typing import Any, cast

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects import test as test_dialect
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint

from tests.passes.support import ops_named, parse
from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.verify import verify_module
from tilewright.passes.rewriting import Rewriter, apply_patterns, pattern

LOOP = """func.func @f(%n: index, %c: i1, %a: i32) -> i32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %one step %one iter_args(%v = %a) -> (i32) {
    %w = scf.if %c -> (i32) {
      %x = arith.addi %v, %v : i32
      scf.yield %x : i32
    } else {
      scf.yield %v : i32
    }
    scf.yield %w : i32
  }
  func.return %r : i32
}
"""


def place(op: Operation) -> SourceLocation | None:
    return location_of(op)


@pattern(arith.AddiOp)
def add_under_if(op: arith.AddiOp, rewriter: Rewriter) -> None:
    """`a + b` becomes `if true then (a * b) - b else a`: three new ops stand inside a new op."""
    if isinstance(op.parent_op(), scf.IfOp):
        return
    product = arith.MuliOp(op.lhs, op.rhs)
    difference = arith.SubiOp(product, op.rhs)
    then = Region(Block([product, difference, scf.YieldOp(difference)]))
    otherwise = Region(Block([scf.YieldOp(op.lhs)]))
    true = arith.ConstantOp(IntegerAttr(1, 1))
    rewriter.replace(op, [true, scf.IfOp(true, [i32], then, otherwise)])


STRAIGHT = "func.func @f(%a: i32) -> i32 {\n  %x = arith.addi %a, %a : i32\n  func.return %x : i32\n}\n"


def test_ops_inside_a_new_op_get_the_location_too() -> None:
    module = parse(STRAIGHT)
    assert apply_patterns(module, (add_under_if,))
    verify_module(module)
    made = [op for op in module.walk() if op.name.startswith(("arith.", "scf."))]
    assert [op.name for op in made] == [
        *("arith.constant", "scf.if", "arith.muli", "arith.subi", "scf.yield", "scf.yield")
    ]
    assert {place(op) for op in made} == {SourceLocation("test.mlir", 2, 3)}


def test_ops_inside_a_new_op_are_visited() -> None:
    @pattern(arith.SubiOp)
    def subtract_to_xor(op: arith.SubiOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, arith.XOrIOp(op.lhs, op.rhs))

    module = parse(STRAIGHT)
    apply_patterns(module, (add_under_if, subtract_to_xor))
    assert not ops_named(module, "arith.subi")
    assert len(ops_named(module, "arith.xori")) == 1


def test_ops_moved_into_a_new_op_keep_their_locations() -> None:
    @pattern(scf.IfOp)
    def swap_branches(op: scf.IfOp, rewriter: Rewriter) -> None:
        if isinstance(op.cond.owner, arith.XOrIOp):
            return
        true = arith.ConstantOp(IntegerAttr(1, 1))
        negated = arith.XOrIOp(op.cond, true)
        then = rewriter.move_region_contents_to_new_regions(op.true_region)
        otherwise = rewriter.move_region_contents_to_new_regions(op.false_region)
        rewriter.replace(op, [true, negated, scf.IfOp(negated, op.result_types, otherwise, then)])

    module = parse(LOOP)
    assert apply_patterns(module, (swap_branches,))
    verify_module(module)
    assert place(ops_named(module, "arith.addi")[0]) == SourceLocation("test.mlir", 6, 7)
    assert place(ops_named(module, "scf.if")[0]) == SourceLocation("test.mlir", 5, 5)
    yields = [place(op) for op in ops_named(module, "scf.yield")]
    assert yields == [SourceLocation("test.mlir", line, column) for line, column in ((9, 7), (7, 7), (11, 5))]


def unroll_once(op: scf.ForOp, rewriter: Rewriter) -> None:
    """The loop above runs once: its body stands in its place, the arguments replaced."""
    block = op.body.block
    last = cast(scf.YieldOp, block.last_op)
    values = tuple(last.operands)
    rewriter.erase(last)
    rewriter.inline_block(block, InsertPoint.before(op), (op.lb, *op.iter_args))
    rewriter.replace(op, (), values)


def test_a_replaced_block_argument_is_seen_by_ops_that_are_nested_deeper() -> None:
    seen: list[str] = []

    @pattern(arith.AddiOp)
    def doubled_argument(op: arith.AddiOp, rewriter: Rewriter) -> None:
        owner = op.lhs.owner
        around = owner.parent_op() if isinstance(owner, Block) else owner
        seen.append(around.name if around is not None else "nothing")
        if seen[-1] == "func.func" and op.lhs == op.rhs:
            two = arith.ConstantOp(IntegerAttr(2, i32))
            rewriter.replace(op, [two, arith.MuliOp(op.lhs, two)])

    module = parse(LOOP)
    assert apply_patterns(module, (pattern(scf.ForOp)(unroll_once), doubled_argument))
    verify_module(module)
    assert not ops_named(module, "scf.for")
    assert len(ops_named(module, "arith.muli")) == 1
    assert seen[-1] == "func.func"


def test_an_argument_that_nobody_uses_can_go() -> None:
    block = Block(arg_types=[i32, i32])
    block.add_op(arith.AddiOp(block.args[1], block.args[1]))
    holder = test_dialect.TestOp(regions=[Region(block)])

    @pattern(test_dialect.TestOp)
    def drop_unused(op: test_dialect.TestOp, rewriter: Rewriter) -> None:
        for argument in op.regs[0].block.args:
            if argument.first_use is None:
                rewriter.erase_block_argument(argument)

    assert apply_patterns(ModuleOp([holder]), (drop_unused,))
    assert [argument.index for argument in block.args] == [0]
    assert [operand for op in block.ops for operand in op.operands] == [block.args[0]] * 2


def test_every_block_of_a_region_is_visited_and_changed() -> None:
    blocks = [Block(arg_types=[i32]), Block(arg_types=[i32])]
    for block in blocks:
        block.add_op(arith.AddiOp(block.args[0], block.args[0]))

    @pattern(arith.AddiOp)
    def to_multiply(op: arith.AddiOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, arith.MuliOp(op.lhs, op.rhs))

    apply_patterns(ModuleOp([test_dialect.TestOp(regions=[Region(blocks)])]), (to_multiply,))
    assert [op.name for block in blocks for op in block.ops] == ["arith.muli", "arith.muli"]


def test_a_pattern_that_never_stops_by_itself_is_named() -> None:
    @pattern(arith.AddiOp)
    def swap(op: arith.AddiOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, arith.AddiOp(op.rhs, op.lhs))

    with pytest.raises(TilewrightError) as caught:
        apply_patterns(parse(STRAIGHT), (swap,), max_rewrites=50)
    assert str(caught.value) == (
        "test.mlir:2:3: error: rewriting does not settle: 50 rewrites, still going: swap (51 of the last 51)"
    )


def test_a_pattern_that_grows_the_module_ends_in_an_error() -> None:
    @pattern(arith.AddiOp)
    def grow(op: arith.AddiOp, rewriter: Rewriter) -> None:
        rewriter.insert(arith.AddiOp(op.lhs, op.rhs))

    with pytest.raises(TilewrightError, match=r"does not settle: 200 rewrites, still going: grow"):
        apply_patterns(parse(STRAIGHT), (grow,), max_rewrites=200)


def test_what_is_not_declared_a_pattern_is_said_so() -> None:
    def plain(op: Operation, rewriter: Rewriter) -> None:
        pass

    with pytest.raises(TypeError, match=r"expected patterns as @pattern\(AddOp\) declares them, got <function"):
        apply_patterns(ModuleOp([]), (cast(Any, plain),))
    with pytest.raises(TypeError, match=r"expected classes of ops as in @pattern\(AddOp\), got <function"):
        pattern(cast(Any, plain))
