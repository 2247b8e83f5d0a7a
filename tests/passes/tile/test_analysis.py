"""What tile passes ask of a kernel, asked of something else."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32

from tests.passes.support import make_pass, parse
from tilewright.dialects.registry import make_context
from tilewright.passes.tile_analysis import KernelScopes, buf, contiguous_dim, copies, kernels_of

SCHEDULED = """tile.kernel @k() grid (%i) = [1] threads 32 index_width 32 {
  %f = tile.alloc : !tile.buf<[32], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.fill %f with 0.0 : f32
}
"""


def test_a_number_is_no_buffer() -> None:
    with pytest.raises(TypeError, match=r"expected a !tile\.buf, got i32"):
        buf(arith.ConstantOp(IntegerAttr(1, i32)).result)


def test_scopes_are_those_of_a_kernel() -> None:
    module = parse(SCHEDULED)
    (kernel,) = kernels_of(module)
    scopes = KernelScopes(kernel)
    with pytest.raises(ValueError, match="expected an op inside a kernel"):
        scopes.at(arith.ConstantOp(IntegerAttr(1, i32)))
    with pytest.raises(ValueError, match="expected a block inside a kernel"):
        scopes.at(kernel)


def test_a_kernel_without_open_decisions_is_scheduled() -> None:
    module = parse(SCHEDULED)
    before = str(module)
    make_pass("verify-level", level="tile", stage="scheduled").apply(make_context(), module)
    assert str(module) == before


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("", 1),
        (", #tile.strided<[N, 1]>", 1),
        (", #tile.strided<[1, M]>", 0),
        (", #tile.strided<[M, N]>", 1),
    ],
)
def test_a_tensor_of_unknown_strides_counts_as_row_major(layout: str, expected: int) -> None:
    module = parse(
        f"sym.symbol @M sym.symbol @N tile.kernel @k(%x: !tile.buf<[M, N], f32, global{layout}>) grid (%i) = [1] {{"
        " %t = tile.alloc : !tile.buf<[8, 4], f32, fragment> tile.copy %x[%i, %i] to %t bounds [clip, clip] }"
    )
    (kernel,) = kernels_of(module)
    (copy,) = copies(kernel)
    assert contiguous_dim(copy, KernelScopes(kernel)) == expected
