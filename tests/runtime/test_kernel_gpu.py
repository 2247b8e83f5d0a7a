"""Kernels on a real GPU: host arrays, torch tensors, streams, outputs, statistics. Numbers are NumPy's."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda_driver import device

pytestmark = [pytest.mark.gpu, pytest.mark.nvrtc]


def integers(*shape: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, so that sums are exact."""
    return (np.arange(int(np.prod(shape))) % 13 - 6).reshape(shape).astype(np.float32)


@pytest.fixture(scope="module")
def product() -> tw.Kernel:
    m, n, k = tw.symbols("M N K")
    a, b = tw.placeholder((m, k), name="a"), tw.placeholder((k, n), name="b")
    return tw.compile(tw.relu(tw.matmul(a, b)), target="cuda")


@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 20, 65), (128, 64, 96), (70, 0, 9), (0, 4, 4), (257, 129, 31)])
def test_host_arrays_go_there_and_back(product: tw.Kernel, shape: tuple[int, int, int]):
    m, k, n = shape
    a, b = integers(m, k), integers(k, n)
    result = product(a, b)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, np.maximum(a @ b, 0))


def test_host_views_keep_their_strides(product: tw.Kernel):
    a, b = integers(60, 90)[::2, ::-3], integers(40, 30).T
    np.testing.assert_array_equal(product(a, b[:, :17]), np.maximum(a @ b[:, :17], 0))


def test_host_outputs_of_any_layout(product: tw.Kernel):
    a, b = integers(20, 8), integers(8, 12)
    for out in (np.empty((20, 12), np.float32), np.empty((12, 20), np.float32).T):
        assert product(a, b, out=out) is out
        np.testing.assert_array_equal(out, np.maximum(a @ b, 0))


def test_statistics_are_the_assemblers_and_the_drivers(product: tw.Kernel):
    product(integers(64, 64), integers(64, 64))
    used = [k for k in product.stats()["kernels"] if k["compiled"]]
    assert used
    for kernel in used:
        assert kernel["registers"] > 0
        assert kernel["spill_bytes"] == 0
        assert kernel["occupancy"] >= 1
    assert product.stats()["launches"] == 1
    assert product.stats()["pipeline_runs"] == 1
    assert product.backend == "cuda"


def test_torch_tensors_are_used_in_place_on_their_stream(product: tw.Kernel):
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(integers(100, 70)).cuda(), torch.from_numpy(integers(70, 50)).cuda()
    expected = torch.relu(a @ b)
    result = product(a, b)
    assert isinstance(result, torch.Tensor)
    assert result.is_cuda
    assert torch.equal(result, expected)
    out = torch.empty(50, 100, device="cuda").T
    assert product(a, b, out=out) is out
    assert torch.equal(out, expected)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        later = product(a * 1, b[:, :])
        assert torch.equal(later, expected)
    assert torch.equal(product(a[::2, 1:], b[1:]), torch.relu(a[::2, 1:] @ b[1:]))


def test_a_stream_may_be_named(product: tw.Kernel):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(integers(16, 16)).cuda()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    result = product(a, a, stream=stream)
    stream.synchronize()
    assert torch.equal(result, torch.relu(a @ a))


def test_a_slow_producer_on_another_stream_is_waited_for(product: tw.Kernel):
    torch = pytest.importorskip("torch")
    values, b = torch.from_numpy(integers(64, 64)).cuda(), torch.from_numpy(integers(64, 64)).cuda()
    expected = torch.relu(values @ b)
    product(values, b)  # compiled and loaded: what follows is queued at once
    for named in (False, True):
        a = torch.zeros_like(values)
        torch.cuda.synchronize()
        producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(producer):
            torch.cuda._sleep(200_000_000)  # about a tenth of a second before the values are there
            a.copy_(values)
            started = time.perf_counter()
            result = product(a, b, stream=consumer) if named else product(a, b)
            queued = time.perf_counter() - started
        assert queued < 0.05, "the call must be queued behind the producer, not wait for it on the host"
        (consumer if named else producer).synchronize()
        assert torch.equal(result, expected)


def test_layouts_that_came_before_are_not_mixed_up(product: tw.Kernel):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(integers(40, 40)).cuda()
    views = [a, a.T, a[:, 1:], a[1:], a[:0], a[:, :0], a[::2]]
    for _ in range(2):
        for left in views:
            right = a[: left.shape[1]]
            assert torch.equal(product(left, right), torch.relu(left @ right))
    wide = torch.empty(40, 160, device="cuda")
    for start in (0, 4, 40, 80, 120, 0):
        out = wide[:, start : start + 40]
        assert product(a, a, out=out) is out
        assert torch.equal(out, torch.relu(a @ a))
    for _ in range(2):  # remembered or not, an output in an input's memory is refused
        wide[:, :40] = a
        left, right, out = wide[:, :40], wide[:, 40:80], wide[:, 80:120]
        right.copy_(a)
        assert product(left, right, out=out) is out
        assert torch.equal(out, torch.relu(a @ a)), "columns side by side do not overlap"
        with pytest.raises(tw.TilewrightError, match="no memory in common"):
            product(left, right, out=wide[:, 76:116])
    m, n = tw.symbols("M N")
    x = tw.placeholder((m, n))
    two = tw.compile((tw.matmul(tw.softmax(x), tw.transpose(x)), x + 1), target="cuda")
    for _ in range(3):
        first, second = two(a)
        torch.testing.assert_close(first, torch.softmax(a, 1) @ a.T, rtol=1e-4, atol=1e-4)
        assert torch.equal(second, a + 1)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.equal(product(a * 1, a), torch.relu(a @ a))
    with pytest.raises(tw.TilewrightError, match="K = 40 from argument 0 dim 1, 39 from argument 1 dim 0"):
        product(a, a[1:])


def test_torch_tensors_out_of_the_ordinary(product: tw.Kernel):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(integers(12, 12)).cuda()
    with pytest.raises(tw.TilewrightError, match="argument 1"):
        product(a, a.clone().requires_grad_())
    with pytest.raises(tw.TilewrightError, match=r"argument 1 \('b'\): expected element type f32"):
        product(a, a.double())
    with pytest.raises(tw.TilewrightError, match="no memory in common with input 'a'"):
        product(a, a.clone(), out=a)
    assert torch.equal(product(a, a[:, :1]), torch.relu(a @ a[:, :1]))
    assert product(a[:0], a).shape == (0, 12)
    mixed = product(a, integers(12, 12))
    assert torch.equal(mixed, torch.relu(a @ a))
    half = tw.placeholder(tw.symbols("N"), "bfloat16")
    values = torch.arange(100, device="cuda").bfloat16()
    assert torch.equal(tw.compile(half + half, target="cuda")(values), values * 2)


def test_scratch_and_several_results():
    m, n = tw.symbols("M N")
    x = tw.placeholder((m, n))
    y = tw.softmax(x)
    kernel = tw.compile((y, tw.sum(tw.matmul(y, tw.transpose(x)), 1)), target="cuda")
    values = integers(50, 37)
    weights = np.exp(values - values.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    first, second = kernel(values)
    np.testing.assert_allclose(first, weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, (weights @ values.T).sum(1), rtol=1e-4, atol=1e-3)


def test_scalars_by_value():
    x, factor = tw.placeholder(tw.symbols("N")), tw.placeholder((), "float32")
    kernel = tw.compile(x * factor, target="cuda")
    np.testing.assert_array_equal(kernel(integers(1000), -2.0), -2 * integers(1000))


def test_memory_of_one_call_serves_the_next(product: tw.Kernel):
    a, b = integers(64, 64), integers(64, 64)
    product(a, b)
    before = device(0)._free_bytes()  # pyright: ignore[reportPrivateUsage]
    for _ in range(50):
        product(a, b)
    assert device(0)._free_bytes() == before  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_results_are_the_same_in_all_bits_over_100_launches(dtype: str):
    # Large and small tiles, parts of a sum, few rows, copied operands; other work lies between the launches.
    torch = pytest.importorskip("torch")
    m, n, k = tw.symbols("M N K")
    a, b, bias = tw.placeholder((m, k), dtype), tw.placeholder((k, n), dtype), tw.placeholder((n,), dtype)
    kernel = tw.compile(tw.gelu(tw.matmul(a, b) + bias), target="cuda")
    torch.manual_seed(0)
    for rows, columns, depth in (
        (2048, 2048, 512),
        (256, 256, 16384),
        (3, 4096, 4096),
        (1023, 1025, 2047),
        (65, 7, 99),
    ):
        x, y, z = (
            torch.randn(*shape, device="cuda").to(getattr(torch, dtype))
            for shape in ((rows, depth), (depth, columns), (columns,))
        )
        first = kernel(x, y, z)
        busy = torch.empty(1 << 22, device="cuda")
        for number in range(99):
            if number % 7 == 0:
                busy.fill_(number)
            assert torch.equal(kernel(x, y, z).view(torch.uint8), first.view(torch.uint8)), (rows, columns, depth)


def test_auto_is_cuda_here():
    x = tw.placeholder(tw.symbols("N"))
    assert tw.compile(x + 1).backend == "cuda"
