"""The interface of `lin.generic` that lowering reads."""

from __future__ import annotations

import pytest
from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, bf16, f32
from xdsl.ir import Block, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.contraction import product_body
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Expr, symbolic_tensor

M, N, K = (Expr.symbol(name) for name in "MNK")


def values(*types: TensorType) -> tuple[SSAValue, ...]:
    return tuple(Block(arg_types=types).args)


def matmul() -> GenericOp:
    a, b = values(symbolic_tensor(bf16, (M, K)), symbolic_tensor(bf16, (K, N)))
    return GenericOp.build_from(
        [a, b], [(0, 2), (2, 1)], (0, 1), Combine.SUM, symbolic_tensor(f32, (M, N)), product_body(f32)
    )


def test_maps_types_and_extents_of_a_contraction() -> None:
    op = matmul()
    op.verify()
    assert op.iteration_dims == 3
    assert op.operand_maps == ((0, 2), (2, 1))
    assert op.out_map == (0, 1)
    assert op.reduction_dims == (2,)
    assert op.iterator_types == ("parallel", "parallel", "reduction")
    assert op.extents() == (M, N, K)
    assert op.combine is Combine.SUM
    assert op.is_contraction


def test_index_zero_and_dims_of_the_result_alone() -> None:
    (a,) = values(symbolic_tensor(f32, (M, 1)))
    op = GenericOp.build_from([a], [(1, None)], (0, 1), None, symbolic_tensor(f32, (N, M)), lambda _, args: args[0])
    op.verify()
    assert op.operand_maps == ((1, None),)
    assert op.extents() == (N, M)
    assert op.iterator_types == ("parallel", "parallel")
    assert op.infer_result_types([a.type]) == [symbolic_tensor(f32, (N, M))]


def test_a_square_or_a_sum_of_products_is_no_contraction() -> None:
    a, b = values(symbolic_tensor(f32, (M, K)), symbolic_tensor(f32, (M, K)))
    row = symbolic_tensor(f32, (M,))

    def square(builder: Builder, args: tuple[SSAValue, ...]) -> SSAValue:
        return builder.insert(arith.MulfOp(args[0], args[0])).result

    def fused(builder: Builder, args: tuple[SSAValue, ...]) -> SSAValue:
        product = builder.insert(arith.MulfOp(args[0], args[1])).result
        return builder.insert(arith.AddfOp(product, args[0])).result

    for body in (square, fused):
        op = GenericOp.build_from([a, b], [(0, 1), (0, 1)], (0,), Combine.SUM, row, body)
        op.verify()
        assert not op.is_contraction
    largest = GenericOp.build_from([a, b], [(0, 1), (0, 1)], (0,), Combine.MAX, row, product_body(f32))
    assert not largest.is_contraction


def test_an_open_size_is_an_error_that_names_the_dim() -> None:
    (a,) = values(TensorType(f32, [DYNAMIC_INDEX]))
    op = GenericOp.build_from([a], [(0,)], (0,), None, TensorType(f32, [DYNAMIC_INDEX]), lambda _, args: args[0])
    op.verify()
    with pytest.raises(TilewrightError, match="known size of d0"):
        op.extents()
