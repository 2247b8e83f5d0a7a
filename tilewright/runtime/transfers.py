"""Host arrays to the device and back, layout and all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import dtypes, libcuda
from tilewright.runtime.cuda_driver import Device
from tilewright.runtime.tensor_argument import TensorArgument, byte_span, contiguous_strides, normalised_strides

WASTE = 2
"""A strided array is copied as the bytes it spans while these are at most this many times its elements' bytes."""


def new_on_device(
    owner: Device, shape: tuple[int, ...], dtype: str, stream: int, strides: tuple[int, ...] | None = None
) -> TensorArgument:
    """Uninitialised device memory for a tensor; contiguous unless strides (in elements) say otherwise."""
    element = dtypes.element_type(dtype)
    strides = contiguous_strides(shape) if strides is None else normalised_strides(shape, strides)
    low, high = byte_span(shape, strides, element.bytes)
    memory = owner.allocate(high - low, stream)
    return TensorArgument(
        dtype, shape, strides, memory.pointer - low, "cuda", "cuda_array", memory, device_index=owner.info.ordinal,
        stream=stream,
    )  # fmt: skip


def upload(owner: Device, argument: TensorArgument, stream: int) -> TensorArgument:
    """Copy a host argument to the device, on `stream`. Strides stay as they are (0 and negative ones too) unless the
    array touches so little of its span that packing it first is cheaper."""
    array = argument.array
    if array is None:
        raise TilewrightError(f"upload: expected an array on the host, got one on {argument.device}")
    low, high = argument.span
    source, strides, dense = argument.pointer, argument.strides, None
    if high - low > WASTE * argument.size * argument.element_bytes:
        dense = np.ascontiguousarray(array)
        source, strides = dense.ctypes.data, contiguous_strides(argument.shape)
        low, high = byte_span(argument.shape, strides, argument.element_bytes)
    result = new_on_device(owner, argument.shape, argument.dtype, stream, strides)
    owner.copy_to_device(result.pointer + low, source + low, high - low, stream)
    if dense is None and high > low:
        with owner.current():
            locked = libcuda.is_page_locked(source + low)
        if locked:  # the copy would still be reading when the caller changes the array
            owner.synchronize(stream)
    return result


def download(owner: Device, source: TensorArgument, target: np.ndarray[Any, Any], stream: int) -> None:
    """Copy a contiguous device tensor into a host array of the same shape and any strides, and wait for it."""
    if source.strides != contiguous_strides(source.shape) or source.shape != target.shape:
        raise TilewrightError(
            f"download: expected a contiguous tensor of shape {target.shape}, got shape {source.shape} "
            f"strides {source.strides}"
        )
    direct = target.flags.c_contiguous
    landing = target if direct else np.empty(target.shape, target.dtype)
    owner.copy_to_host(landing.ctypes.data, source.pointer, source.size * source.element_bytes, stream)
    owner.synchronize(stream)
    if not direct:
        target[...] = landing
