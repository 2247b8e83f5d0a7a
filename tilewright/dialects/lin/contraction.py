"""Matrix products: `lin.matmul` and `lin.batch_matmul`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, TensorType, i1
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import accumulator_type, cast_scalar
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.elementwise import CastOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, equal_dims, shape_of, tensor
from tilewright.dialects.sym import Expr


@irdl_op_definition
class MatmulOp(IRDLOperation, Decomposable):
    """[M, K] x [K, N] -> [M, N]: `%c = lin.matmul %a, %b : !A, !B -> !C`.

    Accumulates in f32 (i32 for i32) and rounds once to the result's type.
    """

    name = "lin.matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: TensorType) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[result_type])

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        lhs, rhs = shape_of(operand_types[0]), shape_of(operand_types[1])
        if len(lhs) != 2 or len(rhs) != 2:
            raise TilewrightError(f"lin.matmul: expected two operands of rank 2, got ranks {len(lhs)} and {len(rhs)}")
        _check_inner(self, lhs, rhs)
        return [tensor((lhs[0], rhs[1]), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        return _contract(self, builder, self.lhs, self.rhs, (0, 2), (2, 1), (0, 1))

    def verify_(self) -> None:
        _verify_elements(self, self.lhs.type, self.rhs.type, self.result.type)
        verify_result_types(self)


@irdl_op_definition
class BatchMatmulOp(IRDLOperation, Decomposable):
    """[..., M, K] x [..., K, N] -> [..., M, N] with equal batch dims, at least one.

    `%c = lin.batch_matmul %a, %b : !A, !B -> !C` accumulates and rounds as `lin.matmul` does.
    """

    name = "lin.batch_matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: TensorType) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[result_type])

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        lhs, rhs = shape_of(operand_types[0]), shape_of(operand_types[1])
        if len(lhs) != len(rhs) or len(lhs) < 3:
            raise TilewrightError(
                f"lin.batch_matmul: expected two operands of one rank, at least 3, got ranks {len(lhs)} and {len(rhs)}"
            )
        for axis, (left, right) in enumerate(zip(lhs[:-2], rhs[:-2], strict=True)):
            if not equal_dims(self, left, right):
                raise TilewrightError(f"lin.batch_matmul: expected equal batch dims {axis}, got {left} and {right}")
        _check_inner(self, lhs, rhs)
        return [tensor((*lhs[:-1], rhs[-1]), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        rank = as_tensor(self.lhs.type).get_num_dims()
        batch = tuple(range(rank - 2))
        m, n, k = rank - 2, rank - 1, rank
        return _contract(self, builder, self.lhs, self.rhs, (*batch, m, k), (*batch, k, n), (*batch, m, n))

    def verify_(self) -> None:
        _verify_elements(self, self.lhs.type, self.rhs.type, self.result.type)
        verify_result_types(self)


def product_body(accumulator: Attribute):
    """A body that yields the product of its two scalars, each widened to `accumulator` first."""

    def body(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
        left, right = (cast_scalar(inner, arg, accumulator) for arg in args)
        op = arith.MulfOp(left, right) if isinstance(accumulator, AnyFloat) else arith.MuliOp(left, right)
        return inner.insert(op).result

    return body


def _contract(
    op: MatmulOp | BatchMatmulOp,
    builder: Builder,
    lhs: SSAValue,
    rhs: SSAValue,
    lhs_map: OperandMap,
    rhs_map: OperandMap,
    out_map: tuple[int, ...],
) -> list[SSAValue]:
    accumulator = accumulator_type(as_tensor(lhs.type).element_type)
    target = op.result.type.element_type
    between = tensor(shape_of(op.result.type), accumulator)
    generic = GenericOp.build_from(
        [lhs, rhs], [lhs_map, rhs_map], out_map, Combine.SUM, between, product_body(accumulator)
    )
    value = builder.insert(generic).result
    return [value if accumulator == target else builder.insert(CastOp(value, target)).result]


def _check_inner(op: MatmulOp | BatchMatmulOp, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> None:
    if not equal_dims(op, lhs[-1], rhs[-2]):
        raise TilewrightError(
            f"{op.name}: expected equal inner dims, got {lhs[-1]} (lhs dim {len(lhs) - 1}) "
            f"and {rhs[-2]} (rhs dim {len(rhs) - 2})"
        )


def _verify_elements(op: MatmulOp | BatchMatmulOp, lhs: Attribute, rhs: Attribute, result: TensorType) -> None:
    for operand_type in (lhs, rhs, result):
        check_element_type(operand_type)
    left, right = as_tensor(lhs).element_type, as_tensor(rhs).element_type
    if left != right:
        raise VerifyException(f"expected operands of one element type, got {left} and {right}")
    integers = isinstance(left, IntegerType) and left != i1
    if not integers and not isinstance(left, AnyFloat):
        raise VerifyException(f"expected f32, f16, bf16 or i32 elements, got {left}")
    target = result.element_type
    if isinstance(left, AnyFloat) != isinstance(target, AnyFloat) or (integers and target != left):
        raise VerifyException(f"expected a result of the operands' kind {left}, got {target}")
