"""`lin.gather`: rows of a table, such as the embeddings of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.casts import constant_attribute
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.sym.index import dim, value


@irdl_op_definition
class GatherOp(IRDLOperation, Decomposable):
    """`%y = lin.gather %table, %ids : !T, !I -> !Y`: y[i..., j...] = table[ids[i...], j...].

    `ids` are i32 of any rank, the result has their shape followed by that of a row. An id outside the table (negative,
    or not below its first size) reads as zeros, on every backend: no memory outside the table is ever touched.
    """

    name = "lin.gather"

    table = operand_def(TensorType)
    ids = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$table `,` $ids attr-dict `:` type($table) `,` type($ids) `->` type($result)"

    def __init__(self, table: SSAValue, ids: SSAValue, result_type: TensorType) -> None:
        super().__init__(operands=[table, ids], result_types=[result_type])

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        table, ids = shape_of(operand_types[0]), shape_of(operand_types[1])
        if not table:
            raise TilewrightError("lin.gather: expected a table of rank 1 at least, got rank 0")
        return [tensor((*ids, *table[1:]), as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        rank = len(shape_of(self.ids.type))
        out = self.result.type.get_num_dims()
        row = [dim(d) for d in range(rank, out)]
        zero = constant_attribute(0, self.result.type.element_type)
        generic = GenericOp.build_from(
            [self.ids, self.table],
            [tuple(range(rank)), ()],
            range(out),
            None,
            self.result.type,
            lambda _, args: args[1],
            [None, AccessAttr.at([value(0), *row], zero)],
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.table.type)
        element = as_tensor(self.ids.type).element_type
        if element != i32:
            raise VerifyException(f"expected ids of type i32, got {element}")
        verify_result_types(self)
