"""`ldmatrix`, `mma.sync` and `cp.async` on a GPU against the simulator: mostly integers, exact in any order of sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.lowering.test_on_gpu import launch
from tests.runtime.matrix_kernels import kernel_of, matmul_inputs, pipeline_inputs, text_of
from tests.runtime.sim.test_async_copies import EDGES
from tests.runtime.sim.test_matrices import ELEMENTS, KINDS, TYPES, fragments_text, ldmatrix_text
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.cuda_driver import Device, device
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

pytestmark = [pytest.mark.gpu, pytest.mark.nvrtc]

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def gpu() -> Device:
    return device()


def assert_same(gpu: Device, text: str, arrays: Sequence[Array], scalars: Sequence[int] = (), grid: int = 1) -> None:
    """All arrays are the same after the kernel ran on the GPU and in the simulator."""
    kernel = kernel_of(text)
    flat = [a.reshape(-1) for a in arrays]
    expected = [a.copy() for a in flat]
    simulate(kernel, [Buffer(a) for a in expected], scalars, grid=grid)
    got = [a.copy() for a in flat]
    launch(gpu, compile_cubin(emit_kernel(kernel, gpu.info.arch), gpu.info.arch).cubin, kernel, grid, got, scalars)
    assert any((a != b).any() for a, b in zip(flat, expected, strict=True))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def integers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(-8, 9, shape)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_product_of_one_warp(gpu: Device, dtype: str) -> None:
    a, b = integers(7, 16, 16).astype(TYPES[dtype]), integers(7, 16, 8).astype(TYPES[dtype])
    c = np.zeros((7, 16, 8), np.float32)
    assert_same(gpu, text_of("warp_matmul").replace("bf16", dtype), [a, b, c], grid=7)
    # Numbers that do round: within the bound of a sum of 17 terms, twice for two orders.
    a, b, c = matmul_inputs(7, TYPES[dtype])
    kernel = kernel_of(text_of("warp_matmul").replace("bf16", dtype))
    flat = [x.reshape(-1) for x in (a, b, c)]
    launch(gpu, compile_cubin(emit_kernel(kernel, gpu.info.arch), gpu.info.arch).cubin, kernel, 7, flat, [])
    left, right = a.astype(np.float64), b.astype(np.float64)
    # Tensor cores may cut sums where f32 would round them: a unit of the last place for each.
    assert (abs(c - left @ right) <= 2 * 17 * 2.0**-23 * (abs(left) @ abs(right))).all()


def test_tiles_of_one_warp(gpu: Device) -> None:
    a, b = integers(6, 32, 32).astype(TYPES["bf16"]), integers(6, 16, 32).astype(TYPES["bf16"])
    assert_same(gpu, text_of("warp_tiles"), [a, b, np.zeros((6, 32, 16), np.float32)], [32], 6)


@pytest.mark.parametrize(
    ("shape", "dtype", "a_count", "b_count"),
    [("m16n8k16", "bf16", 8, 4), ("m16n8k16", "f16", 8, 4), ("m16n8k8", "bf16", 4, 2), ("m16n8k8", "f16", 4, 2),
     ("m16n8k8", "f32", 4, 2)],
)  # fmt: skip
def test_every_fragment(gpu: Device, shape: str, dtype: str, a_count: int, b_count: int) -> None:
    a, b = integers(32, a_count).astype(TYPES[dtype]), integers(32, b_count).astype(TYPES[dtype])
    c = integers(32, 4).astype(np.float32)
    assert_same(gpu, fragments_text(shape, dtype, a_count, b_count), [a, b, c])
    if dtype == "f32":
        # The bits that tf32 lacks are ignored.
        a = a + np.float32(2.0**-12)
        assert_same(gpu, fragments_text(shape, dtype, a_count, b_count), [a, b, c])


@pytest.mark.parametrize(
    ("dtype", "kind"), [(t, k) for t in ELEMENTS for k in KINDS if t in ("f16", "i16") or "trans" not in k]
)
def test_ldmatrix(gpu: Device, dtype: str, kind: str) -> None:
    size = np.dtype(ELEMENTS[dtype]).itemsize
    text, width = ldmatrix_text(dtype, size, kind)
    x = np.random.default_rng(1).permutation(1024).astype(ELEMENTS[dtype])
    at = np.random.default_rng(2).permutation(1024 * size // 16)[:64].astype(np.int32) * (16 // size)
    assert_same(gpu, text, [x, np.zeros((64, width), ELEMENTS[dtype]), at])


def test_a_pipeline_of_two_stages(gpu: Device) -> None:
    x, y, expected = pipeline_inputs(9, 5, 301)
    assert_same(gpu, text_of("pipeline"), [x, y], [x.size, 5], 9)
    assert expected.any()


@pytest.mark.parametrize("width", [2, 4, 8])
def test_zeros_beyond_the_valid_elements(gpu: Device, width: int) -> None:
    for valid in range(width + 1):
        x, y = np.arange(1, 32 * width + 1, dtype=np.float16), np.full(32 * width, 9, np.float16)
        assert_same(gpu, EDGES.replace("WIDTH", str(width)), [x, y], [valid, 0, 0])
