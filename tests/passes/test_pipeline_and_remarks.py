"""Running passes in order, and the remarks they make."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import CONTEXT, make_pass, ops_named, parse
from tilewright.diagnostics import TilewrightError
from tilewright.passes.core import TilewrightPass
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks, remark
from tilewright.passes.rewriting import Rewriter, apply_patterns, pattern

TEXT = """func.func @f(%a: i32, %b: i32) -> i32 {
  %x = arith.addi %a, %b : i32
  %y = arith.muli %x, %b : i32
  func.return %y : i32
}
"""


@dataclass(frozen=True)
class SwapOpsPass(TilewrightPass):
    """Breaks dominance: the product stands before the sum that it needs."""

    name = "swap-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sum_, product = ops_named(op, "arith.addi")[0], ops_named(op, "arith.muli")[0]
        block = sum_.parent
        assert block is not None
        product.detach()
        block.insert_op_before(product, sum_)
        remark(product, self.name, "moved up")


def test_a_pass_that_breaks_the_module_is_named() -> None:
    with pytest.raises(TilewrightError, match=r"after pass swap-ops: 'arith\.muli': operand 0") as caught:
        run_pipeline(parse(TEXT), CONTEXT, [make_pass("cse"), SwapOpsPass()], verify_each=True)
    assert caught.value.location is not None
    assert caught.value.location.line == 3


def test_the_callback_sees_each_pass_and_the_module_after_it_also_a_broken_one() -> None:
    seen: list[tuple[str, list[str]]] = []

    def look(each: object, module: ModuleOp) -> None:
        names = [op.name for op in module.walk() if op.name.startswith("arith.")]
        seen.append((getattr(each, "name", ""), names))

    with pytest.raises(TilewrightError):
        run_pipeline(parse(TEXT), CONTEXT, [make_pass("cse"), SwapOpsPass()], verify_each=True, on_after=look)
    assert seen == [("cse", ["arith.addi", "arith.muli"]), ("swap-ops", ["arith.muli", "arith.addi"])]


def test_remarks_point_into_the_text() -> None:
    with collecting_remarks() as remarks:
        run_pipeline(parse(TEXT), CONTEXT, [SwapOpsPass()])
    assert [str(r) for r in remarks] == ["test.mlir:3:3: remark: [swap-ops] moved up"]


def test_collectors_nest_and_without_one_remarks_are_dropped() -> None:
    module = parse(TEXT)
    remark(module, "nobody", "hears this")
    with collecting_remarks() as outer:
        remark(module, "outer", "one")
        with collecting_remarks() as inner:
            remark(module, "inner", "two")
        remark(module, "outer", "three")
    assert [r.message for r in outer] == ["one", "three"]
    assert [r.message for r in inner] == ["two"]


def test_a_pattern_that_looks_at_an_op_again_does_not_repeat_its_remark() -> None:
    @pattern(arith.MuliOp)
    def keep(op: arith.MuliOp, rewriter: Rewriter) -> None:
        remark(op, "test", "a product stays")

    @pattern(arith.AddiOp)
    def change(op: arith.AddiOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, arith.SubiOp(op.lhs, op.rhs))

    module = parse(TEXT)
    with collecting_remarks() as remarks:
        apply_patterns(module, (keep, change))
        remark(ops_named(module, "arith.subi")[0], "test", "a product stays")
    assert [str(each) for each in remarks] == [
        "test.mlir:3:3: remark: [test] a product stays",
        "test.mlir:2:3: remark: [test] a product stays",
    ]
