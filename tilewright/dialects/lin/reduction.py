"""`lin.reduce`: sum, prod, max or min over any axes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, StringAttr, TensorType, f32, i1, i32, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import accumulator_type, cast_scalar
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.elementwise import CastOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import int_array, parse_combine, parse_integers, parse_tensor_type, print_integers


@irdl_op_definition
class ReduceOp(IRDLOperation, Decomposable):
    """Combine over `axes`, which vanish from the shape: `%r = lin.reduce sum %x axes [1] : !X -> !R`.

    sum and prod of f16 and bf16 accumulate in f32 and round once to the result's type; max and min propagate NaN.
    The result has the operand's element type, or f32 for a float operand, or i32 for i1.
    """

    name = "lin.reduce"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    combine_attr = prop_def(StringAttr, prop_name="combine")
    axes_attr = prop_def(DenseArrayBase.constr(i64), prop_name="axes")

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        combine: Combine,
        axes: Sequence[int],
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        """Without `result_type` the result has the operand's element type."""
        if result_type is None:
            sizes = shape_of(operand.type)
            kept = [size for axis, size in enumerate(sizes) if axis not in axes]
            result_type = tensor(kept, as_tensor(operand.type).element_type)
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"combine": StringAttr(combine), "axes": int_array(axes)},
            attributes=attributes or {},
        )

    @property
    def combine(self) -> Combine:
        """What the values along the axes are combined by."""
        return Combine.of(self.combine_attr)

    @property
    def axes(self) -> tuple[int, ...]:
        """The dims of the operand that vanish."""
        return tuple(self.axes_attr.get_values())

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        sizes = shape_of(operand_types[0])
        for axis in self.axes:
            if not 0 <= axis < len(sizes):
                raise TilewrightError(f"lin.reduce: expected axes in 0..{len(sizes) - 1}, got {axis}")
        if len(set(self.axes)) != len(self.axes):
            raise TilewrightError(f"lin.reduce: expected distinct axes, got {list(self.axes)}")
        kept = [size for axis, size in enumerate(sizes) if axis not in self.axes]
        return [tensor(kept, self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        rank = as_tensor(self.operand.type).get_num_dims()
        target = self.result.type.element_type
        # max and min of f16 and bf16 are exact in their own type; sums and products are not.
        exact = self.combine in (Combine.MAX, Combine.MIN)
        accumulator = target if exact else accumulator_type(target)
        kept = [d for d in range(rank) if d not in self.axes]
        between = tensor(shape_of(self.result.type), accumulator)

        def body(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            return cast_scalar(inner, args[0], accumulator)

        combine = self.combine if self.axes else None
        generic = GenericOp.build_from([self.operand], [tuple(range(rank))], kept, combine, between, body)
        value = builder.insert(generic).result
        return [value if accumulator == target else builder.insert(CastOp(value, target)).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        source = as_tensor(self.operand.type).element_type
        target = self.result.type.element_type
        wider = f32 if isinstance(source, AnyFloat) else i32 if source == i1 else source
        if target not in (source, wider):
            also = "" if wider == source else f" or {wider}"
            raise VerifyException(f"expected result elements of type {source}{also}, got {target}")
        Combine.of(self.combine_attr)
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combine = Combine.of(parse_combine(parser))
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("axes")
        axes = parse_integers(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return ReduceOp(value, combine, axes, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combine_attr.data} ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" axes ")
        print_integers(printer, self.axes)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
