"""The driver layer over a made-up driver: which call is made when, and what errors say. test_cuda_gpu.py has a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import cuda_driver, libcuda, results
from tilewright.runtime.arguments import intake
from tilewright.runtime.cuda_driver import Device, arch_of
from tilewright.runtime.parameters import ParameterLayout
from tilewright.runtime.results import DeviceArray, empty_like_kind
from tilewright.runtime.transfers import download, new_on_device, upload

PRIMARY = 0xC0


class Attribute(Enum):
    """Stands for both of pycuda's attribute enumerations; the value is what the device answers."""

    MULTIPROCESSOR_COUNT = 132
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 232448
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 233472
    MAX_THREADS_PER_MULTIPROCESSOR = 2048
    L2_CACHE_SIZE = 52428800
    NUM_REGS = 64
    LOCAL_SIZE_BYTES = 0
    SHARED_SIZE_BYTES = 1024
    MAX_THREADS_PER_BLOCK = 512
    MAX_DYNAMIC_SHARED_SIZE_BYTES = -1


class FakeDriver:
    """pycuda.driver and libcuda in one: a stack of contexts, memory as bytearrays, and a log of calls."""

    class Error(Exception):
        pass

    class MemoryError(Error):
        pass

    class LogicError(Error):
        pass

    device_attribute = function_attribute = Attribute

    def __init__(self) -> None:
        self.contexts: list[int] = []
        self.log: list[tuple[Any, ...]] = []
        self.memory: dict[int, bytearray] = {}
        self.room = 1 << 24
        self.capability: tuple[int, int] = (9, 0)
        self.launch_error: Exception | None = None
        self.raw_status = 0
        self.Context = SimpleNamespace(pop=self.contexts.pop, synchronize=lambda: self.note("synchronize"))

    def note(self, *what: Any) -> None:
        assert self.contexts[-1:] == [PRIMARY], f"{what} outside the primary context"
        self.log.append(what)

    def init(self) -> None:
        pass

    def Device(self, ordinal: int) -> Any:
        return SimpleNamespace(
            name=lambda: "Fake GPU",
            compute_capability=lambda: self.capability,
            total_memory=lambda: self.room,
            get_attribute=lambda attribute: attribute.value,
            retain_primary_context=lambda: SimpleNamespace(handle=PRIMARY, push=lambda: self.contexts.append(PRIMARY)),
        )

    def Stream(self) -> Any:
        self.note("stream")
        return SimpleNamespace(handle=0x5000 + len(self.log))

    def module_from_buffer(self, cubin: bytes) -> Any:
        self.note("module", cubin)
        if cubin == b"bad":
            raise self.LogicError("cuModuleLoadDataEx failed: device kernel image is invalid - \n details")
        return SimpleNamespace(get_function=self.get_function)

    def get_function(self, name: str) -> Any:
        self.note("function", name)

        def launch(grid: Any, block: Any, args: bytes, smem: int, stream: Any) -> None:
            self.note("launch", grid, block, bytes(args), smem, stream and stream.handle)
            if self.launch_error is not None:
                raise self.launch_error

        return SimpleNamespace(
            get_attribute=lambda attribute: attribute.value,
            set_attribute=lambda attribute, value: self.note("allow", value),
            _launch_kernel=launch,
        )

    def mem_alloc(self, size: int) -> Any:
        self.note("alloc", size)
        if sum(map(len, self.memory.values())) + size > self.room:
            raise self.MemoryError("cuMemAlloc failed: out of memory")
        pointer = (len(self.log) + 1) << 32
        self.memory[pointer] = bytearray(size)

        class Raw:
            def __int__(self) -> int:
                return pointer

            free = staticmethod(lambda: self.release(pointer))

        return Raw()

    def release(self, pointer: int) -> None:
        self.note("free")
        del self.memory[pointer]

    def mem_get_info(self) -> tuple[int, int]:
        return self.room - sum(map(len, self.memory.values())), self.room

    # What goes through libcuda.

    def current_context(self) -> int:
        return self.contexts[-1] if self.contexts else 0

    def call(self, name: str, *arguments: Any, action: str = "") -> None:
        self.note(name, *arguments[3:] if "Memcpy" in name else arguments)
        if name == "cuMemcpyHtoDAsync_v2":
            pointer, host, size, _ = arguments
            block = max(start for start in self.memory if start <= pointer)
            data = np.ctypeslib.as_array((libcuda.ctypes.c_uint8 * size).from_address(host)).tobytes()
            self.memory[block][pointer - block : pointer - block + size] = data
        elif name == "cuMemcpyDtoHAsync_v2":
            host, pointer, size, _ = arguments
            block = max(start for start in self.memory if start <= pointer)
            libcuda.ctypes.memmove(host, bytes(self.memory[block][pointer - block :][:size]), size)

    def wait_for(self, event: int, first: int, then: int) -> None:
        self.note("wait", first, then)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    fake = FakeDriver()
    monkeypatch.setattr(cuda_driver, "_pycuda", lambda: fake)
    monkeypatch.setattr(libcuda, "current_context", fake.current_context)
    monkeypatch.setattr(libcuda, "push_context", fake.contexts.append)
    monkeypatch.setattr(libcuda, "pop_context", fake.contexts.pop)
    monkeypatch.setattr(libcuda, "call", fake.call)
    monkeypatch.setattr(libcuda, "wait_for", fake.wait_for)
    monkeypatch.setattr(libcuda, "new_event", lambda: 77)
    monkeypatch.setattr(libcuda, "is_page_locked", lambda pointer: False)
    monkeypatch.setattr(libcuda, "error_text", lambda status: f"status {status}")

    class RawFunction:
        def __init__(self, cubin: bytes, name: str) -> None:
            fake.note("raw", cubin, name)

        def launch(self, *arguments: Any) -> int:
            fake.note("raw launch", *arguments)
            return fake.raw_status

        def blocks_per_multiprocessor(self, block: int, smem_bytes: int) -> int:
            return 3

    monkeypatch.setattr(libcuda, "RawFunction", RawFunction)
    yield fake
    assert fake.contexts == [], "a context was left current"


def test_the_device_is_described(driver: FakeDriver) -> None:
    info = Device(0).info
    assert (info.name, info.compute_capability, info.arch) == ("Fake GPU", (9, 0), "sm_90a")
    assert (info.multiprocessors, info.smem_optin_bytes, info.l2_bytes) == (132, 232448, 52428800)
    driver.capability = (7, 5)
    with pytest.raises(TilewrightError, match=r"Fake GPU: expected compute capability 8\.0 or later, got 7\.5"):
        Device(0)


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100"), ((12, 1), "sm_121")],
)
def test_architectures(capability: tuple[int, int], arch: str) -> None:
    assert arch_of(capability) == arch


def test_launches_on_default_own_and_foreign_streams(driver: FakeDriver) -> None:
    device = Device(0)
    function = device.load_module(b"cubin").function("k", ParameterLayout.of(("i32", "ptr")))
    assert (function.info.registers, function.info.static_smem_bytes, function.info.max_threads) == (64, 1024, 512)
    own = device.new_stream()
    driver.log.clear()
    packed = ParameterLayout.of(("i32", "ptr")).pack((3, 4096))
    function.launch((2, 3, 4), 128, 0, packed)
    function.launch((2, 1, 1), 128, 16, (3, 4096), own)
    function.launch((2, 1, 1), 128, 16, bytearray(packed), 0x9999)
    function.launch((2, 1, 1), 128, 16, packed, 0x9999)
    function.launch((0, 1, 1), 128, 16, packed)
    function.launch((1, 5, 0), 128, 16, packed, 0x9999)
    assert driver.log == [
        ("launch", (2, 3, 4), (128, 1, 1), packed, 0, None),
        ("launch", (2, 1, 1), (128, 1, 1), packed, 16, own),
        ("raw", b"cubin", "k"),
        ("raw launch", (2, 1, 1), 128, 16, packed, 0x9999),
        ("raw launch", (2, 1, 1), 128, 16, packed, 0x9999),
    ]
    with pytest.raises(TilewrightError, match="kernel 'j': expected packed parameters, got 2 values"):
        device.load_module(b"cubin").function("j").launch((1, 1, 1), 32, 0, (1, 2))


def test_shared_memory_is_opted_in_once(driver: FakeDriver) -> None:
    function = Device(0).load_module(b"cubin").function("k")
    driver.log.clear()
    static = 1024
    for smem in (48 * 1024 - static, 48 * 1024 - static + 1, 48 * 1024, 100_000, 60_000):
        function.launch((1, 1, 1), 32, smem, b"")
    assert [entry[1] for entry in driver.log if entry[0] == "allow"] == [48 * 1024 - static + 1, 48 * 1024, 100_000]
    most = 232448 - static
    function.launch((1, 1, 1), 32, most, b"")
    for ask in (lambda: function.launch((1, 1, 1), 32, most + 1, b""), lambda: function.occupancy(32, most + 1)):
        with pytest.raises(TilewrightError, match=f"at most {most} bytes of dynamic shared memory .* got {most + 1}"):
            ask()
    assert function.occupancy(32, most) == 3


def test_errors_are_one_line(driver: FakeDriver) -> None:
    device = Device(0)
    with pytest.raises(TilewrightError, match=r"could not load a module for sm_90a on Fake GPU: .* - details$"):
        device.load_module(b"bad")
    function = device.load_module(b"cubin").function("k")
    driver.launch_error = driver.LogicError("cuLaunchKernel failed: invalid argument")
    with pytest.raises(TilewrightError, match=r"kernel 'k', grid \(1, 1, 1\), 1024 threads of at most 512, .*: cuL"):
        function.launch((1, 1, 1), 1024, 0, b"")
    driver.raw_status = 1
    with pytest.raises(TilewrightError, match=r"kernel 'k', .*: status 1"):
        function.launch((1, 1, 1), 1024, 0, b"", 0x9999)
    driver.raw_status = 0
    with pytest.raises(TilewrightError, match=r"grid \(4294967297, 1, 1\), .*: more blocks than a grid may have"):
        function.launch((2**32 + 1, 1, 1), 32, 0, b"", 0x9999)


def test_out_of_memory_names_what_was_wanted_and_free(driver: FakeDriver) -> None:
    device = Device(0)
    half = device.allocate(driver.room // 2)
    with pytest.raises(TilewrightError, match=f"wanted {driver.room} bytes, {driver.room // 2} free of {driver.room}"):
        device.allocate(driver.room)
    half.free()
    assert device.allocate(driver.room).pointer in driver.memory


def test_order_between_streams(driver: FakeDriver) -> None:
    device = Device(0)
    device.order(None, 5)
    device.order(5, 5)
    device.order(5, 0)
    assert driver.log == [("wait", 5, 0)]


def test_what_was_current_is_current_again(driver: FakeDriver) -> None:
    device = Device(0)
    driver.contexts.append(0xEE)  # another library's
    device.allocate(100).free()
    device.order(5, 0)
    device.load_module(b"cubin").function("k").launch((1, 1, 1), 32, 0, b"")
    device.synchronize()
    device.synchronize(5)
    device.close()
    assert driver.contexts == [0xEE]
    driver.contexts.pop()


BASE = np.arange(2 * 6 * 8, dtype=np.float32).reshape(2, 6, 8)


VIEWS = {
    "contiguous": (BASE, (48, 8, 1)),
    "transposed": (BASE.transpose(2, 0, 1), (1, 48, 8)),
    "reversed": (BASE[:, ::-1, 1:5], (48, -8, 1)),
    "broadcast": (np.broadcast_to(BASE[:, :1], BASE.shape), (48, 0, 1)),
    "sparse, so packed": (BASE[:, :, ::5], (12, 2, 1)),
    "empty": (BASE[:0], (48, 8, 1)),
}


@pytest.mark.parametrize(("view", "strides"), VIEWS.values(), ids=VIEWS.keys())
def test_a_host_array_arrives_with_its_layout(
    view: np.ndarray[Any, Any], strides: tuple[int, ...], driver: FakeDriver
) -> None:
    there = upload(Device(0), intake(view, "f32", "x"), 0)
    assert (there.shape, there.strides, there.device) == (view.shape, strides, "cuda")
    if view.size:
        (block,) = driver.memory
        low, high = there.span
        assert there.pointer + low == block
        content = np.frombuffer(driver.memory[block][: high - low], np.float32)
        seen = np.lib.stride_tricks.as_strided(
            content[-low // 4 :], view.shape, tuple(4 * stride for stride in strides), writeable=False
        )
        np.testing.assert_array_equal(seen, view)


def test_results_come_back_into_any_layout(driver: FakeDriver) -> None:
    device = Device(0)
    source = new_on_device(device, (3, 4), "f32", 0)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    driver.memory[source.pointer][:48] = values.tobytes()
    contiguous, strided = np.zeros((3, 4), np.float32), np.zeros((3, 8), np.float32)
    download(device, source, contiguous, 0)
    download(device, source, strided[:, ::-2], 0)
    np.testing.assert_array_equal(contiguous, values)
    np.testing.assert_array_equal(strided[:, ::-2], values)
    assert not strided[:, ::2].any()
    with pytest.raises(TilewrightError, match=r"of shape \(2, 2\), got shape \(3, 4\)"):
        download(device, source, np.zeros((2, 2), np.float32), 0)


def test_a_device_array_speaks_both_protocols(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(0)
    monkeypatch.setattr(results, "cuda_device", lambda ordinal: device)
    result = empty_like_kind("cuda_array", (3, 4), "f32", "cuda", stream=0)
    assert isinstance(result, DeviceArray)
    as_cuda = intake(result, "f32", "x")
    assert (as_cuda.shape, as_cuda.strides, as_cuda.pointer) == ((3, 4), (4, 1), result.tensor.pointer)
    assert as_cuda.stream == 0
    half = empty_like_kind("dlpack", (5,), "bf16", "cuda", stream=9)
    assert not hasattr(half, "__cuda_array_interface__")
    driver.log.clear()
    as_dlpack = intake(half, "bf16", "x", consumer_stream=0)
    assert (as_dlpack.device, as_dlpack.pointer, as_dlpack.shape) == ("cuda", half.tensor.pointer, (5,))
    assert driver.log == [("wait", 9, 0)]
    with pytest.raises(BufferError, match="never copied"):
        half.__dlpack__(copy=True)
    assert (half.to_numpy().shape, half.to_numpy().dtype.name) == ((5,), "bfloat16")
    address = half.tensor.pointer
    del as_dlpack, half
    assert device.allocate(10, stream=9).pointer != address  # shared, so not handed out before the device is waited for


def test_results_on_the_host() -> None:
    result = empty_like_kind("numpy", (2, 3), "bf16", "host")
    assert (result.shape, result.dtype.name) == ((2, 3), "bfloat16")
    assert empty_like_kind("scalar", (), "f32", "host").shape == ()
    assert empty_like_kind("numpy", (2,), "i1", "cuda").dtype == np.bool_


def test_without_a_driver_the_reason_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(libcuda, "load", load)
    reason = cuda_driver.cuda_unavailable_reason.__wrapped__()
    assert reason is not None
    assert reason.startswith("CUDA: no driver (libcuda.so.1: cannot open shared object file): install an NVIDIA driver")
    monkeypatch.setattr(libcuda, "load", lambda: None)
    monkeypatch.setattr(libcuda, "device_count", lambda: 0)
    assert "shows no GPU" in (cuda_driver.cuda_unavailable_reason.__wrapped__() or "")
    monkeypatch.setattr(libcuda, "device_count", lambda: 1)

    def no_pycuda() -> None:
        raise ImportError("No module named 'pycuda'")

    monkeypatch.setattr(cuda_driver, "_pycuda", no_pycuda)
    assert (cuda_driver.cuda_unavailable_reason.__wrapped__() or "").endswith("pip install 'tilewright[cuda]'")
