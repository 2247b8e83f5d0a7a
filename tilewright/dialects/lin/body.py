"""The body of a `lin` op: its terminator, and what may stand in the body of a generic or map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_operand_def
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

BODY_DIALECTS = ("arith.", "math.")
"""What may stand in a scalar body beside the terminator: ops on scalars without effects."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a `lin` op: the scalar of a generic or map, the tensors of a group."""

    name = "lin.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[list(values)])


def verify_scalar_body(
    op: Operation, block: Block, arguments: Sequence[Attribute], result_type: TensorType[Any]
) -> None:
    """Check the body of a generic or map: its arguments, ops of arith and math only, one yielded element."""
    got = [argument.type for argument in block.args]
    if got != list(arguments):
        raise VerifyException(
            f"expected body arguments ({', '.join(map(str, arguments))}), got ({', '.join(map(str, got))})"
        )
    last = block.last_op
    if not isinstance(last, YieldOp) or len(last.values) != 1:
        raise VerifyException(f"expected a body that ends in lin.yield of one value, got {_op_name(last)}")
    for inner in block.ops:
        if inner is not last and (not inner.name.startswith(BODY_DIALECTS) or inner.regions):
            raise VerifyException(f"expected only arith and math ops in the body, got {inner.name}")
    if last.values[0].type != result_type.element_type:
        raise VerifyException(f"expected the body to yield {result_type.element_type}, got {last.values[0].type}")


def _op_name(op: Operation | None) -> str:
    return "an empty body" if op is None else op.name
