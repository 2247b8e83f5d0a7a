"""`lin.group`: what one kernel computes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import parse_extra_attributes, print_extra_attributes
from tilewright.dialects.lin.body import YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.shapes import check_element_type
from tilewright.dialects.lin.syntax import parse_ins, parse_tensor_types, print_body, print_ins, print_types


@irdl_op_definition
class GroupOp(IRDLOperation):
    """Generics that become one kernel; isolated from above, one block, ended by `lin.yield` of the results.

    `%y = lin.group ins(%x : !X) -> !Y { ^bb0(%a: !X): ... lin.yield %q : !Y }`; several results are written
    `-> !Y, !Z`.
    """

    name = "lin.group"

    ins = var_operand_def()
    outs = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        operands: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[list(operands)], result_types=[list(result_types)], regions=[body], attributes=attributes or {}
        )

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The values inside that become the results."""
        terminator = self.body.block.last_op
        if not isinstance(terminator, YieldOp):
            raise VerifyException("expected a body that ends in lin.yield")
        return tuple(terminator.values)

    def verify_(self) -> None:
        for value in self.ins:
            check_element_type(value.type)
        expected = [value.type for value in self.ins]
        got = [argument.type for argument in self.body.block.args]
        if expected != got:
            raise VerifyException(f"expected body arguments ({_text(expected)}), got ({_text(got)})")
        yielded = [value.type for value in self.yielded]
        results = [result.type for result in self.outs]
        if yielded != results:
            raise VerifyException(f"expected to yield ({_text(results)}), got ({_text(yielded)})")
        for op in self.body.block.ops:
            if not isinstance(op, GenericOp | YieldOp):
                raise VerifyException(f"expected only lin.generic ops inside, got {op.name}")

    @classmethod
    def parse(cls, parser: Parser) -> GroupOp:
        operands = parse_ins(parser)
        parser.parse_punctuation("->")
        types = parse_tensor_types(parser)
        attributes = parse_extra_attributes(parser)
        return GroupOp(operands, types, parser.parse_region(), attributes)

    def print(self, printer: Printer) -> None:
        print_ins(printer, self.ins)
        printer.print_string(" -> ")
        print_types(printer, [result.type for result in self.outs])
        print_extra_attributes(printer, self)
        print_body(printer, self.body)


def _text(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
