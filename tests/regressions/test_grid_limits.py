"""Grids have one dimension of up to 2^31 - 1 blocks: no batch is too large for y or z, and more is refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions import programs
from tests.regressions.support import Array, aligned, chosen, entry_of, map_program, sampled
from tilewright.diagnostics import TilewrightError

TURN = f"""func.func @main(%x : {programs.tensor("B", "2", "3")}) -> {programs.tensor("B", "3", "2")} {{
  %y = lin.transpose %x perm [0, 2, 1] : {programs.tensor("B", "2", "3")} -> {programs.tensor("B", "3", "2")}
  func.return %y : {programs.tensor("B", "3", "2")}
}}
"""


def numbered(positions: Array) -> Array:
    return positions % (1 << 24)


def test_blocks_beyond_65535_along_every_dim():
    """A batch of 2^24 and a matrix of 2^21 x 16 tiles."""
    trial = sampled(entry_of(TURN, "B"), [(1 << 24, 2, 3)], numbered)
    assert trial.report.diagnostics == []
    for position, value in trial.stored.items():
        batch, place = divmod(position, 6)
        assert value == (batch * 6 + place % 2 * 3 + place // 2) % (1 << 24)
    assert (1 << 24) * 6 - 1 in trial.stored
    trial = sampled(entry_of(map_program("M, N"), "M", "N"), [((1 << 21) * 16, 128)], numbered)
    assert trial.report.diagnostics == []
    assert max(trial.stored) == (1 << 32) - 1
    assert all(value == position % (1 << 24) for position, value in trial.stored.items())


def test_the_last_grid_that_fits_and_the_first_that_does_not():
    """Tiles of 2048: 2^31 - 1 blocks reach 2^42 - 2048 elements."""
    entry = entry_of(map_program("N"), "N")
    last = ((1 << 31) - 1) * 2048
    trial = sampled(entry, [(last,)], numbered)
    assert trial.report.diagnostics == []
    assert max(trial.stored) == last - 1
    with pytest.raises(TilewrightError) as caught:
        chosen(entry, aligned(last + 1))
    assert str(caught.value) == (
        "error: N ceildiv 2048: expected at most 2147483647 blocks of @main_0, "
        f"got N ceildiv 2048 = 2147483648 with N = {last + 1} from argument 0 dim 0"
    )


def test_the_number_of_blocks_is_counted_without_wrapping():
    """2^33 x 2^36 elements are 2^58 blocks, which is 0 in 32 bits."""
    entry = entry_of(map_program("M, N"), "M", "N")
    with pytest.raises(TilewrightError, match=f"= {1 << 58} with"):
        chosen(entry, aligned(1 << 33, 1 << 36))


def test_no_kernel_uses_more_than_one_grid_dimension():
    for text, symbols in ((TURN, ("B",)), (programs.matmul(), ("M", "N", "K")), (programs.softmax(), ("M", "N"))):
        entry = entry_of(text, *symbols)
        ids = {
            str(op.properties["dim"])
            for site in entry.sites.values()
            for op in entry.lower(site).kernel.walk()
            if op.name == "simt.block_id"
        }
        assert ids == {'"x"'}


def test_sampled_blocks_are_the_first_middle_and_last():
    trial = sampled(entry_of(map_program("N"), "N"), [(2048 * 9,)], numbered)
    assert sorted({position // 2048 for position in trial.stored}) == [0, 4, 8]
    assert np.unique(list(trial.stored)).size == 3 * 2048
