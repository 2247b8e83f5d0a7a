"""The prover: does `e >= 0` follow from what is known? A bounded search that may give up but never errs.

The ladder, cheapest first: the form itself; intervals; then elimination. Elimination takes a term of `e` that keeps
its lower bound below zero and subtracts a positive multiple of a known `f >= 0` in which that term occurs with the
same sign; if what remains is non-negative, so is `e`. Known are the facts given, the definition of each floordiv
(`0 <= f - k*q <= k - 1`), the operands of min and max, and ranges; each may be multiplied by a non-negative product.
Last, `e` is split over the operands of a min or max.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import gcd
from typing import Final

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import bounds
from tilewright.dialects.sym.bounds import Interval
from tilewright.dialects.sym.boxes import prove_on_boxes
from tilewright.dialects.sym.divisions import nested_definitions, positive_divisor, relaxed
from tilewright.dialects.sym.expr import Atom, Expr, Monomial, combine, divide_monomial, from_terms
from tilewright.dialects.sym.forms import Fact, Reasons, content, tighten
from tilewright.dialects.sym.knowledge import Knowledge
from tilewright.dialects.sym.operators import replace_atom
from tilewright.dialects.sym.simplify import simplified

MAX_DEPTH: Final = 6
"""Facts combined in one chain of eliminations."""
MAX_SPLITS: Final = 3
"""Extrema split in one chain."""
MAX_STEPS: Final = 100
"""Expressions of ordinary width looked at for one query: some milliseconds."""
MAX_WIDTH: Final = 64
"""Terms of an expression above which elimination does not look at it (PyTorch's fifty-minute proofs were wide)."""

BOXES_AFTER: Final = 2
"""Depth of elimination after which ranges are halved, where all are bounded, before longer chains are tried."""
DECIDE_STEPS: Final = 12
"""Expressions looked at to decide a division by a symbol."""
RELAXED_STEPS: Final = 12
"""Expressions looked at where all divisions of a sum were relaxed at once."""

_NONE: Final[Reasons] = frozenset()


class Answer(Enum):
    """What is known of a relation wherever the facts hold: true, false everywhere, or neither shown."""

    PROVED = "proved"
    DISPROVED = "disproved"
    UNKNOWN = "unknown"


@dataclass
class _Search:
    """One query: the knowledge it draws on, and the budget that is left."""

    knowledge: Knowledge
    steps: int = MAX_STEPS
    failed: dict[tuple[Expr, int], int] = field(default_factory=lambda: {})
    """Expressions not proved, with the depth that was left then."""

    def nonnegative(self, expr: Expr, depth: int, splits: int, local: tuple[Fact, ...]) -> Reasons | None:
        """The reasons for `expr >= 0`, or None when the search does not find any."""
        expr = tighten(self._simplified(expr))
        low = self.knowledge.range_of(expr)[0]
        if low is not None and low >= 0:
            return self.knowledge.range_reasons(expr)
        stated = self.knowledge.facts.get(expr)
        if stated is not None:
            return stated
        if expr.constant is not None or expr.size > MAX_WIDTH or self.steps <= 0:
            return None
        # Wide expressions cost more to look at.
        self.steps -= 1 + expr.size // 16
        key = (expr, len(local))
        if self.failed.get(key, -1) >= depth:
            return None
        self.failed[key] = depth
        if depth > 0:
            for reduced, reasons in _reductions(self.knowledge, expr, local):
                found = self.nonnegative(reduced, depth - 1, splits, local)
                if found is not None:
                    return found | reasons
                if self.steps <= 0:
                    return None
        if splits > 0:
            atom = _first_extremum(expr)
            if atom is not None:
                return self._split(expr, atom, depth, splits, local)
        return None

    def _simplified(self, expr: Expr) -> Expr:
        """Drop non-negative factors common to all terms: the quotient being non-negative suffices."""
        if expr.constant is not None:
            return expr
        for atom in expr.terms[0][0]:
            if all(atom in m for m, _ in expr.terms) and self.knowledge.nonnegative_product((atom,)):
                quotient = from_terms({divide_monomial(m, (atom,)) or (): c for m, c in expr.terms})
                return expr if quotient.constant is not None else self._simplified(quotient)
        return expr

    def _split(self, expr: Expr, atom: Atom, depth: int, splits: int, local: tuple[Fact, ...]) -> Reasons | None:
        """Prove `expr` for each operand that the extremum may be, knowing there that it is the least (greatest)."""
        result = _NONE
        for operand in atom.args:
            sign = 1 if atom.kind == "min" else -1
            known = tuple(Fact(tighten((o - operand) * sign), _NONE) for o in atom.args if o is not operand)
            found = self.nonnegative(replace_atom(expr, atom, operand), depth, splits - 1, (*local, *known))
            if found is None:
                return None
            result |= found
        return result


def _first_extremum(expr: Expr) -> Atom | None:
    """Some min or max in `expr`, an outer one before one inside another atom."""
    layer = [a for m, _ in expr.terms for a in m]
    while layer:
        for atom in layer:
            if atom.kind in ("min", "max"):
                return atom
        layer = [a for atom in layer for e in atom.args for m, _ in e.terms for a in m]
    return None


def _reductions(knowledge: Knowledge, expr: Expr, local: tuple[Fact, ...]) -> Iterator[tuple[Expr, Reasons]]:
    """Expressions whose being non-negative implies `expr >= 0`, each with one term less to worry about."""
    facts = [*_definitions(knowledge, expr), *local, *(Fact(e, r) for e, r in knowledge.facts.items())]
    for monomial, coefficient in _worst_terms(knowledge, expr):
        for fact in facts:
            for term, fact_coefficient in fact.expr.terms:
                if (fact_coefficient > 0) is not (coefficient > 0) or not term:
                    continue
                factor = divide_monomial(monomial, term)
                if factor is None or (factor and not knowledge.nonnegative_product(factor)):
                    continue
                yield _subtract(expr, coefficient, fact.expr, fact_coefficient, factor), fact.reasons
        yield from _by_divisor(knowledge, expr, monomial, coefficient)
        yield from _by_ranges(knowledge, expr, monomial, coefficient)


def _subtract(expr: Expr, coefficient: int, fact: Expr, fact_coefficient: int, factor: Monomial) -> Expr:
    """a*expr + (a - 1) - b*factor*fact without the term in question.

    a and b are the least positive integers that cancel it. If the result is non-negative, a*expr > -a, so expr >= 0.
    """
    common = gcd(coefficient, fact_coefficient)
    a, b = abs(fact_coefficient) // common, abs(coefficient) // common
    return combine(expr, a, fact, -b, factor, a - 1)


def _worst_terms(knowledge: Knowledge, expr: Expr) -> list[tuple[Monomial, int]]:
    """Terms to eliminate next: one without a lower bound, else those that can be negative, then the harmless."""
    unbounded: list[tuple[Monomial, int]] = []
    negative: list[tuple[Monomial, int]] = []
    others: list[tuple[Monomial, int]] = []
    for monomial, coefficient in expr.terms:
        if not monomial:
            continue
        low = bounds.scale(bounds.monomial_range(monomial, knowledge.atom_range), coefficient)[0]
        if low is None:
            unbounded.append((monomial, coefficient))
        elif low < 0:
            negative.append((monomial, coefficient))
        else:
            others.append((monomial, coefficient))
    # A proof must cancel each unbounded term at some point, and the order in which facts are added up is free: so the
    # first will do. Trying all of them in every order is what makes a sum of sixteen ceildivs slow.
    return unbounded[:1] or negative + others


def _definitions(knowledge: Knowledge, expr: Expr) -> Iterator[Fact]:
    """What the atoms of `expr` are: the two sides of each floordiv, the operands of each min and max."""
    seen: set[Atom] = set()
    for monomial, _ in expr.terms:
        for atom in monomial:
            if atom in seen or atom.kind == "symbol":
                continue
            seen.add(atom)
            value = from_terms({(atom,): 1})
            if atom.kind == "floordiv":
                numerator, denominator = atom.args
                if not positive_divisor(knowledge, denominator):
                    continue
                size = denominator.constant
                reasons = _NONE if size is not None else knowledge.range_reasons(denominator)
                remainder = numerator - (denominator * value if size is None else from_terms({(atom,): size}))
                yield Fact(remainder, reasons)
                yield Fact(combine(denominator, 1, remainder, -1, constant=-1), reasons)
            else:
                sign = 1 if atom.kind == "min" else -1
                for operand in atom.args:
                    yield Fact((operand - value) * sign, _NONE)
    for known in nested_definitions(expr):
        yield Fact(known, _NONE)


def _by_divisor(
    knowledge: Knowledge, expr: Expr, monomial: Monomial, coefficient: int
) -> Iterator[tuple[Expr, Reasons]]:
    """Reductions that multiply by a symbolic divisor: x floordiv g <= d exactly where x <= d*g + g - 1.

    With expr = d + c*p*(x floordiv g), p >= 0 and g >= 1: expr*g is at least d*g + c*p*x for negative c, and at least
    d*g + c*p*(x - g + 1) for positive c. Where that is above -g, expr is above -1.
    """
    for atom in dict.fromkeys(monomial):
        if atom.kind != "floordiv" or atom.args[1].constant is not None:
            continue
        numerator, divisor = atom.args
        others = divide_monomial(monomial, (atom,)) or ()
        if not positive_divisor(knowledge, divisor) or not knowledge.nonnegative_product(others):
            continue
        rest = expr - from_terms({monomial: coefficient})
        times = from_terms({others: coefficient})
        least = numerator if coefficient < 0 else numerator - divisor + 1
        yield (rest + 1) * divisor - 1 + times * least, knowledge.range_reasons(divisor)


def _by_ranges(
    knowledge: Knowledge, expr: Expr, monomial: Monomial, coefficient: int
) -> Iterator[tuple[Expr, Reasons]]:
    """Reductions by the range of one factor of a product: intervals of whole terms miss `M*N >= M` for N >= 1."""
    for atom in dict.fromkeys(monomial):
        others = divide_monomial(monomial, (atom,)) or ()
        low, high = knowledge.atom_range(atom)
        bound = low if coefficient > 0 else high
        if others and bound is not None and knowledge.nonnegative_product(others):
            # The product is at least (at most) bound * others.
            reduced = expr + from_terms({monomial: -coefficient}) + from_terms({others: coefficient * bound})
            yield reduced, knowledge.range_reasons(from_terms({monomial: 1}))
    if coefficient > 0 or not knowledge.nonnegative_product(monomial):
        return
    for product, weight in expr.terms:
        factor = divide_monomial(product, monomial)
        if weight <= 0 or factor is None or len(factor) != 1:
            continue
        low = knowledge.atom_range(factor[0])[0]
        if low is not None and low >= 1:
            times = min(weight, -(coefficient // low))
            # product - low * monomial = monomial * (factor - low) >= 0
            reduced = expr - from_terms({product: times}) + from_terms({monomial: times * low})
            yield reduced, knowledge.range_reasons(from_terms({product: 1}))


def nonnegative(knowledge: Knowledge, expr: Expr, depth: int = MAX_DEPTH) -> Reasons | None:
    """The labels of statements from which `expr >= 0` follows, or None when no proof is found within the budget."""
    knowledge.settle()
    try:
        normal = knowledge.normal(expr)
        weaker = relaxed(normal, (1, -1))
        if weaker is not None and (low := knowledge.range_of(weaker)[0]) is not None and low >= 0:
            return knowledge.range_reasons(normal)
        normal, why = decided(knowledge, normal)
        expr = simplified(knowledge, normal)
        if expr is not normal:
            why |= knowledge.range_reasons(normal)
        found = _proof(knowledge, expr, depth)
    except TilewrightError:
        # The search built an expression over the size limits, or one that has no value where the facts hold.
        return None
    return None if found is None else found | why


def _proof(knowledge: Knowledge, expr: Expr, depth: int) -> Reasons | None:
    """The ladder for an expression in normal form; short proofs first, as most that exist take one or two facts."""
    search = _Search(knowledge)
    found = search.nonnegative(expr, 1, MAX_SPLITS, ())
    if found is not None or expr.constant is not None:
        return found
    found = knowledge.chains().proves(tighten(expr))
    if found is not None or depth < 2:
        return found
    for signs in ((1, -1), (1,), (-1,)):
        weaker = relaxed(expr, signs)
        if weaker is not None:
            found = _Search(knowledge, RELAXED_STEPS).nonnegative(weaker, 1, 0, ())
            if found is not None:
                return found
    for limit in range(2, depth + 1):
        found = search.nonnegative(expr, limit, MAX_SPLITS, ())
        if found is None and limit == BOXES_AFTER:
            found = prove_on_boxes(knowledge, expr)
        if found is not None or search.steps <= 0:
            break
    return found


def decided(knowledge: Knowledge, expr: Expr) -> tuple[Expr, Reasons]:
    """`expr` with each `x floordiv y`, y not a constant, that has to be 0 or -1 replaced by that, and the reasons.

    So `j floordiv N` is 0 where `0 <= j < N`, whatever the expression it stands in.
    """
    reasons = _NONE
    if not expr.depth:
        return expr, reasons
    for atom in _symbolic_divisions(expr):
        found = knowledge.decided.get(atom)
        if found is None:
            found = knowledge.decided[atom] = _decide(knowledge, atom)
        value, why = found
        if value is not None:
            expr, reasons = replace_atom(expr, atom, value), reasons | why
    return expr, reasons


def _decide(knowledge: Knowledge, atom: Atom) -> tuple[Expr | None, Reasons]:
    numerator, denominator = atom.args
    if positive_divisor(knowledge, denominator):
        for value in (0, -1):
            rest = numerator if value == 0 else numerator + denominator
            above = _Search(knowledge, DECIDE_STEPS).nonnegative(rest, 2, 0, ())
            below = (
                None
                if above is None
                else _Search(knowledge, DECIDE_STEPS).nonnegative(
                    combine(denominator, 1, rest, -1, constant=-1), 2, 0, ()
                )
            )
            if above is not None and below is not None:
                return Expr.const(value), above | below | knowledge.range_reasons(denominator)
    return None, _NONE


def _symbolic_divisions(expr: Expr) -> list[Atom]:
    """The divisions by symbols anywhere in `expr`, those inside others first, each once."""
    result: dict[Atom, None] = {}
    for monomial, _ in expr.terms:
        for atom in monomial:
            if atom.kind == "symbol":
                continue
            for arg in atom.args:
                if arg.depth:
                    result.update(dict.fromkeys(_symbolic_divisions(arg)))
            if atom.kind == "floordiv" and atom.args[1].constant is None:
                result[atom] = None
    return list(result)


def best_range(knowledge: Knowledge, expr: Expr) -> Interval:
    """The tightest interval that intervals and one elimination give for an expression."""
    knowledge.settle()
    try:
        normal = knowledge.normal(expr)
    except TilewrightError:
        return (None, None)
    try:
        low, high = _least(knowledge, normal), _least(knowledge, -normal)
    except TilewrightError:
        return knowledge.range_of(normal)
    return (low, None if high is None else -high)


def _least(knowledge: Knowledge, expr: Expr) -> int | None:
    best = knowledge.range_of(expr)[0]
    if expr.constant is not None or expr.size > MAX_WIDTH:
        return best
    facts = [*(Fact(e, r) for e, r in knowledge.facts.items()), *_definitions(knowledge, expr)]
    for monomial, coefficient in _worst_terms(knowledge, expr):
        for fact in facts:
            for term, fact_coefficient in fact.expr.terms:
                if (fact_coefficient > 0) is not (coefficient > 0) or not term:
                    continue
                factor = divide_monomial(monomial, term)
                if factor is None or (factor and not knowledge.nonnegative_product(factor)):
                    continue
                scale = abs(fact_coefficient) // gcd(coefficient, fact_coefficient)
                reduced = _subtract(expr, coefficient, fact.expr, fact_coefficient, factor) - (scale - 1)
                low = knowledge.range_of(reduced)[0]
                # scale * expr >= reduced >= low
                if low is not None and (best is None or -(-low // scale) > best):
                    best = -(-low // scale)
    return best


def never_zero(expr: Expr) -> bool:
    """Whether the coefficients alone exclude `expr == 0`, as in 2*a - 2*b - 1."""
    factor = content(expr)
    return expr.constant_term % factor != 0 if factor else expr.constant_term != 0
