"""Forms of a statement: its label, its content, and the shapes that are treated by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from tilewright.dialects.sym.expr import Atom, Expr, from_terms
from tilewright.dialects.sym.remainders import take_remainder

Reasons: TypeAlias = "frozenset[Statement]"


class Statement:
    """What was stated and where, as a label of what follows from it; its text is made when it is asked for."""

    __slots__ = ("reason", "what")

    def __init__(self, what: tuple[object, ...], reason: str) -> None:
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        statement = " ".join(map(str, self.what))
        return f"{statement} ({self.reason})" if self.reason else statement


@dataclass(frozen=True, slots=True)
class Fact:
    """`expr >= 0`, because of `reasons`."""

    expr: Expr
    reasons: Reasons


def content(expr: Expr) -> int:
    """Greatest common divisor of the coefficients other than the constant; 0 for a constant."""
    return gcd(*[c for m, c in expr.terms if m])


def tighten(expr: Expr) -> Expr:
    """An expression that is non-negative exactly where `expr` is, on integers: divided by its content."""
    factor = content(expr)
    if factor <= 1:
        return expr
    return from_terms({m: c // factor for m, c in expr.terms})


def as_congruence(expr: Expr) -> tuple[Expr, int, int] | None:
    """(f, k, r) when `expr == 0` says `f mod k == r`, else None; no value satisfies it when r is not in 0..k-1."""
    for monomial, _ in expr.terms:
        for atom in monomial:
            if len(monomial) != 1 or atom.kind != "floordiv" or (size := atom.args[1].constant) is None:
                continue
            rest = dict(expr.terms)
            piece = take_remainder(rest, monomial, atom)
            if piece is None or any(rest):
                continue
            # scale * (f mod k) + offset == 0, where the piece was all but a constant.
            offset = rest.get((), 0)
            if offset % piece.scale:
                return piece.numerator, size, -1
            return piece.numerator, size, -offset // piece.scale
    return None


def linear_symbol(expr: Expr) -> tuple[Atom, int, int] | None:
    """(x, c, d) when `expr` is c*x + d for a symbol x and an integer c other than 0."""
    if not 1 <= len(expr.terms) <= 2:
        return None
    monomial, coefficient = expr.terms[0]
    # The constant, if there is one, is the last term.
    if len(expr.terms) == 2 and expr.terms[-1][0]:
        return None
    for atom in monomial:
        if len(monomial) == 1 and atom.kind == "symbol":
            return atom, coefficient, expr.constant_term
    return None
