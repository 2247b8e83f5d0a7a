"""`lin.clamp`: elements held between two numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, FloatAttr, TensorType, f32
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.lin.casts import cast_scalar, constant
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import parse_tensor_type, print_f32


@irdl_op_definition
class ClampOp(IRDLOperation, Decomposable):
    """min(max(x, low), high) of each element: `%y = lin.clamp %x low 0.0 high 6.0 : !X -> !X`.

    NaN stays NaN. The bounds are finite numbers of f32, low <= high, whatever the elements are: the result is computed
    in f32 and rounded once.
    """

    name = "lin.clamp"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    low_attr = prop_def(FloatAttr[Float32Type], prop_name="low")
    high_attr = prop_def(FloatAttr[Float32Type], prop_name="high")

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        low: float,
        high: float,
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[operand],
            result_types=[as_tensor(operand.type) if result_type is None else result_type],
            properties={"low": FloatAttr(low, f32), "high": FloatAttr(high, f32)},
            attributes=attributes or {},
        )

    @property
    def low(self) -> float:
        """The least value of the result."""
        return self.low_attr.value.data

    @property
    def high(self) -> float:
        """The greatest value of the result."""
        return self.high_attr.value.data

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        return [tensor(shape_of(operand_types[0]), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        dims = tuple(range(self.result.type.get_num_dims()))
        target = self.result.type.element_type

        def body(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            low, high = constant(inner, self.low, f32), constant(inner, self.high, f32)
            raised = inner.insert(arith.MaximumfOp(cast_scalar(inner, args[0], f32), low)).result
            return cast_scalar(inner, inner.insert(arith.MinimumfOp(raised, high)).result, target)

        generic = GenericOp.build_from([self.operand], [dims], dims, None, self.result.type, body)
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        source, target = as_tensor(self.operand.type).element_type, self.result.type.element_type
        if not isinstance(source, AnyFloat) or source != target:
            raise VerifyException(f"expected one float type for operand and result, got {source}, {target}")
        # NaN is not finite, so that the comparison holds for two numbers.
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise VerifyException(f"expected finite f32 numbers low <= high, got {self.low} and {self.high}")
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> ClampOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("low")
        low = parser.parse_float()
        parser.parse_keyword("high")
        high = parser.parse_float()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return ClampOp(value, low, high, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" low ")
        print_f32(printer, self.low)
        printer.print_string(" high ")
        print_f32(printer, self.high)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
