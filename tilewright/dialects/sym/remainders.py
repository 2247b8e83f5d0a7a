"""Remainders in a sum: the canonical form spells `f mod d` as `f - d*(f floordiv d)`; this finds it again."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dialects.sym.expr import Atom, Expr, Monomial, divide_monomial, multiply_monomials


@dataclass(frozen=True, slots=True)
class Remainder:
    """The summand `scale * others * (numerator mod denominator)`."""

    scale: int
    others: Monomial
    numerator: Expr
    denominator: Expr


def with_remainders(expr: Expr) -> tuple[list[Remainder], list[tuple[Monomial, int]]]:
    """The remainders in a sum, and the terms that are left; together they add up to the sum."""
    if not any(atom.kind == "floordiv" for monomial, _ in expr.terms for atom in monomial):
        return [], list(expr.terms)
    rest = dict(expr.terms)
    found: list[Remainder] = []
    for monomial, _ in expr.terms:
        for atom in monomial:
            if atom.kind == "floordiv" and monomial in rest:
                piece = take_remainder(rest, monomial, atom)
                if piece is not None:
                    found.append(piece)
    return found, list(rest.items())


def take_remainder(rest: dict[Monomial, int], monomial: Monomial, division: Atom) -> Remainder | None:
    """Take `f*R*g - d*g*R*(f floordiv d)` out of `rest` as `g * R*(f mod d)`, where every term of it is there.

    A constant of `f` need not match where R is 1: what is left over stays behind as a summand.
    """
    numerator, denominator = division.args
    if len(denominator.terms) != 1:
        return None
    ((lead, size),) = denominator.terms
    others = divide_monomial(monomial, multiply_monomials(lead, (division,)))
    if others is None or rest[monomial] % size:
        return None
    scale = -rest[monomial] // size
    taken = {multiply_monomials(m, others): c * scale for m, c in numerator.terms if m or others}
    if any(rest.get(m) != c for m, c in taken.items()):
        return None
    for m in (monomial, *taken):
        del rest[m]
    if not others:
        left = rest.pop((), 0) - scale * numerator.constant_term
        if left:
            rest[()] = left
    return Remainder(scale, others, numerator, denominator)
