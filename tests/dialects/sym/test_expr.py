"""The canonical form: values, identities, text, budgets."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import Expr, ceildiv, floordiv, mod, parse_expr, smax, smin

NAMES: tuple[str, ...] = ("a", "b", "c")
SETTINGS = settings(max_examples=6 * settings().max_examples, deadline=None)


def expressions(depth: int = 3) -> st.SearchStrategy[tuple[Expr, str]]:
    """An expression, and a Python text that computes it without any simplification."""
    leaves = st.one_of(
        st.sampled_from(NAMES).map(lambda n: (Expr.symbol(n), n)),
        st.integers(-5, 20).map(lambda v: (Expr.const(v), f"({v})")),
    )
    if depth == 0:
        return leaves
    inner = expressions(depth - 1)
    divisor = st.integers(1, 7)
    return st.one_of(
        leaves,
        st.tuples(inner, inner).map(lambda p: (p[0][0] + p[1][0], f"({p[0][1]} + {p[1][1]})")),
        st.tuples(inner, inner).map(lambda p: (p[0][0] - p[1][0], f"({p[0][1]} - {p[1][1]})")),
        st.tuples(inner, inner).map(lambda p: (p[0][0] * p[1][0], f"({p[0][1]} * {p[1][1]})")),
        st.tuples(inner, divisor).map(lambda p: (floordiv(p[0][0], p[1]), f"({p[0][1]} // {p[1]})")),
        st.tuples(inner, divisor).map(lambda p: (ceildiv(p[0][0], p[1]), f"(-(-{p[0][1]} // {p[1]}))")),
        st.tuples(inner, divisor).map(lambda p: (mod(p[0][0], p[1]), f"({p[0][1]} % {p[1]})")),
        st.tuples(inner, st.sampled_from(NAMES)).map(
            lambda p: (floordiv(p[0][0], Expr.symbol(p[1])), f"({p[0][1]} // {p[1]})")
        ),
        st.tuples(inner, inner).map(lambda p: (smin(p[0][0], p[1][0]), f"min({p[0][1]}, {p[1][1]})")),
        st.tuples(inner, inner).map(lambda p: (smax(p[0][0], p[1][0]), f"max({p[0][1]}, {p[1][1]})")),
    )


values = st.fixed_dictionaries({name: st.integers(-6, 12) for name in NAMES})


@SETTINGS
@given(expressions(), values)
def test_the_canonical_form_has_the_value_of_the_text_it_came_from(pair: tuple[Expr, str], env: dict[str, int]) -> None:
    expr, text = pair
    try:
        expected = eval(text, {"min": min, "max": max}, dict(env))
    except ZeroDivisionError:
        return
    assert expr.evaluate(env) == expected


@SETTINGS
@given(expressions())
def test_text_reads_back_to_the_same_object(pair: tuple[Expr, str]) -> None:
    expr = pair[0]
    assert parse_expr(str(expr)) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr
    assert copy.deepcopy(expr) is expr


@SETTINGS
@given(expressions(2), expressions(2), expressions(1))
def test_polynomial_identities_hold_as_object_identity(
    x: tuple[Expr, str], y: tuple[Expr, str], z: tuple[Expr, str]
) -> None:
    a, b, c = x[0], y[0], z[0]
    assert a + b is b + a
    assert a * b is b * a
    assert a * (b + c) is a * b + a * c
    assert a - a is Expr.const(0)
    assert Expr.const(0) - (b - a) is a - b
    assert smin(a, b, c) is smin(c, smin(b, a))
    assert floordiv(a + 6 * b, 6) is floordiv(a, 6) + b
    assert (a.sort_key == b.sort_key) is (a is b)


coefficients = st.integers(-20, 20)


@SETTINGS
@given(coefficients, coefficients, coefficients, st.integers(1, 9), st.integers(1, 9))
def test_nested_divisions_become_one(p: int, q: int, r: int, first: int, second: int) -> None:
    expr = p * Expr.symbol("a") + q * Expr.symbol("a") * Expr.symbol("b") + r
    assert floordiv(floordiv(expr, first), second) is floordiv(expr, first * second)
    assert floordiv(expr * first, first * second) is floordiv(expr, second)
    assert ceildiv(ceildiv(expr, first), second) is ceildiv(expr, first * second)


@SETTINGS
@given(expressions(2), expressions(1), values)
def test_substitution_commutes_with_evaluation(
    pair: tuple[Expr, str], other: tuple[Expr, str], env: dict[str, int]
) -> None:
    expr, replacement = pair[0], other[0]
    try:
        expected = expr.evaluate({**env, "a": replacement.evaluate(env)})
        substituted = expr.substitute({"a": replacement})
    except TilewrightError:
        return  # a divisor is zero, here or in the substituted form
    assert substituted.evaluate(env) == expected


@pytest.mark.parametrize(
    "text",
    [
        "M ceildiv 128",
        "S mod 16",
        "M ceildiv N",
        "M mod N",
        "2*S + 1",
        "32*(M ceildiv 32)",
        "(M ceildiv 128)*(N ceildiv 256)",
        "x - (y ceildiv 4)",
        "min(S, 128)",
        "(H + K) floordiv 2 + 1",
        "-S + 2",
        "N*(S mod 4) + 5",
        "0",
        "-7",
    ],
)
def test_text_prints_as_written(text: str) -> None:
    assert str(parse_expr(text)) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + S*2", "S + S + 1"),
        ("4*a*b", "b*4*a"),
        ("(64*S + 32) floordiv 32", "2*S + 1"),
        ("(H - 1) floordiv 2 + 1", "(H + 1) floordiv 2"),
        ("(4*S + 2) floordiv 8", "(2*S + 1) floordiv 4"),
        ("(4*S + 3) floordiv 8", "S floordiv 2"),
        ("(i*N + j) floordiv N", "i + j floordiv N"),
        ("(2*N*x) floordiv (4*N)", "x floordiv 2"),
        ("x floordiv (-3)", "(-x) floordiv 3"),
        ("min(x, 4, min(x + 2, 9))", "min(x, 4)"),
        ("max(3, max(5, 1))", "5"),
        ("M ceildiv 32 * 32", "(M ceildiv 32)*32"),
        ("x mod 1", "0"),
        ("(8*q + 4) mod 4", "0"),
    ],
)
def test_different_spellings_are_one_object(text: str, same: str) -> None:
    assert parse_expr(text) is parse_expr(same)


def test_wide_deep_and_large_expressions_are_refused_in_one_line() -> None:
    wide = sum((Expr.symbol(f"s{i}") for i in range(70)), Expr.const(0))
    with pytest.raises(TilewrightError, match="at most 4096 terms") as fault:
        (wide * wide).__mul__(wide)
    assert "\n" not in fault.value.message
    deep = Expr.symbol("x")
    while deep.depth <= 126:
        deep = floordiv(deep + 1, Expr.symbol("y"))
    with pytest.raises(TilewrightError, match="nested too deeply"):
        floordiv(deep + 1, Expr.symbol("y"))
    with pytest.raises(TilewrightError, match="integer too large"):
        Expr.const(2**256)


def test_the_widest_expression_passes_and_prints() -> None:
    total = parse_expr(" + ".join(f"s{i}" for i in range(4096)))
    assert total.size == 4096
    assert parse_expr(str(total)) is total


def test_the_deepest_expression_reads_back() -> None:
    nested = Expr.symbol("x")
    while nested.depth < 127:
        nested = floordiv(nested + Expr.symbol("y"), Expr.symbol("z")) * Expr.symbol("w")
    assert parse_expr(str(nested)) is nested
    assert pickle.loads(pickle.dumps(nested)) is nested


@pytest.mark.parametrize("name", ["", "a.b", "1a", "min", "where", "a b", "é", "a\n"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(TilewrightError, match="symbol name"):
        Expr.symbol(name)


def test_divisions_by_zero_and_missing_values_are_errors() -> None:
    x = Expr.symbol("x")
    with pytest.raises(TilewrightError, match="division by zero"):
        floordiv(x, 0)
    with pytest.raises(TilewrightError, match="division by zero"):
        floordiv(3, x).evaluate({"x": 0})
    with pytest.raises(TilewrightError, match="'x' has no value"):
        x.evaluate({})


def test_expressions_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Expr.symbol("x").terms = ()


def test_the_algebra_imports_neither_xdsl_nor_numpy() -> None:
    program = (
        "import sys; from tilewright.dialects.sym import Facts, parse_relation; "
        "Facts().prove(parse_relation('S + 1 > S')); "
        "print([m for m in ('xdsl', 'numpy', 'sympy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
