"""Slices, pads, concats, reshapes, gathers and convolutions from the front end; expected values are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.runtime.kernel import Kernel

Array = np.ndarray[Any, Any]
M, N, K, B = tw.symbols("M N K B")
SIZES = st.sampled_from([0, 1, 2, 3, 7, 33])


def ramp(*shape: int) -> Array:
    """Distinct whole numbers."""
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) - 5


def kernels(value: tw.Tensor) -> list[Kernel]:
    """The program in the simulator and in the reference."""
    return [tw.compile(value, target=target) for target in ("sim", "reference")]


def agree(programs: list[Kernel], arrays: tuple[Array, ...], expected: Array) -> None:
    for program in programs:
        got = program(*arrays)
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


INDEXED: dict[str, tuple[Callable[[tw.Tensor], tw.Tensor], Callable[[Array], Array], tuple[int, int]]] = {
    "front": (lambda x: x[1:], lambda a: a[1:], (1, 0)),
    "back": (lambda x: x[:-1, 2:], lambda a: a[:-1, 2:], (1, 2)),
    "steps": (lambda x: x[::2, 1::3], lambda a: a[::2, 1::3], (0, 1)),
    "row": (lambda x: x[-1], lambda a: a[-1], (1, 0)),
    "column": (lambda x: x[..., 0] * 2.0, lambda a: a[..., 0] * 2, (0, 1)),
    "element": (lambda x: x[1, -2], lambda a: a[1, -2], (2, 2)),
    "half": (lambda x: x[: M // 2], lambda a: a[: a.shape[0] // 2], (0, 0)),
    "all": (lambda x: x[:], lambda a: a, (0, 0)),
}


@pytest.mark.parametrize("name", INDEXED)
def test_indexing_is_numpys(name: str):
    build, oracle, least = INDEXED[name]
    programs = kernels(build(tw.placeholder((M, N))))
    for m, n in [(0, 0), (1, 1), (2, 3), (3, 0), (5, 4), (33, 34)]:
        if m >= least[0] and n >= least[1]:
            a = ramp(m, n)
            agree(programs, (a,), oracle(a))


def test_a_slice_outside_fails_with_the_sizes():
    (program, reference) = kernels(tw.placeholder((M, N))[3:])
    for each in (program, reference):
        with pytest.raises(tw.TilewrightError, match=r"M.*3|M = 2"):
            each(ramp(2, 2))


@pytest.mark.parametrize("key", [(1, 2, 3), (Ellipsis, Ellipsis), (slice(None, None, -1),), ("a",), (True,)])
def test_indices_that_make_no_sense(key: Any):
    with pytest.raises(tw.TilewrightError):
        tw.placeholder((M, N))[key]


def test_a_tensor_is_not_iterated_over():
    with pytest.raises(tw.TilewrightError, match="iterated"):
        list(tw.placeholder((M, N)))  # pyright: ignore[reportArgumentType]


PAD = kernels(tw.pad(tw.placeholder((M, N)), (1, N), (M, 2), -2.5))


@settings(max_examples=12)
@given(SIZES, SIZES)
def test_pad(m: int, n: int):
    a = ramp(m, n)
    agree(PAD, (a,), np.pad(a, [(1, m), (n, 2)], constant_values=-2.5))


CONCAT = kernels(tw.concat([tw.placeholder((M, K)), tw.placeholder((N, K)), tw.placeholder((2, K))]))


@settings(max_examples=15)
@given(SIZES, SIZES, SIZES)
def test_concat(m: int, n: int, k: int):
    arrays = ramp(m, k), ramp(n, k) * 2, ramp(2, k) * 3
    agree(CONCAT, arrays, np.concatenate(arrays))


def test_concat_keeps_the_sign_of_zero_and_nan():
    a, b = np.array([-0.0, np.nan], np.float32), np.array([np.inf, -0.0], np.float32)
    for program in kernels(tw.concat([tw.placeholder((M,)), tw.placeholder((N,))])):
        got = program(a, b)
        np.testing.assert_array_equal(got, np.concatenate([a, b]))
        np.testing.assert_array_equal(np.signbit(got[[0, 3]]), True)


def test_a_one_is_not_stretched():
    with pytest.raises(tw.TilewrightError, match="differ at dim 0"):
        tw.concat([tw.placeholder((M, 1)), tw.placeholder((M, N))])


JOIN = kernels(tw.reshape(tw.placeholder((B, M, K)), (B * M, -1)) * 1.0)
SPLIT = kernels(tw.reshape(tw.placeholder((M, K, 6)), (M, -1, 3)))
TURN = kernels(tw.reshape(tw.placeholder((M, K)), (K, M)))


@settings(max_examples=15)
@given(SIZES, SIZES, SIZES)
def test_reshape(b: int, m: int, k: int):
    a = ramp(b, m, k)
    agree(JOIN, (a,), a.reshape(b * m, k))
    six = ramp(m, k, 6)
    agree(SPLIT, (six,), six.reshape(m, 2 * k, 3))
    agree(TURN, (a[0] if b else ramp(m, k),), ramp(m, k).reshape(k, m))


def test_a_reshape_that_may_fail_is_guarded():
    for program in kernels(tw.reshape(tw.placeholder((M, N)), (-1, 4))):
        np.testing.assert_array_equal(program(ramp(2, 6)), ramp(3, 4))
        with pytest.raises(tw.TilewrightError, match="floordiv 4"):
            program(ramp(3, 3))
    with pytest.raises(tw.TilewrightError, match="expected 6 elements, got 4"):
        tw.reshape(tw.placeholder((2, 3)), (4,))
    with pytest.raises(tw.TilewrightError, match="at most one -1"):
        tw.reshape(tw.placeholder((2, 3)), (-1, -1))


EMBED = kernels(tw.gather(tw.placeholder((M, K)), tw.placeholder((B, N), "int32")) * 2.0)


@settings(max_examples=15)
@given(st.sampled_from([1, 5, 40]), SIZES, SIZES, st.sampled_from([0, 1, 5]), st.integers(0, 99))
def test_gather(m: int, k: int, n: int, b: int, seed: int):
    table, ids = ramp(m, k), np.random.default_rng(seed).integers(0, m, (b, n)).astype(np.int32)
    agree(EMBED, (table, ids), table[ids] * 2)


def test_an_index_out_of_range_reads_zeros():
    # Least and greatest i32 among them: 32-bit addresses of such rows would wrap.
    table, ids = ramp(3, 2), np.array([0, 2, 3, -1, 2**31 - 1, -(2**31), 1], np.int32)
    inside = ((ids >= 0) & (ids < 3))[:, None]
    expected = np.where(inside, table[np.clip(ids, 0, 2)], np.float32(0))
    for kernel in kernels(tw.gather(tw.placeholder((M, K)), tw.placeholder((N,), "int32"))):
        np.testing.assert_array_equal(kernel(table, ids), expected)


def convolved(
    x: Array, w: Array, stride: tuple[int, int], padding: tuple[int, ...], dilation: tuple[int, int], groups: int
) -> Array:
    """A sum over the filter's places, in float64."""
    x = np.pad(x, ((0, 0), (0, 0), padding[:2], padding[2:])).astype(np.float64)
    (o, i, kh, kw), per = w.shape, w.shape[0] // groups
    oh, ow = ((x.shape[2 + a] - dilation[a] * (k - 1) - 1) // stride[a] + 1 for a, k in enumerate((kh, kw)))
    y = np.zeros((x.shape[0], o, oh, ow))
    for r in range(kh):
        for c in range(kw):
            top, left = r * dilation[0], c * dilation[1]
            seen = x[:, :, top : top + oh * stride[0] : stride[0], left : left + ow * stride[1] : stride[1]]
            for g in range(groups):
                image, filters = seen[:, g * i : (g + 1) * i, :oh, :ow], w[g * per : (g + 1) * per, :, r, c]
                y[:, g * per : (g + 1) * per] += np.einsum("ncij,oc->noij", image, filters)
    return y


def image_and_filters(groups: int) -> tuple[tw.Tensor, tw.Tensor]:
    return tw.placeholder((B, groups * M, *tw.symbols("H W"))), tw.placeholder((groups * K, M, *tw.symbols("R C")))


CONV = kernels(tw.conv2d(*image_and_filters(1), padding=1))
CONV_ALL = kernels(tw.conv2d(*image_and_filters(2), stride=(2, 1), padding=(0, 2, 1, 0), dilation=(1, 2), groups=2))


@settings(max_examples=12)
@given(st.integers(0, 2), st.integers(0, 18), st.integers(1, 5), st.integers(3, 6), st.integers(3, 9), st.data())
def test_conv2d(b: int, m: int, k: int, h: int, w: int, data: st.DataObject):
    r = data.draw(st.integers(1, 3))
    # Whole numbers: every sum is exact.
    x, f = ramp(b, m, h, w) % 7, ramp(k, m, r, 2) % 5
    agree(CONV, (x, f), convolved(x, f, (1, 1), (1, 1, 1, 1), (1, 1), 1).astype(np.float32))
    x, f = ramp(b, 2 * m, h, w) % 7, ramp(2 * k, m, r, 2) % 5
    agree(CONV_ALL, (x, f), convolved(x, f, (2, 1), (0, 2, 1, 0), (1, 2), 2).astype(np.float32))


def test_conv2d_refuses_what_does_not_fit():
    with pytest.raises(tw.TilewrightError, match="expected 6 channels for 2 groups of 3, got 4"):
        tw.conv2d(tw.placeholder((1, 4, 5, 5)), tw.placeholder((2, 3, 3, 3)), groups=2)
    channels = tw.conv2d(tw.placeholder((1, M, 5, 5)), tw.placeholder((2, N, 3, 3)))
    for program in kernels(channels):
        with pytest.raises(tw.TilewrightError, match="M == N"):
            program(ramp(1, 3, 5, 5), ramp(2, 2, 3, 3))
    for program in kernels(tw.conv2d(tw.placeholder((1, 1, M, 5)), tw.placeholder((1, 1, 3, 3)))):
        with pytest.raises(tw.TilewrightError, match="M"):
            program(ramp(1, 1, 2, 5), ramp(1, 1, 3, 3))


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    "build",
    [
        lambda: tw.placeholder((M, N))[1:, ::2],
        lambda: tw.pad(tw.placeholder((M, N)), (1, 1), (N, 0), 1.0),
        lambda: tw.concat([tw.placeholder((M, N)), tw.placeholder((K, N))]),
        lambda: tw.reshape(tw.placeholder((M, N, K)), (M * N, K)),
        lambda: tw.gather(tw.placeholder((M, K)), tw.placeholder((N,), "int32")),
        lambda: tw.conv2d(*image_and_filters(2), stride=2, padding=1, groups=2),
    ],
    ids=["slice", "pad", "concat", "reshape", "gather", "conv2d"],
)
def test_one_kernel_of_each_compiles(build: Callable[[], tw.Tensor]):
    from tilewright.runtime.nvrtc import compile_cubin

    sources = tw.compile(build(), target="sim").source
    name = next(name for name in sources if "general32" in name)
    assert compile_cubin(sources[name], "sm_80").cubin


def test_movement_that_cancels_is_not_executed():
    x, y = tw.placeholder((M, K)), tw.placeholder((N, K))
    joined = tw.concat([x, y])
    program = tw.compile(tw.concat([joined[:M], joined[M:]]) + joined, target="sim")
    both = ramp(2, 3), ramp(3, 3) * 2
    np.testing.assert_array_equal(program(*both), 2 * np.concatenate(both))
    assert program.stats()["launches"] == 1
    assert "tile.gather" not in tw.compile(joined[:M] + x, target="sim").ir("tile")
