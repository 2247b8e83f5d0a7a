"""`lin.concat`: tensors one after the other along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.body import IndexOp
from tilewright.dialects.lin.casts import constant_attribute
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, equal_dims, shape_of, tensor
from tilewright.dialects.lin.syntax import parse_tensor_type, parse_types, print_types
from tilewright.dialects.sym import ApplyOp, Expr
from tilewright.dialects.sym.index import dim


@irdl_op_definition
class ConcatOp(IRDLOperation, Decomposable):
    """`%y = lin.concat %a, %b axis 0 : !A, !B -> !Y`: the size along the axis is the sum, the others are equal."""

    name = "lin.concat"

    ins = var_operand_def(TensorType)
    result = result_def(TensorType)
    axis_attr = prop_def(IntegerAttr, prop_name="axis")

    traits = traits_def(Pure())

    def __init__(
        self,
        operands: Sequence[SSAValue],
        axis: int,
        result_type: TensorType,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[list(operands)],
            result_types=[result_type],
            properties={"axis": IntegerAttr(axis, i64)},
            attributes=attributes or {},
        )

    @property
    def axis(self) -> int:
        """The dim along which the operands follow one another."""
        return self.axis_attr.value.data

    def starts(self) -> list[Expr]:
        """Where each operand begins along the axis."""
        found, start = list[Expr](), Expr.const(0)
        for operand in self.ins:
            found.append(start)
            start = start + shape_of(operand.type)[self.axis]
        return found

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        if not operand_types:
            raise TilewrightError("lin.concat: expected at least one operand, got none")
        shapes = [shape_of(t) for t in operand_types]
        first = shapes[0]
        if not 0 <= self.axis < len(first):
            raise TilewrightError(f"lin.concat: expected an axis from 0 to {len(first) - 1}, got {self.axis}")
        total = Expr.const(0)
        for n, shape in enumerate(shapes):
            if len(shape) != len(first):
                raise TilewrightError(f"lin.concat: expected rank {len(first)} for operand {n}, got {len(shape)}")
            for d, (left, right) in enumerate(zip(first, shape, strict=True)):
                if d != self.axis and not equal_dims(self, left, right):
                    raise TilewrightError(f"lin.concat: expected size {left} at dim {d} of operand {n}, got {right}")
            total = total + shape[self.axis]
        sizes = [total if d == self.axis else size for d, size in enumerate(first)]
        return [tensor(sizes, as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        rank, axis, starts = self.result.type.get_num_dims(), self.axis, self.starts()
        fill = constant_attribute(0, self.result.type.element_type)
        accesses = [AccessAttr.at([dim(d) - (s if d == axis else 0) for d in range(rank)], fill) for s in starts]

        def body(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            # The last operand whose start is at or before the place; empty operands never win over the one after.
            value: SSAValue = args[0]
            place = inner.insert(IndexOp(axis)).result if len(args) > 1 else None
            for start, argument in zip(starts[1:], args[1:], strict=True):
                assert place is not None
                at = inner.insert(ApplyOp(start)).result
                reached = inner.insert(arith.CmpiOp(place, at, "sge")).result
                value = inner.insert(arith.SelectOp(reached, argument, value)).result
            return value

        generic = GenericOp.build_from(
            list(self.ins), [()] * len(self.ins), range(rank), None, self.result.type, body, accesses
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        elements = [as_tensor(v.type).element_type for v in self.ins]
        for v in self.ins:
            check_element_type(v.type)
        for n, element in enumerate(elements):
            if element != self.result.type.element_type:
                raise VerifyException(
                    f"operand {n}: expected elements of type {self.result.type.element_type}, got {element}"
                )
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> ConcatOp:
        position = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        values = parser.resolve_operands(operands, parse_types(parser), position)
        parser.parse_punctuation("->")
        return ConcatOp(values, axis, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.ins, printer.print_ssa_value)
        printer.print_string(f" axis {self.axis}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_types(printer, [v.type for v in self.ins])
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
