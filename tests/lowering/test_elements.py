"""Which threads hold copies of the same elements, and which of them speaks for all."""

from __future__ import annotations

from typing import cast

import pytest
from xdsl.ir import Block

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.tile.types import DimDistribution
from tilewright.lowering.tile_to_simt.builder import Builder
from tilewright.lowering.tile_to_simt.elements import each_local, first_copy


def test_a_dim_in_one_thread_is_no_reason_for_a_mask() -> None:
    # Such a dim lies in each thread in order, whatever its stride says: 3 is no stride of 8 threads.
    dims = [DimDistribution(8, 1, 1), DimDistribution(1, 3, 1)]
    sized = [(dim, 8) for dim in dims]
    assert first_copy(Builder(Block(), 32, 8, {}), sized) is None
    assert first_copy(Builder(Block(), 32, 16, {}), sized) is not None


def test_a_step_must_divide_what_lies_side_by_side_in_a_thread() -> None:
    """Neighbours along this dim lie in neighbouring threads, so no thread has two to move at once."""
    with (
        pytest.raises(TilewrightError, match="width 2 does not divide the 1 neighbouring elements"),
        each_local(cast(Builder, None), DimDistribution(8, 1, 1), 16, step=2),
    ):
        pass
