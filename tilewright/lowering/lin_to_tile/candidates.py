"""What is said of the tiles among which a product chooses: a table of remarks, one line a candidate.

Times are those that the choice is made by. They are in microseconds where all sizes are numbers, or where the symbols
have `likely` values, of which the first is taken; else formulas, in which `waves` is how often all processors compute a
tile each, and the parts of a sum go by their symbols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation

from tilewright.dialects.sym import Expr, Relation
from tilewright.passes.remarks import remark

OTHER_REGISTERS = 40
"""Registers of a thread beside its sums, about: addresses, operands, counters."""
PASS = "lin-to-tile"
NEVER = "never taken: another costs less"
CHEAPEST = "where it costs least"
LAST = "where none before it is taken"


@dataclass(frozen=True)
class Candidate:
    """A tile with what it takes, and when it is chosen."""

    name: str
    tile: tuple[int, int, int]
    step_bytes: int
    """Shared memory of one step's operands."""
    slots: int
    """Steps that are in shared memory at a time, at most."""
    accumulators: int
    """Sums of a thread."""
    waves: Expr
    steps: Expr
    """Steps that a block takes for a tile."""
    step_ns: int
    """Nanoseconds that a step takes with all processors at work."""
    verdict: str
    prefers: tuple[Relation, ...] | None = ()
    """What the choice asks; None for a tile that is never taken."""
    beside: Expr = field(default_factory=lambda: Expr.const(0))
    """Nanoseconds that come to the steps."""
    beside_text: str = ""
    """The same to be read."""
    lets: tuple[tuple[str, Expr], ...] = ()
    """Values of the number of parts and of their depth, in order, which the expressions above name."""


@dataclass
class Candidates:
    """The candidates of one product, in the order in which they are tried."""

    examples: Mapping[str, int] = field(default_factory=dict[str, int])
    """Sizes of symbols for which times are reckoned."""
    found: list[Candidate] = field(default_factory=list[Candidate])

    def add(self, candidate: Candidate) -> None:
        """Keep a candidate."""
        self.found.append(candidate)

    def say(self, origin: Operation) -> None:
        """The table, at the op that the product comes from."""
        taken = False
        for each in self.found:
            values = self._values(each)
            waves, nanoseconds = _number(each.waves, values), _number(_time(each), values)
            verdict = each.verdict
            if each.prefers is not None and nanoseconds is not None and not taken:
                taken = all(_holds(relation, values) for relation in each.prefers)
                if taken:
                    verdict = f"taken for {self._named()}" if self._named() else "taken"
            if each.lets:
                parts = _number(Expr.symbol(each.lets[0][0]), values)
                verdict = f"in {'parts' if parts is None else f'{parts} part' + 's' * (parts != 1)}, {verdict}"
            cells = (
                each.name,
                f"tile {'x'.join(map(str, each.tile))}",
                f"shared {each.step_bytes * each.slots} B",
                f"registers ~{each.accumulators + OTHER_REGISTERS}",
                f"waves {_plain(each, str(each.waves)) if waves is None else waves}",
                f"time {_formula(each) if nanoseconds is None else f'{nanoseconds / 1000:.1f} us'}",
                verdict,
            )
            remark(origin, PASS, " | ".join(cells))

    def _values(self, each: Candidate) -> dict[str, Expr | int]:
        values: dict[str, Expr | int] = dict(self.examples)
        for symbol, value in each.lets:
            values[symbol] = value.substitute(values)
        return values

    def _named(self) -> str:
        used = frozenset[str]().union(*(each.waves.symbols | each.steps.symbols for each in self.found))
        return ", ".join(f"{name} = {size}" for name, size in self.examples.items() if name in used)


def _time(each: Candidate) -> Expr:
    return each.beside + each.waves * each.steps * each.step_ns


def _number(expr: Expr, values: Mapping[str, Expr | int]) -> int | None:
    return expr.substitute(values).constant


def _holds(relation: Relation, values: Mapping[str, Expr | int]) -> bool:
    """Whether a relation holds, as far as all its symbols have values; no where one has none."""
    left, right = relation.lhs.substitute(values), relation.rhs.substitute(values)
    known = left.constant is not None and right.constant is not None
    return known and Relation(left, relation.op, right).holds({})


def _formula(each: Candidate) -> str:
    steps = f"({each.steps})" if each.steps.constant is None else str(each.steps)
    text = f"{each.step_ns / 1000:g} us * waves * {steps}"
    return _plain(each, f"{text} + {each.beside_text}" if each.beside_text else text)


def _plain(each: Candidate, text: str) -> str:
    """A text that says `parts` and `part_depth` whatever these symbols are called."""
    for (symbol, _), word in zip(each.lets, ("parts", "part_depth"), strict=False):
        text = re.sub(rf"\b{re.escape(symbol)}\b", word, text)
    return text
