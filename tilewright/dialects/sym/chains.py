"""Chains of differences: `x0 < x1`, `x1 < x2`, ... as a graph, where a longest path is the best bound of a difference.

An edge from y to x of weight w says `x - y >= w`. Its ends are products of atoms; the empty product stands for 0, so
a range is a pair of edges. A cycle of positive weight is a contradiction. Paths are found label by label (Bellman and
Ford with a queue), in time linear in the facts for a chain and bounded for any graph.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.dialects.sym.expr import Expr, Monomial, symbol_named

if TYPE_CHECKING:
    from tilewright.dialects.sym.forms import Reasons, Statement
    from tilewright.dialects.sym.knowledge import Knowledge

MAX_EDGES: Final = 4096
MAX_RELAXATIONS: Final = 20_000
"""Edges followed from one source; what is found until then is still a bound."""

_Edge: TypeAlias = "tuple[Monomial, int, Reasons]"


class Chains:
    """The graph of the differences in some knowledge."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.edges: dict[Monomial, list[_Edge]] = {}
        self.count = 0
        """Differences of two products."""
        self._from: dict[Monomial, tuple[dict[Monomial, int], dict[Monomial, tuple[Monomial, Reasons]]]] = {}
        self.cycle: Reasons | None = None
        """The statements that contradict one another in a cycle of positive weight, once one is met."""
        for fact, reasons in knowledge.facts.items():
            ends = difference(fact)
            if ends is not None and self.count < MAX_EDGES:
                above, below, offset = ends
                self.count += bool(above and below)
                # above - below + offset >= 0
                self.edges.setdefault(below, []).append((above, -offset, reasons))
        if self.count < 2:
            # Elimination and the narrowing of ranges see as much of a single difference.
            return
        for name, known in knowledge.ranges.items():
            node = symbol_named(name).terms[0][0]
            if known.low is not None:
                self.edges.setdefault((), []).append((node, known.low, known.low_reasons))
            if known.high is not None:
                self.edges.setdefault(node, []).append(((), -known.high, known.high_reasons))

    def proves(self, expr: Expr) -> Reasons | None:
        """The labels from which `expr >= 0` follows, when it is a difference that a path bounds."""
        if self.count < 2:
            return None
        ends = difference(expr)
        if ends is None:
            return None
        above, below, offset = ends
        longest, before = self.longest(below)
        if above not in longest or longest[above] + offset < 0:
            return None
        return self.path(before, below, above)

    def longest(self, source: Monomial) -> tuple[dict[Monomial, int], dict[Monomial, tuple[Monomial, Reasons]]]:
        """The greatest weight of a path from `source` to each node met, and the last step of that path."""
        found = self._from.get(source)
        if found is not None:
            return found
        weight: dict[Monomial, int] = {source: 0}
        before: dict[Monomial, tuple[Monomial, Reasons]] = {}
        pending = deque([source])
        waiting = {source}
        budget = MAX_RELAXATIONS
        while pending and budget > 0 and self.cycle is None:
            node = pending.popleft()
            waiting.discard(node)
            for end, step, reasons in self.edges.get(node, ()):
                budget -= 1
                total = weight[node] + step
                if total <= weight.get(end, total - 1):
                    continue
                if end == source or self._passes(before, source, node, end):
                    # Coming back to where the path has been, higher than before.
                    self.cycle = reasons | self.path(before, end, node)
                    break
                weight[end] = total
                before[end] = (node, reasons)
                if end not in waiting:
                    waiting.add(end)
                    pending.append(end)
        self._from[source] = weight, before
        return weight, before

    def _passes(
        self, before: dict[Monomial, tuple[Monomial, Reasons]], source: Monomial, node: Monomial, end: Monomial
    ) -> bool:
        """Whether the path to `node` passes `end`; asked only where a label of `end` is raised."""
        if end not in before:
            return False
        while node != source:
            if node == end:
                return True
            node = before[node][0]
        return False

    def path(self, before: dict[Monomial, tuple[Monomial, Reasons]], source: Monomial, node: Monomial) -> Reasons:
        """The labels along the path that `longest` found from `source` to a node."""
        result: set[Statement] = set()
        while node != source:
            node, reasons = before[node]
            result |= reasons
        return frozenset(result)


def difference(expr: Expr) -> tuple[Monomial, Monomial, int] | None:
    """(a, b, c) when `expr` is a - b + c for products a and b of atoms, one of them perhaps the empty one for 0."""
    above: Monomial = ()
    below: Monomial = ()
    for monomial, coefficient in expr.terms:
        if not monomial:
            continue
        if coefficient == 1 and not above:
            above = monomial
        elif coefficient == -1 and not below:
            below = monomial
        else:
            return None
    return (above, below, expr.constant_term) if above or below else None
