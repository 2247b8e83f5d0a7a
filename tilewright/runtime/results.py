"""Results in the kind that the caller's arguments came in."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import dlpack, dtypes
from tilewright.runtime.cuda_driver import Device
from tilewright.runtime.cuda_driver import device as cuda_device
from tilewright.runtime.streams import stream_handle
from tilewright.runtime.tensor_argument import ArgumentKind, DeviceKind, TensorArgument, contiguous_strides
from tilewright.runtime.transfers import download, new_on_device

TORCH_NAMES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64", "index": "int64",
    "i1": "bool",
}  # fmt: skip
"""Element type -> attribute of the torch module."""


class DeviceArray:
    """A contiguous tensor on a GPU that speaks DLPack and `__cuda_array_interface__`. Its memory comes from the pool
    and returns there with the last reference; once it has been shared, only after the device has been waited for."""

    def __init__(self, owner: Device, tensor: TensorArgument) -> None:
        self._owner = owner
        self._shared = False
        self.tensor = tensor
        self.stream = tensor.stream or 0
        """The stream on which it is written."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dims."""
        return self.tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of an element; bf16 is ml_dtypes.bfloat16."""
        return dtypes.element_type(self.tensor.dtype).numpy_dtype()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = dtypes.element_type(self.tensor.dtype).typestr
        if typestr is None:
            raise AttributeError(f"__cuda_array_interface__ has no name for {self.tensor.dtype}; use DLPack")
        self._shared = True
        return {
            "version": 3,
            "shape": self.tensor.shape,
            "typestr": typestr,
            "data": (self.tensor.pointer if self.tensor.size else 0, False),
            "strides": None,
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.tensor.device_index

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule; the consumer's `stream` (None: the default one, -1: no order wanted) is made to wait for ours."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a DeviceArray is shared where it is, and never copied")
        if stream != -1:
            self._owner.order(self.stream, stream_handle(stream))
        self._shared = True
        return dlpack.make_capsule(
            self,
            self.tensor.pointer,
            self.tensor.shape,
            self.tensor.strides,
            dtypes.element_type(self.tensor.dtype).dlpack,
            self.__dlpack_device__(),
            max_version=max_version,
        )

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host; waits for the stream."""
        result = np.empty(self.shape, self.dtype)
        download(self._owner, self.tensor, result, self.stream)
        return result

    def __del__(self) -> None:
        if getattr(self, "_shared", False):
            memory: Any = self.tensor.owner
            memory.retire()

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.tensor.dtype}, device=cuda:{self.tensor.device_index})"


def empty_like_kind(
    kind: ArgumentKind,
    shape: tuple[int, ...],
    dtype: str,
    device: DeviceKind,
    *,
    device_index: int = 0,
    stream: int = 0,
) -> Any:
    """An uninitialised contiguous result: a torch tensor for `torch`, where torch is imported; a NumPy array for
    `numpy`, `scalar` and all others on the host; a `DeviceArray`, written on `stream`, for all others on a GPU."""
    element = dtypes.element_type(dtype)
    if kind == "torch":
        torch = sys.modules.get("torch")
        if torch is None:
            raise TilewrightError("results: expected torch to be imported for results of kind torch")
        place = "cpu" if device == "host" else f"cuda:{device_index}"
        return torch.empty(shape, dtype=getattr(torch, TORCH_NAMES[dtype]), device=place)
    if device == "host" or kind in ("numpy", "scalar"):
        try:
            return np.empty(shape, element.numpy_dtype())
        except (MemoryError, ValueError) as error:
            # NumPy raises ValueError where the bytes exceed what an address can count.
            raise TilewrightError(f"result of shape {shape} and type {dtype} cannot be allocated: {error}") from error
    owner = cuda_device(device_index)
    return DeviceArray(owner, new_on_device(owner, shape, dtype, stream, contiguous_strides(shape)))
