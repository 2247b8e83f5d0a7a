"""What a floor division is: bounds by its operands, one for another, and all of a sum at once."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm
from typing import TYPE_CHECKING, Final

from tilewright.dialects.sym.expr import Atom, Expr, Monomial, from_terms

if TYPE_CHECKING:
    from tilewright.dialects.sym.knowledge import Knowledge

RELAX_ROUNDS: Final = 4
"""Layers of divisions inside one another that are relaxed."""
MAX_SCALE: Final = 1 << 64
"""Common multiple of the divisors up to which they are cleared at once."""


def positive_divisor(knowledge: Knowledge, divisor: Expr) -> bool:
    """Whether a divisor is at least 1: known to be no less than 0, and non-zero as the expression has a value."""
    low = knowledge.range_of(divisor)[0]
    return low is not None and low >= 0


def by_constants(expr: Expr) -> list[Atom]:
    """The divisions by positive constants that are a term of their own in the sum."""
    return [
        monomial[0]
        for monomial, _ in expr.terms
        if len(monomial) == 1 and monomial[0].kind == "floordiv" and monomial[0].args[1].constant is not None
    ]


def nested_definitions(expr: Expr) -> Iterator[Expr]:
    """Expressions that are at least 0 because one division is another one divided again.

    The canonical form has `(f floordiv k + r) floordiv m` as `(f + k*r) floordiv (k*m)`. Where `p = f floordiv k` is in
    the sum too, `0 <= p + r - m*q <= m - 1` says more than the definitions of both.
    """
    atoms = by_constants(expr)
    for outer in atoms:
        for inner in atoms:
            size, part = outer.args[1].constant, inner.args[1].constant
            if size is None or part is None or size <= part or size % part:
                continue
            shift = (outer.args[0] - inner.args[0]).constant
            if shift is None:
                continue
            times = size // part
            # floor((f + s) / k) = p + floor(s / k) or one more; exact where k divides s.
            rest = from_terms({(inner,): 1}) + shift // part - from_terms({(outer,): times})
            slack = 1 if shift % part else 0
            yield rest + slack
            yield times - 1 - rest


def relaxed(expr: Expr, signs: tuple[int, ...]) -> Expr | None:
    """An expression whose being at least 0 shows that `expr` is, free of divisions whose coefficient has such a sign.

    `c*(f floordiv k)` is at least `c*f/k` for negative c and `c*(f - k + 1)/k` for positive c. Divisors are cleared by
    a common multiple L; as `expr` is an integer, `L*expr > -L` suffices. None when there is no such division.
    """
    result = expr
    for _ in range(RELAX_ROUNDS):
        chosen: list[tuple[Monomial, int, Expr, int]] = []
        scale = 1
        for monomial, coefficient in result.terms:
            if len(monomial) != 1 or monomial[0].kind != "floordiv" or (1 if coefficient > 0 else -1) not in signs:
                continue
            numerator, denominator = monomial[0].args
            if (size := denominator.constant) is not None:
                chosen.append((monomial, coefficient, numerator, size))
                scale = lcm(scale, size // gcd(size, coefficient))
        if not chosen or scale > MAX_SCALE:
            break
        gone = {monomial for monomial, _, _, _ in chosen}
        terms = {m: c * scale for m, c in result.terms if m not in gone}
        for _, coefficient, numerator, size in chosen:
            # A numerator may bring in a division that has just gone; the next round takes it.
            factor = coefficient * scale // size
            for m, c in numerator.terms:
                terms[m] = terms.get(m, 0) + factor * c
            if coefficient > 0:
                terms[()] = terms.get((), 0) - factor * (size - 1)
        terms[()] = terms.get((), 0) + scale - 1
        result = from_terms(terms)
    return None if result is expr else result
