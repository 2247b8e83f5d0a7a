"""Branch and bound: prove `e >= 0` for bounded symbols by halving their ranges where intervals alone are too coarse.

An interval of `e` loses what its terms have in common: a whole range says little, a part of it says more, and the
facts rule out some parts altogether. So a range is halved, each half is narrowed by the facts, and a half on which `e`
cannot be negative is done. The number of halvings is bounded whatever the ranges are: this is no enumeration, and
running out of it is no answer.

A box on which a divisor is 0 throughout is done too: the expression has no value there, so nothing is claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.dialects.sym.expr import Atom, Expr, Monomial
from tilewright.dialects.sym.remainders import Remainder, with_remainders

if TYPE_CHECKING:
    from tilewright.dialects.sym.forms import Reasons
    from tilewright.dialects.sym.knowledge import Knowledge

Range: TypeAlias = "tuple[int, int]"
Box: TypeAlias = "dict[str, Range]"
_Form: TypeAlias = "tuple[list[Remainder], list[tuple[Monomial, int]]]"

MAX_HALVINGS: Final = 24
"""Boxes that may be split for one question."""
MAX_FACTS: Final = 12
"""Facts that narrow the boxes; those that share a symbol with the question come first."""


class _NoValue(Exception):
    """A divisor is 0 throughout the box."""


class _Intervals:
    """Intervals of expressions over one box; every symbol has both bounds, so every interval has."""

    def __init__(self, box: Box, forms: dict[Expr, _Form]) -> None:
        self.box = box
        self.forms = forms
        self.atoms: dict[Atom, Range] = {}

    def expr(self, expr: Expr) -> Range:
        """The interval of a sum, remainders in it taken as such."""
        form = self.forms.get(expr)
        if form is None:
            form = self.forms[expr] = with_remainders(expr)
        low = high = 0
        for monomial, coefficient in form[1]:
            a, b = self.monomial(monomial) if monomial else (1, 1)
            if coefficient > 0:
                low, high = low + coefficient * a, high + coefficient * b
            else:
                low, high = low + coefficient * b, high + coefficient * a
        for piece in form[0]:
            a, b = self.remainder(piece)
            if piece.others:
                a, b = _product((a, b), self.monomial(piece.others))
            if piece.scale > 0:
                low, high = low + piece.scale * a, high + piece.scale * b
            else:
                low, high = low + piece.scale * b, high + piece.scale * a
        return low, high

    def high_without(self, expr: Expr, skipped: Monomial) -> int:
        """The greatest value of the sum without one of its terms, each of the others taken on its own."""
        result = 0
        for monomial, coefficient in expr.terms:
            if monomial != skipped:
                result += coefficient * (self.monomial(monomial)[coefficient > 0] if monomial else 1)
        return result

    def monomial(self, monomial: Monomial) -> Range:
        """The interval of a product; an even power is never negative."""
        if len(monomial) == 1:
            return self.atom(monomial[0])
        result = (1, 1)
        start = 0
        while start < len(monomial):
            atom = monomial[start]
            power = monomial.count(atom)
            low, high = self.atom(atom)
            if power % 2 == 0 and low < 0:
                factor = (0 if high >= 0 else high**power, max(low**power, high**power))
            else:
                factor = (low**power, high**power)
            result = _product(result, factor)
            start += power
        return result

    def atom(self, atom: Atom) -> Range:
        """The interval of a factor."""
        if atom.kind == "symbol":
            return self.box[atom.name]
        found = self.atoms.get(atom)
        if found is None:
            ranges = [self.expr(a) for a in atom.args]
            if atom.kind == "floordiv":
                found = _quotient(ranges[0], ranges[1])
            elif atom.kind == "min":
                found = (min(r[0] for r in ranges), min(r[1] for r in ranges))
            else:
                found = (max(r[0] for r in ranges), max(r[1] for r in ranges))
            self.atoms[atom] = found
        return found

    def remainder(self, piece: Remainder) -> Range:
        """The interval of `numerator mod denominator`."""
        low, high = self.expr(piece.numerator)
        least, most = self.expr(piece.denominator)
        if least == most:
            if least == 0:
                raise _NoValue
            if low // least == high // least:
                return low % least, high % least
        # The remainder has the sign of the divisor, or is 0; of non-negative operands it is at most the numerator.
        below, above = min(least + 1, 0), max(most - 1, 0)
        if low >= 0 and least >= 0:
            if high < least:
                return low, high
            above = min(above, high)
        return below, above


def _product(a: Range, b: Range) -> Range:
    w, x, y, z = a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]
    return min(w, x, y, z), max(w, x, y, z)


def _quotient(a: Range, b: Range) -> Range:
    """The interval of floor(x / y) over all y other than 0."""
    ends: list[int] = []
    for low, high in ((max(b[0], 1), b[1]), (b[0], min(b[1], -1))):
        if low <= high:
            # For y of one sign the quotient is monotone in x and in y, so its extremes stand at corners.
            ends += (a[0] // low, a[0] // high, a[1] // low, a[1] // high)
    if not ends:
        raise _NoValue
    return min(ends), max(ends)


def prove_on_boxes(knowledge: Knowledge, expr: Expr, halvings: int = MAX_HALVINGS) -> Reasons | None:
    """The labels from which `expr >= 0` follows, or None when a symbol is unbounded or the halvings run out."""
    box = _bounded(knowledge, expr.symbols)
    if box is None:
        return None
    facts: dict[Expr, Reasons] = {}
    for fact, why in knowledge.facts.items():
        if len(facts) < MAX_FACTS and not fact.symbols.isdisjoint(expr.symbols):
            more = _bounded(knowledge, fact.symbols)
            if more is not None:
                box |= more
                facts[fact] = why
    congruences = [key for key in knowledge.congruences if key[0].symbols <= box.keys()]
    nothing: Reasons = frozenset()
    reasons = nothing.union(
        *(known.low_reasons | known.high_reasons for name in box if (known := knowledge.ranges.get(name))),
        *facts.values(),
        *(knowledge.congruences[key] for key in congruences),
    )
    forms: dict[Expr, _Form] = {}
    open_boxes = [box]
    while open_boxes:
        box = open_boxes.pop()
        try:
            if not _narrow(box, facts, forms):
                continue
            intervals = _Intervals(box, forms)
            if intervals.expr(expr)[0] >= 0:
                continue
            for known, modulus in congruences:
                low, high = intervals.expr(known)
                if low == high and low % modulus:
                    raise _NoValue
        except _NoValue:
            continue
        halvings -= 1
        name = _to_halve(box, expr)
        if name is None or halvings < 0:
            return None
        low, high = box[name]
        middle = (low + high) // 2
        open_boxes += ({**box, name: (middle + 1, high)}, {**box, name: (low, middle)})
    return reasons


def _bounded(knowledge: Knowledge, names: frozenset[str]) -> Box | None:
    box: Box = {}
    for name in names:
        known = knowledge.ranges.get(name)
        if known is None or known.low is None or known.high is None:
            return None
        box[name] = (known.low, known.high)
    return box


def _to_halve(box: Box, expr: Expr) -> str | None:
    """The symbol of the widest range: of the expression's own if one is left, else of those that facts bring in."""
    for names in (expr.symbols, box.keys()):
        widest = max(sorted(names), key=lambda n: box[n][1] - box[n][0], default=None)
        if widest is not None and box[widest][0] < box[widest][1]:
            return widest
    return None


def _narrow(box: Box, facts: dict[Expr, Reasons], forms: dict[Expr, _Form]) -> bool:
    """Narrow the box by what each fact leaves to each symbol that stands alone in a term; False if nothing is left."""
    for _ in range(2):
        changed = False
        for fact in facts:
            intervals = _Intervals(box, forms)
            if intervals.expr(fact)[1] < 0:
                return False
            for monomial, coefficient in fact.terms:
                if len(monomial) != 1 or monomial[0].kind != "symbol":
                    continue
                name = monomial[0].name
                low, high = box[name]
                if low == high:
                    continue
                # coefficient * x >= -others
                others = intervals.high_without(fact, monomial)
                if coefficient > 0:
                    narrowed = (max(low, -(others // coefficient)), high)
                else:
                    narrowed = (low, min(high, others // -coefficient))
                if narrowed[0] > narrowed[1]:
                    return False
                if narrowed != (low, high):
                    box[name] = narrowed
                    intervals = _Intervals(box, forms)
                    changed = True
        if not changed:
            break
    return True
