"""How precisely a product may be computed: `precision tf32` on contractions of `lin` and on `tile.mma`.

Without it products of f32 are exact and rounded once a sum. `tf32` permits that each factor, as f32, loses the 13
lowest bits of its fraction, so that matrix instructions can multiply; it asks for nothing, and changes no type.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.assembly import parse_word

TF32 = "tf32"
PRECISIONS = (TF32,)
"""What `precision` may be, besides exact, which is said by leaving it out."""


def parse_precision(parser: Parser) -> str | None:
    """`precision tf32`, or nothing."""
    return parse_word(parser, PRECISIONS, "precision").data if parser.parse_optional_keyword("precision") else None


def print_precision(printer: Printer, precision: StringAttr | None) -> None:
    """Print what `parse_precision` reads, with a leading space."""
    if precision is not None:
        printer.print_string(f" precision {precision.data}")


def precision_attr(precision: str | None) -> StringAttr | None:
    """The property that stores it."""
    return None if precision is None else StringAttr(precision)


def precision_error(precision: StringAttr | None) -> str | None:
    """What is wrong with a property's word; None if nothing is."""
    if precision is None or precision.data in PRECISIONS:
        return None
    return f"expected precision to be one of {', '.join(PRECISIONS)}, got {precision.data}"
