"""Index expressions: where an op reads, as expressions over its own coordinates beside the symbols of the module.

Three families of coordinates may occur in an index: `d0, d1, ...` (iteration dims, or the coordinates of a tile), `v0,
v1, ...` (integer values that operands contribute) and `o0, o1, ...` (index values of the kernel). Inside they are
hidden symbols, which no symbol of a module can be confused with; text spells them with a prefix that the module's own
symbols leave free: `d0` unless some symbol is called like that, then `dd0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilewright.dialects.sym.attributes import parse_expr_from
from tilewright.dialects.sym.expr import Expr, hidden_symbol

Family = Literal["d", "v", "o"]
FAMILIES: Final[tuple[Family, ...]] = ("d", "v", "o")
_HIDDEN: Final = re.compile(r"%([dvo])(\d+)")


def dim(number: int) -> Expr:
    """The iteration dim (or tile coordinate) of this number."""
    return hidden_symbol(f"%d{number}")


def value(number: int) -> Expr:
    """The integer that operand `number` contributes."""
    return hidden_symbol(f"%v{number}")


def offset(number: int) -> Expr:
    """The index value of this number."""
    return hidden_symbol(f"%o{number}")


def members(exprs: Iterable[Expr], family: Family) -> tuple[int, ...]:
    """The numbers of a family's coordinates that occur, ascending."""
    found: set[int] = set()
    for name in _names(exprs):
        match = _HIDDEN.fullmatch(name)
        if match is not None and match.group(1) == family:
            found.add(int(match.group(2)))
    return tuple(sorted(found))


def free_prefix(family: Family, exprs: Iterable[Expr]) -> str:
    """The letter of a family, repeated until no symbol of `exprs` looks like one of its coordinates."""
    names = [name for name in _names(exprs) if not name.startswith("%")]
    prefix: str = family
    while any(re.fullmatch(rf"{prefix}\d+", name) for name in names):
        prefix += family
    return prefix


def free_prefixes(exprs: Sequence[Expr]) -> dict[Family, str]:
    """How text spells the coordinates of each family beside the symbols of `exprs`."""
    return {family: free_prefix(family, exprs) for family in FAMILIES}


def spelled(expr: Expr, prefixes: dict[Family, str]) -> Expr:
    """`expr` with coordinates as plain symbols, for printing."""
    names: dict[str, Expr | int] = {}
    for name in expr.symbols:
        match = _HIDDEN.fullmatch(name)
        if match is not None:
            family: Family = match.group(1)  # pyright: ignore[reportAssignmentType]
            names[name] = Expr.symbol(prefixes[family] + match.group(2))
    return expr.substitute(names)


def _names(exprs: Iterable[Expr]) -> Iterator[str]:
    for expr in exprs:
        yield from expr.symbols


@irdl_attr_definition
class IndexAttr(Data[tuple[Expr, ...]]):
    """`#sym.index<(d, v, o) [d0 + S, 2*d1 - 1]>`: one expression for each dim that is indexed.

    The words in brackets are the prefixes by which the text spells the three families of coordinates.
    """

    name = "sym.index"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        with parser.in_angle_brackets():
            words = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
            if len(words) != len(FAMILIES) or len(set(words)) != len(words):
                parser.raise_error(f"expected three distinct prefixes, got ({', '.join(words)})")
            exprs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
        return tuple(hide(e, dict(zip(words, FAMILIES, strict=True))) for e in exprs)

    def print_parameter(self, printer: Printer) -> None:
        prefixes = free_prefixes(self.data)
        text = ", ".join(str(spelled(e, prefixes)) for e in self.data)
        printer.print_string(f"<({', '.join(prefixes.values())}) [{text}]>")


def hide(expr: Expr, families: dict[str, Family]) -> Expr:
    """`expr` with each symbol that is a prefix and a number as the coordinate that it spells."""
    names: dict[str, Expr | int] = {}
    for name in expr.symbols:
        match = re.fullmatch(r"(.*?)(\d+)", name)
        if match is not None and match.group(1) in families:
            names[name] = hidden_symbol(f"%{families[match.group(1)]}{int(match.group(2))}")
    return expr.substitute(names)


def name_of(coordinate: Expr) -> str:
    """The hidden name of a coordinate, for substitution and evaluation."""
    return next(iter(coordinate.symbols))
