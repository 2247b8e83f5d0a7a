"""`ldmatrix`, `mma.sync` and `cp.async` from the source on this machine's cores: the simulator's bits, and faults."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.cpu.support import assert_same_bits, built, launch, on_simulator
from tests.runtime.matrix_kernels import kernel_of, matmul_inputs, pipeline_inputs, text_of, tiles_inputs, without
from tests.runtime.sim.test_matrices import TYPES, fragments_text, ldmatrix_text
from tilewright.diagnostics import TilewrightError

pytestmark = pytest.mark.cxx


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_product_of_one_warp(dtype: str) -> None:
    a, b, c = matmul_inputs(5, TYPES[dtype])
    kernel = kernel_of(text_of("warp_matmul").replace("bf16", dtype))
    expected = c.copy()
    on_simulator(kernel, [a.reshape(-1), b.reshape(-1), expected.reshape(-1)], [], 5)
    (compiled,) = built([kernel])
    for options in ({"workers": 1}, {"workers": 2}, {"seed": 1}, {"seed": 2}):
        got = c.copy()
        launch(compiled, [a, b, got], [], 5, **options)
        assert_same_bits(got, expected, str(options))
    assert expected.any()


def test_tiles_of_one_warp() -> None:
    a, b, c = tiles_inputs(4)
    kernel = kernel_of(text_of("warp_tiles"))
    got, expected = c.copy(), c.copy()
    on_simulator(kernel, [a.reshape(-1), b.reshape(-1), expected.reshape(-1)], [32], 4)
    launch(built([kernel])[0], [a, b, got], [32], 4, seed=5)
    assert_same_bits(got, expected)
    assert expected.any()


@pytest.mark.parametrize(
    ("shape", "dtype", "a_count", "b_count"),
    [("m16n8k16", "bf16", 8, 4), ("m16n8k8", "f16", 4, 2), ("m16n8k8", "f32", 4, 2)],
)
def test_every_fragment(shape: str, dtype: str, a_count: int, b_count: int) -> None:
    text = fragments_text(shape, dtype, a_count, b_count)
    kernel, random = kernel_of(text), np.random.default_rng(3)
    a, b = (random.standard_normal(32 * n).astype(TYPES[dtype]) for n in (a_count, b_count))
    c = random.standard_normal(128).astype(np.float32)
    got, expected = c.copy(), c.copy()
    on_simulator(kernel, [a, b, expected], [], 1)
    launch(built([kernel])[0], [a, b, got], [], 1, seed=4)
    assert_same_bits(got, expected)
    assert (got != c).all()


@pytest.mark.parametrize("kind", ["x1", "x4", "x2 trans"])
def test_ldmatrix(kind: str) -> None:
    text, width = ldmatrix_text("f16", 2, kind)
    x = np.random.default_rng(1).standard_normal(1024).astype(np.float16)
    at = np.random.default_rng(2).permutation(128)[:64].astype(np.int32) * 8
    got, expected = np.zeros(64 * width, np.float16), np.zeros(64 * width, np.float16)
    kernel = kernel_of(text)
    on_simulator(kernel, [x, expected, at], [], 1)
    launch(built([kernel])[0], [x, got, at], [], 1, seed=3)
    assert_same_bits(got, expected)
    assert expected.any()


def test_a_pipeline_of_two_stages() -> None:
    x, y, _ = pipeline_inputs(3, 4, 301)
    kernel = kernel_of(text_of("pipeline"))
    expected = y.copy()
    on_simulator(kernel, [x, expected], [x.size, 4], 3)
    (compiled,) = built([kernel])
    for options in ({"workers": 1}, {"workers": 2}, {"seed": 1}, {"seed": 2}):
        got = y.copy()
        launch(compiled, [x, got], [x.size, 4], 3, **options)
        assert_same_bits(got, expected, str(options))


def test_a_wait_that_is_too_weak_gives_wrong_values() -> None:
    x, y, expected = pipeline_inputs(1, 4, 0)
    wait = "simt.cp_async_wait pending 1"
    weak = text_of("pipeline").replace(wait, "simt.cp_async_wait pending 2")
    # All is waited for in the end, so that only the values tell.
    weak = weak.replace("  %block_to", "  simt.cp_async_wait pending 0\n  %block_to")
    launch(built([kernel_of(weak)])[0], [x, y], [x.size, 4], 1)
    # What was never written reads as NaN.
    assert not (abs(y - expected) < 1e-5).any()


def test_a_thread_that_ends_before_its_copies() -> None:
    x, y, _ = pipeline_inputs(1, 4, 0)
    (kernel,) = built([kernel_of(without(text_of("pipeline"), "simt.cp_async_wait pending 1"))])
    with pytest.raises(
        TilewrightError, match=r"@pipeline: block 0: thread 0 ends with copies .* line \d+ of the source"
    ):
        launch(kernel, [x, y], [x.size, 4], 1)
    # The next launch starts afresh.
    (good,) = built([kernel_of(text_of("pipeline"))])
    launch(good, [x, y], [x.size, 4], 1)


def test_a_product_that_some_lanes_do_not_reach() -> None:
    text = text_of("warp_matmul")
    (line,) = (each for each in text.splitlines() if each.strip().startswith("simt.mma_sync"))
    branch = f"%half = arith.constant 16 : i32\n%some = arith.cmpi slt, %t, %half : i32\nscf.if %some {{\n{line}\n}}"
    (kernel,) = built([kernel_of(text.replace(line, branch))])
    with pytest.raises(
        TilewrightError, match=r"deadlock: thread 0 waits at line \d+ of the source for lanes of its warp"
    ):
        launch(kernel, [*matmul_inputs(1)], [], 1)
