"""Matrix products: `lin.matmul` and `lin.batch_matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, StringAttr, TensorType, f32, i1
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
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
from tilewright.dialects.lin.syntax import parse_tensor_type
from tilewright.dialects.precision import parse_precision, precision_attr, precision_error, print_precision
from tilewright.dialects.sym import Expr


@irdl_op_definition
class MatmulOp(IRDLOperation, Decomposable):
    """[M, K] x [K, N] -> [M, N]: `%c = lin.matmul %a, %b : !A, !B -> !C`.

    Accumulates in f32 (i32 for i32) and rounds once to the result's type. `%a, %b precision tf32` permits that f32
    factors lose the 13 lowest bits of their fractions.
    """

    name = "lin.matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    precision = opt_prop_def(StringAttr)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: TensorType, *, precision: str | None = None) -> None:
        super().__init__(
            operands=[lhs, rhs], result_types=[result_type], properties={"precision": precision_attr(precision)}
        )

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        lhs, rhs = shape_of(operand_types[0]), shape_of(operand_types[1])
        if len(lhs) != 2 or len(rhs) != 2:
            raise TilewrightError(f"lin.matmul: expected two operands of rank 2, got ranks {len(lhs)} and {len(rhs)}")
        _check_inner(self, lhs, rhs)
        return [tensor((lhs[0], rhs[1]), self.result.type.element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        return _contract(self, builder, self.lhs, self.rhs, (0, 2), (2, 1), (0, 1))

    def verify_(self) -> None:
        _verify_elements(self.lhs.type, self.rhs.type, self.result.type)
        _verify_precision(self.precision, self.lhs.type)
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> MatmulOp:
        return _parse_product(cls, parser)

    def print(self, printer: Printer) -> None:
        _print_product(printer, self)


@irdl_op_definition
class BatchMatmulOp(IRDLOperation, Decomposable):
    """[..., M, K] x [..., K, N] -> [..., M, N] with equal batch dims, at least one.

    `%c = lin.batch_matmul %a, %b : !A, !B -> !C` accumulates and rounds as `lin.matmul` does.
    """

    name = "lin.batch_matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    precision = opt_prop_def(StringAttr)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: TensorType, *, precision: str | None = None) -> None:
        super().__init__(
            operands=[lhs, rhs], result_types=[result_type], properties={"precision": precision_attr(precision)}
        )

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
        _verify_elements(self.lhs.type, self.rhs.type, self.result.type)
        _verify_precision(self.precision, self.lhs.type)
        verify_result_types(self)

    @classmethod
    def parse(cls, parser: Parser) -> BatchMatmulOp:
        return _parse_product(cls, parser)

    def print(self, printer: Printer) -> None:
        _print_product(printer, self)


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
    precision = None if op.precision is None else op.precision.data
    generic = GenericOp.build_from(
        [lhs, rhs], [lhs_map, rhs_map], out_map, Combine.SUM, between, product_body(accumulator), precision=precision
    )
    value = builder.insert(generic).result
    return [value if accumulator == target else builder.insert(CastOp(value, target)).result]


def _check_inner(op: MatmulOp | BatchMatmulOp, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> None:
    if not equal_dims(op, lhs[-1], rhs[-2]):
        raise TilewrightError(
            f"{op.name}: expected equal inner dims, got {lhs[-1]} (lhs dim {len(lhs) - 1}) "
            f"and {rhs[-2]} (rhs dim {len(rhs) - 2})"
        )


_Product = TypeVar("_Product", MatmulOp, BatchMatmulOp)


def _parse_product(cls: type[_Product], parser: Parser) -> _Product:
    """`%a, %b precision tf32 {...} : !A, !B -> !C`."""
    at = parser.pos
    names = [parser.parse_unresolved_operand()]
    parser.parse_punctuation(",")
    names.append(parser.parse_unresolved_operand())
    precision = parse_precision(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    left = parse_tensor_type(parser)
    parser.parse_punctuation(",")
    right = parse_tensor_type(parser)
    parser.parse_punctuation("->")
    result_type = parse_tensor_type(parser)
    lhs, rhs = parser.resolve_operands(names, [left, right], at)
    op = cls(lhs, rhs, result_type, precision=precision)
    op.attributes.update(attributes)
    return op


def _print_product(printer: Printer, op: MatmulOp | BatchMatmulOp) -> None:
    printer.print_string(" ")
    printer.print_list((op.lhs, op.rhs), printer.print_ssa_value)
    print_precision(printer, op.precision)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_list((op.lhs.type, op.rhs.type), printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(op.result.type)


def _verify_precision(precision: StringAttr | None, operand: Attribute) -> None:
    if error := precision_error(precision):
        raise VerifyException(error)
    element = as_tensor(operand).element_type
    if precision is not None and element != f32:
        raise VerifyException(f"precision {precision.data}: expected f32 operands, got {element}")


def _verify_elements(lhs: Attribute, rhs: Attribute, result: TensorType) -> None:
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
