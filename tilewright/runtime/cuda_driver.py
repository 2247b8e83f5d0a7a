"""The GPU through pycuda, in the primary context, so that torch, CuPy and others see the same memory.

Nothing here is imported, initialised or made current before `device()` is called, and every call leaves the thread's
current context as it found it. pycuda keeps a stack of contexts of its own, which must be empty when a thread ends;
so it is entered only while pycuda makes or destroys an object (`Device.active`). Launches need the context to be
current for the driver alone (`Device.current`), which it usually is.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import libcuda
from tilewright.runtime.memory_pool import Allocation, MemoryPool, OutOfDeviceMemory
from tilewright.runtime.parameters import ParameterLayout

if TYPE_CHECKING:
    from pycuda import driver

INSTALL_REMEDY = "pip install 'tilewright[cuda]'"

DEFAULT_SMEM_BYTES = 48 << 10
"""Shared memory a block may have, static and dynamic together, without opting in (CUDA Programming Guide, compute
capabilities)."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What code generation and dispatch ask about a GPU."""

    ordinal: int
    name: str
    compute_capability: tuple[int, int]
    arch: str
    """What to compile for: `sm_90a` on compute capability 9.0, else the device's own `sm_XY`."""
    multiprocessors: int
    smem_optin_bytes: int
    """Shared memory a block may have after opting in."""
    smem_per_multiprocessor: int
    threads_per_multiprocessor: int
    l2_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """What the driver says about a loaded kernel."""

    registers: int
    local_bytes: int
    static_smem_bytes: int
    max_threads: int


def arch_of(compute_capability: tuple[int, int], name: str = "the GPU") -> str:
    """The architecture to compile for. Below 8.0 is a `TilewrightError`: cp.async and bf16 mma start there."""
    major, minor = compute_capability
    if major < 8:
        raise TilewrightError(f"{name}: expected compute capability 8.0 or later, got {major}.{minor}")
    return "sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}"


@cache
def cuda_unavailable_reason() -> str | None:
    """One line saying why no GPU can be used here and what to do about it; None when one can. Kept for the process."""
    try:
        libcuda.load()
    except (OSError, AttributeError) as problem:
        return f"CUDA: no driver ({_one_line(problem)}): install an NVIDIA driver, or use another backend"
    try:
        if libcuda.device_count() == 0:
            return "CUDA: the driver shows no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES"
    except TilewrightError as problem:
        return f"{problem.message}: check nvidia-smi and CUDA_VISIBLE_DEVICES"
    try:
        _pycuda()
    except ImportError as problem:
        return f"CUDA: pycuda does not load ({_one_line(problem)}): {INSTALL_REMEDY}"
    return None


def device(ordinal: int = 0) -> Device:
    """The GPU of this number, its primary context retained for the life of the process. Raises `TilewrightError`
    when there is none, or it is too old."""
    if (reason := cuda_unavailable_reason()) is not None:
        raise TilewrightError(reason)
    with _devices_lock:
        if ordinal not in _devices:
            count = libcuda.device_count()
            if not 0 <= ordinal < count:
                raise TilewrightError(f"CUDA: expected a device from 0 to {count - 1}, got {ordinal}")
            _devices[ordinal] = Device(ordinal)
            # While the driver is still there: pycuda complains of what it can only free after that.
            atexit.register(_devices[ordinal].close)
        return _devices[ordinal]


class Device:
    """One GPU: context, memory, modules, order between streams. Use `device()`; streams are handles, 0 the default."""

    def __init__(self, ordinal: int) -> None:
        pycuda = _pycuda()
        with _translated("open the device"):
            pycuda.init()
            handle = pycuda.Device(ordinal)
            self.info = _describe(handle, ordinal)
            self._context = handle.retain_primary_context()
        self.context_handle = self._context.handle
        self.pool = MemoryPool(self._raw_allocate, self._raw_release, self.synchronize, self._free_bytes)
        self._streams: dict[int, driver.Stream] = {}
        self._thread = threading.local()

    @contextmanager
    def active(self) -> Generator[None]:
        """The context on pycuda's stack as well: while pycuda objects are made or destroyed."""
        self._context.push()
        try:
            yield
        finally:
            _pycuda().Context.pop()

    @contextmanager
    def current(self) -> Generator[None]:
        """The context current for the driver; costs one query when it is already."""
        if libcuda.current_context() == self.context_handle:
            yield
            return
        libcuda.push_context(self.context_handle)
        try:
            yield
        finally:
            libcuda.pop_context()

    def load_module(self, cubin: bytes) -> Module:
        """Load a cubin. Raises `TilewrightError` when it is for another architecture or damaged."""
        with self.active(), _translated(f"load a module for {self.info.arch} on {self.info.name}"):
            return Module(self, _pycuda().module_from_buffer(cubin), cubin)

    def allocate(self, wanted: int, stream: int = 0) -> Allocation:
        """Device memory for work on `stream`, from the pool; see `memory_pool`."""
        return self.pool.allocate(wanted, stream)

    def new_stream(self) -> int:
        """Handle of a new stream, which waits for the legacy default stream as CUDA's own do. Kept until `close`."""
        with self.active(), _translated("create a stream"):
            stream = _pycuda().Stream()
        self._streams[stream.handle] = stream
        return stream.handle

    def own_stream(self, handle: int) -> driver.Stream | None:
        """pycuda's object for a stream that `new_stream` made; None for streams of others."""
        return self._streams.get(handle)

    def order(self, first: int | None, then: int) -> None:
        """Make stream `then` wait for what stream `first` has queued so far. Nothing to do when they are one, or
        `first` is None. Waits on the GPU, never on the host; legal while a CUDA graph is captured."""
        if first is None or first == then:
            return
        with self.current():
            event: int = getattr(self._thread, "event", 0)
            if not event:
                event = self._thread.event = libcuda.new_event()
            libcuda.wait_for(event, first, then)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait on the host for one stream, or for all of the device's work; errors of kernels surface here."""
        if stream is not None:
            with self.current():
                libcuda.call("cuStreamSynchronize", stream, action=f"wait for stream {stream:#x}")
            return
        with self.active(), _translated("wait for the device"):
            _pycuda().Context.synchronize()

    def copy_to_device(self, pointer: int, host_pointer: int, size: int, stream: int = 0) -> None:
        """Queue a copy of `size` bytes from the host. Pageable memory may be reused when this returns; page-locked
        memory not before the stream is through."""
        if size:
            with self.current():
                libcuda.call("cuMemcpyHtoDAsync_v2", pointer, host_pointer, size, stream, action="copy to the device")

    def copy_to_host(self, host_pointer: int, pointer: int, size: int, stream: int = 0) -> None:
        """Queue a copy of `size` bytes to the host, complete after `synchronize(stream)`."""
        if size:
            with self.current():
                libcuda.call("cuMemcpyDtoHAsync_v2", host_pointer, pointer, size, stream, action="copy to the host")

    def copy_on_device(self, pointer: int, source: int, size: int, stream: int = 0) -> None:
        """Queue a copy of `size` bytes within the device."""
        if size:
            with self.current():
                libcuda.call("cuMemcpyDtoDAsync_v2", pointer, source, size, stream, action="copy on the device")

    def fill(self, pointer: int, value: int, size: int, stream: int = 0) -> None:
        """Queue setting `size` bytes to `value` (0 to 255)."""
        if size:
            with self.current():
                libcuda.call("cuMemsetD8Async", pointer, value, size, stream, action="fill device memory")

    def check_pointer(self, pointer: int, where: str) -> None:
        """Raise `TilewrightError` when memory is not this device's, or belongs to another context on it (as that of
        `pycuda.autoinit` does): a kernel could not read it."""
        with self.current():
            home = libcuda.home_of(pointer)
        if home is None:
            raise TilewrightError(f"{where}: expected memory of {self.info.name}, got unknown address {pointer:#x}")
        context, ordinal = home
        if ordinal != self.info.ordinal:
            raise TilewrightError(f"{where}: expected memory of CUDA device {self.info.ordinal}, got device {ordinal}")
        if context not in (0, self.context_handle):
            raise TilewrightError(
                f"{where}: expected memory of the primary context, got that of another context: "
                "use retain_primary_context in place of pycuda.autoinit"
            )

    def close(self) -> None:
        """Give idle memory and the streams of `new_stream` back; the device stays usable. Errors are of no interest."""
        with suppress(TilewrightError):
            self.pool.trim()
            with self.active(), _translated("destroy streams"):
                self._streams.clear()

    def _raw_allocate(self, size: int) -> driver.DeviceAllocation:
        pycuda = _pycuda()
        with self.active(), _translated(f"allocate {size} bytes"):
            try:
                return pycuda.mem_alloc(size)
            except pycuda.MemoryError:
                raise OutOfDeviceMemory from None

    def _raw_release(self, raw: driver.DeviceAllocation) -> None:
        with self.active(), _translated("free memory"):
            raw.free()

    def _free_bytes(self) -> tuple[int, int]:
        with self.current(), _translated("ask for free memory"):
            return _pycuda().mem_get_info()


class Module:
    """A loaded cubin. It is unloaded by the thread that opened the device, or with the process."""

    def __init__(self, owner: Device, handle: driver.Module, cubin: bytes) -> None:
        self.device = owner
        self.cubin = cubin
        self._handle = handle

    def function(self, name: str, parameters: ParameterLayout | None = None) -> Function:
        """A kernel by its name in the cubin; with `parameters`, `launch` takes values as well as packed bytes."""
        with self.device.active(), _translated(f"find kernel {name!r} in the module"):
            return Function(self, name, self._handle.get_function(name), parameters)


class Function:
    """A kernel ready to be launched."""

    def __init__(self, module: Module, name: str, handle: driver.Function, parameters: ParameterLayout | None) -> None:
        self.module = module
        self.device = module.device
        self.name = name
        self.parameters = parameters
        attribute = _pycuda().function_attribute
        self.info = FunctionInfo(
            registers=handle.get_attribute(attribute.NUM_REGS),
            local_bytes=handle.get_attribute(attribute.LOCAL_SIZE_BYTES),
            static_smem_bytes=handle.get_attribute(attribute.SHARED_SIZE_BYTES),
            max_threads=handle.get_attribute(attribute.MAX_THREADS_PER_BLOCK),
        )
        self._handle = handle
        # pycuda's public call packs the arguments itself; this one takes them packed.
        self._launch_kernel = handle._launch_kernel  # pyright: ignore[reportPrivateUsage]
        self._allowed_smem = max(0, DEFAULT_SMEM_BYTES - self.info.static_smem_bytes)
        self._raw: libcuda.RawFunction | None = None

    def launch(
        self,
        grid: tuple[int, int, int],
        block: int,
        smem_bytes: int,
        args: bytes | bytearray | Sequence[Any],
        stream: int = 0,
    ) -> None:
        """Queue the kernel on a stream: `grid` blocks of `block` threads with `smem_bytes` of dynamic shared memory.
        `args` is packed already, or values for the function's parameter layout. A grid without blocks does nothing.
        Through pycuda on the default stream and on those of `Device.new_stream`, else through the driver itself."""
        if 0 in grid:
            return
        if not isinstance(args, (bytes, bytearray)):
            args = self._pack(args)
        if smem_bytes > self._allowed_smem:
            self._allow_smem(smem_bytes)
        if libcuda.current_context() == self.device.context_handle:
            self._launch(grid, block, smem_bytes, args, stream)
        else:
            with self.device.current():
                self._launch(grid, block, smem_bytes, args, stream)

    def occupancy(self, block: int, smem_bytes: int) -> int:
        """How many blocks of `block` threads with this dynamic shared memory run on one multiprocessor at once."""
        self._check_smem(smem_bytes)
        with self.device.current():
            return self._raw_function().blocks_per_multiprocessor(block, smem_bytes)

    def _launch(
        self, grid: tuple[int, int, int], block: int, smem_bytes: int, args: bytes | bytearray, stream: int
    ) -> None:
        own = None if stream == 0 else self.device.own_stream(stream)
        if stream == 0 or own is not None:
            try:
                self._launch_kernel(grid, (block, 1, 1), args, smem_bytes, own)
            except (_pycuda().Error, OverflowError, TypeError) as problem:
                raise self._refusal(_one_line(problem), grid, block, smem_bytes) from None
            return
        if not 0 < max(grid) < 1 << 31:  # ctypes would cut it to 32 bits without a word
            raise self._refusal("more blocks than a grid may have", grid, block, smem_bytes)
        status = self._raw_function().launch(grid, block, smem_bytes, bytes(args), stream)
        if status:
            raise self._refusal(libcuda.error_text(status), grid, block, smem_bytes)

    def _raw_function(self) -> libcuda.RawFunction:
        if self._raw is None:
            self._raw = libcuda.RawFunction(self.module.cubin, self.name)
        return self._raw

    def _pack(self, values: Sequence[Any]) -> bytes:
        if self.parameters is None:
            raise TilewrightError(f"kernel {self.name!r}: expected packed parameters, got {len(values)} values")
        return self.parameters.pack(values)

    def _allow_smem(self, smem_bytes: int) -> None:
        self._check_smem(smem_bytes)
        attribute = _pycuda().function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self.device.current(), _translated(f"allow {smem_bytes} bytes of shared memory for {self.name!r}"):
            self._handle.set_attribute(attribute, smem_bytes)
        self._allowed_smem = smem_bytes

    def _check_smem(self, smem_bytes: int) -> None:
        most = self.device.info.smem_optin_bytes - self.info.static_smem_bytes
        if smem_bytes > most:
            raise TilewrightError(
                f"kernel {self.name!r}: expected at most {most} bytes of dynamic shared memory on "
                f"{self.device.info.name}, got {smem_bytes}"
            )

    def _refusal(self, reason: str, grid: tuple[int, int, int], block: int, smem_bytes: int) -> TilewrightError:
        return TilewrightError(
            f"CUDA: launch of kernel {self.name!r}, grid {grid}, {block} threads of at most {self.info.max_threads}, "
            f"{smem_bytes} bytes of shared memory: {reason}"
        )


_devices: dict[int, Device] = {}
"""Opened devices by ordinal; a primary context is retained once and kept."""

_devices_lock = threading.Lock()


@cache
def _pycuda() -> Any:
    """pycuda's driver module. Never autoinit, which makes a context that torch does not share."""
    return import_module("pycuda.driver")


@contextmanager
def _translated(action: str) -> Generator[None]:
    """pycuda's errors as one line each."""
    try:
        yield
    except _pycuda().Error as problem:
        raise TilewrightError(f"CUDA: could not {action}: {_one_line(problem)}") from None


def _describe(handle: driver.Device, ordinal: int) -> DeviceInfo:
    attribute = _pycuda().device_attribute
    capability, name = handle.compute_capability(), handle.name()
    return DeviceInfo(
        ordinal=ordinal,
        name=name,
        compute_capability=capability,
        arch=arch_of(capability, name),
        multiprocessors=handle.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        smem_optin_bytes=handle.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        smem_per_multiprocessor=handle.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        threads_per_multiprocessor=handle.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR),
        l2_bytes=handle.get_attribute(attribute.L2_CACHE_SIZE),
        memory_bytes=handle.total_memory(),
    )


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
