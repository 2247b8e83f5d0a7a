"""Equalities between products as rewrite rules: given `A*B == C*D`, every `C*D*E` is an `A*B*E`.

A rule replaces the leading term of an equality by the rest. Terms are ordered by degree first and then as sorted words,
which multiplication respects, so rewriting always ends (it is division by a set of polynomials, as for Groebner bases;
the set is not completed, so two equal forms may stay apart, which costs a proof and never soundness).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tilewright.dialects.sym.expr import Expr, Monomial, divide_monomial, from_terms, total
from tilewright.dialects.sym.operators import rebuild_atom

MAX_REWRITES: Final = 64
"""Terms replaced in one expression."""


def is_rule(zero: Expr) -> bool:
    """Whether `zero == 0` may serve as a rule: its leading term is a product or a division, with the coefficient 1."""
    if zero.constant is not None:
        return False
    lead, coefficient = zero.leading_term
    return abs(coefficient) == 1 and (len(lead) > 1 or any(atom.kind != "symbol" for atom in lead))


def rewritten(expr: Expr, rules: Collection[Expr]) -> Expr:
    """`expr` with the rules applied, in the operands of its atoms as well; each rule is an expression that is 0."""
    if not rules or expr.constant is not None:
        return expr
    budget = MAX_REWRITES
    products: list[Expr] = []
    for monomial, coefficient in expr.terms:
        product = Expr.const(coefficient)
        for atom in monomial:
            args = [rewritten(a, rules) for a in atom.args]
            product = product * (rebuild_atom(atom.kind, args) if args else from_terms({(atom,): 1}))
        products.append(product)
    expr = total(products)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            lead, sign = rule.leading_term
            for monomial, coefficient in expr.terms:
                factor = divide_monomial(monomial, lead)
                if factor is not None and budget > 0:
                    expr = expr - rule * from_terms({factor: coefficient * sign})
                    changed = True
                    budget -= 1
                    break
    return expr


def euclid_step(zero: Expr) -> tuple[Monomial, int, Expr] | None:
    """One step towards solving `zero == 0` over the integers when no symbol in it has the coefficient 1 or -1.

    Of the symbols that stand alone in a term and nowhere else, take the x with the least coefficient c. Returns
    (x, c, s) such that with x = t - s the equality reads c*t + (coefficients of at most |c|/2); None when s would be 0.
    """
    best: tuple[Monomial, int] | None = None
    for monomial, coefficient in zero.terms:
        if len(monomial) != 1 or monomial[0].kind != "symbol":
            continue
        if any(monomial[0].name in a.symbols for m, _ in zero.terms if m is not monomial for a in m):
            continue
        if best is None or abs(coefficient) < abs(best[1]):
            best = (monomial, coefficient)
    if best is None:
        return None
    unknown, size = best
    quotients = {m: _nearest(c, size) for m, c in zero.terms if m != unknown}
    shift = from_terms(quotients)
    return (unknown, size, shift) if shift.terms else None


def _nearest(value: int, divisor: int) -> int:
    """The integer nearest to value / divisor."""
    if divisor < 0:
        value, divisor = -value, -divisor
    return (2 * value + divisor) // (2 * divisor)
