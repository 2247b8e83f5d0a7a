"""The few driver calls that pycuda cannot make, through ctypes on libcuda.

pycuda knows only streams that it created, and shows no handle of a module or function. What has to happen on a
foreign stream (torch's current one, say), or needs a raw handle (occupancy), is called here with plain integers.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from typing import Any

from tilewright.diagnostics import TilewrightError

LIBRARY = "libcuda.so.1"

MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

_NO_TIMING = 2
"""CU_EVENT_DISABLE_TIMING: such events are cheaper."""

_POINTER_CONTEXT, _POINTER_MEMORY_TYPE, _POINTER_ORDINAL = 1, 2, 9
"""CU_POINTER_ATTRIBUTE_{CONTEXT, MEMORY_TYPE, DEVICE_ORDINAL}."""

_MEMORY_HOST = 1
"""CU_MEMORYTYPE_HOST."""

# Names carry the version that the header's macros choose; the unversioned symbols are 32-bit relics.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (c_void_p,),
    "cuDeviceGetCount": (c_void_p,),
    "cuGetErrorName": (c_int, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
    "cuCtxGetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (c_void_p,),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_void_p, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_void_p),
    "cuModuleLoadData": (c_void_p, c_char_p),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (c_void_p, c_void_p, c_int, c_size_t),
    "cuTensorMapEncodeTiled": (c_void_p, c_int, c_uint, *(c_void_p,) * 5, *(c_int,) * 4),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
}


@cache
def load() -> Any:
    """The driver library with argument types set. Raises `OSError` where there is none."""
    library = ctypes.CDLL(LIBRARY)
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = c_int
    return library


def call(name: str, *arguments: Any, action: str = "") -> None:
    """Call a driver function; a status other than success is a `TilewrightError` of one line."""
    status: int = getattr(load(), name)(*arguments)
    if status:
        raise TilewrightError(f"CUDA: {action or name}: {error_text(status)}")


def error_text(status: int) -> str:
    """A driver status in the driver's words: `CUDA_ERROR_INVALID_VALUE: invalid argument`."""
    library = load()
    name, text = c_char_p(), c_char_p()
    if library.cuGetErrorName(status, byref(name)) or library.cuGetErrorString(status, byref(text)):
        return f"driver status {status}"
    return f"{(name.value or b'').decode()}: {(text.value or b'').decode()}"


def driver_version() -> tuple[int, int] | None:
    """(major, minor) of the newest CUDA that the installed driver supports; None without a driver."""
    version = c_int()
    try:
        if load().cuDriverGetVersion(byref(version)):
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def device_count() -> int:
    """How many GPUs the driver shows. Raises `TilewrightError` where it cannot be initialised."""
    call("cuInit", 0, action="initialise the driver")
    count = c_int()
    call("cuDeviceGetCount", byref(count))
    return count.value


def current_context() -> int:
    """Handle of this thread's current context; 0 when there is none."""
    context = c_void_p()
    load().cuCtxGetCurrent(byref(context))
    return context.value or 0


def push_context(context: int) -> None:
    """Make a context current on this thread, above what was."""
    call("cuCtxPushCurrent_v2", context)


def pop_context() -> None:
    """Take this thread's current context off."""
    call("cuCtxPopCurrent_v2", byref(c_void_p()))


def new_event() -> int:
    """Handle of a new event of the current context, without timing. It lives as long as the context."""
    event = c_void_p()
    call("cuEventCreate", byref(event), _NO_TIMING)
    return event.value or 0


def wait_for(event: int, first: int, then: int) -> None:
    """Make the stream `then` wait for all that is queued on the stream `first` now. The event may be recorded again
    at once: the wait is for the state it had in this call."""
    call("cuEventRecord", event, first, action=f"record an event on stream {first:#x}")
    call("cuStreamWaitEvent", then, event, 0, action=f"wait on stream {then:#x}")


def is_page_locked(pointer: int) -> bool:
    """Whether host memory is page-locked, so that copies from it outlast the call that starts them."""
    kind = c_uint()
    status = load().cuPointerGetAttribute(byref(kind), _POINTER_MEMORY_TYPE, pointer)
    return status == 0 and kind.value == _MEMORY_HOST


def home_of(pointer: int) -> tuple[int, int] | None:
    """(context handle, device ordinal) of device memory; None for an address the driver does not know. The context
    is 0 for memory of a pool (cuMemAllocAsync), which belongs to the device."""
    context, ordinal = c_void_p(), c_int()
    library = load()
    if library.cuPointerGetAttribute(byref(ordinal), _POINTER_ORDINAL, pointer) or ordinal.value < 0:
        return None  # a negative ordinal is the host's (CU_DEVICE_CPU, CU_DEVICE_INVALID)
    if library.cuPointerGetAttribute(byref(context), _POINTER_CONTEXT, pointer):
        return 0, ordinal.value
    return context.value or 0, ordinal.value


class _Room:
    """Where one thread puts the parameters of a kernel's launches. The driver copies them before a launch returns."""

    def __init__(self, size: int) -> None:
        self.size = c_size_t(size)
        self.buffer = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self.buffer)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END.
        self.extra = (c_void_p * 5)(1, self.address, 2, ctypes.addressof(self.size), 0)


class RawFunction:
    """A kernel by its raw handle, in a module of its own: for foreign streams and for occupancy."""

    def __init__(self, cubin: bytes, name: str) -> None:
        """Loads the cubin into the current context; it stays as long as the context does."""
        module, function = c_void_p(), c_void_p()
        call("cuModuleLoadData", byref(module), cubin, action=f"load the module of kernel {name!r}")
        call("cuModuleGetFunction", byref(function), module, name.encode(), action=f"find kernel {name!r}")
        self.handle = function.value or 0
        self.name = name
        self._dynamic_smem = 0
        self._rooms = threading.local()

    def allow_dynamic_smem(self, smem_bytes: int) -> None:
        """Opt in to this much dynamic shared memory a block, if it is more than before."""
        if smem_bytes > self._dynamic_smem:
            call(
                "cuFuncSetAttribute", self.handle, MAX_DYNAMIC_SHARED_SIZE_BYTES, smem_bytes,
                action=f"allow {smem_bytes} bytes of shared memory for kernel {self.name!r}",
            )  # fmt: skip
            self._dynamic_smem = smem_bytes

    def launch(self, grid: tuple[int, int, int], block: int, smem_bytes: int, args: bytes, stream: int) -> int:
        """Launch on any stream of the current context with packed parameters; the driver's status."""
        if smem_bytes > self._dynamic_smem:
            self.allow_dynamic_smem(smem_bytes)
        room: _Room | None = getattr(self._rooms, "room", None)
        if room is None or room.size.value != len(args):
            room = self._rooms.room = _Room(len(args))
        ctypes.memmove(room.address, args, len(args))
        return load().cuLaunchKernel(self.handle, *grid, block, 1, 1, smem_bytes, stream, None, room.extra)

    def blocks_per_multiprocessor(self, block: int, smem_bytes: int) -> int:
        """How many blocks of this size fit on one multiprocessor at once."""
        self.allow_dynamic_smem(smem_bytes)
        blocks = c_int()
        call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", byref(blocks), self.handle, block, smem_bytes,
            action=f"occupancy of kernel {self.name!r}",
        )  # fmt: skip
        return blocks.value
