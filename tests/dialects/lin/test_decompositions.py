"""Named ops: types inferred, decompositions that verify and keep the types."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32, i1, i32
from xdsl.ir import Attribute, Block
from xdsl.rewriter import InsertPoint

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.clamp import ClampOp
from tilewright.dialects.lin.combine import Combine, identity_value
from tilewright.dialects.lin.contraction import BatchMatmulOp, MatmulOp
from tilewright.dialects.lin.elementwise import CastOp, MapOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable
from tilewright.dialects.lin.reduction import ReduceOp
from tilewright.dialects.lin.softmax import SoftmaxOp
from tilewright.dialects.lin.transpose import TransposeOp
from tilewright.dialects.sym import Expr, symbolic_tensor

M, N, K, B = (Expr.symbol(name) for name in "MNKB")


def tensor(element_type: Attribute, *dims: Expr | int):
    return symbolic_tensor(element_type, dims)


def arguments(*types: Attribute):
    return Block(arg_types=types).args


def decomposed(op: Decomposable) -> list[GenericOp]:
    """The ops that `op` decomposes to, down to generics, each verified; the last gives the result's type."""
    block = Block()
    values = op.decomposition(Builder(InsertPoint.at_end(block)))
    assert [v.type for v in values] == [r.type for r in op.results]
    ops: list[GenericOp] = []
    for inner in block.ops:
        inner.verify()
        if isinstance(inner, Decomposable):
            ops += decomposed(inner)
        else:
            assert isinstance(inner, GenericOp)
            ops.append(inner)
    return ops


@pytest.mark.parametrize("element_type", [f32, f16, bf16, i32])
def test_matmul_is_one_contraction_and_a_cast_where_it_accumulates_wider(element_type: Attribute) -> None:
    a, b = arguments(tensor(element_type, M, K), tensor(element_type, K, N))
    op = MatmulOp(a, b, tensor(element_type, M, N))
    op.verify()
    ops = decomposed(op)
    assert [inner.is_contraction for inner in ops] == ([True] if element_type in (f32, i32) else [True, False])


def test_batch_matmul_keeps_its_batch_dims_parallel() -> None:
    a, b = arguments(tensor(bf16, B, 3, M, K), tensor(bf16, B, 3, K, N))
    op = BatchMatmulOp(a, b, tensor(f32, B, 3, M, N))
    op.verify()
    (generic,) = decomposed(op)
    assert generic.extents() == (B, Expr.const(3), M, N, K)
    assert generic.is_contraction


def test_softmax_is_four_generics_in_f32() -> None:
    (x,) = arguments(tensor(bf16, M, N))
    op = SoftmaxOp(x, 0)
    op.verify()
    ops = decomposed(op)
    assert [inner.combine for inner in ops] == [Combine.MAX, None, Combine.SUM, None]
    assert [inner.result.type for inner in ops[:3]] == [tensor(f32, N), tensor(f32, M, N), tensor(f32, N)]


def test_map_reads_index_zero_only_where_a_one_stretches() -> None:
    a, b, c = arguments(tensor(f32, M, 1), tensor(f32, 1), f32)
    op = MapOp.build_from([a, b, c], tensor(f32, M, 1), lambda _, args: args[0])
    op.verify()
    (generic,) = decomposed(op)
    assert generic.operand_maps == ((0, 1), (1,), ())
    wide = MapOp.build_from([a, *arguments(tensor(f32, N))], tensor(f32, M, N), lambda _, args: args[0])
    wide.verify()
    assert decomposed(wide)[0].operand_maps == ((0, None), (1,))


def test_transpose_maps_result_dims_to_operand_dims() -> None:
    (x,) = arguments(tensor(f32, M, N, K))
    op = TransposeOp(x, [2, 0, 1])
    assert op.result.type == tensor(f32, K, M, N)
    (generic,) = decomposed(op)
    assert generic.operand_maps == ((1, 2, 0),)


@pytest.mark.parametrize("element_type", [f32, f16, bf16])
def test_clamp_is_one_generic_in_f32(element_type: Attribute) -> None:
    (x,) = arguments(tensor(element_type, M, N))
    op = ClampOp(x, -0.1, 6)
    op.verify()
    assert op.low == float(np.float32(-0.1))
    (generic,) = decomposed(op)
    assert generic.operand_maps == ((0, 1),)
    (raised,) = (inner for inner in generic.body.block.ops if isinstance(inner, arith.MaximumfOp))
    assert raised.result.type == f32


@pytest.mark.parametrize(("element_type", "steps"), [(f32, 1), (bf16, 2), (i32, 1)])
def test_sums_of_narrow_floats_accumulate_in_f32(element_type: Attribute, steps: int) -> None:
    (x,) = arguments(tensor(element_type, M, N))
    op = ReduceOp(x, Combine.SUM, [0])
    op.verify()
    assert len(decomposed(op)) == steps
    largest = ReduceOp(x, Combine.MAX, [0])
    assert len(decomposed(largest)) == 1


TYPES = [f32, f16, bf16, i32, i1]


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_every_cast_decomposes(source: Attribute, target: Attribute) -> None:
    (x,) = arguments(tensor(source, M))
    op = CastOp(x, target)
    op.verify()
    (generic,) = decomposed(op)
    generic.verify()


def test_equal_sizes_are_asked_of_the_module() -> None:
    from tilewright.dialects.sym import Relation, RequireOp, SymbolOp

    a, b = arguments(tensor(f32, M, K), tensor(f32, 2 * B, N))
    op = MatmulOp(a, b, tensor(f32, M, N))
    with pytest.raises(TilewrightError, match=r"equal inner dims, got K .* and 2\*B"):
        op.infer_result_types([a.type, b.type])
    ModuleOp([*(SymbolOp(name) for name in "MNKB"), RequireOp(Relation(K, "==", 2 * B)), op])
    assert op.infer_result_types([a.type, b.type]) == [tensor(f32, M, N)]


def test_identities() -> None:
    assert [identity_value(c, f32) for c in Combine] == [0, 1, float("-inf"), float("inf")]
    assert [identity_value(c, i32) for c in Combine] == [0, 1, -(2**31), 2**31 - 1]
    assert [identity_value(c, i1) for c in Combine] == [0, 1, 0, 1]
