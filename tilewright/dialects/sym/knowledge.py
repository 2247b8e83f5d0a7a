"""What follows from a set of statements: solved equalities, ranges, and the inequalities left over, with reasons.

Statements enter one at a time and are brought to a normal form:
- an equality that a symbol solves becomes a substitution, applied everywhere (an affine union-find);
- `x = r (mod k)` becomes the substitution of k*q + r for x with a new unknown q, so that divisibility is plain to see;
- an inequality in one symbol becomes a range of it; any other is divided by its content and kept as `e >= 0`.
Each carries the labels of the statements it follows from; a contradiction is a set of labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import bounds
from tilewright.dialects.sym.bounds import Interval
from tilewright.dialects.sym.chains import Chains
from tilewright.dialects.sym.expr import Atom, Expr, Monomial, divide_monomial, from_terms, hidden_symbol, symbol_named
from tilewright.dialects.sym.forms import Reasons, Statement, as_congruence, content, linear_symbol, tighten
from tilewright.dialects.sym.rewrites import euclid_step, is_rule, rewritten
from tilewright.dialects.sym.witness import Witnesses

MAX_SUBSTITUTE_TERMS: Final = 64
"""Width of an expression that may stand for a symbol; a wider equality stays a pair of inequalities."""
MAX_FACT_TERMS: Final = 512
"""Width of a statement above which it is dropped."""
PROPAGATION_ROUNDS: Final = 3
"""Rounds in which inequalities narrow ranges. Longer chains are left to the prover; `x < y, y < x` would never end."""
MAX_RULES: Final = 16
"""Rewrite rules kept; further equalities between products stay pairs of inequalities."""
MAX_CHAIN_STARTS: Final = 64
"""Nodes of the graph of differences up to which cycles are looked for from every one."""
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


def _statement(kind: str, expr: Expr, modulus: int) -> str:
    """The text of a statement on visible symbols; empty where a symbol is hidden."""
    if any("%" in name for name in expr.symbols):
        return ""
    return f"{expr} mod {modulus} == 0" if kind == "mod" else f"{expr} {'==' if kind == 'eq' else '>='} 0"


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
    rules: dict[Expr, Reasons] = field(default_factory=lambda: {})
    """Expressions that are 0 and serve as rewrite rules (`rewrites.py`)."""
    contradiction: Reasons | None = None
    derived: str = ""
    """Where a contradiction shows: values that the statements it names would give to symbols."""
    stale: bool = False
    """Whether inequalities have come in since ranges were last narrowed."""
    _queue: list[tuple[str, Expr, int, Reasons]] = field(default_factory=lambda: [])
    decided: dict[Atom, tuple[Expr | None, Reasons]] = field(default_factory=lambda: {})
    """Divisions by symbols that the prover has decided, or has failed to (None); it fills this in."""
    _atom_ranges: dict[Atom, Interval] = field(default_factory=lambda: {})
    _witnesses: Witnesses | None = None
    _chains: Chains | None = None

    def copy(self) -> Knowledge:
        """An independent copy: additions to one are not seen by the other."""
        return Knowledge(
            dict(self.solved),
            {name: r.copy() for name, r in self.ranges.items()},
            dict(self.facts),
            dict(self.congruences),
            dict(self.rules),
            self.contradiction,
            self.derived,
            self.stale,
        )

    # Statements ------------------------------------------------------------------------------------------------------

    def declare(self, name: str, low: int | None, high: int | None, modulus: int, reason: str) -> None:
        """State that `low <= name <= high` and that `modulus`, at least 1, divides it; None is no bound."""
        divides: Reasons = _NONE
        if modulus > 1:
            divides = frozenset((Statement((name, "mod", modulus, "== 0"), reason),))
        above: Reasons = _NONE if low is None else frozenset((Statement((name, ">=", low), reason),))
        below: Reasons = _NONE if high is None else frozenset((Statement((name, "<=", high), reason),))
        if not self._is_new(name):
            symbol = symbol_named(name)
            if modulus > 1:
                self.add_congruence(symbol, modulus, divides)
            if low is not None:
                self.add_nonnegative(symbol - low, above)
            if high is not None:
                self.add_nonnegative(-symbol + high, below)
            return
        # The common case, without the detour over expressions.
        if modulus > 1:
            quotient = f"{name}%{modulus}"
            self.solved[name] = (hidden_symbol(quotient) * modulus, divides)
            above, below = above | divides, below | divides
            name = quotient
            low = None if low is None else -(-low // modulus)
            high = None if high is None else high // modulus
        if low is not None:
            self._narrow(name, low, None, above)
        if high is not None:
            self._narrow(name, None, high, below)
        self._run([])

    def _is_new(self, name: str) -> bool:
        """Whether nothing is known of the symbol."""
        if name in self.ranges or name in self.solved:
            return False
        known = (*self.facts, *self.rules, *(e for e, _ in self.congruences), *(e for e, _ in self.solved.values()))
        return all(name not in e.symbols for e in known)

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
        """`expr` with solved symbols replaced and rewrite rules applied."""
        if self.solved and not self.solved.keys().isdisjoint(expr.symbols):
            expr = expr.substitute({name: self.solved[name][0] for name in expr.symbols if name in self.solved})
        return rewritten(expr, self.rules) if self.rules else expr

    def solution_reasons(self, expr: Expr) -> Reasons:
        """Labels of the statements that solved the symbols of `expr`, and of the rules that may apply to it."""
        if not self.solved and not self.rules:
            return _NONE
        result = _NONE.union(*(self.solved[name][1] for name in expr.symbols if name in self.solved))
        if not self.rules:
            return result
        symbols = expr.symbols.union(*(self.solved[name][0].symbols for name in expr.symbols if name in self.solved))
        waiting = dict(self.rules)
        while applying := [r for r in waiting if all(a.symbols <= symbols for a in r.leading_term[0])]:
            for rule in applying:
                symbols |= rule.symbols
                result |= waiting.pop(rule)
        return result

    def all_reasons(self) -> Reasons:
        """Labels of all statements that anything known rests on."""
        sets = [why for _, why in self.solved.values()]
        sets += [why for known in self.ranges.values() for why in (known.low_reasons, known.high_reasons)]
        return _NONE.union(*sets, *self.facts.values(), *self.congruences.values(), *self.rules.values())

    def _run(self, statements: list[tuple[str, Expr, int, Reasons]]) -> None:
        self._forget()
        if not statements and not self._queue:
            return
        self._queue.extend(statements)
        done = 0
        while self._queue and self.contradiction is None and done < MAX_QUEUE:
            done += 1
            kind, expr, modulus, reasons = self._queue.pop(0)
            with suppress(TilewrightError):
                # A statement that grows over the size limits is dropped; so is one without a value, which cannot hold.
                self._take(kind, expr, modulus, reasons)
        self._queue.clear()

    def _forget(self) -> None:
        """Drop what was worked out from less knowledge."""
        self._atom_ranges.clear()
        self.decided.clear()
        self._witnesses = self._chains = None

    def _take(self, kind: str, expr: Expr, modulus: int, reasons: Reasons) -> None:
        if expr.size > MAX_FACT_TERMS:
            return
        stated = expr
        reasons = reasons | self.solution_reasons(expr)
        expr = self.normal(expr)
        if kind == "ge":
            self._nonnegative(expr, reasons)
        elif kind == "eq":
            self._zero(expr, reasons)
        else:
            self._divisible(expr, modulus, reasons)
        if self.contradiction is not None and not self.derived:
            self.derived = self._values_of(stated) if expr.constant is not None else _statement(kind, expr, modulus)

    def _values_of(self, expr: Expr) -> str:
        """What the symbols of a statement that cannot hold are by the other statements, as in `S == 0`."""
        values = [f"{name} == {self.solved[name][0]}" for name in sorted(expr.symbols) if name in self.solved]
        return ", ".join(v for v in values if "%" not in v)

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
        if not expr.terms or not expr.terms[-1][0]:
            # Nothing, or a constant term, which has no factors.
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
        known = self.ranges.get(name)
        if known is None:
            known = self.ranges[name] = SymbolRange()
        changed = False
        if low is not None and (known.low is None or low > known.low):
            if low >= 1 and (known.low is None or known.low < 1):
                self._restate_multiples(name)
            known.low, known.low_reasons, changed = low, reasons, True
        if high is not None and (known.high is None or high < known.high):
            known.high, known.high_reasons, changed = high, reasons, True
        if not changed:
            return
        self.stale = True
        self._forget()
        if known.low is None or known.high is None:
            return
        both = known.low_reasons | known.high_reasons
        if known.low > known.high:
            self.contradiction = both
            self.derived = f"{name} >= {known.low} and {name} <= {known.high}" if "%" not in name else ""
        elif known.low == known.high:
            self._solve(name, Expr.const(known.low), both)

    def _restate_multiples(self, name: str) -> None:
        """Take up again what has the symbol as a factor of every term: it is about to be known to be at least 1."""
        for known, kind in ((self.rules, "eq"), (self.facts, "ge")):
            for expr in [e for e in known if name in e.symbols]:
                if all(any(atom.name == name for atom in monomial) for monomial, _ in expr.terms):
                    self._queue.append((kind, expr, 0, known.pop(expr)))

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
        if factor > 1:
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
            solution = from_terms({m: -c * coefficient for m, c in expr.terms if m is not monomial})
            if monomial[0].name not in solution.symbols and solution.size <= MAX_SUBSTITUTE_TERMS:
                self._solve(monomial[0].name, solution, reasons)
                return
        step = euclid_step(expr)
        if step is not None:
            unknown, size, shift = step
            if shift.size < MAX_SUBSTITUTE_TERMS:
                # x = t - shift, for a new integer t: what is left has smaller coefficients.
                fresh = hidden_symbol(f"{unknown[0].name}%t")
                self._solve(unknown[0].name, fresh - shift, reasons)
                self._queue.append(("eq", expr, 0, reasons))
                return
        for monomial, coefficient in expr.terms:
            if len(monomial) == 1 and monomial[0].kind == "symbol" and abs(coefficient) > 1:
                self._queue.append(("mod", expr - from_terms({monomial: coefficient}), coefficient, reasons))
                break
        self._keep_zero(expr, reasons)

    def _keep_zero(self, expr: Expr, reasons: Reasons) -> None:
        if is_rule(expr) and len(self.rules) < MAX_RULES:
            self.rules.setdefault(expr, reasons)
        # Both sides stay inequalities too: elimination and ranges work with those.
        self._nonnegative(expr, reasons)
        if self.contradiction is None:
            self._nonnegative(-expr, reasons)

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
        symbol = symbol_named(name)
        rules = [(rule, self.rules.pop(rule)) for rule in list(self.rules) if name in rule.symbols]
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
        self._queue.extend(("eq", rule, 0, why) for rule, why in rules)
        self.stale = True
        self._forget()

    def witnesses(self) -> Witnesses:
        """Points where all of this holds, to refute relations by; there must be no contradiction."""
        if self._witnesses is None:
            self._witnesses = Witnesses(self)
        return self._witnesses

    # Ranges ----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Narrow the ranges of symbols by the inequalities between them, a bounded number of times."""
        narrowed = self.stale
        # A single inequality narrows once and for all.
        for _ in range(PROPAGATION_ROUNDS if len(self.facts) > 1 else 1):
            if not self.stale or self.contradiction is not None:
                break
            self.stale = False
            for expr, reasons in list(self.facts.items()):
                if expr in self.facts and self.contradiction is None:
                    self._propagate(expr, reasons)
        if self.contradiction is None and self.facts and narrowed:
            self._narrow_by_chains()
        self.stale = False

    def _narrow_by_chains(self) -> None:
        """Narrow ranges by chains of differences of any length, and find those that contradict themselves."""
        if len(self.facts) < 2:
            return
        chains = self.chains()
        if chains.count < 2:
            return
        weights, before = chains.longest(())
        found: list[tuple[Monomial, int | None, int | None, Reasons]] = [
            (node, low, None, chains.path(before, (), node)) for node, low in weights.items()
        ]
        if len(chains.edges) <= MAX_CHAIN_STARTS:
            for start in chains.edges:
                weights, before = chains.longest(start)
                if () in weights and chains.cycle is None:
                    found.append((start, None, -weights[()], chains.path(before, start, ())))
        if chains.cycle is not None:
            self.contradiction = chains.cycle
            return
        for node, low, high, reasons in found:
            if len(node) != 1 or node[0].kind != "symbol":
                continue
            known = self.ranges.get(node[0].name, SymbolRange())
            if low is not None and (known.low is None or low > known.low):
                self._run([("ge", symbol_named(node[0].name) - low, 0, reasons)])
            if high is not None and (known.high is None or high < known.high):
                self._run([("ge", -symbol_named(node[0].name) + high, 0, reasons)])

    def chains(self) -> Chains:
        """The differences among the facts, as a graph."""
        if self._chains is None:
            self._chains = Chains(self)
        return self._chains

    def _propagate(self, expr: Expr, reasons: Reasons) -> None:
        """Narrow the range of each symbol that stands alone in a term of the fact, by the ranges of the other terms."""
        highs = [
            bounds.scale(bounds.monomial_range(monomial, self.atom_range), coefficient)[1]
            for monomial, coefficient in expr.terms
        ]
        if highs.count(None) > 1:
            return
        for i, (monomial, coefficient) in enumerate(expr.terms):
            if len(monomial) != 1 or monomial[0].kind != "symbol":
                continue
            others = [high for j, high in enumerate(highs) if j != i and high is not None]
            name = monomial[0].name
            if len(others) < len(highs) - 1 or any(
                name in a.symbols for m, _ in expr.terms if m is not monomial for a in m
            ):
                continue
            # coefficient * x >= -(greatest value of the others)
            high = sum(others)
            known = self.ranges.get(name) or SymbolRange()
            if coefficient > 0:
                bound = -(high // coefficient)
                if known.low is not None and known.low >= bound:
                    continue
            else:
                bound = high // -coefficient
                if known.high is not None and known.high <= bound:
                    continue
            why = reasons | self._term_reasons([t for t in expr.terms if t[0] is not monomial], upper=True)
            self._narrow(name, bound if coefficient > 0 else None, None if coefficient > 0 else bound, why)
            self._run([])
            if expr not in self.facts or self.contradiction is not None:
                return
            highs[i] = bounds.scale(self.atom_range(monomial[0]), coefficient)[1]

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
        return self._term_reasons(expr.terms, upper)

    def _term_reasons(self, terms: Iterable[tuple[Monomial, int]], upper: bool) -> Reasons:
        result: set[Statement] = set()
        for monomial, coefficient in terms:
            plain = len(monomial) == 1 and monomial[0].kind == "symbol"
            for name in monomial[0].symbols if len(monomial) == 1 else {n for a in monomial for n in a.symbols}:
                known = self.ranges.get(name)
                if known is None:
                    continue
                if not plain or (coefficient > 0) is not upper:
                    result |= known.low_reasons
                if not plain or (coefficient > 0) is upper:
                    result |= known.high_reasons
        return frozenset(result)
