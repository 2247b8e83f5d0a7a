"""`valid(d1 < %n)`: which elements of a tile take part, as `tile.map`, `tile.reduce` and `tile.gather` write it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.assembly import parse_value


def parse_valid(parser: Parser, names: dict[str, int]) -> tuple[list[int], list[SSAValue]]:
    """`valid(d1 < %n, d0 < %m)`, or nothing."""
    dims: list[int] = []
    limits: list[SSAValue] = []
    if parser.parse_optional_keyword("valid"):
        parser.parse_punctuation("(")
        while True:
            name = parser.parse_identifier()
            if name not in names:
                parser.raise_error(f"{name} is not an iteration dim")
            parser.parse_punctuation("<")
            dims.append(names[name])
            limits.append(parse_value(parser))
            if not parser.parse_optional_punctuation(","):
                break
        parser.parse_punctuation(")")
    return dims, limits


def print_valid(printer: Printer, dims: Sequence[int], limits: Sequence[SSAValue], letter: str = "d") -> None:
    """Prints what `parse_valid` reads, with a leading space."""
    if not dims:
        return
    printer.print_string(" valid(")

    def one(pair: tuple[int, SSAValue]) -> None:
        printer.print_string(f"{letter}{pair[0]} < ")
        printer.print_operand(pair[1])

    printer.print_list(list(zip(dims, limits, strict=True)), one)
    printer.print_string(")")
