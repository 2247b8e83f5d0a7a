"""Which threads hold copies of the same elements, and which of them speaks for all."""

from __future__ import annotations

from xdsl.ir import Block

from tilewright.dialects.tile.types import DimDistribution
from tilewright.lowering.tile_to_simt.builder import Builder
from tilewright.lowering.tile_to_simt.elements import first_copy


def test_a_dim_in_one_thread_is_no_reason_for_a_mask() -> None:
    # Such a dim lies in each thread in order, whatever its stride says: 3 is no stride of 8 threads.
    dims = [DimDistribution(8, 1, 1), DimDistribution(1, 3, 1)]
    sized = [(dim, 8) for dim in dims]
    assert first_copy(Builder(Block(), 32, 8, {}), sized) is None
    assert first_copy(Builder(Block(), 32, 16, {}), sized) is not None
