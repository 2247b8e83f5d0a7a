"""Reads at computed positions: `%x at [d0 + S, 2*d1 - 1] else 0.0 : f32` in the operands of a `lin.generic`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.sym import Expr
from tilewright.dialects.sym.attributes import parse_expr_from
from tilewright.dialects.sym.index import Family, IndexAttr, dim, free_prefixes, members, name_of, spelled, value


@irdl_attr_definition
class AccessAttr(ParametrizedAttribute):
    """Where a generic reads one operand: an index for each dim, and what it reads where an index lies outside.

    Indices are expressions over iteration dims (`index.dim`), values of integer operands that stand before this one
    (`index.value`) and symbols. Without `other` every index must lie inside the operand, for each point of the
    iteration space.
    """

    name = "lin.access"
    index: IndexAttr = param_def()
    other: Attribute = param_def()

    @staticmethod
    def at(indices: Sequence[Expr], other: Attribute | None = None) -> AccessAttr:
        """The read at these indices; `other` is a constant of the operand's element type."""
        return AccessAttr(IndexAttr(tuple(indices)), UnitAttr() if other is None else other)

    @property
    def indices(self) -> tuple[Expr, ...]:
        """One expression for each dim of the operand."""
        return self.index.data

    @property
    def fill(self) -> Attribute | None:
        """What is read outside, None where no index may lie there."""
        return None if isinstance(self.other, UnitAttr) else self.other

    @property
    def dims(self) -> tuple[int, ...]:
        """Iteration dims that occur in the indices themselves, ascending."""
        return members(self.indices, "d")

    @property
    def values(self) -> tuple[int, ...]:
        """Positions of the operands whose values occur in the indices, ascending."""
        return members(self.indices, "v")

    @property
    def fills_with_zero(self) -> bool:
        """Whether what is read outside is zero, or nothing is."""
        fill = self.fill
        if isinstance(fill, FloatAttr):
            return fill.value.data == 0.0
        return fill is None or (isinstance(fill, IntegerAttr) and fill.value.data == 0)

    def mapped(
        self, dims: Mapping[int, int | Expr | None] | None = None, values: Mapping[int, int] | None = None
    ) -> AccessAttr:
        """The same read with iteration dims replaced (None: by 0) and operand positions renumbered."""
        replaced: dict[str, Expr | int] = {}
        if dims is not None:
            for d in self.dims:
                new = dims[d]
                replaced[name_of(dim(d))] = Expr.const(0) if new is None else dim(new) if isinstance(new, int) else new
        if values is not None:
            replaced |= {name_of(value(v)): value(values[v]) for v in self.values}
        return AccessAttr(IndexAttr(tuple(e.substitute(replaced) for e in self.indices)), self.other)


def constant_type(value: Attribute) -> Attribute | None:
    """The type of a float or integer constant, None for any other attribute."""
    if isinstance(value, FloatAttr | IntegerAttr):
        return cast("FloatAttr[AnyFloat] | IntegerAttr[IntegerType]", value).type
    return None


Accesses = Sequence[AccessAttr | None]
"""For each operand how it is read at computed positions; None where it runs along iteration dims."""


def access_prefixes(accesses: Accesses) -> dict[Family, str]:
    """How the text of a generic with these reads spells its coordinates."""
    exprs = [e for a in accesses if a is not None for e in a.indices]
    return free_prefixes(exprs)


def parse_access(parser: Parser, dims: Mapping[str, int], values: Mapping[str, int]) -> AccessAttr:
    """`[e0, e1] else 0.0 : f32`, after the word `at`; names of iteration dims and of operands' values are given."""
    coordinates: dict[str, Expr | int] = {name: dim(d) for name, d in dims.items()}
    coordinates |= {name: value(v) for name, v in values.items()}
    exprs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
    fill = parser.parse_attribute() if parser.parse_optional_keyword("else") else None
    return AccessAttr.at([e.substitute(coordinates) for e in exprs], fill)


def print_access(printer: Printer, access: AccessAttr, prefixes: dict[Family, str]) -> None:
    """Prints ` at [e0, e1] else 0.0 : f32`."""
    text = ", ".join(str(spelled(e, prefixes)) for e in access.indices)
    printer.print_string(f" at [{text}]")
    if access.fill is not None:
        printer.print_string(" else ")
        printer.print_attribute(access.fill)
