"""Requirements of an entry: their order, what proves them, and what is said of those that no call can meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import Answer, Expr, Relation, parse_relation
from tilewright.lowering.host_conflicts import Statement, clash, explain_conflict, proof
from tilewright.lowering.host_requirements import check_statements, cost, entry_requirements, settle


def statements(*texts: str) -> list[Statement]:
    """Statements on lines 1, 2, ... of p.mlir."""
    return [Statement(parse_relation(text), f"p.mlir:{line}:1") for line, text in enumerate(texts, 1)]


def entry(*lines: str, shapes: str = "M, N") -> tuple[ModuleOp, func.FuncOp]:
    """A module with the lines, and an entry with one argument of the shape on the line after them."""
    type_ = f"tensor<{'x'.join('?' for _ in shapes.split(','))}xf32, #sym.dims<{shapes}>>"
    text = "\n".join([*lines, f"func.func @main(%x : {type_}) -> {type_} {{ func.return %x : {type_} }}"])
    module = parse_module(text, "p.mlir", make_context())
    return module, next(op for op in module.ops if isinstance(op, func.FuncOp))


def guarded(*lines: str, shapes: str = "M, N") -> list[str]:
    module, function = entry(*lines, shapes=shapes)
    settled, _ = settle(function, entry_requirements(module, function))
    return [str(each.requirement.relation) for each in settled if each.answer is not Answer.PROVED]


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (
            ("S1 >= 1", "S0 == S1", "S0 == 2*S1"),
            "S1 == 0 follows from S0 == S1 (p.mlir:2:1) and S0 == 2*S1 (p.mlir:3:1), but S1 >= 1 (p.mlir:1:1)",
        ),
        (("N >= 5", "N <= 3"), "N <= 3 (p.mlir:2:1) contradicts N >= 5 (p.mlir:1:1)"),
        (
            ("N mod 16 == 0", "N >= 17", "N <= 31"),
            "N <= 16 follows from N mod 16 == 0 (p.mlir:1:1) and N <= 31 (p.mlir:3:1), but N >= 17 (p.mlir:2:1)",
        ),
        (
            ("M >= 0", "N >= 0", "K >= 9", "M + N <= 5", "M >= 3", "N >= 4"),
            "M <= 1 follows from M + N <= 5 (p.mlir:4:1) and N >= 4 (p.mlir:6:1), but M >= 3 (p.mlir:5:1)",
        ),
        (
            ("M >= 50", "N >= 2*M", "N <= 9"),
            "N >= 100 follows from M >= 50 (p.mlir:1:1) and N >= 2*M (p.mlir:2:1), but N <= 9 (p.mlir:3:1)",
        ),
        (
            ("A < B", "B < C", "C < A"),
            "C < A (p.mlir:3:1) contradicts A < B (p.mlir:1:1) and B < C (p.mlir:2:1)",
        ),
        (("N == 2*M", "N == 2*K + 1"), "N == 2*K + 1 (p.mlir:2:1) contradicts N == 2*M (p.mlir:1:1)"),
        (("M >= 4", "M*M + 1 == 0"), "M*M + 1 == 0 (p.mlir:2:1) holds for no value"),
    ],
)
def test_a_conflict_names_the_statements_that_clash_and_what_they_force(texts: tuple[str, ...], line: str):
    assert explain_conflict(statements(*texts)) == line


def test_where_nothing_clashes_there_is_nothing_to_say():
    assert explain_conflict(statements("M >= 1", "N == 2*M", "N <= 9")) is None


RELATION = st.builds(
    lambda a, b, c, op: Relation(a * Expr.symbol("A") + b * Expr.symbol("B"), op, Expr.const(c)),
    st.integers(-3, 3), st.integers(-3, 3), st.integers(-6, 6), st.sampled_from(["==", ">=", "<="]),
)  # fmt: skip


@given(st.lists(RELATION, min_size=1, max_size=4))
def test_what_is_said_to_clash_holds_nowhere(relations: list[Relation]):
    """Against enumeration of a box of sizes, negative ones included."""
    points = [{"A": a, "B": b} for a in range(-20, 21) for b in range(-20, 21)]
    if clash([Statement(r) for r in relations]):
        assert not any(all(r.holds(point) for r in relations) for point in points)
        assert explain_conflict([Statement(r) for r in relations]) is not None


def test_a_contradiction_is_an_error_when_compiled_at_the_last_statement_of_it():
    lines = ("sym.symbol @S0", "sym.symbol @S1 {min = 1}", "sym.require S0 == S1", "sym.require S0 == 2*S1")
    with pytest.raises(TilewrightError) as error:
        check_statements(*entry(*lines, shapes="S0, S1"))
    assert str(error.value) == (
        "p.mlir:4:1: error: no call of @main is possible: S1 == 0 follows from S0 == S1 (p.mlir:3:1) and "
        "S0 == 2*S1 (p.mlir:4:1), but S1 >= 1 (p.mlir:2:1)"
    )


def test_statements_of_other_entries_must_not_clash_either():
    lines = ("sym.symbol @M", "sym.symbol @N", "sym.symbol @Q {max = 3}", "sym.require Q >= 5")
    with pytest.raises(TilewrightError, match=r"exclude one another: Q >= 5 \(p.mlir:4:1\) contradicts Q <= 3"):
        check_statements(*entry(*lines))


def test_numbers_alone_are_compared_when_compiled():
    assert guarded("sym.symbol @M", "sym.symbol @N", "sym.require 3 >= 2") == []
    with pytest.raises(TilewrightError, match=r"p\.mlir:3:1: error: requirement 2 >= 3 never holds"):
        guarded("sym.symbol @M", "sym.symbol @N", "sym.require 2 >= 3")


def test_cheap_checks_come_first_and_imply_others_away():
    lines = (
        "sym.symbol @M",
        "sym.symbol @N",
        "sym.require min(M, N) + M*N >= 3",
        "sym.require M mod 8 == 0",
        "sym.require M + N >= 20",
        "sym.require M mod 4 == 0",
        "sym.require M >= 16",
        "sym.require N >= 4",
    )
    # In order of cost M + N >= 20 and min(M, N) + M*N >= 3 follow from M >= 16 and N >= 4, M mod 4 from M mod 8.
    assert guarded(*lines) == ["M >= 16", "N >= 4", "M mod 8 == 0"]


def test_a_proof_names_the_statements_that_it_needs_and_no_others():
    known = statements("M >= 3", "N >= 0", "K mod 8 == 0", "K == 2*S", "M <= 9")
    assert proof(known, parse_relation("M + N >= 2")) == (known[0], known[1])
    assert proof(known, parse_relation("S mod 4 == 0")) == (known[2], known[3])
    assert proof(known, parse_relation("M == M")) == ()
    assert proof(known, parse_relation("N >= 1")) is None


@pytest.mark.parametrize(
    ("text", "operations"),
    [("M >= 1", 0), ("M + N >= 10", 1), ("N mod 8 == 0", 1), ("2*M - N <= 0", 2), ("min(M, N) >= 2*K", 4)],
)
def test_cost_counts_operations(text: str, operations: int):
    assert cost(parse_relation(text)) == operations


def test_casts_are_requirements_at_their_place():
    m, n = "tensor<?xf32, #sym.dims<M>>", "tensor<?xf32, #sym.dims<N>>"
    text = f"""sym.symbol @M
sym.symbol @N
func.func @main(%x : {m}, %y : {n}) -> {n} {{
  %c = sym.cast %x : {m} to {n}
  func.return %c : {n}
}}"""
    module = parse_module(text, "p.mlir", make_context())
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    settled, _ = settle(function, entry_requirements(module, function))
    (guard,) = [each.requirement for each in settled if each.answer is not Answer.PROVED]
    assert guard.message == "M == N: required by the program (p.mlir:4:3)"


def test_what_is_no_tensor_has_no_size_that_could_be_negative():
    vector = "tensor<?xf32, #sym.dims<M - N>>"
    text = f"""sym.symbol @M
sym.symbol @N
func.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> {vector} {{
  %c = arith.constant 1.0 : f32
  %r = lin.generic (i) ins(%c : f32) out[i] : {vector} {{
  ^bb0(%v: f32):
    lin.yield %v : f32
  }}
  func.return %r : {vector}
}}"""
    module = parse_module(text, "p.mlir", make_context())
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    settled, _ = settle(function, entry_requirements(module, function))
    (guard,) = [each.requirement for each in settled if each.answer is not Answer.PROVED]
    assert guard.message == "M - N: expected a size of a result of at least 0"
