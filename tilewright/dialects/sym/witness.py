"""Points at which everything known holds: a relation false at one of them has no proof, so none is searched for.

A witness only ever turns an answer into UNKNOWN. So it does no harm when knowledge that was dropped for its size
excludes the point, and a relation without a value there is simply not refuted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from tilewright.dialects.sym.knowledge import Knowledge

Point: TypeAlias = "dict[str, int]"

MAX_FACTS: Final = 48
"""Facts above which no points are looked for: checking each would cost more than the proofs it saves."""
_SEEDS: Final = (0, 1024, 1, 3, 2, 5, 64, 13, 31, 8, 257, 100)
_REPAIRS: Final = 3


class Witnesses:
    """A few points that satisfy the ranges, facts and congruences of some knowledge; looked for as they are needed."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._names: list[str] | None = None
        self._points: list[tuple[Point, int]] = []
        self._tried = len(_SEEDS) if len(knowledge.facts) > MAX_FACTS else 0

    def any(self) -> bool:
        """Whether there is a point."""
        return next(self._all(), None) is not None

    def seen(self, expr: Expr) -> tuple[bool, bool, bool]:
        """Whether the expression is below 0, is 0, and is above 0, at some point."""
        below = zero = above = False
        for point, default in self._all():
            value = self._value(expr, point, default)
            if value is not None:
                below, zero, above = below or value < 0, zero or value == 0, above or value > 0
                if below and above:
                    break
        return below, zero, above

    def _all(self) -> Iterator[tuple[Point, int]]:
        yield from self._points
        while self._tried < len(_SEEDS):
            i = self._tried
            self._tried += 1
            point = {name: self._start(name, i, j) for j, name in enumerate(self._symbols())}
            if self._repaired(point) and all(point != other for other, _ in self._points):
                self._points.append((point, _SEEDS[i]))
                yield self._points[-1]

    def _symbols(self) -> list[str]:
        if self._names is None:
            names: set[str] = set(self._knowledge.ranges)
            for expr in self._knowledge.facts:
                names |= expr.symbols
            for expr, _ in self._knowledge.congruences:
                names |= expr.symbols
            self._names = sorted(names)
        return self._names

    def _start(self, name: str, i: int, j: int) -> int:
        """The value of the j-th symbol at the i-th point, before repairs: an end of its range, or anywhere in it."""
        known = self._knowledge.ranges.get(name)
        if i % 4 == 1 and known is not None and known.high is not None:
            return known.high
        return self._clamp(name, _SEEDS[i] + i * j)

    def _value(self, expr: Expr, point: Point, default: int) -> int | None:
        if not expr.symbols <= point.keys():
            # Symbols nothing is known of may have any value.
            point = {**{name: default + len(name) for name in expr.symbols}, **point}
        try:
            return expr.evaluate(point)
        except TilewrightError:
            return None

    def _clamp(self, name: str, value: int) -> int:
        known = self._knowledge.ranges.get(name)
        if known is None:
            return value - 3
        if known.low is not None and value < known.low:
            value = known.low
        elif known.low is not None and known.high is not None:
            value = known.low + value % (known.high - known.low + 1)
        return value if known.high is None or value <= known.high else known.high - value % 7

    def _repaired(self, point: Point) -> bool:
        """Move the point until every fact holds, one symbol at a time; whether that worked."""
        for _ in range(_REPAIRS):
            moved = False
            for fact in self._knowledge.facts:
                value = self._value(fact, point, 0)
                if value is None:
                    return False
                if value < 0 and not self._move(fact, value, point):
                    return False
                moved = moved or value < 0
            if not moved:
                return self._congruent(point)
        return False

    def _move(self, fact: Expr, value: int, point: Point) -> bool:
        """Change one symbol that stands alone in a term so that the fact holds, as far as the others let it."""
        for monomial, coefficient in fact.terms:
            if len(monomial) != 1 or monomial[0].kind != "symbol":
                continue
            name = monomial[0].name
            moved = point[name] + (-(value // coefficient) if coefficient > 0 else value // -coefficient)
            known = self._knowledge.ranges.get(name)
            if known is not None and (
                (known.low is not None and moved < known.low) or (known.high is not None and moved > known.high)
            ):
                continue
            point[name] = moved
            return True
        return False

    def _congruent(self, point: Point) -> bool:
        for expr, modulus in self._knowledge.congruences:
            value = self._value(expr, point, 0)
            if value is None or value % modulus:
                return False
        return True
