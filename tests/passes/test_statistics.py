"""Statistics: who counts, for which pass, and that patterns are counted by name."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import parse
from tilewright.passes import (
    Rewriter,
    Statistic,
    TilewrightPass,
    apply_patterns,
    collecting_statistics,
    count_statistic,
    pattern,
    run_pipeline,
    running_pass,
    statistics_of,
)

CHAIN = """func.func @f(%a: i32, %b: i32) -> i32 {
  %unused = arith.subi %a, %b : i32
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
def multiply_to_and(op: arith.MuliOp, rewriter: Rewriter) -> None:
    rewriter.replace(op, arith.AndIOp(op.lhs, op.rhs))


@dataclass(frozen=True)
class MixPass(TilewrightPass):
    """Rewrites sums and products."""

    name = "mix"
    level = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, (add_to_multiply, multiply_to_and), erase_dead=True)
        self.statistic("modules seen")


def test_rewrites_are_counted_by_pattern_for_the_pass_that_runs() -> None:
    with collecting_statistics() as counts:
        run_pipeline(parse(CHAIN), Context(), [MixPass()])
    # Two sums become products, so three products become conjunctions; one subtraction is dead.
    assert counts == {
        ("mix", "add_to_multiply"): 2,
        ("mix", "multiply_to_and"): 3,
        ("mix", "erase_dead"): 1,
        ("mix", "modules seen"): 1,
    }


def test_nothing_is_counted_without_a_collector_or_outside_of_a_pass() -> None:
    count_statistic("mix", "lost")
    with collecting_statistics() as counts:
        apply_patterns(parse(CHAIN), (add_to_multiply,))
    assert counts == {}


def test_the_innermost_collector_counts() -> None:
    with collecting_statistics() as outer:
        with collecting_statistics() as inner:
            count_statistic("a", "things", 2)
        count_statistic("a", "things", 3)
    assert (inner, outer) == ({("a", "things"): 2}, {("a", "things"): 3})


def test_the_pass_that_runs_is_the_innermost_and_its_name_comes_back() -> None:
    with collecting_statistics() as counts, running_pass("outer"):
        with running_pass("inner"):
            apply_patterns(parse(CHAIN), (add_to_multiply,))
        apply_patterns(parse(CHAIN), (multiply_to_and,))
    assert counts == {("inner", "add_to_multiply"): 2, ("outer", "multiply_to_and"): 1}


def test_statistics_are_sorted_by_pass_and_size() -> None:
    with collecting_statistics() as counts:
        for pass_name, name, n in (("late", "x", 1), ("early", "y", 5), ("late", "z", 7)):
            count_statistic(pass_name, name, n)
    assert statistics_of(counts) == [Statistic("late", "z", 7), Statistic("late", "x", 1), Statistic("early", "y", 5)]
    assert str(Statistic("late", "z", 7)) == "late: 7 z"
