"""Slices, pads, joins and gathers whose offsets, not whose results, lie beyond 2^31 elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import tilewright as tw
from tests.regressions.support import LAYOUTS, Array, Trial, differences, filled, sampled, scrambled, within
from tilewright.runtime.variants import CompiledEntry

M, N, K = tw.symbols("M N K")
ROWS, COLUMNS = 3 << 15, 1 << 15
"""A matrix of 3 * 2^30 elements."""


def entry_of(result: tw.Tensor) -> CompiledEntry:
    return CompiledEntry(tw.build_module(result), "main", "sm_80")


def expect(trial: Trial, source: Callable[[Array], Array], size: int) -> None:
    """No fault, the last element among those stored, and each the one at `source(position)` of the argument."""
    assert trial.report.diagnostics == []
    positions = np.array(sorted(trial.stored), np.int64)
    assert positions[-1] == size - 1
    got = np.array([trial.stored[p] for p in positions.tolist()])
    np.testing.assert_array_equal(got, scrambled(source(positions)))


def test_the_last_row_of_a_large_matrix():
    """2^15 elements, all of them beyond 2^31."""
    entry = entry_of(tw.placeholder((M, N))[M - 1 :])
    trial = sampled(entry, [(ROWS, COLUMNS)], scrambled)
    assert trial.site.index_width == 64
    expect(trial, lambda p: (ROWS - 1) * COLUMNS + p, COLUMNS)
    forced = sampled(entry, [(ROWS, COLUMNS)], scrambled, trial.site.variant.replace("64", "32"))
    assert forced.report.diagnostics != [], "the check is able to fail"


def test_the_right_half_of_a_large_matrix():
    entry = entry_of(tw.placeholder((M, N))[:, N // 2 :])
    half = COLUMNS // 2
    trial = sampled(entry, [(2 * ROWS, COLUMNS)], scrambled)
    assert trial.site.index_width == 64
    expect(trial, lambda p: p // half * COLUMNS + half + p % half, 2 * ROWS * half)


def test_every_third_element_of_a_long_vector():
    """A result of 2^30 elements out of 3 * 2^30."""
    entry = entry_of(tw.placeholder((N,))[::3])
    trial = sampled(entry, [(3 << 30,)], scrambled)
    assert trial.site.index_width == 64
    expect(trial, lambda p: 3 * p, 1 << 30)


def test_a_flattened_large_matrix():
    entry = entry_of(tw.reshape(tw.placeholder((M, N)), (M * N,)) * 1.0)
    trial = sampled(entry, [(ROWS, COLUMNS)], scrambled)
    assert trial.site.index_width == 64
    expect(trial, lambda p: p, ROWS * COLUMNS)


def test_a_gather_from_the_end_of_a_large_table():
    """8 rows of a table whose last rows start beyond 2^31."""
    table, ids = tw.placeholder((N, K)), tw.placeholder((M,), "int32")
    entry = entry_of(tw.gather(table, ids))
    values: Sequence[Callable[[Array], Array]] = (scrambled, lambda positions: ROWS - 1 - positions)
    trial = sampled(entry, [(ROWS, COLUMNS), (8,)], values)
    assert trial.site.index_width == 64
    expect(trial, lambda p: (ROWS - 1 - p // COLUMNS) * COLUMNS + p % COLUMNS, 8 * COLUMNS)
    forced = sampled(entry, [(ROWS, COLUMNS), (8,)], values, trial.site.variant.replace("64", "32"))
    assert forced.report.diagnostics != [], "the check is able to fail"


def test_a_padded_large_matrix_is_its_own_middle():
    """Indices begin at -1 and -3 in the argument."""
    entry = entry_of(tw.pad(tw.placeholder((M, N)), (1, 3), (2, 5), 0.5))
    trial = sampled(entry, [(ROWS, COLUMNS)], scrambled)
    assert trial.site.index_width == 64
    assert trial.report.diagnostics == []
    width = COLUMNS + 8
    positions = np.array(sorted(trial.stored), np.int64)
    assert positions[-1] == (ROWS + 3) * width - 1
    i, j = positions // width - 1, positions % width - 3
    inside = (i >= 0) & (i < ROWS) & (j >= 0) & (j < COLUMNS)
    expected = np.where(inside, scrambled(i * COLUMNS + j), 0.5)
    np.testing.assert_array_equal([trial.stored[p] for p in positions.tolist()], expected)
    assert inside.any()
    assert not inside.all()


def test_two_vectors_joined_beyond_2_to_the_31():
    """The second one is read at an index less the length of the first, in each block that writes it."""
    entry = entry_of(tw.concat([tw.placeholder((M,)), tw.placeholder((N,))]))
    trial = sampled(entry, [(3 << 29,), (3 << 29,)], scrambled)
    assert trial.site.index_width == 64
    expect(trial, lambda p: p % (3 << 29), 3 << 30)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_indices_that_begin_below_0_in_any_layout(layout: str):
    """Pads, slices and joins of one argument, with their masks, at sizes around a tile."""
    x = tw.placeholder((M, N))
    programs = {
        "pad": tw.pad(x, (1, 3), (2, 5), -1.0),
        "slice": x[1:, N // 2 :],
        "steps": x[::2, 1::3],
        "join": tw.concat([x, x * 2.0], axis=1),
        "pad of a slice": tw.pad(x[1:], (2, 0), (0, 1)),
    }
    for name, result in programs.items():
        entry = entry_of(result)
        for shape in ((2, 3), (33, 36)):
            assert differences(entry, [within(filled(*shape), layout)], "check") == [], (name, shape)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 8, 33])
def test_halves_of_a_dim_run_one_kernel_for_every_length(rows: int):
    """Splitting pins no size: M // 2 is a size like any other."""
    x = tw.placeholder((M, 8))
    entry = entry_of(x[: M // 2])
    rest = entry_of(x[M // 2 :])
    array = filled(rows, 8)
    assert differences(entry, [array], "check") == []
    assert differences(rest, [array], "check") == []
    assert entry.pipeline_runs == rest.pipeline_runs == 1
