"""`tilewright run --bisect-shapes`: PASS for a right compiler, the guilty symbol for passes made wrong on purpose."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects import arith

from tilewright.api.cli import main
from tilewright.dialects.lin.generic import GenericOp
from tilewright.passes.decompose import DecomposePass

M_N, N = "tensor<?x?xf32, #sym.dims<M, N>>", "tensor<?xf32, #sym.dims<N>>"
PROGRAM = f"""
sym.symbol @M {{min = 1}}
sym.symbol @N
sym.require N >= M
func.func @main(%x : {M_N}, %b : {N}) -> {M_N} {{
  %r = lin.map ins(%x, %b : {M_N}, {N}) -> {M_N} {{
  ^bb0(%p: f32, %q: f32):
    %z = arith.addf %p, %q : f32
    lin.yield %z : f32
  }}
  func.return %r : {M_N}
}}
func.func private @other(%x : tensor<?xf32, #sym.dims<M - 9>>) -> tensor<?xf32, #sym.dims<M - 9>> {{
  func.return %x : tensor<?xf32, #sym.dims<M - 9>>
}}
"""


def bisect(*words: str, text: str = PROGRAM) -> tuple[int, list[str], str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["run", "-", "--backend", "sim", "--bisect-shapes", *words], io.StringIO(text), out, err)
    return code, out.getvalue().splitlines(), err.getvalue()


def plant(monkeypatch: pytest.MonkeyPatch, fault: Callable[[GenericOp], None]) -> None:
    """Make `decompose` spoil each generic that it leaves."""
    right = DecomposePass.apply

    def wrong(self: DecomposePass, ctx: Any, op: Any) -> None:
        right(self, ctx, op)
        for each in list(op.walk()):
            if isinstance(each, GenericOp):
                fault(each)

    monkeypatch.setattr(DecomposePass, "apply", wrong)


def subtract(generic: GenericOp) -> None:
    for op in list(generic.body.block.ops):
        if isinstance(op, arith.AddfOp):
            changed = arith.SubfOp(op.lhs, op.rhs)
            op.result.replace_all_uses_with(changed.result)
            generic.body.block.insert_op_before(changed, op)
            generic.body.block.erase_op(op)


def test_every_configuration_runs_and_agrees():
    code, lines, err = bisect("--dim", "M=5", "--dim", "N=37")
    assert (code, err) == (0, "")
    assert lines == [
        "entry    @main",
        "dims     M = 5, N = 37",
        "ok       all sizes constant",
        "ok       M symbolic, equal to constants bit for bit",
        "ok       N symbolic, equal to constants bit for bit",
        "ok       all sizes symbolic, equal to constants bit for bit",
        "PASS     no configuration differs from the reference",
    ]


def test_a_pass_that_is_wrong_for_one_symbolic_size_is_found_by_the_symbol(monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, lambda g: subtract(g) if any("N" in e.symbols for e in g.extents()) else None)
    code, lines, _ = bisect("--dim", "M=5", "--dim", "N=37")
    assert code == 1
    assert [line.split(":")[0] for line in lines[2:6]] == [
        "ok       all sizes constant",
        "ok       M symbolic, equal to constants bit for bit",
        "differs  N symbolic",
        "differs  all sizes symbolic",
    ]
    # Where b is 0, a + b and a - b are one.
    first = r"FAIL     first with N symbolic: result 0: 1[78]\d of 185 elements beyond the bound; worst at \["
    assert re.match(first, lines[6])
    assert lines[7:] == ["         N = 37 is argument 0 dim 1, argument 1 dim 0, result 0 dim 1"]


def test_a_pass_that_is_wrong_only_for_two_symbolic_sizes_at_once(monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, lambda g: subtract(g) if all(e.symbols for e in g.extents()) else None)
    code, lines, _ = bisect("--dim", "M=5", "--dim", "N=37")
    assert code == 1
    assert lines[6].startswith("FAIL     first with all sizes symbolic: result 0: ")
    assert lines[7].startswith("         M = 5 is argument 0 dim 0, result 0 dim 0")


def test_a_pass_that_is_wrong_in_any_case_is_no_matter_of_shapes(monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, subtract)
    code, lines, _ = bisect("--dim", "M=5", "--dim", "N=37")
    assert code == 1
    assert lines[6].startswith("FAIL     first with all sizes constant: result 0: ")


def test_a_pass_that_breaks_down_is_a_difference(monkeypatch: pytest.MonkeyPatch):
    def fail(generic: GenericOp) -> None:
        if any("M" in e.symbols for e in generic.extents()):
            raise ValueError("no rule for M")

    plant(monkeypatch, fail)
    code, lines, _ = bisect("--dim", "M=5", "--dim", "N=37")
    assert code == 1
    (verdict,) = [line for line in lines if line.startswith("FAIL")]
    assert verdict.startswith("FAIL     first with M symbolic: fails: internal error: ValueError: no rule for M")


def test_sizes_come_from_the_program_where_none_is_given():
    code, lines, _ = bisect(text=PROGRAM.replace("{min = 1}", "{likely = [3]}").replace("@N", "@N {likely = [8]}"))
    assert code == 0
    assert lines[1] == "dims     M = 3, N = 8"


def test_results_are_not_written():
    code, _, err = bisect("--output", "somewhere")
    assert code == 1
    assert err == "error: --output: expected without --bisect-shapes, which runs the program several times\n"
