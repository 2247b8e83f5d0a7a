"""Outputs: own place for each element, and no partial overlap with an input; decided exactly."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.arguments import intake
from tilewright.runtime.output_rules import check_output, overlaps_itself, share_elements
from tilewright.runtime.results import empty_like_kind
from tilewright.runtime.tensor_argument import TensorArgument

BUFFER = np.zeros((8, 12), np.float32)


def host(array: np.ndarray[Any, Any]) -> TensorArgument:
    return intake(array, "f32", "x")


def cuda(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorArgument:
    return TensorArgument("f32", shape, strides, pointer, "cuda", "cuda_array", None)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (BUFFER[::-1], "dim 0: expected a positive stride of an output, got -12"),
        (
            np.lib.stride_tricks.as_strided(BUFFER, (4, 4), (0, 4)),
            "dim 0: expected a positive stride of an output, got 0",
        ),
        (np.lib.stride_tricks.as_strided(BUFFER, (4, 4), (8, 4)), "where some share one"),
        (np.broadcast_to(BUFFER, (2, 8, 12)), "read-only"),
    ],
)
def test_layouts_that_are_no_output(output: np.ndarray[Any, Any], message: str) -> None:
    with pytest.raises(TilewrightError, match=message) as caught:
        check_output(host(output), {}, "out", index=3)
    assert caught.value.message.startswith("argument 3 ('out'): ")


@pytest.mark.parametrize("output", [BUFFER, BUFFER.T, BUFFER[::2, 1::3], BUFFER[:, 3:4], BUFFER[:0], BUFFER[0, 0, ...]])
def test_layouts_that_are(output: np.ndarray[Any, Any]) -> None:
    check_output(host(output), {})


def test_overlap_with_an_input() -> None:
    out = host(BUFFER[:, :6])
    check_output(out, {"other": host(np.zeros((8, 12), np.float32))})
    check_output(out, {"right half": host(BUFFER[:, 6:])})
    check_output(host(BUFFER[:, ::2]), {"odd columns": host(BUFFER[:, 1::2])})
    check_output(out, {"nothing": host(BUFFER[:0])})
    for shared in (BUFFER[:, 5:], BUFFER[7:, 3:2:-1], np.broadcast_to(BUFFER[0, 0, ...], (100,))):
        with pytest.raises(TilewrightError, match="no memory in common with input 'w'"):
            check_output(out, {"v": host(np.zeros(3, np.float32)), "w": host(shared)})


def test_an_input_that_reaches_down_to_the_output() -> None:
    with pytest.raises(TilewrightError, match="got overlap"):
        check_output(host(BUFFER[:2]), {"reversed": host(BUFFER[::-1])})
    check_output(host(BUFFER[:2]), {"reversed, but not so far": host(BUFFER[:1:-1])})


def test_in_place_takes_the_same_layout_only() -> None:
    out = host(BUFFER[:, :6])
    with pytest.raises(TilewrightError, match="no memory in common"):
        check_output(out, {"x": host(BUFFER[:, :6])})
    check_output(out, {"x": host(BUFFER[:, :6])}, in_place=True)
    with pytest.raises(TilewrightError, match="the same memory and layout or none in common"):
        check_output(out, {"x": host(BUFFER[:, 1:7])}, in_place=True)
    square = np.zeros((6, 6), np.float32)
    with pytest.raises(TilewrightError, match="the same memory and layout"):
        check_output(host(square), {"x": host(square.T)}, in_place=True)


def test_memory_of_a_gpu_is_judged_by_address() -> None:
    out = cuda(4096, (8, 6), (12, 1))
    check_output(out, {"right half": cuda(4096 + 24, (8, 6), (12, 1))})
    with pytest.raises(TilewrightError, match="got overlap: output at 0x1000"):
        check_output(out, {"x": cuda(4096 + 20, (8, 6), (12, 1))})
    check_output(out, {"host": host(BUFFER)})


def places(argument: TensorArgument) -> list[int]:
    return [
        argument.pointer + 4 * sum(i * s for i, s in zip(place, argument.strides, strict=True))
        for place in itertools.product(*map(range, argument.shape))
    ]


LAYOUT = st.integers(0, 3).flatmap(
    lambda rank: st.tuples(
        st.tuples(*[st.integers(0, 4)] * rank), st.tuples(*[st.integers(-6, 9)] * rank), st.integers(0, 20)
    )
)


@settings(max_examples=150, deadline=None)
@given(LAYOUT, LAYOUT)
def test_both_questions_agree_with_enumeration(first: Any, second: Any) -> None:
    a, b = (cuda(40960 + 4 * offset, shape, strides) for shape, strides, offset in (first, second))
    assert share_elements(a, b) == bool(set(places(a)) & set(places(b)))
    if 0 not in a.shape:
        assert overlaps_itself(a.shape, a.strides) == (len(set(places(a))) < len(places(a)))


def test_a_layout_that_is_too_much_work_counts_as_overlapping() -> None:
    assert overlaps_itself((1000, 1001), (1001, 1000))
    assert not overlaps_itself((1000, 1001), (1001, 1))
    assert not overlaps_itself((2, 3), (3, 2))


@pytest.mark.parametrize("shape", [(2**31, 2**31), (2**62, 2**62)])
def test_a_result_that_no_memory_holds_is_an_error_of_one_line(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        TilewrightError, match=r"result of shape \(\d+, \d+\) and type f32 cannot be allocated"
    ) as caught:
        empty_like_kind("numpy", shape, "f32", "host")
    assert str(caught.value).isprintable()
