"""Pieces of custom syntax that several ops of `lin` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, TensorType, f32, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilewright.dialects.assembly import parse_word
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.sym import Expr, parse_expr_from


def parse_combine(parser: Parser) -> StringAttr:
    """`sum`, `prod`, `max` or `min`."""
    return parse_word(parser, tuple(Combine), "combine")


def parse_integers(parser: Parser) -> tuple[int, ...]:
    """`[1, 0]`: the values of an `axes` or `perm` list."""
    return tuple(
        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False))
    )


def print_integers(printer: Printer, values: Sequence[int]) -> None:
    """Print what `parse_integers` reads."""
    with printer.in_square_brackets():
        printer.print_list(values, lambda value: printer.print_string(str(value)))


def parse_expressions(parser: Parser) -> tuple[Expr, ...]:
    """`[S, 2*S + 1]`: expressions over symbols."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser)))


def print_expressions(printer: Printer, values: Sequence[Expr]) -> None:
    """Print what `parse_expressions` reads."""
    printer.print_string(f"[{', '.join(map(str, values))}]")


def print_f32(printer: Printer, value: float) -> None:
    """Print a finite number of f32 so that `Parser.parse_float` reads it again: decimal, with 9 digits at most."""
    texts = (f"{value:.{digits}e}" for digits in (6, 7, 8))
    printer.print_string(next(text for text in texts if f32.round(float(text)) == value))


def int_array(values: Sequence[int]) -> DenseArrayBase:
    """The property that stores axes or a permutation."""
    return DenseArrayBase.from_list(i64, list(values))


def parse_types(parser: Parser) -> tuple[Attribute, ...]:
    """A list of types without brackets, at least one."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def parse_tensor_type(parser: Parser) -> TensorType[Any]:
    """A ranked tensor type; an error at any other type."""
    position = parser.pos
    found = parser.parse_type()
    if not isinstance(found, TensorType):
        parser.raise_error(f"expected a ranked tensor type, got {found}", position, parser.pos)
    return cast("TensorType[Any]", found)


def parse_tensor_types(parser: Parser) -> list[TensorType[Any]]:
    """A list of ranked tensor types without brackets, at least one."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_tensor_type(parser))


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print what `parse_types` reads."""
    printer.print_list(types, printer.print_attribute)


def parse_ins(parser: Parser) -> list[SSAValue]:
    """`ins(%a, %b : !A, !B)`, or `ins()` without operands."""
    parser.parse_keyword("ins")
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return []
    position = parser.pos
    unresolved: list[UnresolvedOperand] = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parse_types(parser)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(unresolved, types, position))


def print_ins(printer: Printer, operands: Sequence[SSAValue]) -> None:
    """Print what `parse_ins` reads, with a leading space."""
    printer.print_string(" ins(")
    if operands:
        printer.print_list(operands, printer.print_ssa_value)
        printer.print_string(" : ")
        print_types(printer, [operand.type for operand in operands])
    printer.print_string(")")


def print_body(printer: Printer, region: Region) -> None:
    """Print a region with the header of its block, with a leading space."""
    printer.print_string(" ")
    printer.print_region(region, print_empty_block=True)
