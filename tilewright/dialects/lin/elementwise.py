"""Elementwise named ops: `lin.map` with NumPy broadcasting, and `lin.cast`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsolatedFromAbove, Pure

from tilewright.dialects.assembly import parse_extra_attributes, print_extra_attributes
from tilewright.dialects.lin.body import YieldOp, verify_scalar_body
from tilewright.dialects.lin.casts import cast_scalar
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import (
    broadcast,
    check_element_type,
    is_tensor,
    is_unit,
    scalar_type,
    shape_of,
    tensor,
)
from tilewright.dialects.lin.syntax import parse_ins, parse_tensor_type, print_body, print_ins


@irdl_op_definition
class MapOp(IRDLOperation, Decomposable):
    """One scalar body applied to every element, with NumPy broadcasting.

    `%r = lin.map ins(%a, %b : !A, !B) -> !R { body }`: dims are aligned at the right, a static 1 stretches, and two
    symbolic dims must be equal. Operands may be scalars by value.
    """

    name = "lin.map"

    ins = var_operand_def()
    result = result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType,
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[list(operands)], result_types=[result_type], regions=[body], attributes=attributes or {}
        )

    @staticmethod
    def build_from(
        operands: Sequence[SSAValue],
        result_type: TensorType,
        body_builder: Callable[[Builder, tuple[BlockArgument, ...]], SSAValue],
    ) -> MapOp:
        """A map whose body `body_builder` writes: it gets one scalar for each operand and returns the one to yield."""
        block = Block(arg_types=[scalar_type(operand.type) for operand in operands])
        builder = Builder(InsertPoint.at_end(block))
        builder.insert(YieldOp(body_builder(builder, tuple(block.args))))
        return MapOp(operands, result_type, Region(block))

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        shapes = [shape_of(t) for t in operand_types if is_tensor(t)]
        return [tensor(broadcast(self, shapes), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        out = shape_of(self.result.type)
        maps = [_broadcast_map(v.type, len(out), [is_unit(size) for size in out]) for v in self.ins]
        body = self.body.clone()
        generic = GenericOp.build_around(list(self.ins), maps, range(len(out)), None, self.result.type, body)
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        for operand in self.ins:
            check_element_type(operand.type)
        verify_scalar_body(self, self.body.block, [scalar_type(v.type) for v in self.ins], self.result.type)
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        operands = parse_ins(parser)
        parser.parse_punctuation("->")
        result_type = parse_tensor_type(parser)
        attributes = parse_extra_attributes(parser)
        return MapOp(operands, result_type, parser.parse_region(), attributes)

    def print(self, printer: Printer) -> None:
        print_ins(printer, self.ins)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
        print_extra_attributes(printer, self)
        print_body(printer, self.body)


@irdl_op_definition
class CastOp(IRDLOperation, Decomposable):
    """Element type conversion: round to nearest even; float to integer truncates.

    `%y = lin.cast %x : !X -> !Y`
    """

    name = "lin.cast"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, element_type: Attribute) -> None:
        super().__init__(operands=[operand], result_types=[tensor(shape_of(operand.type), element_type)])

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        return [tensor(shape_of(operand_types[0]), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        dims = tuple(range(self.result.type.get_num_dims()))
        target = self.result.type.element_type

        def body(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            return cast_scalar(inner, args[0], target)

        generic = GenericOp.build_from([self.operand], [dims], dims, None, self.result.type, body)
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        check_element_type(self.result.type)
        verify_result_types(self)


def _broadcast_map(operand_type: Attribute, rank: int, out_is_unit: Sequence[bool]) -> OperandMap:
    """The indices of an operand in a space of `rank` dims: aligned at the right, 0 where a 1 stretches."""
    if not is_tensor(operand_type):
        return ()
    sizes = shape_of(operand_type)
    first = rank - len(sizes)
    return tuple(
        None if is_unit(size) and not out_is_unit[first + axis] else first + axis for axis, size in enumerate(sizes)
    )
