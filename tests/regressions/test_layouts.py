"""Tensors that are not contiguous: gapped, transposed, shifted, backwards; odd strides of dims of size 1; no copies."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilewright as tw
from tests.regressions import programs
from tests.regressions.support import (
    LAYOUTS,
    Array,
    differences,
    element_strides,
    entry_of,
    filled,
    map_program,
    variants_of,
    within,
)
from tilewright.runtime.arguments import intake
from tilewright.runtime.backends.sim import buffer_of

ONE_ARGUMENT = {
    "map": map_program("M, N"),
    "transpose": programs.transpose(),
    "softmax": programs.softmax(),
    "row maximum": programs.reduce("max"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_every_layout_of_one_argument(name: str, layout: str):
    entry = entry_of(ONE_ARGUMENT[name], "M", "N")
    for shape in ((33, 36), (5, 7)):
        assert differences(entry, [within(filled(*shape), layout)], "check") == []


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", ["contiguous", "gapped columns", "transposed", "columns backwards"])
def test_every_layout_of_the_operands_of_a_product(left: str, right: str):
    """A unit inner stride of neither operand is assumed."""
    entry = entry_of(programs.matmul(), "M", "N", "K")
    arrays = [within(filled(33, 20, seed=1), left), within(filled(20, 36, seed=2), right)]
    assert differences(entry, arrays, "check" if left == right else "fast") == []


def test_a_gap_between_elements_is_never_read_by_a_wide_access():
    entry = entry_of(map_program("M, N"), "M", "N")
    assert variants_of(entry, within(filled(8, 64), "gapped columns")) == ["main_0/general32"]
    assert variants_of(entry, within(filled(8, 64), "transposed")) == ["main_0/general32"]
    assert variants_of(entry, within(filled(8, 64), "contiguous")) == ["main_0/vector32"]


def with_strides(values: Array, strides: tuple[int, ...]) -> Array:
    """The same elements with other strides, in elements, where these address nothing."""
    return as_strided(values, values.shape, [4 * s for s in strides])


@pytest.mark.parametrize("strides", [(0, 1), (64, 1), (1, 1), (7, 1), (-3, 1), (1 << 40, 1)])
def test_the_stride_of_one_row_changes_nothing(strides: tuple[int, int]):
    entry = entry_of(map_program("M, N"), "M", "N")
    row = filled(1, 64)
    odd = with_strides(row, strides)
    assert element_strides(odd) == strides
    assert variants_of(entry, odd) == variants_of(entry, row) == ["main_0/vector32"]
    assert differences(entry, [odd], "check") == []


@pytest.mark.parametrize("strides", [(1, 0), (1, 1), (1, 9), (1, -5)])
def test_the_stride_of_one_column_changes_nothing(strides: tuple[int, int]):
    for name in ("map", "softmax", "transpose"):
        entry = entry_of(ONE_ARGUMENT[name], "M", "N")
        column = filled(33, 1)
        odd = with_strides(column, strides)
        assert variants_of(entry, odd) == variants_of(entry, column)
        assert differences(entry, [odd], "check") == []


def test_a_batch_of_one_product_with_an_odd_batch_stride():
    B, M, N, K = tw.symbols("B M N K")
    kernel = tw.compile(tw.batch_matmul(tw.placeholder((B, M, K)), tw.placeholder((B, K, N))), target="sim")
    a, b = filled(1, 9, 17, seed=1), filled(1, 17, 5, seed=2)
    expected = kernel(a, b)
    for stride in (0, 1, 5, 1 << 40):
        np.testing.assert_array_equal(kernel(with_strides(a, (stride, 17, 1)), b), expected)
        np.testing.assert_array_equal(kernel(a, with_strides(b, (stride, 5, 1))), expected)
    np.testing.assert_allclose(expected, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("start", [1, 2, 3])
@pytest.mark.parametrize("name", ["map", "row maximum"])
def test_an_unaligned_view_runs_where_it_lies(name: str, start: int):
    """A copy would warn, and warnings are errors here; the memory that the kernel gets is the caller's."""
    memory = filled(5 * 64 + 8)
    view = memory[start:][: 5 * 64].reshape(5, 64)
    assert view.ctypes.data % 16
    taken = intake(view, "f32", "x")
    assert taken.array is not None
    assert np.shares_memory(taken.array, memory)
    data = buffer_of(taken).data
    assert isinstance(data, np.ndarray)
    assert np.shares_memory(data, memory)
    entry = entry_of(ONE_ARGUMENT[name], "M", "N")
    assert all("general" in variant for variant in variants_of(entry, view))
    assert differences(entry, [view], "check") == []
