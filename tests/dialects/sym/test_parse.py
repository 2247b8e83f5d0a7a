"""The grammar on plain strings: precedence, relations, and the column of a fault."""

from __future__ import annotations

import pytest

from tilewright.dialects.sym import Relation, SymSyntaxError, parse_expr, parse_relation


def test_products_bind_tighter_than_sums_and_read_left_to_right() -> None:
    env = {"a": 17, "b": 5, "c": 3}
    assert parse_expr("a - b - c").evaluate(env) == 9
    assert parse_expr("a + b * c").evaluate(env) == 32
    assert parse_expr("a floordiv b * c").evaluate(env) == 9
    assert parse_expr("a ceildiv b mod c").evaluate(env) == 1
    assert parse_expr("-a floordiv b").evaluate(env) == -4
    assert parse_expr("a - -b").evaluate(env) == 22
    assert parse_expr("min(a, b, max(c, 4))").evaluate(env) == 4


@pytest.mark.parametrize(
    ("text", "holds"),
    [("a == 17", True), ("a >= 18", False), ("a <= 17", True), ("a > 16", True), ("a < 17", False)],
)
def test_relations_hold_and_their_negations_do_not(text: str, holds: bool) -> None:
    relation = parse_relation(text)
    assert relation.holds({"a": 17}) is holds
    negated = relation.negated()
    assert (negated is None) == (relation.op == "==")
    if negated is not None:
        assert negated.holds({"a": 17}) is not holds
    assert parse_relation(str(relation)) == relation


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected an integer"),
        ("a +", 4, "expected an integer"),
        ("a $ b", 3, "unexpected character"),
        ("a b", 3, "expected an operator"),
        ("(a", 3, "expected ')'"),
        ("min a", 5, "expected '('"),
        ("a + mod 3", 5, "expected an operand, got 'mod'"),
        ("a floordiv 0 + 1", 12, "division by zero"),
        ("a % 2", 3, "unexpected character"),
        ("9" * 100, 1, "integer too large"),
        ("(" * 200, 130, "nested too deeply"),
    ],
)
def test_faults_carry_their_column(text: str, column: int, message: str) -> None:
    with pytest.raises(SymSyntaxError, match=message.replace("(", r"\(").replace(")", r"\)")) as fault:
        parse_expr(text)
    assert fault.value.column == column
    assert "\n" not in fault.value.message


@pytest.mark.parametrize("text", ["a", "a = b", "a != b", "a == b == c", "a >= ", "== b"])
def test_malformed_relations_are_refused(text: str) -> None:
    with pytest.raises(SymSyntaxError):
        parse_relation(text)


def test_relation_is_a_value() -> None:
    assert parse_relation("a + b >= 1") == Relation(parse_expr("b + a"), ">=", parse_expr("1"))
    assert parse_relation("a*b == c").symbols == {"a", "b", "c"}
