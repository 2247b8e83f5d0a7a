"""Products for sm_80 on matrix instructions of warps, however operands lie in memory: in any order of dims, in rows
that are whole vectors or not, at addresses that are aligned or not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.api import frontend as tw
from tilewright.api.compile import compile as compile_program

Array = np.ndarray[Any, Any]
B, M, N, K = tw.symbols("B M N K")
PRODUCTS = {
    "ik,kj->ij": ((M, K), (K, N)),
    "ki,kj->ij": ((K, M), (K, N)),
    "ik,jk->ij": ((M, K), (N, K)),
    "ki,jk->ij": ((K, M), (N, K)),
    "bik,bkj->bij": ((B, M, K), (B, K, N)),
    "ik,kj->ji": ((M, K), (K, N)),
}
SIZES = ((66, 46, 34), (67, 45, 33), (65, 66, 130), (128, 136, 64), (5, 3, 1), (1, 1, 1), (70, 70, 0))
EIGHT = 0
"""Rows are made whole vectors of 8 elements."""
LAYOUTS = {"dense": (None, 0), "padded by one": (1, 0), "whole vectors": (EIGHT, 0), "at an odd address": (None, 1)}
"""What rows are padded by, and elements in front of the first."""


def lay(shape: list[int], pad: int | None, first: int, rng: np.random.Generator) -> Array:
    """Small whole numbers in rows of a pitch, so that sums are exact."""
    width = shape[-1]
    pitch = width if pad is None else -(-width // 8) * 8 if pad == EIGHT else width + pad
    rows = int(np.prod(shape[:-1]))
    memory = rng.integers(-2, 3, rows * pitch + 8 + first).astype(ml_dtypes.bfloat16)
    return memory[first : first + rows * pitch].reshape(*shape[:-1], pitch)[..., :width]


def check(text: str, layout: str, target: str, arch: str) -> None:
    left, right = (tw.placeholder(shape, "bfloat16") for shape in PRODUCTS[text])
    kernel = compile_program(tw.einsum(text, left, right), target=target, arch=arch)
    rng = np.random.default_rng(3)
    for m, n, k in SIZES:
        sizes = {"B": 2, "M": m, "N": n, "K": k}
        strides, offset = LAYOUTS[layout]
        a, b = (lay([sizes[str(d)] for d in shape], strides, offset, rng) for shape in PRODUCTS[text])
        expected = np.einsum(text, a.astype(np.float64), b.astype(np.float64)).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(np.asarray(kernel(a, b)).astype(np.float64), expected.astype(np.float64))
    assert all("warps" in each["name"] for each in kernel.stats()["kernels"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", PRODUCTS)
def test_any_layout(text: str, layout: str) -> None:
    check(text, layout, "sim", "sm_80")


@pytest.mark.gpu
@pytest.mark.nvrtc
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", PRODUCTS)
def test_any_layout_on_gpu(text: str, layout: str) -> None:
    from tilewright.runtime.cuda_driver import device

    check(text, layout, "cuda", device().info.arch.rstrip("a"))


@pytest.mark.gpu
@pytest.mark.nvrtc
@pytest.mark.parametrize("sizes", [(2048, 2048, 512), (4097, 2047, 513), (4098, 2046, 514), (2048, 2056, 1000)])
@pytest.mark.parametrize("text", PRODUCTS)
def test_large_tiles_on_gpu(text: str, sizes: tuple[int, int, int]) -> None:
    """Tiles of 128 x 128 and 128 x 64, which small products do not take."""
    from tilewright.runtime.cuda_driver import device

    left, right = (tw.placeholder(shape, "bfloat16") for shape in PRODUCTS[text])
    kernel = compile_program(tw.einsum(text, left, right), target="cuda", arch=device().info.arch.rstrip("a"))
    named = dict(zip("BMNK", (2, *sizes), strict=True))
    rng = np.random.default_rng(4)
    a, b = (lay([named[str(d)] for d in shape], None, 0, rng) for shape in PRODUCTS[text])
    expected = np.einsum(text, a.astype(np.float32), b.astype(np.float32), optimize=True).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(np.asarray(kernel(a, b)).astype(np.float32), expected.astype(np.float32))
    assert any("warps128" in each["name"] and each["compiled"] for each in kernel.stats()["kernels"])
