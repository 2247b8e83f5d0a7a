"""The driver layer on a real GPU: launches on every kind of stream, transfers, sharing with torch, errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import libcuda
from tilewright.runtime.arguments import intake
from tilewright.runtime.cuda_driver import Device, Function, cuda_unavailable_reason, device
from tilewright.runtime.dtypes import element_type
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.parameters import ParameterLayout
from tilewright.runtime.results import DeviceArray, empty_like_kind
from tilewright.runtime.streams import current_stream_of
from tilewright.runtime.transfers import download, new_on_device, upload

pytestmark = [pytest.mark.gpu, pytest.mark.nvrtc]

SOURCE = """
extern "C" __global__ void scale(float *y, const float *x, float a, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void reverse(float *y, const float *x, int n) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = s[n - 1 - i];
}
extern "C" __global__ void gather(unsigned short *y, const unsigned short *x, int rows, int columns,
                                  long long row_stride, long long column_stride) {
  for (int i = threadIdx.x; i < rows * columns; i += blockDim.x)
    y[i] = x[(i / columns) * row_stride + (i % columns) * column_stride];
}
extern "C" __global__ void wait_then_set(float *y, long long cycles, float value) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
  *y = value;
}
"""
KINDS = {
    "scale": ("ptr", "ptr", "f32", "i64"),
    "reverse": ("ptr", "ptr", "i32"),
    "gather": ("ptr", "ptr", "i32", "i32", "i64", "i64"),
    "wait_then_set": ("ptr", "i64", "f32"),
}
LONG = 200_000_000
"""Cycles: about 0.1 s."""


@pytest.fixture(scope="module")
def gpu() -> Device:
    assert cuda_unavailable_reason() is None
    return device()


@pytest.fixture(scope="module")
def kernels(gpu: Device) -> dict[str, Function]:
    cubin = compile_cubin(SOURCE, gpu.info.arch).cubin
    module = gpu.load_module(cubin)
    layouts = {name: ParameterLayout.from_cubin(cubin, name, kinds) for name, kinds in KINDS.items()}
    assert all(layouts[name] == ParameterLayout.of(kinds) for name, kinds in KINDS.items())
    return {name: module.function(name, layout) for name, layout in layouts.items()}


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def scaled(gpu: Device, kernels: dict[str, Function], stream: int, n: int = 5000) -> None:
    """One upload, launch and download on a stream, against NumPy."""
    x = np.arange(n, dtype=np.float32)
    there = upload(gpu, intake(x, "f32", "x"), stream)
    result = new_on_device(gpu, (n,), "f32", stream)
    kernels["scale"].launch((-(-n // 256), 1, 1), 256, 0, (result.pointer, there.pointer, 2.5, n), stream)
    back = np.zeros_like(x)
    download(gpu, result, back, stream)
    np.testing.assert_array_equal(back, x * np.float32(2.5))


def test_the_device_is_described(gpu: Device) -> None:
    info = gpu.info
    major, minor = info.compute_capability
    assert info.arch == ("sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}")
    assert info.multiprocessors > 0
    assert info.smem_optin_bytes > 48 * 1024
    assert info.memory_bytes > 1 << 30


def test_launches_on_default_own_and_foreign_streams(gpu: Device, kernels: dict[str, Function]) -> None:
    scaled(gpu, kernels, 0)
    scaled(gpu, kernels, gpu.new_stream())
    per_thread_default = 2
    scaled(gpu, kernels, per_thread_default)
    kernels["scale"].launch((0, 1, 1), 256, 0, (0, 0, 0.0, 0))
    gpu.synchronize()


def test_launches_from_another_thread(gpu: Device, kernels: dict[str, Function]) -> None:
    problems: list[BaseException] = []

    def work() -> None:
        try:
            assert libcuda.current_context() == 0
            scaled(gpu, kernels, 0)
            scaled(gpu, kernels, gpu.new_stream())
            assert libcuda.current_context() == 0
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert problems == []


@pytest.mark.parametrize("n", [1, 12_000, 25_000])
def test_dynamic_shared_memory_up_to_100_kb(n: int, gpu: Device, kernels: dict[str, Function]) -> None:
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    there, result = upload(gpu, intake(x, "f32", "x"), 0), new_on_device(gpu, (n,), "f32", 0)
    for stream in (0, 2):
        gpu.fill(result.pointer, 0, 4 * n, stream)
        kernels["reverse"].launch((1, 1, 1), 256, 4 * n, (result.pointer, there.pointer, n), stream)
        back = np.zeros_like(x)
        download(gpu, result, back, stream)
        np.testing.assert_array_equal(back, x[::-1])


def test_occupancy(gpu: Device, kernels: dict[str, Function]) -> None:
    reverse, per_multiprocessor = kernels["reverse"], gpu.info.threads_per_multiprocessor
    assert reverse.occupancy(1024, 0) == per_multiprocessor // 1024
    assert reverse.occupancy(32, gpu.info.smem_optin_bytes) == 1
    assert reverse.info.registers <= 255
    assert reverse.info.static_smem_bytes == 0


BASE = np.arange(64 * 40, dtype=np.float32).reshape(64, 40)


@pytest.mark.parametrize(
    "view",
    [BASE, BASE.T, BASE[::-1, 3:9], BASE[::2, ::-7], np.broadcast_to(BASE[:1], BASE.shape), BASE[:, :1], BASE[:0]],
    ids=["contiguous", "transposed", "reversed", "sparse", "broadcast", "column", "empty"],
)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_strided_arrays_arrive_whole(
    dtype: str, view: np.ndarray[Any, Any], gpu: Device, kernels: dict[str, Function]
) -> None:
    view = _cast_view(view, dtype)
    there = upload(gpu, intake(view, dtype, "x"), 0)
    result = new_on_device(gpu, view.shape, dtype, 0)
    rows, columns = view.shape
    kernels["gather"].launch((1, 1, 1), 256, 0, (result.pointer, there.pointer, rows, columns, *there.strides))
    back = np.zeros(view.shape, view.dtype)
    download(gpu, result, back, 0)
    np.testing.assert_array_equal(back.view(np.uint16), np.ascontiguousarray(view).view(np.uint16))


def test_copies_on_the_device_and_fills(gpu: Device) -> None:
    first, second = new_on_device(gpu, (100,), "i32", 0), new_on_device(gpu, (100,), "i32", 0)
    gpu.fill(first.pointer, 0x11, 400)
    gpu.copy_on_device(second.pointer, first.pointer, 400)
    back = np.zeros(100, np.int32)
    download(gpu, second, back, 0)
    assert (back == 0x11111111).all()


def test_a_stream_waits_for_another(gpu: Device, kernels: dict[str, Function]) -> None:
    first, second = gpu.new_stream(), gpu.new_stream()
    x, y = new_on_device(gpu, (1,), "f32", first), new_on_device(gpu, (1,), "f32", second)
    gpu.fill(x.pointer, 0, 4, first)
    gpu.synchronize()
    kernels["wait_then_set"].launch((1, 1, 1), 1, 0, (x.pointer, LONG, 7.0), first)
    gpu.order(first, second)
    kernels["scale"].launch((1, 1, 1), 32, 0, (y.pointer, x.pointer, 2.0, 1), second)
    back = np.zeros(1, np.float32)
    download(gpu, y, back, second)
    assert back[0] == 14.0


def test_errors_are_one_line(gpu: Device, kernels: dict[str, Function]) -> None:
    with pytest.raises(TilewrightError, match="could not load a module"):
        gpu.load_module(b"\x7fELF nonsense")
    with pytest.raises(TilewrightError, match="could not find kernel 'absent'"):
        kernels["scale"].module.function("absent")
    for stream in (0, 2):
        with pytest.raises(TilewrightError, match=r"launch of kernel 'scale', grid \(1, 1, 1\), 2048 threads of at"):
            kernels["scale"].launch((1, 1, 1), 2048, 0, (0, 0, 0.0, 0), stream)
    with pytest.raises(TilewrightError, match="bytes of dynamic shared memory"):
        kernels["reverse"].launch((1, 1, 1), 32, 1 << 20, (0, 0, 0))
    with pytest.raises(TilewrightError, match=r"out of memory: wanted \d+ bytes, \d+ free of \d+"):
        gpu.allocate(1 << 50)
    with pytest.raises(TilewrightError, match="unknown address"):
        gpu.check_pointer(np.zeros(3).ctypes.data, "argument 'x'")
    with pytest.raises(TilewrightError, match="expected a device from 0 to"):
        device(99)
    scaled(gpu, kernels, 0)


def test_torch_tensors_share_memory_and_stream(gpu: Device, kernels: dict[str, Function], torch: Any) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.full((1000,), 3.0, device="cuda")
        torch.cuda._sleep(LONG)
        x.mul_(2)
        argument = intake(x, "f32", "x")
        assert (argument.kind, argument.pointer, argument.stream) == ("torch", x.data_ptr(), side.cuda_stream)
        assert current_stream_of(x) == side.cuda_stream
        gpu.check_pointer(argument.pointer, "x")
        y = empty_like_kind("torch", (1000,), "f32", "cuda")
        kernels["scale"].launch((4, 1, 1), 256, 0, (y.data_ptr(), argument.pointer, 0.5, 1000), side.cuda_stream)
        assert (y + 1 == 4).all().item()


def test_torch_layouts_and_bf16(torch: Any) -> None:
    base = torch.arange(48, device="cuda", dtype=torch.float32).reshape(6, 8).to(torch.bfloat16)
    for tensor in (base, base.T, base[1::2, ::3], base[:1].expand(6, 8), base[2, 3]):
        argument = intake(tensor, "bf16", "x")
        assert argument.pointer == tensor.data_ptr()
        assert argument.shape == tuple(tensor.shape)
        assert all(
            a == b for a, b, size in zip(argument.strides, tensor.stride(), tensor.shape, strict=True) if size > 1
        )
    host = intake(base.cpu(), "bf16", "x")
    assert host.array is not None
    np.testing.assert_array_equal(host.array.astype(np.float32), base.float().cpu().numpy())
    with pytest.raises(TilewrightError, match="grad"):
        intake(torch.zeros(3, device="cuda", requires_grad=True), "f32", "x")
    with pytest.raises(TilewrightError, match="expected element type bf16, got f32"):
        intake(base.float(), "bf16", "x")


def test_torch_takes_our_arrays(gpu: Device, kernels: dict[str, Function], torch: Any) -> None:
    stream = gpu.new_stream()
    result = empty_like_kind("dlpack", (4, 5), "f32", "cuda", stream=stream)
    assert isinstance(result, DeviceArray)
    gpu.fill(result.tensor.pointer, 0, 80, stream)
    kernels["wait_then_set"].launch((1, 1, 1), 1, 0, (result.tensor.pointer, LONG, 9.0), stream)
    shared = torch.from_dlpack(result)
    assert shared.data_ptr() == result.tensor.pointer
    assert shared.sum().item() == 9.0
    through_interface = torch.as_tensor(result, device="cuda")
    assert through_interface.data_ptr() == result.tensor.pointer
    assert result.to_numpy()[0, 0] == 9.0
    del result
    shared.add_(1)
    assert shared.sum().item() == 29.0


def test_a_cuda_graph_of_torch_captures_our_launches(gpu: Device, kernels: dict[str, Function], torch: Any) -> None:
    x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")

    def launch() -> None:
        args = (y.data_ptr(), x.data_ptr(), 3.0, 1000)
        kernels["scale"].launch((4, 1, 1), 256, 0, args, torch.cuda.current_stream().cuda_stream)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        launch()
    x.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 15).all().item()


def _cast_view(view: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The same view of BASE in a 16-bit type."""
    cast = BASE.astype(element_type(dtype).numpy_dtype())
    offset = view.ctypes.data - BASE.ctypes.data
    result = np.ndarray(
        view.shape, cast.dtype, buffer=cast.view(np.uint8).reshape(-1).data, offset=offset // 2,
        strides=tuple(stride // 2 for stride in view.strides),
    )  # fmt: skip
    np.testing.assert_array_equal(result.astype(np.float32), np.asarray(view).astype(cast.dtype).astype(np.float32))
    return result
