"""Points at which everything known holds: a relation false at one of them has no proof, so none is searched for.

A witness only ever turns an answer into UNKNOWN. So it does no harm when knowledge that was dropped for its size
excludes the point, and a relation without a value there is simply not refuted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from tilewright.dialects.sym.knowledge import Knowledge

Point: TypeAlias = "dict[str, int]"

MAX_FACTS: Final = 48
"""Facts above which no points are looked for: checking each would cost more than the proofs it saves."""
_SEEDS: Final = (0, 1, 2, 3, 5, 8, 13, 31, 64, 100, 257, 1024)
_REPAIRS: Final = 3


class Witnesses:
    """A few points that satisfy the ranges, facts and congruences of some knowledge; found when first asked for."""

    def __init__(self, knowledge: Knowledge) -> None:
        names: set[str] = set(knowledge.ranges)
        for expr in knowledge.facts:
            names |= expr.symbols
        for expr, _ in knowledge.congruences:
            names |= expr.symbols
        self._knowledge = knowledge
        self._points: list[tuple[Point, int]] = []
        if len(knowledge.facts) > MAX_FACTS:
            return
        for i, seed in enumerate(_SEEDS):
            point = {name: self._clamp(name, seed + i * j) for j, name in enumerate(sorted(names))}
            if i % 4 == 1:
                point = {name: self._end(name, 1, seed) for name in point}
            if self._repaired(point) and all(point != other for other, _ in self._points):
                self._points.append((point, seed))

    def seen(self, expr: Expr) -> tuple[bool, bool, bool]:
        """Whether the expression is below 0, is 0, and is above 0, at some point."""
        below = zero = above = False
        for point, default in self._points:
            value = self._value(expr, point, default)
            if value is not None:
                below, zero, above = below or value < 0, zero or value == 0, above or value > 0
        return below, zero, above

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

    def _end(self, name: str, side: int, value: int) -> int:
        known = self._knowledge.ranges.get(name)
        end = None if known is None else known.high if side else known.low
        return self._clamp(name, value) if end is None else end

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
