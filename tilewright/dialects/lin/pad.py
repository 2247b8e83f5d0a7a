"""`lin.pad`: a tensor with a constant around it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr, constant_type
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.requirements import require, verify_possible
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import parse_expressions, parse_tensor_type, print_expressions
from tilewright.dialects.sym import DimsAttr, Expr, Relation
from tilewright.dialects.sym.index import dim


@irdl_op_definition
class PadOp(IRDLOperation, Decomposable):
    """`%y = lin.pad %x low [1, P] high [1, 0] value 0.0 : f32 : !X -> !Y`.

    `low` elements before and `high` elements after the operand along each dim, all of them the constant `value`. The
    counts are expressions over symbols, at least 0: what is not proved becomes a `sym.require`.
    """

    name = "lin.pad"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    low_attr = prop_def(DimsAttr, prop_name="low")
    high_attr = prop_def(DimsAttr, prop_name="high")
    value = prop_def(AnyAttr())

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        low: Sequence[Expr],
        high: Sequence[Expr],
        value: Attribute,
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        if result_type is None:
            sizes = [a + n + b for a, n, b in zip(low, shape_of(operand.type), high, strict=True)]
            result_type = tensor(sizes, as_tensor(operand.type).element_type)
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"low": DimsAttr(tuple(low)), "high": DimsAttr(tuple(high)), "value": value},
            attributes=attributes or {},
        )

    @property
    def low(self) -> tuple[Expr, ...]:
        """Elements before the operand along each dim."""
        return self.low_attr.data

    @property
    def high(self) -> tuple[Expr, ...]:
        """Elements after it."""
        return self.high_attr.data

    def requirements(self) -> list[Relation]:
        """No count is negative."""
        return [Relation(e, ">=", Expr.const(0)) for e in (*self.low, *self.high)]

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        sizes = shape_of(operand_types[0])
        for what, given in (("low", self.low), ("high", self.high)):
            if len(given) != len(sizes):
                raise TilewrightError(f"lin.pad: expected {len(sizes)} entries of {what}, got {len(given)}")
        padded = [a + n + b for a, n, b in zip(self.low, sizes, self.high, strict=True)]
        return [tensor(padded, as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        require(self, builder, self.requirements())
        access = AccessAttr.at([dim(d) - a for d, a in enumerate(self.low)], self.value)
        rank = len(self.low)
        generic = GenericOp.build_from(
            [self.operand], [()], range(rank), None, self.result.type, lambda _, args: args[0], [access]
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        element = as_tensor(self.operand.type).element_type
        if constant_type(self.value) != element:
            raise VerifyException(f"expected a value of type {element}, got {self.value}")
        verify_result_types(self)
        verify_possible(self, self.requirements)

    @classmethod
    def parse(cls, parser: Parser) -> PadOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("low")
        low = parse_expressions(parser)
        parser.parse_keyword("high")
        high = parse_expressions(parser)
        parser.parse_keyword("value")
        value = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return PadOp(source, low, high, value, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" low ")
        print_expressions(printer, self.low)
        printer.print_string(" high ")
        print_expressions(printer, self.high)
        printer.print_string(" value ")
        printer.print_attribute(self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
