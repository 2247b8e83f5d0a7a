"""The body of a `lin` op: its terminator, and what may stand in the body of a generic or map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import parse_extra_attributes, print_extra_attributes

BODY_DIALECTS = ("arith.", "math.")
"""What may stand in a scalar body beside the terminator: ops on scalars without effects."""
BODY_OPS = ("lin.index", "sym.apply")
"""And these two: the place in the iteration space, and expressions over symbols."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a `lin` op: the scalar of a generic or map, the tensors of a group."""

    name = "lin.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class IndexOp(IRDLOperation):
    """`%i = lin.index 0 : index`: in the body of a `lin.generic`, the value of an iteration dim, from 0 on."""

    name = "lin.index"

    dim_attr = prop_def(IntegerAttr[IntegerType], prop_name="dim")
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, dim: int) -> None:
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[IndexType()])

    @property
    def dim(self) -> int:
        """The iteration dim."""
        return self.dim_attr.value.data

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        op = cls(parser.parse_integer(allow_boolean=False, allow_negative=False))
        op.attributes.update(parse_extra_attributes(parser))
        parser.parse_punctuation(":")
        parser.parse_keyword("index")
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dim}")
        print_extra_attributes(printer, self)
        printer.print_string(" : index")


def verify_scalar_body(
    op: Operation, block: Block, arguments: Sequence[Attribute], result_type: TensorType[Any], dims: int = 0
) -> None:
    """Check the body of a generic or map: its arguments, scalar ops only, one yielded element.

    `dims` is how many iteration dims `lin.index` may ask for.
    """
    got = [argument.type for argument in block.args]
    if got != list(arguments):
        raise VerifyException(
            f"expected body arguments ({', '.join(map(str, arguments))}), got ({', '.join(map(str, got))})"
        )
    last = block.last_op
    if not isinstance(last, YieldOp) or len(last.values) != 1:
        raise VerifyException(f"expected a body that ends in lin.yield of one value, got {_op_name(last)}")
    for inner in block.ops:
        if inner is last or (inner.name in BODY_OPS and dims):
            if isinstance(inner, IndexOp) and inner.dim >= dims:
                raise VerifyException(f"lin.index: expected an iteration dim below {dims}, got {inner.dim}")
            continue
        if not inner.name.startswith(BODY_DIALECTS) or inner.regions:
            raise VerifyException(f"expected only arith and math ops in the body, got {inner.name}")
    if last.values[0].type != result_type.element_type:
        raise VerifyException(f"expected the body to yield {result_type.element_type}, got {last.values[0].type}")


def _op_name(op: Operation | None) -> str:
    return "an empty body" if op is None else op.name
