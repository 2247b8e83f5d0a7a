"""A relation between two symbolic expressions, such as `S mod 16 == 0` or `S >= W`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import Final, Literal, TypeAlias, get_args

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import Expr

RelationOp: TypeAlias = Literal["==", ">=", "<=", ">", "<"]
RELATION_OPS: Final[tuple[RelationOp, ...]] = get_args(RelationOp)
_HOLDS: Final = {"==": eq, ">=": ge, "<=": le, ">": gt, "<": lt}
_NEGATED: Final[dict[RelationOp, RelationOp]] = {">=": "<", "<": ">=", "<=": ">", ">": "<="}


@dataclass(frozen=True, slots=True)
class Relation:
    """`lhs op rhs`, each side canonical and kept on its side, so that it prints as it was written."""

    lhs: Expr
    op: RelationOp
    rhs: Expr

    def __post_init__(self) -> None:
        if self.op not in RELATION_OPS:
            raise TilewrightError(f"relation expected one of {' '.join(RELATION_OPS)}, got '{self.op}'")

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols on either side."""
        return self.lhs.symbols | self.rhs.symbols

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the relation is true when each symbol has the given value."""
        return bool(_HOLDS[self.op](self.lhs.evaluate(values), self.rhs.evaluate(values)))

    def negated(self) -> Relation | None:
        """The relation that is true exactly where this one is false; None for `==`, as there is no `!=`."""
        op = _NEGATED.get(self.op)
        return None if op is None else Relation(self.lhs, op, self.rhs)

    def substitute(self, values: Mapping[str, Expr | int]) -> Relation:
        """The relation with symbols replaced on both sides."""
        return Relation(self.lhs.substitute(values), self.op, self.rhs.substitute(values))

    def __str__(self) -> str:
        return f"{self.lhs} {self.op} {self.rhs}"
