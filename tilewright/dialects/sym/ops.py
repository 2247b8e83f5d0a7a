"""Operations of the `sym` dialect: declare a symbol, require a relation, compute an index, meet two equal shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean
from tilewright.dialects.sym.attributes import (
    ExprAttr,
    RelationAttr,
    dims_of,
    parse_expr_from,
    parse_relation_from,
)
from tilewright.dialects.sym.expr import Expr, as_expr, check_name
from tilewright.dialects.sym.relation import Relation

SYMBOL_SOURCES: Final = ("arg", "stride", "base", "host")
"""Where the value comes from: an argument's shape, its element strides, its base address in bytes, or the host plan."""


@irdl_op_definition
class SymbolOp(IRDLOperation):
    """`sym.symbol @M {min = 1, max = 8192, multiple_of = 8, likely = [128, 2048], source = "arg"}`.

    Declares the symbol M of the module: an integer of at least `min` (0 when absent) and at most `max` (unbounded when
    absent) that `multiple_of` divides. A symbol of source "stride" may be negative, so it has no `min` of its own.
    `likely` lists sizes to tune for and promises nothing.
    """

    name = "sym.symbol"

    sym_name = prop_def(StringAttr)
    min = opt_prop_def(IntegerAttr.constr(i64))
    max = opt_prop_def(IntegerAttr.constr(i64))
    multiple_of = opt_prop_def(IntegerAttr.constr(i64))
    likely = opt_prop_def(DenseArrayBase.constr(i64))
    source = opt_prop_def(StringAttr)

    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        *,
        min: int | None = None,
        max: int | None = None,
        multiple_of: int | None = None,
        likely: Sequence[int] = (),
        source: str | None = None,
    ) -> None:
        integers = {"min": min, "max": max, "multiple_of": multiple_of}
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name)}
        properties |= {key: IntegerAttr(value, i64) for key, value in integers.items() if value is not None}
        if likely:
            properties["likely"] = DenseArrayBase.from_list(i64, likely)
        if source is not None:
            properties["source"] = StringAttr(source)
        super().__init__(properties=properties)

    @property
    def symbol(self) -> str:
        """Name of the declared symbol."""
        return self.sym_name.data

    @property
    def source_kind(self) -> str:
        """One of `SYMBOL_SOURCES`."""
        return "arg" if self.source is None else self.source.data

    @property
    def lower_bound(self) -> int | None:
        """Least value, or None for a stride without one."""
        if self.min is not None:
            return self.min.value.data
        return None if self.source_kind == "stride" else 0

    @property
    def upper_bound(self) -> int | None:
        """Greatest value, or None when there is no bound."""
        return None if self.max is None else self.max.value.data

    @property
    def divisor(self) -> int:
        """An integer of at least 1 that divides every value."""
        return 1 if self.multiple_of is None else self.multiple_of.value.data

    @property
    def likely_values(self) -> tuple[int, ...]:
        """Sizes to tune for."""
        return () if self.likely is None else tuple(int(v) for v in self.likely.get_values())

    def verify_(self) -> None:
        try:
            check_name(self.symbol)
        except TilewrightError as error:
            raise VerifyException(error.message) from error
        if self.source_kind not in SYMBOL_SOURCES:
            raise VerifyException(f"source expected one of {', '.join(SYMBOL_SOURCES)}, got '{self.source_kind}'")
        if any(size < 0 for size in self.likely_values) and self.source_kind != "stride":
            raise VerifyException(f"likely expected sizes of at least 0, got {list(self.likely_values)}")
        if self.divisor < 1:
            raise VerifyException(f"multiple_of expected at least 1, got {self.divisor}")
        low, high = self.lower_bound, self.upper_bound
        if low is not None and low < 0 and self.source_kind != "stride":
            raise VerifyException(f"min expected at least 0, got {low}")
        if low is not None and high is not None:
            if low > high:
                raise VerifyException(f"expected min <= max, got min {low} and max {high}")
            if high // self.divisor * self.divisor < low:
                raise VerifyException(f"expected a multiple of {self.divisor} between min {low} and max {high}")

    @classmethod
    def parse(cls, parser: Parser) -> SymbolOp:
        name = parser.parse_symbol_name()
        properties: dict[str, Attribute] = {"sym_name": name}
        start = parser.pos
        entries = parser.parse_optional_attr_dict()
        known = ("min", "max", "multiple_of", "source", "likely")
        for key in entries:
            # A misspelt bound would promise nothing, silently; attributes of other dialects have a prefix.
            if key not in known and "." not in key:
                message = f"symbol '{name.data}' has no '{key}'{did_you_mean(key, known)}"
                parser.raise_error(message, start, parser.pos)
        for key in known[:-1]:
            if key in entries:
                properties[key] = entries.pop(key)
        if "likely" in entries:
            properties["likely"] = _dense_integers(parser, entries.pop("likely"))
        return cls.create(properties=properties, attributes=entries)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol)
        integers = {"min": self.min, "max": self.max, "multiple_of": self.multiple_of}
        entries = [f"{key} = {value.value.data}" for key, value in integers.items() if value is not None]
        if self.likely is not None:
            entries.append(f"likely = [{', '.join(map(str, self.likely_values))}]")
        if not entries and self.source is None and not self.attributes:
            return
        printer.print_string(" {" + ", ".join(entries))
        separator = ", " if entries else ""
        if self.source is not None:
            printer.print_string(separator + "source = ")
            printer.print_attribute(self.source)
            separator = ", "
        for key, value in self.attributes.items():
            printer.print_string(f"{separator}{key} = ")
            printer.print_attribute(value)
            separator = ", "
        printer.print_string("}")


def _dense_integers(parser: Parser, values: Attribute) -> Attribute:
    """`[128, 2048]` as a dense array; any other attribute is left for the verifier to refuse."""
    if not isinstance(values, ArrayAttr):
        return values
    integers: list[int] = []
    for value in cast("ArrayAttr[Attribute]", values):
        if not isinstance(value, IntegerAttr):
            parser.raise_error(f"likely expected integers, got {value}")
        integers.append(value.value.data)
    return DenseArrayBase.from_list(i64, integers)


@irdl_op_definition
class RequireOp(IRDLOperation):
    """`sym.require S >= W`: the program is meant only for sizes where the relation holds; the host plan checks it."""

    name = "sym.require"

    relation = prop_def(RelationAttr)

    def __init__(self, relation: Relation | RelationAttr) -> None:
        attribute = relation if isinstance(relation, RelationAttr) else RelationAttr(relation)
        super().__init__(properties={"relation": attribute})

    @classmethod
    def parse(cls, parser: Parser) -> RequireOp:
        relation = RelationAttr(parse_relation_from(parser))
        return cls.create(properties={"relation": relation}, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.relation.data}")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """`%m0 = sym.apply 128*i + S where i = %i`: the index that an expression is over symbols and SSA index values.

    A name in `where` stands for its value; every other name is a declared symbol.
    """

    name = "sym.apply"

    arguments = var_operand_def(IndexType)
    expr = prop_def(ExprAttr)
    names = prop_def(ArrayAttr[StringAttr])
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, expr: Expr | int, where: Mapping[str, SSAValue | Operation] | None = None) -> None:
        bindings: Mapping[str, SSAValue | Operation] = where or dict[str, SSAValue | Operation]()
        super().__init__(
            operands=[[SSAValue.get(value) for value in bindings.values()]],
            properties={
                "expr": ExprAttr(as_expr(expr)),
                "names": ArrayAttr([StringAttr(name) for name in bindings]),
            },
            result_types=[IndexType()],
        )

    @property
    def where(self) -> dict[str, SSAValue]:
        """The SSA value that each name in `where` stands for."""
        return {name.data: value for name, value in zip(self.names, self.arguments, strict=True)}

    def verify_(self) -> None:
        verify_where(self.names, self.arguments)

    @classmethod
    def parse(cls, parser: Parser) -> ApplyOp:
        expr = parse_expr_from(parser)
        names, values = parse_where(parser)
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":"):
            parser.parse_keyword("index")
        return cls.create(
            operands=values,
            properties={"expr": ExprAttr(expr), "names": names},
            attributes=attributes,
            result_types=[IndexType()],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.expr.data}")
        print_where(printer, self.names, self.arguments)
        printer.print_op_attributes(self.attributes)


def parse_where(parser: Parser) -> tuple[ArrayAttr[StringAttr], list[SSAValue]]:
    """Read an optional `where name = %value, ...` clause: the names, and their values of type index."""
    names: list[StringAttr] = []
    values: list[SSAValue] = []
    if parser.parse_optional_keyword("where"):
        while True:
            names.append(StringAttr(parser.parse_identifier()))
            parser.parse_punctuation("=")
            values.append(parser.resolve_operand(parser.parse_unresolved_operand(), IndexType()))
            if not parser.parse_optional_punctuation(","):
                break
    return ArrayAttr(names), values


def print_where(printer: Printer, names: ArrayAttr[StringAttr], values: Sequence[SSAValue]) -> None:
    """Print ` where name = %value, ...` as `parse_where` reads it; nothing when there are no names."""
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        printer.print_string(f"{',' if i else ' where'} {name.data} = ")
        printer.print_ssa_value(value)


def verify_where(names: ArrayAttr[StringAttr], values: Sequence[SSAValue]) -> None:
    """Raise `VerifyException` unless the names are legal, distinct and as many as the values.

    That none of them is a declared symbol needs the module; `verify.check_dims` looks at that.
    """
    if len(names) != len(values):
        raise VerifyException(f"expected as many names as values in where, got {len(names)} and {len(values)}")
    seen: set[str] = set()
    for name in names:
        try:
            check_name(name.data)
        except TilewrightError as error:
            raise VerifyException(error.message) from error
        if name.data in seen:
            raise VerifyException(f"expected distinct names in where, got '{name.data}' twice")
        seen.add(name.data)


@irdl_op_definition
class CastOp(IRDLOperation):
    """`%y = sym.cast %x : tensor<?xf32, #sym.dims<N>> to tensor<?xf32, #sym.dims<M>>`: the same tensor, dims respelled.

    Carries the obligation that each pair of dims is equal: proved from the facts of the module, or guarded by the host
    plan. It moves no data.
    """

    name = "sym.cast"

    source = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, result_type: Attribute) -> None:
        super().__init__(operands=[SSAValue.get(source)], result_types=[result_type])

    def obligations(self) -> tuple[Relation, ...]:
        """The equalities that must hold, one for each pair of dims that differ in form."""
        pairs = zip(_dims(self.source.type), _dims(self.result.type), strict=True)
        return tuple(Relation(a, "==", b) for a, b in pairs if a is not b)

    def verify_(self) -> None:
        source = cast("TensorType[Any]", self.source.type)
        result = cast("TensorType[Any]", self.result.type)
        if source.element_type != result.element_type:
            raise VerifyException(f"expected one element type, got {source.element_type} and {result.element_type}")
        if source.get_num_dims() != result.get_num_dims():
            raise VerifyException(f"expected one rank, got {source.get_num_dims()} and {result.get_num_dims()}")
        for a, b in zip(_dims(source), _dims(result), strict=True):
            difference = (a - b).constant
            if difference:
                raise VerifyException(f"expected equal dims, got {a} and {b}, which never are")

    @classmethod
    def parse(cls, parser: Parser) -> CastOp:
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        result_type = parser.parse_type()
        source = parser.resolve_operand(operand, source_type)
        return cls.create(operands=[source], attributes=attributes, result_types=[result_type])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


def _dims(tensor_type: Attribute) -> tuple[Expr, ...]:
    try:
        return dims_of(tensor_type)
    except TilewrightError as error:
        raise VerifyException(error.message) from error


__all__ = [
    "SYMBOL_SOURCES",
    "ApplyOp",
    "CastOp",
    "RequireOp",
    "SymbolOp",
    "parse_where",
    "print_where",
    "verify_where",
]
