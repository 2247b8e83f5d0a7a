"""`lin.transpose`: permute the dims of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import int_array, parse_integers, parse_tensor_type, print_integers


@irdl_op_definition
class TransposeOp(IRDLOperation, Decomposable):
    """Result dim d is operand dim perm[d]: `%y = lin.transpose %x perm [1, 0] : !X -> !Y`."""

    name = "lin.transpose"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    perm_attr = prop_def(DenseArrayBase.constr(i64), prop_name="perm")

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        perm: Sequence[int],
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        if result_type is None:
            sizes = shape_of(operand.type)
            result_type = tensor([sizes[d] for d in perm], as_tensor(operand.type).element_type)
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={"perm": int_array(perm)},
            attributes=attributes or {},
        )

    @property
    def perm(self) -> tuple[int, ...]:
        """For each dim of the result, the dim of the operand."""
        return tuple(self.perm_attr.get_values())

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        sizes = shape_of(operand_types[0])
        if sorted(self.perm) != list(range(len(sizes))):
            raise TilewrightError(
                f"lin.transpose: expected a permutation of 0..{len(sizes) - 1}, got {list(self.perm)}"
            )
        return [tensor([sizes[d] for d in self.perm], as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        operand_map: OperandMap = tuple(self.perm.index(d) for d in range(len(self.perm)))
        out = range(len(self.perm))
        generic = GenericOp.build_from(
            [self.operand], [operand_map], out, None, self.result.type, lambda _, args: args[0]
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("perm")
        perm = parse_integers(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return TransposeOp(value, perm, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" perm ")
        print_integers(printer, self.perm)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
