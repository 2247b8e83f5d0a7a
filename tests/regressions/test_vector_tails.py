"""Vectorised code keeps every bound that depends on a size, and assumes no alignment that only some calls have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.support import chosen, differences, entry_of, filled, map_program, variants_of
from tilewright.runtime.binding import Layout

WHERE = """%c = arith.cmpf ogt, %p0, %p1 : f32
    %s = arith.select %c, %p0, %p1 : f32
    lin.yield %s : f32"""


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 127, 128, 129, 130, 132, 2049])
def test_a_choice_between_two_values_at_the_end_of_a_row(columns: int):
    """Where the bound and the program's own condition meet, neither replaces the other."""
    entry = entry_of(map_program("M, N", 2, WHERE), "M", "N")
    arrays = [filled(17, columns, seed=1), filled(17, columns, seed=2)]
    assert differences(entry, arrays, "check") == []
    assert variants_of(entry, *arrays) == [f"main_0/{'vector32' if columns % 4 == 0 else 'general32'}"]


@pytest.mark.parametrize("size", [1, 4, 2044, 2047, 2048, 2049, 2052, 6145])
def test_the_last_vector_of_a_flat_tensor(size: int):
    entry = entry_of(map_program("N"), "N")
    assert differences(entry, [filled(size)], "check") == []


def test_a_tail_is_masked_where_a_declared_multiple_does_not_fill_the_tile():
    """Rows of 4*T elements: every vector is whole, the tile of 128 is not."""
    entry = entry_of(map_program("M, N"), "M", "N {multiple_of = 4}")
    for columns in (4, 124, 132, 260):
        arrays = [filled(5, columns)]
        assert differences(entry, arrays, "check") == []
        assert variants_of(entry, *arrays) == ["main_0/vector32"]


@pytest.mark.parametrize("row", [1, 2, 6, 7, 31])
def test_rows_of_a_symbolic_batch_are_as_aligned_as_their_length(row: int):
    """The base is aligned, the second row is not."""
    entry = entry_of(map_program("B, S"), "B", "S")
    arrays = [filled(9, row)]
    assert variants_of(entry, *arrays) == ["main_0/general32"]
    assert differences(entry, arrays, "check") == []


def test_a_batch_stride_that_no_vector_divides_rules_vectors_out():
    """Rows are aligned to one another, matrices are not: [B, M, 8] with 3 elements between the matrices."""
    entry = entry_of(map_program("B, M, 8"), "B", "M")
    batch, rows = 3, 4
    memory = filled(batch * (rows * 8 + 3))
    x = np.lib.stride_tricks.as_strided(memory, (batch, rows, 8), (4 * (rows * 8 + 3), 32, 4))
    assert variants_of(entry, x) == ["main_0/general32"]
    assert variants_of(entry, filled(batch, rows, 8)) == ["main_0/vector32"]
    assert differences(entry, [x], "check") == []


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_each_slice_of_a_batch_takes_what_its_own_address_allows(batch: int):
    """x[b:] of odd rows: its first address moves by 4 bytes with b."""
    entry = entry_of(map_program("B, S"), "B", "S")
    x = filled(8, 33)[batch:, :32]
    assert differences(entry, [x], "check") == []
    assert variants_of(entry, x) == ["main_0/general32"], "33 elements from row to row"


@pytest.mark.parametrize("bytes_off", [0, 4, 8, 12, 16])
def test_vectors_need_the_base_address_of_every_tensor(bytes_off: int):
    entry = entry_of(map_program("N", 2, "%z = arith.addf %p0, %p1 : f32\n    lin.yield %z : f32"), "N")
    (site,) = chosen(entry, Layout((64,), (1,), 4096), Layout((64,), (1,), 4096 + bytes_off))
    assert site.variant.startswith("vector" if bytes_off % 16 == 0 else "general")
    memory = filled(80)
    assert differences(entry, [memory[:64], memory[bytes_off // 4 :][:64]], "check") == []


def test_a_shared_dim_is_vectorised_for_all_operands_or_none():
    """The second operand is strided along the dim in which the first is contiguous."""
    entry = entry_of(map_program("M, N", 2, WHERE), "M", "N")
    x, wide = filled(6, 64), filled(6, 128)
    assert variants_of(entry, x, wide[:, ::2]) == ["main_0/general32"]
    assert differences(entry, [x, wide[:, ::2]], "check") == []
