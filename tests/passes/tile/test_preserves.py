"""Tile programs execute to the same results after each pass of the tile pipeline, before and after any decision."""

from __future__ import annotations

import pytest

from tests.passes.tile.programs import CASES
from tests.passes.tile.support import preserves

EVERYWHERE = {"map-threads", "finish-schedule"}
"""Passes that change every kernel with more than one element."""


@pytest.mark.parametrize("name", CASES)
def test_each_pass_preserves(name: str) -> None:
    case = CASES[name]
    changed = preserves(case.build(), case.sizes[:1] + case.sizes[2:])
    assert set(changed) >= EVERYWHERE
