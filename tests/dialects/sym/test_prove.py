"""Facts and proofs: the queries that lowering asks, contradictions, and soundness against enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import (
    Answer,
    Expr,
    Facts,
    Relation,
    ceildiv,
    floordiv,
    mod,
    parse_expr,
    parse_relation,
    smax,
    smin,
)


def scope(declared: dict[str, dict[str, Any]], *relations: str) -> Facts:
    facts = Facts()
    for name, options in declared.items():
        facts.declare(name, **options)
    for relation in relations:
        facts.add(parse_relation(relation), relation)
    return facts


TILES = ("0 <= i", "i <= M ceildiv 32 - 1", "0 <= r", "r <= 31")
GRID = ("0 <= t", "t < (M ceildiv 128)*(N ceildiv 256)")


@pytest.mark.parametrize(
    ("declared", "relations", "query"),
    [
        ({"M": {"multiple_of": 32}}, TILES, "32*i + 31 < M"),
        ({"M": {"multiple_of": 32}}, TILES, "32*i + r < M"),
        ({"M": {}}, TILES, "32*i + 31 < 32*(M ceildiv 32)"),
        ({"M": {}}, TILES, "32*i < M"),
        ({"M": {}}, (), "M ceildiv 32 * 32 >= M"),
        ({"K": {"multiple_of": 16}, "k": {"multiple_of": 16}}, ("k <= K - 1",), "k + 15 < K"),
        ({"B": {"max": 64}, "M": {"max": 4096}, "N": {"max": 8191}}, (), "B*M*N <= 2147483647"),
        ({"M": {}, "N": {}, "i": {}, "j": {}}, ("i < M", "j < N"), "i*N + j < M*N"),
        ({"M": {}, "N": {}, "i": {}, "j": {}}, ("i < M", "j < N"), "(i*N + j) floordiv N == i"),
        ({"M": {}, "N": {}}, GRID, "t floordiv (N ceildiv 256) < M ceildiv 128"),
        ({"M": {}, "N": {}}, GRID, "t mod (N ceildiv 256) < N ceildiv 256"),
        ({"M": {"min": 1}, "N": {"min": 1}}, (), "M*N >= M"),
        ({"M": {}}, (), "M ceildiv 32 <= M"),
        ({}, (), "min(S, 128) <= 128"),
        ({}, (), "min(S, 7) + max(S, 7) == S + 7"),
        ({}, (), "(S + 1) - S == 1"),
        ({"b": {"min": 8}}, ("a >= b + 8",), "a >= 9"),
        ({}, ("x < y", "y < z"), "z >= x + 2"),
        ({"S": {"multiple_of": 16}}, ("S mod 12 == 0",), "S mod 48 == 0"),
        ({"S": {}}, ("S mod 16 == 3",), "(S + 13) mod 16 == 0"),
        ({}, ("(A + B) mod 4 == 0",), "(A + B + 8) mod 4 == 0"),
        ({"M": {"min": 1}}, ("M*N == M*K",), "N == K"),
        ({}, ("B*S == T", "S mod 8 == 0"), "T mod 8 == 0"),
        ({"M": {}}, (), "M*(S mod 5) <= 4*M"),
        ({"M": {}}, ("M ceildiv 32 * 32 == M",), "M mod 32 == 0"),
    ],
)
def test_proved(declared: dict[str, dict[str, Any]], relations: tuple[str, ...], query: str) -> None:
    facts = scope(declared, *(r.replace("0 <= ", "") + " >= 0" if r.startswith("0 <=") else r for r in relations))
    relation = parse_relation(query)
    assert facts.prove(relation) is Answer.PROVED
    negated = relation.negated()
    if negated is not None:
        assert facts.prove(negated) is Answer.DISPROVED


@pytest.mark.parametrize(
    ("declared", "relations", "query"),
    [
        ({"M": {}}, TILES, "32*i + 31 < M"),
        ({"M": {"multiple_of": 16}}, TILES, "32*i + 31 < M"),
        ({"K": {"multiple_of": 16}, "k": {}}, ("k <= K - 1",), "k + 15 < K"),
        ({"S": {"min": 1}}, (), "S >= 17"),
        ({"B": {"max": 64}, "M": {"max": 4096}, "N": {"max": 8193}}, (), "B*M*N <= 2147483647"),
        ({"M": {}, "N": {}}, (), "M*N >= M"),
        ({}, (), "S*S >= S + 1"),
        ({}, (), "M == N"),
    ],
)
def test_what_does_not_follow_is_unknown(
    declared: dict[str, dict[str, Any]], relations: tuple[str, ...], query: str
) -> None:
    assert scope(declared, *relations).prove(parse_relation(query)) is Answer.UNKNOWN


def test_divisibility() -> None:
    facts = scope({"N": {"multiple_of": 4}})
    assert facts.divisible(parse_expr("N*r + 4*c"), 4) is Answer.PROVED
    assert facts.divisible(parse_expr("N*r + 4*c + 2"), 4) is Answer.DISPROVED
    assert facts.divisible(parse_expr("N*r + c"), 4) is Answer.UNKNOWN
    assert facts.divisible(parse_expr("min(N, 8)*r"), 4) is Answer.PROVED
    assert facts.divisible(parse_expr("N + 2"), -2) is Answer.PROVED
    with pytest.raises(TilewrightError, match="other than 0"):
        facts.divisible(Expr.symbol("N"), 0)


def test_ranges() -> None:
    facts = scope({"M": {"max": 8192}}, "i >= 0", "i < M ceildiv 128")
    assert facts.range(Expr.symbol("i")) == (0, 63)
    assert facts.range(parse_expr("128*i + 127")) == (127, 8191)
    assert facts.range(parse_expr("S mod 16")) == (0, 15)
    assert facts.range(Expr.symbol("S")) == (None, None)
    assert facts.range(7) == (7, 7)


def test_a_contradiction_names_the_statements_it_follows_from() -> None:
    facts = Facts()
    facts.declare("S1", min=1, reason="k.mlir:1:1")
    facts.add(parse_relation("S0 == 2*S1"), "k.mlir:2:1")
    assert facts.contradiction() is None
    facts.declare("other", min=3, max=5, reason="k.mlir:9:9")
    facts.add(parse_relation("S0 == S1"), "k.mlir:3:1")
    message = facts.contradiction()
    assert message is not None
    assert "S0 == 2*S1 (k.mlir:2:1)" in message
    assert "S0 == S1 (k.mlir:3:1)" in message
    assert "k.mlir:9:9" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "relations",
    [
        ("S >= W + 1", "W >= S"),
        ("S mod 4 == 1", "S mod 2 == 0"),
        ("2*a == 2*b + 1",),
        ("x == y + 1", "y == z + 1", "z == x"),
        ("S mod 4 == 5",),
        ("S >= 3", "S <= 2"),
    ],
)
def test_contradictions_are_found(relations: tuple[str, ...]) -> None:
    message = scope({}, *relations).contradiction()
    assert message is not None
    for relation in relations:
        assert relation in message


def test_a_child_keeps_its_facts_to_itself() -> None:
    parent = scope({"M": {}})
    child = parent.child()
    child.add(parse_relation("i < M"), "loop")
    assert child.prove(parse_relation("i + 1 <= M")) is Answer.PROVED
    assert parent.prove(parse_relation("i + 1 <= M")) is Answer.UNKNOWN
    assert child.prove(parse_relation("M >= 0")) is Answer.PROVED


def test_new_facts_change_old_answers() -> None:
    facts = scope({"S": {}})
    query = parse_relation("S >= 3")
    assert facts.prove(query) is Answer.UNKNOWN
    facts.add(parse_relation("S >= 4"), "")
    assert facts.prove(query) is Answer.PROVED


def test_wide_queries_are_unknown_and_quick() -> None:
    wide = parse_expr(" + ".join(f"a{i}*b{i} - (c{i} floordiv 7)" for i in range(200)))
    facts = Facts()
    assert facts.prove(Relation(wide, ">=", Expr.const(0))) is Answer.UNKNOWN


NAMES: tuple[str, ...] = ("a", "b", "c")


def expressions(depth: int) -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from(NAMES).map(Expr.symbol), st.integers(-4, 9).map(Expr.const))
    if depth == 0:
        return leaves
    inner = expressions(depth - 1)
    divisor = st.integers(1, 6)
    return st.one_of(
        leaves,
        st.builds(lambda x, y: x + y, inner, inner),
        st.builds(lambda x, y: x - y, inner, inner),
        st.builds(lambda x, y: x * y, inner, inner),
        st.builds(floordiv, inner, divisor),
        st.builds(ceildiv, inner, divisor),
        st.builds(mod, inner, divisor),
        st.builds(lambda x, n: floordiv(x, Expr.symbol(n)), inner, st.sampled_from(NAMES)),
        st.builds(smin, inner, inner),
        st.builds(smax, inner, inner),
    )


def relations(depth: int) -> st.SearchStrategy[Relation]:
    ops = st.sampled_from(("==", ">=", "<=", ">", "<"))
    return st.builds(Relation, expressions(depth), ops, expressions(1))


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, tuple[int, int, int]]:
    return {
        name: (low := draw(st.sampled_from((-3, 0, 1, 2))), low + draw(st.integers(0, 6)), draw(st.integers(1, 4)))
        for name in NAMES
    }


def _defined(expr: Expr, env: dict[str, int]) -> int | None:
    try:
        return expr.evaluate(env)
    except TilewrightError:
        return None


def _holds(relation: Relation, env: dict[str, int]) -> bool | None:
    try:
        return relation.holds(env)
    except TilewrightError:
        return None


@settings(max_examples=10 * settings().max_examples, deadline=None)
@given(declarations(), st.lists(relations(2), max_size=3), relations(3), expressions(3), st.integers(1, 6))
def test_no_answer_is_contradicted_by_enumeration(
    declared: dict[str, tuple[int, int, int]], given_facts: list[Relation], query: Relation, expr: Expr, divisor: int
) -> None:
    facts = Facts()
    for name, (low, high, multiple) in declared.items():
        facts.declare(name, min=low, max=high, multiple_of=multiple)
    for relation in given_facts:
        facts.add(relation, "given")
    grids = [[v for v in range(low, high + 1) if v % m == 0] for low, high, m in declared.values()]
    models = [dict(zip(NAMES, point, strict=True)) for point in product(*grids)]
    models = [env for env in models if all(_holds(r, env) for r in given_facts)]
    if not models:
        return
    assert facts.contradiction() is None
    answer = facts.prove(query)
    low, high = facts.range(expr)
    divides = facts.divisible(expr, divisor)
    for env in models:
        truth = _holds(query, env)
        if truth is not None:
            assert answer is not (Answer.DISPROVED if truth else Answer.PROVED), env
        value = _defined(expr, env)
        if value is not None:
            assert low is None or low <= value, env
            assert high is None or value <= high, env
            assert divides is not (Answer.DISPROVED if value % divisor == 0 else Answer.PROVED), env


def test_a_proof_names_the_statements_it_rests_on() -> None:
    facts = Facts()
    facts.declare("K", multiple_of=16, reason="k.mlir:1:1")
    facts.declare("other", multiple_of=16, min=3, reason="k.mlir:2:1")
    facts.add(parse_relation("k mod 16 == 0"), "k.mlir:3:1")
    facts.add(parse_relation("k < K"), "k.mlir:4:1")
    assert facts.reasons(parse_relation("k + 15 < K")) == {
        "K mod 16 == 0 (k.mlir:1:1)",
        "k mod 16 == 0 (k.mlir:3:1)",
        "k < K (k.mlir:4:1)",
    }
    assert facts.reasons(parse_relation("k + 16 < K")) is None


def test_a_proof_by_divisibility_names_its_statement() -> None:
    facts = scope({}, "(x*y) mod 8 == 0")
    reasons = facts.reasons(parse_relation("(x*y) mod 4 == 0"))
    assert reasons == {"(x*y) mod 8 == 0 ((x*y) mod 8 == 0)"}
