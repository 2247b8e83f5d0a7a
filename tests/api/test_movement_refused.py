"""Counts and constants that movement ops of the front end refuse, and reshapes of what is always empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw

M, N = tw.symbols("M N")
FRONT: Any = tw
"""The front end for those who do not check types."""


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_a_reshape_of_what_is_always_empty(target: str):
    empty = tw.slice(tw.placeholder((M, N)), (0, 0), (0, N))
    x = np.ones((2, 3), np.float32)
    for sizes, expected in [((-1,), (0,)), ((0, N, 2), (0, 3, 2)), ((N, 0), (3, 0))]:
        kernel = tw.compile(tw.reshape(tw.reshape(empty, (N, 0)), sizes), target=target)
        assert kernel(x).shape == expected


@pytest.mark.parametrize("value", [1.5, 2**40, float("nan"), float("inf"), "a", None])
def test_a_pad_that_the_elements_cannot_hold(value: Any):
    with pytest.raises(tw.TilewrightError, match="value of int32"):
        tw.pad(tw.placeholder((M,), "int32"), (1,), (0,), value)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: FRONT.slice(x, (0, 0), (1, 1), (1.5, 1)),
        lambda x: FRONT.slice(x, (0, 0), (1, 1), (2**70, 1)),
        lambda x: FRONT.reshape(x, ("a",)),
        lambda x: FRONT.reshape(x, (2.0, -1)),
        lambda x: FRONT.conv2d(FRONT.reshape(x, (M, 1, 1, N)), tw.placeholder((1, 1, 1, 1)), stride=(1.5, 1)),
        lambda x: FRONT.conv2d(FRONT.reshape(x, (M, 1, 1, N)), tw.placeholder((1, 1, 1, 1)), dilation=M),
        lambda x: FRONT.conv2d(FRONT.reshape(x, (M, 1, 1, N)), tw.placeholder((1, 1, 1, 1)), groups="2"),
    ],
)
def test_counts_are_integers(build: Callable[[Any], tw.Tensor]):
    with pytest.raises(tw.TilewrightError, match=r"expected .*integer"):
        build(tw.placeholder((M, N)))


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_an_offset_that_divides_by_zero(target: str):
    kernel = tw.compile(tw.slice(tw.placeholder((M, N)), (N % M, 0), (1, N)), target=target)
    np.testing.assert_array_equal(kernel(np.eye(2, 3, dtype=np.float32)), [[0, 1, 0]])
    with pytest.raises(tw.TilewrightError, match="the divisor M is 0"):
        kernel(np.zeros((0, 3), np.float32))


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_more_dims_than_an_array_has(target: str):
    x = tw.placeholder((M, N))
    assert tw.compile(tw.reshape(x, (N, M, *[1] * 62)), target=target)(np.ones((0, 3), np.float32)).ndim == 64
    with pytest.raises(tw.TilewrightError, match="at most 64 dims, got 65"):
        tw.compile(tw.reshape(x, (N, M, *[1] * 63)), target=target)
