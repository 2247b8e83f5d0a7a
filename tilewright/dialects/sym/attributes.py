"""Attributes that carry symbolic expressions, and the reader of expressions for the syntax of other dialects.

`#sym.expr<2*S + 1>`, `#sym.dims<B, 2*S + 1, 512>` (the encoding of a tensor type) and `#sym.rel<S >= W>`. Their
parsers canonicalise, so two spellings of a shape are one type. Equality of types is canonical equality and no more;
dims that are only provably equal meet through `sym.cast`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import Expr, as_expr
from tilewright.dialects.sym.parse import ExprReader
from tilewright.dialects.sym.relation import Relation, RelationOp


class _ParserTokens:
    """The token stream of an IR parser, as the expression grammar sees it."""

    def __init__(self, parser: AttrParser) -> None:
        self.parser = parser

    def take(self, mark: str) -> bool:
        if mark[0].isalpha():
            return self.parser.parse_optional_keyword(mark) is not None
        return self.parser.parse_optional_punctuation(cast(Any, mark)) is not None

    def take_relation(self) -> RelationOp | None:
        # MLIR's lexer gives `==`, `>=` and `<=` as two tokens each.
        if self.take("="):
            if not self.take("="):
                self.fail("expected '=='")
            return "=="
        if self.take(">"):
            return ">=" if self.take("=") else ">"
        if self.take("<"):
            return "<=" if self.take("=") else "<"
        return None

    def take_integer(self) -> int | None:
        try:
            return self.parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        except ValueError:
            self.fail("integer too large")

    def take_name(self) -> str | None:
        return self.parser.parse_optional_identifier()

    def mark(self) -> int:
        return self.parser.pos

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        self.parser.raise_error(message, at)


def parse_expr_from(parser: AttrParser) -> Expr:
    """Read an expression off an IR parser, up to the first token that does not continue it."""
    return ExprReader(_ParserTokens(parser)).expression()


def parse_relation_from(parser: AttrParser) -> Relation:
    """Read a relation off an IR parser, up to the first token that does not continue it."""
    return ExprReader(_ParserTokens(parser)).relation()


def parse_dims_from(parser: AttrParser) -> tuple[Expr, ...]:
    """Read `expr, expr, ...` off an IR parser; one expression at least, brackets are the caller's."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_expr_from(parser)))


def print_dims(printer: Printer, dims: Sequence[Expr]) -> None:
    """Print `expr, expr, ...` as `parse_dims_from` reads it."""
    printer.print_string(", ".join(map(str, dims)))


@irdl_attr_definition
class ExprAttr(Data[Expr]):
    """`#sym.expr<2*S + 1>`: one expression."""

    name = "sym.expr"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Expr:
        with parser.in_angle_brackets():
            return parse_expr_from(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class DimsAttr(Data[tuple[Expr, ...]]):
    """`#sym.dims<B, 2*S + 1, 512>`: the size of each dimension, outermost first; `#sym.dims<>` has rank 0."""

    name = "sym.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        dims = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_expr_from(parser))
        return tuple(dims)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_dims(printer, self.data)


@irdl_attr_definition
class RelationAttr(Data[Relation]):
    """`#sym.rel<S >= W>`: a relation between two expressions."""

    name = "sym.rel"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Relation:
        with parser.in_angle_brackets():
            return parse_relation_from(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def dims_of(tensor_type: Attribute) -> tuple[Expr, ...]:
    """The size of each dimension of a ranked tensor type, from its encoding, else from its static shape.

    Raises `TilewrightError` for any other type, and for a `?` without a `#sym.dims` encoding.
    """
    if not isinstance(tensor_type, TensorType):
        raise TilewrightError(f"expected a ranked tensor type, got {tensor_type}")
    tensor = cast("TensorType[Attribute]", tensor_type)
    if isinstance(tensor.encoding, DimsAttr):
        return tensor.encoding.data
    shape = tensor.get_shape()
    if DYNAMIC_INDEX in shape:
        raise TilewrightError(f"expected a #sym.dims encoding on a tensor with '?' sizes, got {tensor_type}")
    return tuple(Expr.const(size) for size in shape)


def symbolic_tensor(element_type: Attribute, dims: Sequence[Expr | int]) -> TensorType[Any]:
    """The tensor type of this shape: `?` exactly where a size is no constant, always with the `#sym.dims` encoding."""
    exprs = tuple(as_expr(dim) for dim in dims)
    shape = [DYNAMIC_INDEX if e.constant is None else e.constant for e in exprs]
    if any(e.constant is not None and e.constant < 0 for e in exprs):
        raise TilewrightError(f"expected sizes of at least 0, got {', '.join(map(str, exprs))}")
    return TensorType(element_type, shape, DimsAttr(exprs))


__all__ = [
    "DimsAttr",
    "ExprAttr",
    "RelationAttr",
    "dims_of",
    "parse_dims_from",
    "parse_expr_from",
    "parse_relation_from",
    "print_dims",
    "symbolic_tensor",
]
