"""What follows from a set of statements: solved equalities, ranges, and the inequalities left over, with reasons.

Statements enter one at a time and are brought to a normal form:
- an equality that a symbol solves becomes a substitution, applied everywhere (an affine union-find);
- `x = r (mod k)` becomes the substitution of k*q + r for x with a new unknown q, so that divisibility is plain to see;
- an inequality in one symbol becomes a range of it; any other is divided by its content and kept as `e >= 0`.
Each carries the labels of the statements it follows from; a contradiction is a set of labels.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from math import gcd
from typing import Final, TypeAlias

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import bounds
from tilewright.dialects.sym.bounds import Interval
from tilewright.dialects.sym.expr import Atom, Expr, Monomial, divide_monomial, from_terms, hidden_symbol
from tilewright.dialects.sym.witness import Witnesses

Reasons: TypeAlias = "frozenset[str]"

MAX_SUBSTITUTE_TERMS: Final = 64
"""Width of an expression that may stand for a symbol; a wider equality stays a pair of inequalities."""
PROPAGATION_ROUNDS: Final = 3
"""Rounds in which inequalities narrow ranges. Longer chains are left to the prover; `x < y, y < x` would never end."""
MAX_QUEUE: Final = 20_000
"""Statements derived in one go above which the rest is dropped: knowing less is always right."""

_NONE: Final[Reasons] = frozenset()


@dataclass(slots=True)
class SymbolRange:
    """Least and greatest value of a symbol, each with the statements it follows from."""

    low: int | None = None
    high: int | None = None
    low_reasons: Reasons = _NONE
    high_reasons: Reasons = _NONE

    def copy(self) -> SymbolRange:
        return SymbolRange(self.low, self.high, self.low_reasons, self.high_reasons)


@dataclass(frozen=True, slots=True)
class Fact:
    """`expr >= 0`, because of `reasons`."""

    expr: Expr
    reasons: Reasons


def content(expr: Expr) -> int:
    """Greatest common divisor of the coefficients other than the constant; 0 for a constant."""
    return gcd(*(c for m, c in expr.terms if m))


def tighten(expr: Expr) -> Expr:
    """An expression that is non-negative exactly where `expr` is, on integers: divided by its content."""
    factor = content(expr)
    if factor <= 1:
        return expr
    return from_terms({m: c // factor for m, c in expr.terms})


def as_congruence(expr: Expr) -> tuple[Expr, int, int] | None:
    """(f, k, r) when `expr == 0` says `f mod k == r`, else None; no value satisfies it when r is not in 0..k-1."""
    for monomial, coefficient in expr.terms:
        if len(monomial) != 1 or monomial[0].kind != "floordiv":
            continue
        numerator, denominator = monomial[0].args
        size = denominator.constant
        if size is None or coefficient % size:
            continue
        scale = -coefficient // size
        rest = expr - (numerator - denominator * from_terms({monomial: 1})) * scale
        if rest.constant is not None:
            # scale * (f mod k) + rest == 0
            if rest.constant % scale:
                return numerator, size, -1
            return numerator, size, -rest.constant // scale
    return None


def linear_symbol(expr: Expr) -> tuple[Atom, int, int] | None:
    """(x, c, d) when `expr` is c*x + d for a symbol x and an integer c other than 0."""
    products = [term for term in expr.terms if term[0]]
    if len(products) != 1:
        return None
    monomial, coefficient = products[0]
    if len(monomial) != 1 or monomial[0].kind != "symbol":
        return None
    return monomial[0], coefficient, expr.constant_term


@dataclass(slots=True)
class Knowledge:
    """The closed-up consequences of the statements added so far."""

    solved: dict[str, tuple[Expr, Reasons]] = field(default_factory=lambda: {})
    """Symbols that an equality solved, in terms of the others."""
    ranges: dict[str, SymbolRange] = field(default_factory=lambda: {})
    facts: dict[Expr, Reasons] = field(default_factory=lambda: {})
    """Expressions in two or more symbols that are non-negative."""
    congruences: dict[tuple[Expr, int], Reasons] = field(default_factory=lambda: {})
    """(e, k): k divides e; only those that no substitution expresses."""
    contradiction: Reasons | None = None
    stale: bool = False
    """Whether inequalities have come in since ranges were last narrowed."""
    _queue: list[tuple[str, Expr, int, Reasons]] = field(default_factory=lambda: [])
    _atom_ranges: dict[Atom, Interval] = field(default_factory=lambda: {})
    _witnesses: Witnesses | None = None

    def copy(self) -> Knowledge:
        """An independent copy: additions to one are not seen by the other."""
        return Knowledge(
            dict(self.solved),
            {name: r.copy() for name, r in self.ranges.items()},
            dict(self.facts),
            dict(self.congruences),
            self.contradiction,
            self.stale,
        )

    # Statements ------------------------------------------------------------------------------------------------------

    def add_nonnegative(self, expr: Expr, reasons: Reasons) -> None:
        """State that `expr >= 0`."""
        self._run([("ge", expr, 0, reasons)])

    def add_zero(self, expr: Expr, reasons: Reasons) -> None:
        """State that `expr == 0`."""
        self._run([("eq", expr, 0, reasons)])

    def add_congruence(self, expr: Expr, modulus: int, reasons: Reasons) -> None:
        """State that `modulus` divides `expr`."""
        self._run([("mod", expr, modulus, reasons)])

    def normal(self, expr: Expr) -> Expr:
        """`expr` with solved symbols replaced."""
        if self.solved.keys().isdisjoint(expr.symbols):
            return expr
        return expr.substitute({name: self.solved[name][0] for name in expr.symbols if name in self.solved})

    def solution_reasons(self, expr: Expr) -> Reasons:
        """Labels of the statements that solved the symbols of `expr`."""
        return _NONE.union(*(self.solved[name][1] for name in expr.symbols if name in self.solved))

    def all_reasons(self) -> Reasons:
        """Labels of all statements that anything known rests on."""
        sets = [why for _, why in self.solved.values()]
        sets += [why for known in self.ranges.values() for why in (known.low_reasons, known.high_reasons)]
        return _NONE.union(*sets, *self.facts.values(), *self.congruences.values())

    def _run(self, statements: list[tuple[str, Expr, int, Reasons]]) -> None:
        self._queue.extend(statements)
        self._atom_ranges.clear()
        self._witnesses = None
        done = 0
        while self._queue and self.contradiction is None and done < MAX_QUEUE:
            done += 1
            kind, expr, modulus, reasons = self._queue.pop(0)
            with suppress(TilewrightError):
                # A statement that grows over the size limits is dropped; so is one without a value, which cannot hold.
                self._take(kind, expr, modulus, reasons)
        self._queue.clear()

    def _take(self, kind: str, expr: Expr, modulus: int, reasons: Reasons) -> None:
        reasons = reasons | self.solution_reasons(expr)
        expr = self.normal(expr)
        if kind == "ge":
            self._nonnegative(expr, reasons)
        elif kind == "eq":
            self._zero(expr, reasons)
        else:
            self._divisible(expr, modulus, reasons)

    def _nonnegative(self, expr: Expr, reasons: Reasons) -> None:
        expr, reasons = self._without_factors(expr, reasons)
        expr = tighten(expr)
        if expr.constant is not None:
            if expr.constant < 0:
                self.contradiction = reasons
            return
        linear = linear_symbol(expr)
        if linear is not None:
            # c*x + d >= 0 with c = 1 or -1, as the content is 1.
            atom, coefficient, offset = linear
            if coefficient > 0:
                self._narrow(atom.name, -offset, None, reasons)
            else:
                self._narrow(atom.name, None, offset, reasons)
            return
        if expr not in self.facts:
            self.facts[expr] = reasons
            self.stale = True

    def _without_factors(self, expr: Expr, reasons: Reasons) -> tuple[Expr, Reasons]:
        """Divide out symbols common to all terms that are at least 1: the sign and the zeros stay the same."""
        if not expr.terms:
            return expr, reasons
        for atom in expr.terms[0][0]:
            known = self.ranges.get(atom.name) if atom.kind == "symbol" else None
            if known is None or known.low is None or known.low < 1:
                continue
            if all(atom in m for m, _ in expr.terms):
                divided = {divide_monomial(m, (atom,)) or (): c for m, c in expr.terms}
                return self._without_factors(from_terms(divided), reasons | known.low_reasons)
        return expr, reasons

    def _narrow(self, name: str, low: int | None, high: int | None, reasons: Reasons) -> None:
        known = self.ranges.setdefault(name, SymbolRange())
        changed = False
        if low is not None and (known.low is None or low > known.low):
            known.low, known.low_reasons, changed = low, reasons, True
        if high is not None and (known.high is None or high < known.high):
            known.high, known.high_reasons, changed = high, reasons, True
        if not changed:
            return
        self.stale = True
        self._atom_ranges.clear()
        if known.low is None or known.high is None:
            return
        both = known.low_reasons | known.high_reasons
        if known.low > known.high:
            self.contradiction = both
        elif known.low == known.high:
            self._solve(name, Expr.const(known.low), both)

    def _zero(self, expr: Expr, reasons: Reasons) -> None:
        expr, reasons = self._without_factors(expr, reasons)
        factor = content(expr)
        if factor == 0:
            if expr.terms:
                self.contradiction = reasons
            return
        if expr.constant_term % factor:
            self.contradiction = reasons
            return
        expr = from_terms({m: c // factor for m, c in expr.terms})
        congruence = as_congruence(expr)
        if congruence is not None:
            numerator, size, remainder = congruence
            if not 0 <= remainder < size:
                self.contradiction = reasons
                return
            self._queue.append(("mod", numerator - remainder, size, reasons))
            if linear_symbol(numerator) is None:
                self._keep_zero(expr, reasons)
            return
        for monomial, coefficient in reversed(expr.terms):
            if len(monomial) != 1 or monomial[0].kind != "symbol" or abs(coefficient) != 1:
                continue
            solution = (expr - from_terms({monomial: coefficient})) * -coefficient
            if monomial[0].name not in solution.symbols and solution.size <= MAX_SUBSTITUTE_TERMS:
                self._solve(monomial[0].name, solution, reasons)
                return
        self._keep_zero(expr, reasons)

    def _keep_zero(self, expr: Expr, reasons: Reasons) -> None:
        self._nonnegative(expr, reasons)
        if self.contradiction is None:
            self._queue.append(("ge", -expr, 0, reasons))

    def _divisible(self, expr: Expr, modulus: int, reasons: Reasons) -> None:
        modulus = abs(modulus)
        rest = from_terms({m: c % modulus for m, c in expr.terms})
        factor = gcd(content(rest), modulus)
        if rest.constant_term % factor:
            self.contradiction = reasons
            return
        modulus //= factor
        rest = from_terms({m: c // factor for m, c in rest.terms})
        if not rest.terms or modulus == 1:
            return
        linear = linear_symbol(rest)
        if linear is None:
            self.congruences.setdefault((rest, modulus), reasons)
            return
        atom, coefficient, offset = linear
        # The content was made coprime to the modulus, so the coefficient has an inverse.
        remainder = -offset * pow(coefficient, -1, modulus) % modulus
        quotient = hidden_symbol(f"{atom.name}%{modulus}")
        self._solve(atom.name, quotient * modulus + remainder, reasons)

    def _solve(self, name: str, solution: Expr, reasons: Reasons) -> None:
        """Replace the symbol everywhere; what was known of it is stated again, of the solution."""
        for other, (value, why) in self.solved.items():
            if name in value.symbols:
                with suppress(TilewrightError):
                    self.solved[other] = (value.substitute({name: solution}), why | reasons)
        self.solved[name] = (solution, reasons)
        symbol = Expr.symbol(name) if "%" not in name else hidden_symbol(name)
        known = self.ranges.pop(name, None)
        if known is not None:
            if known.low is not None:
                self._queue.append(("ge", symbol - known.low, 0, known.low_reasons))
            if known.high is not None:
                self._queue.append(("ge", -symbol + known.high, 0, known.high_reasons))
        for expr in [e for e in self.facts if name in e.symbols]:
            self._queue.append(("ge", expr, 0, self.facts.pop(expr)))
        for expr, modulus in [key for key in self.congruences if name in key[0].symbols]:
            self._queue.append(("mod", expr, modulus, self.congruences.pop((expr, modulus))))
        self.stale = True
        self._atom_ranges.clear()

    def witnesses(self) -> Witnesses:
        """Points where all of this holds, to refute relations by; there must be no contradiction."""
        if self._witnesses is None:
            self._witnesses = Witnesses(self)
        return self._witnesses

    # Ranges ----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Narrow the ranges of symbols by the inequalities between them, a bounded number of times."""
        for _ in range(PROPAGATION_ROUNDS):
            if not self.stale or self.contradiction is not None:
                break
            self.stale = False
            for expr, reasons in list(self.facts.items()):
                if expr in self.facts and self.contradiction is None:
                    self._propagate(expr, reasons)
        self.stale = False

    def _propagate(self, expr: Expr, reasons: Reasons) -> None:
        for monomial, coefficient in expr.terms:
            if len(monomial) != 1 or monomial[0].kind != "symbol":
                continue
            name = monomial[0].name
            rest = expr - from_terms({monomial: coefficient})
            if name in rest.symbols:
                continue
            high = bounds.expr_range(rest, self.atom_range)[1]
            if high is None:
                continue
            # c*x >= -rest >= -high
            why = reasons | self.range_reasons(rest, upper=True)
            bound = Expr.const(high) + from_terms({monomial: coefficient})
            self._run([("ge", bound, 0, why)])
            if expr not in self.facts or self.contradiction is not None:
                return

    def atom_range(self, atom: Atom) -> Interval:
        """The interval of an atom that these ranges give."""
        if atom.kind == "symbol":
            known = self.ranges.get(atom.name)
            return (None, None) if known is None else (known.low, known.high)
        found = self._atom_ranges.get(atom)
        if found is None:
            intervals = [bounds.expr_range(a, self.atom_range) for a in atom.args]
            if atom.kind == "floordiv":
                found = bounds.divide(intervals[0], intervals[1])
            else:
                found = bounds.extremum(intervals, atom.kind == "min")
            self._atom_ranges[atom] = found
        return found

    def range_of(self, expr: Expr) -> Interval:
        """The interval of an expression in normal form, by interval arithmetic alone."""
        return bounds.expr_range(expr, self.atom_range)

    def nonnegative_product(self, monomial: Monomial) -> bool:
        """Whether every atom of the product is known to be at least 0."""
        return all((low := self.atom_range(a)[0]) is not None and low >= 0 for a in monomial)

    def range_reasons(self, expr: Expr, upper: bool = False) -> Reasons:
        """Labels that the lower (upper) end of the interval of `expr` rests on; for products and atoms, all of them."""
        result: set[str] = set()
        for monomial, coefficient in expr.terms:
            plain = len(monomial) == 1 and monomial[0].kind == "symbol"
            for name in frozenset[str]().union(*(a.symbols for a in monomial)):
                known = self.ranges.get(name)
                if known is None:
                    continue
                if not plain or (coefficient > 0) is not upper:
                    result |= known.low_reasons
                if not plain or (coefficient > 0) is upper:
                    result |= known.high_reasons
        return frozenset(result)
