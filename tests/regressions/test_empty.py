"""Sizes of 0 in every place: nothing is launched for empty results, and sums of nothing are the identity."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.regressions import programs
from tests.regressions.support import differences, entry_of, filled, map_program


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_products_with_any_of_their_sizes_0(target: str):
    B, M, N, K = tw.symbols("B M N K")
    result = tw.batch_matmul(tw.placeholder((B, M, K)), tw.placeholder((B, K, N))) + 1.0
    kernel = tw.compile(result, target=target)
    for b, m, n, k in product((0, 2), (0, 3), (0, 5), (0, 4)):
        got = kernel(ones(b, m, k), ones(b, k, n))
        assert got.shape == (b, m, n)
        np.testing.assert_array_equal(got, np.full((b, m, n), k + 1.0, np.float32))
        if target == "sim" and 0 in (b, m, n):
            assert kernel.stats()["launches"] == 0


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (0, 4096), (0, 5000)])
@pytest.mark.parametrize("name", ["softmax", "transpose", "map"])
def test_programs_on_empty_matrices(name: str, shape: tuple[int, int]):
    text = {"softmax": programs.softmax(), "transpose": programs.transpose(), "map": map_program("M, N")}[name]
    entry = entry_of(text, "M", "N")
    assert differences(entry, [filled(*shape)], "check") == []


@pytest.mark.parametrize(("kind", "identity"), [("sum", 0.0), ("max", -np.inf), ("min", np.inf)])
def test_reductions_over_nothing_give_their_identity(kind: str, identity: float):
    entry = entry_of(programs.reduce(kind), "M", "N")
    assert differences(entry, [filled(3, 0)], "check") == []
    x = tw.placeholder(tw.symbols("M N"))
    function = {"sum": tw.sum, "max": tw.max, "min": tw.min}[kind]
    got = tw.compile(function(x, axis=1), target="sim")(ones(3, 0))
    np.testing.assert_array_equal(got, np.full(3, identity, np.float32))


def test_empty_calls_first_leave_a_kernel_that_works():
    """What is empty chooses no kernel that would serve nothing else."""
    entry = entry_of(programs.matmul(), "M", "N", "K")
    for m, n, k in ((0, 4, 4), (4, 0, 4), (4, 4, 0), (0, 0, 0), (5, 6, 7)):
        assert differences(entry, [filled(m, k, seed=1), filled(k, n, seed=2)], "check") == []
    assert entry.pipeline_runs == 1


def test_an_empty_operand_beside_full_ones():
    """[A] is reduced to a scalar that the others do not need."""
    A, M = tw.symbols("A M")
    x, y = tw.placeholder((A, 1)), tw.placeholder((1, M))
    kernel = tw.compile([tw.sum(x, axis=0), y + 1.0], target="sim")
    total, shifted = kernel(ones(0, 1), ones(1, 3))
    np.testing.assert_array_equal(total, [0.0])
    np.testing.assert_array_equal(shifted, [[2.0, 2.0, 2.0]])
