"""Why something follows from statements, and why they cannot all hold: always the fewest of them that suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dialects.sym import Answer, Expr, Facts, Relation


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation that is stated somewhere; `where` is a place in a file, or an argument and its dim."""

    relation: Relation
    where: str = ""

    def __str__(self) -> str:
        return f"{self.relation} ({self.where})" if self.where else str(self.relation)


def facts_of(statements: Sequence[Statement]) -> Facts:
    """A scope in which the statements hold and nothing else is known."""
    facts = Facts()
    for statement in statements:
        facts.add(statement.relation, statement.where)
    return facts


def proof(statements: Sequence[Statement], relation: Relation) -> tuple[Statement, ...] | None:
    """Statements that prove the relation, in their order, none of which can be left out (the first are kept where there
    is a choice); empty where it always holds, None where they do not prove it."""
    if facts_of(statements).prove(relation) is not Answer.PROVED:
        return None
    core = list(statements)
    for each in reversed(statements):
        without = [s for s in core if s is not each]
        if facts_of(without).prove(relation) is Answer.PROVED:
            core = without
    return tuple(core)


def clash(statements: Sequence[Statement]) -> bool:
    """Whether the statements are found to exclude one another, in whatever order they are looked at."""
    if facts_of(statements).contradiction() is not None:
        return True
    return any(
        facts_of([s for s in statements if s is not each]).prove(each.relation) is Answer.DISPROVED
        for each in statements
    )


def explain_conflict(statements: Sequence[Statement]) -> str | None:
    """One line that names the statements which clash and what they force, or None where no clash is found.

    `S1 == 0 follows from S0 == S1 (a.mlir:3:1) and S0 == 2*S1 (a.mlir:4:1), but S1 >= 1 (a.mlir:2:1)`. Statements that
    the clash does not need are left out, the last ones being kept where there is a choice.
    """
    core = list(statements)
    conflict = facts_of(core).conflict()
    if conflict is not None:
        # Far fewer to leave out one by one, unless the set that is found needs statements that it does not name.
        named = [s for s in core if str(s) in conflict.statements]
        core = named if clash(named) else core
    if not clash(core):
        return None
    for each in tuple(core):
        without = [s for s in core if s is not each]
        if clash(without):
            core = without
    if len(core) == 1:
        return f"{core[0]} holds for no value"
    if len(core) == 2:
        return f"{core[1]} contradicts {core[0]}"
    # What an inequality forbids reads best as a value; the plainest statement comes last in the sentence.
    for against in sorted(core, key=lambda s: (s.relation.op == "==", len(str(s.relation)))):
        rest = [s for s in core if s is not against]
        forced = _forced(facts_of(rest), against.relation)
        if forced is not None:
            verb = "follow" if forced.count(" and ") else "follows"
            return f"{forced} {verb} from {' and '.join(map(str, rest))}, but {against}"
    return f"{core[-1]} contradicts {' and '.join(map(str, core[:-1]))}"


def _forced(facts: Facts, relation: Relation) -> str | None:
    """What is known of the sides of a relation, as far as it is more than nothing."""
    left, right = relation.lhs, relation.rhs
    expr = left if right.constant is not None else left - right
    low, high = facts.range(expr)
    if low is not None and low == high:
        return f"{expr} == {low}"
    if low is not None and _beyond(relation, expr, low, lower=True):
        return f"{expr} >= {low}"
    if high is not None and _beyond(relation, expr, high, lower=False):
        return f"{expr} <= {high}"
    return None


def _beyond(relation: Relation, expr: Expr, bound: int, *, lower: bool) -> bool:
    """Whether the bound alone refutes the relation, so that the other end need not be told."""
    only = Facts()
    symbol = Expr.symbol("bounded")
    only.add(Relation(symbol, ">=" if lower else "<=", Expr.const(bound)))
    limit = relation.rhs if expr is relation.lhs else Expr.const(0)
    return only.prove(Relation(symbol, relation.op, limit)) is Answer.DISPROVED


__all__ = ["Statement", "clash", "explain_conflict", "facts_of", "proof"]
