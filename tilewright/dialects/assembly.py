"""Helpers that the dialects' hand-written parsers and printers share.

Operands are written without types: structured IR has no forward references, so an operand's type is known where it is
used. An undefined name is reported where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

T = TypeVar("T")


def parse_value(parser: Parser) -> SSAValue:
    """An operand `%name` (or `%name#1`) that is already defined; an undefined one is an error at the name."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(f"value %{operand.operand_name} is used before it is defined", operand.span)
    if operand.index >= len(values):
        parser.raise_error(
            f"%{operand.operand_name} has {len(values)} results, got index {operand.index}", operand.span
        )
    return values[operand.index]


def parse_optional_value(parser: Parser) -> SSAValue | None:
    """Like `parse_value`, or None where no operand stands."""
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return None
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(f"value %{operand.operand_name} is used before it is defined", operand.span)
    return values[operand.index]


def parse_bracketed(parser: Parser, one: Callable[[], T]) -> list[T]:
    """`[a, b, c]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)


def parse_optional_bracketed(parser: Parser, one: Callable[[], T]) -> list[T]:
    """`[a, b]`, or nothing (an empty list)."""
    return parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, one) or []


def parse_values(parser: Parser) -> list[SSAValue]:
    """`[%a, %b]`."""
    return parse_bracketed(parser, lambda: parse_value(parser))


def parse_optional_values(parser: Parser) -> list[SSAValue]:
    """`[%a, %b]`, or nothing."""
    return parse_optional_bracketed(parser, lambda: parse_value(parser))


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Prints `[%a, %b]`."""
    with printer.in_square_brackets():
        printer.print_list(values, printer.print_operand)


def print_optional_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Prints `[%a, %b]`, or nothing for no values."""
    if values:
        print_values(printer, values)


def parse_int_list(parser: Parser) -> tuple[int, ...]:
    """`[1, 2]` with signed decimal integers."""
    return tuple(parse_bracketed(parser, parser.parse_integer))


def int_array(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    """The attribute form of a list of static integers."""
    return ArrayAttr([IntAttr(v) for v in values])


def ints(attribute: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    """The integers of an `int_array`."""
    return tuple(a.data for a in attribute.data)


def i64_attr(value: int) -> IntegerAttr:
    """A 64-bit integer attribute."""
    return IntegerAttr(value, i64)


def parse_i64(parser: Parser) -> IntegerAttr:
    """A bare integer as a 64-bit attribute."""
    return IntegerAttr(parser.parse_integer(), i64)


def parse_type_of(parser: Parser, kind: type[T], spelled: str) -> T:
    """A type of one class; another one is an error at the type."""
    position = parser.pos
    found = parser.parse_type()
    if not isinstance(found, kind):
        parser.raise_error(f"expected a {spelled} type, got {found}", position, parser.pos)
    return found


def parse_word(parser: Parser, allowed: Sequence[str], what: str) -> StringAttr:
    """One keyword of `allowed`; anything else is an error that lists them."""
    position = parser.pos
    word = parser.parse_identifier()
    if word not in allowed:
        parser.raise_error(f"expected {what} to be one of {', '.join(allowed)}, got {word}", position, parser.pos)
    return StringAttr(word)


def print_extra_attributes(printer: Printer, op: Operation) -> None:
    """Discardable attributes as `attributes {...}`, or nothing."""
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)


def parse_extra_attributes(parser: Parser) -> dict[str, Attribute]:
    """Reads what `print_extra_attributes` wrote."""
    found = parser.parse_optional_attr_dict_with_keyword()
    return {} if found is None else dict(found.data)
