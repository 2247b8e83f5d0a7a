"""Which bits of a thread's number are free for a dim that is still to be spread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.dialects.tile.types import DimDistribution
from tilewright.passes.thread_spread import free_bits


@pytest.mark.parametrize(
    ("fragments", "new", "expected"),
    [
        ([(0, 1)], [1], [3, 4]),
        ([(0, 1), (1, 2)], [1], [4]),
        ([(0, 2)], [1], [0, 1, 2, 3, 4]),
        ([(None, 1)], [1], [0, 1, 2, 3, 4]),
    ],
)
def test_bits_of_dims_that_meet_are_taken(
    fragments: list[tuple[int | None, ...]], new: list[int], expected: list[int]
) -> None:
    """Dim 0 has bits 0 to 2 of 32 threads' numbers, dim 2 has bit 3, dim 1 none yet."""
    spread = [DimDistribution(8, 1, 1), DimDistribution(1, 1, 1), DimDistribution(2, 8, 1)]
    dims: Any = SimpleNamespace(dims=dict(enumerate(fragments)))
    assert free_bits(dims, spread, new, 32) == expected
