"""`lin.softmax`: exp(x - max) / sum along one axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, TensorType, f32, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import cast_scalar
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import parse_tensor_type


@irdl_op_definition
class SoftmaxOp(IRDLOperation, Decomposable):
    """exp(x - max) / sum along one axis, computed in f32 and rounded once: `%y = lin.softmax %x axis 1 : !X -> !X`."""

    name = "lin.softmax"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    axis_attr = prop_def(IntegerAttr.constr(i64), prop_name="axis")

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        axis: int,
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[operand],
            result_types=[as_tensor(operand.type) if result_type is None else result_type],
            properties={"axis": IntegerAttr(axis, i64)},
            attributes=attributes or {},
        )

    @property
    def axis(self) -> int:
        """The dim along which values sum to one."""
        return self.axis_attr.value.data

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        sizes = shape_of(operand_types[0])
        if not 0 <= self.axis < len(sizes):
            raise TilewrightError(f"lin.softmax: expected an axis in 0..{len(sizes) - 1}, got {self.axis}")
        return [tensor(sizes, self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        sizes = shape_of(self.operand.type)
        dims = tuple(range(len(sizes)))
        row = tuple(d for d in dims if d != self.axis)
        row_type = tensor([sizes[d] for d in row], f32)
        target = self.result.type.element_type

        def widen(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            return cast_scalar(inner, args[0], f32)

        def shifted_exp(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            shifted = inner.insert(arith.SubfOp(cast_scalar(inner, args[0], f32), args[1])).result
            return inner.insert(math.ExpOp(shifted)).result

        def divide(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            return cast_scalar(inner, inner.insert(arith.DivfOp(args[0], args[1])).result, target)

        greatest = builder.insert(
            GenericOp.build_from([self.operand], [dims], row, Combine.MAX, row_type, widen)
        ).result
        powers = builder.insert(
            GenericOp.build_from([self.operand, greatest], [dims, row], dims, None, tensor(sizes, f32), shifted_exp)
        ).result
        total = builder.insert(GenericOp.build_from([powers], [dims], row, Combine.SUM, row_type, widen)).result
        quotient = GenericOp.build_from([powers, total], [dims, row], dims, None, self.result.type, divide)
        return [builder.insert(quotient).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        source, target = as_tensor(self.operand.type).element_type, self.result.type.element_type
        if not isinstance(source, AnyFloat) or source != target:
            raise VerifyException(f"expected one float type for operand and result, got {source}, {target}")
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return SoftmaxOp(value, axis, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f" axis {self.axis}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
