"""How many kernels the examples take, and that none of them needs scratch memory but for a sum in parts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from examples import elementwise_chain, matmul_bias_relu, row_softmax
from tilewright.runtime.kernel import Kernel


def launches(kernel: Kernel, *arrays: np.ndarray[Any, Any]) -> int:
    kernel(*arrays)
    return kernel.stats()["launches"]


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def no_scratch(kernel: Kernel) -> bool:
    return "host.alloc" not in kernel.ir("host")


@pytest.mark.parametrize("columns", [1, 129, 4096, 4097])
def test_a_row_softmax_is_one_kernel_on_chip_and_walked(columns: int):
    kernel = tw.compile(row_softmax.build(), target="sim")
    assert launches(kernel, ones(3, columns)) == 1
    assert no_scratch(kernel)


def only_parts_in_scratch(kernel: Kernel) -> bool:
    """Whether what is allocated are the sums of parts, which small products with a long sum are cut into."""
    allocated = re.findall(r"%(\w+) = host.alloc", kernel.ir("host"))
    return all(name.startswith("partial") for name in allocated)


def test_a_product_with_bias_and_relu_is_one_kernel():
    kernel = tw.compile(matmul_bias_relu.build(), target="sim")
    assert launches(kernel, ones(40, 50, 512), ones(512, 256), ones(256)) == 1
    # Six rows are 16 tiles: the sum is cut into parts, and the second kernel has the bias and the relu.
    assert launches(kernel, ones(2, 3, 512), ones(512, 256), ones(256)) == 2
    assert only_parts_in_scratch(kernel)


def test_the_elementwise_example_is_one_kernel():
    kernel = tw.compile(elementwise_chain.build(), target="sim")
    assert launches(kernel, ones(3, 5), ones(5), ones(5), ones(3, 1)) == 1
    assert no_scratch(kernel)


def test_six_maps_are_one_kernel():
    M, N = tw.symbols("M N")
    x, y = tw.placeholder((M, N), "float32"), tw.placeholder((N,), "float32")
    a = tw.exp(x)
    b = a + y
    c = tw.relu(b)
    d = c * 0.5
    e = tw.sqrt(d)
    module = tw.build_module(tw.minimum(e, y))
    assert str(module).count("lin.map") == 6
    kernel = tw.compile(module, target="sim")
    values, shift = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5), np.linspace(0, 2, 5, dtype=np.float32)
    expected = np.minimum(np.sqrt(np.maximum(np.exp(values) + shift, 0) * 0.5), shift)
    np.testing.assert_allclose(kernel(values, shift), expected, rtol=1e-6)
    assert kernel.stats()["launches"] == 1
    assert no_scratch(kernel)


def test_a_product_of_rank_3_with_rank_2_is_one_kernel_without_scratch():
    B, M, N, K = tw.symbols("B M N K")
    kernel = tw.compile(tw.matmul(tw.placeholder((B, M, K)), tw.placeholder((K, N))), target="sim")
    a, b = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert kernel.stats()["launches"] == 1
    assert only_parts_in_scratch(kernel)


@pytest.mark.parametrize("shapes", [((0, 5), (5,), (5,), (0, 1)), ((5, 0), (0,), (0,), (5, 1))])
def test_an_empty_result_launches_nothing(shapes: tuple[tuple[int, ...], ...]):
    kernel = tw.compile(elementwise_chain.build(), target="sim")
    assert launches(kernel, *[ones(*shape) for shape in shapes]) == 0
