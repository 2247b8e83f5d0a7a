"""What the caller passes, taken in as one record: NumPy arrays, CUDA arrays, DLPack tensors, Python numbers. Zero copy.

`intake` is the only door. It reads layout and address through the object's own protocol and never moves data, with
one exception: a NumPy array whose byte strides or address do not fit its element size cannot be addressed in
elements, and is copied with a warning.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.runtime import dlpack, dtypes
from tilewright.runtime.streams import current_stream_of, is_torch_tensor, stream_of_interface
from tilewright.runtime.tensor_argument import (
    ArgumentKind,
    TensorArgument,
    byte_span,
    contiguous_strides,
    described,
    normalised_strides,
)


def intake(
    obj: object,
    expected_dtype: str,
    name: str,
    *,
    index: int | None = None,
    rank: int | None = None,
    writable: bool = False,
    consumer_stream: int = 0,
) -> TensorArgument:
    """Describe `obj`, argument `index` called `name`, which has to have the element type and, when given, the rank.

    Takes NumPy arrays of any strides, torch tensors on the CPU or a GPU, `__cuda_array_interface__` 2 and 3, DLPack,
    and Python or NumPy numbers for rank 0. With `writable` (outputs), read-only memory and what would need a copy are
    errors. `consumer_stream` is the stream that the caller launches on, which DLPack producers are told.
    """
    where = described(name, index)
    value: Any = obj  # NumPy's classes are generic, and a type checker must not take isinstance for an answer
    if isinstance(obj, np.ndarray):
        found = _from_numpy(value, expected_dtype, where, writable)
    elif isinstance(obj, (bool, int, float, np.generic)):
        found = _from_number(value, expected_dtype, where, writable)
    elif not is_torch_tensor(obj) and (interface := _cuda_interface(obj)) is not None:
        found = _from_cuda_array(obj, interface, expected_dtype, where)
    elif hasattr(obj, "__dlpack__"):
        found = _from_dlpack(obj, expected_dtype, where, consumer_stream)
    else:
        raise TilewrightError(
            f"{where}: expected a NumPy array, an object with __dlpack__ or __cuda_array_interface__, or a number, "
            f"got {type(value).__name__}"
        )
    if rank is not None and len(found.shape) != rank:
        raise TilewrightError(f"{where}: expected {rank} dims, got {len(found.shape)}: shape {found.shape}")
    if writable and found.readonly:
        raise TilewrightError(f"{where}: expected memory that can be written, got a read-only {type(value).__name__}")
    return found


def _check_dtype(found: str | None, shown: object, expected: str, where: str) -> None:
    if found is None or not dtypes.same_memory(found, expected):
        got = found if found is not None else shown
        raise TilewrightError(f"{where}: expected element type {expected}, got {got}")


def _from_numpy(array: np.ndarray[Any, Any], expected: str, where: str, writable: bool) -> TensorArgument:
    if isinstance(array, np.ma.MaskedArray):
        raise TilewrightError(f"{where}: expected an array without a mask, got a masked array: call .filled() first")
    # A .npy file cannot name bf16: NumPy writes such arrays as two opaque bytes an element.
    if expected == "bf16" and array.dtype.str == "|V2" and dtypes.name_of_numpy(array.dtype) is None:
        array = array.view(dtypes.element_type("bf16").numpy_dtype())
    _check_dtype(dtypes.name_of_numpy(array.dtype), array.dtype, expected, where)
    flags = array.flags
    if flags.c_contiguous and flags.aligned:  # the usual case, and the cheap one
        strides = contiguous_strides(array.shape)
    else:
        array = _addressable(array, expected, where, writable)
        width = array.dtype.itemsize
        strides = normalised_strides(array.shape, tuple(stride // width for stride in array.strides))
    return TensorArgument(
        dtype=expected,
        shape=array.shape,
        strides=strides,
        pointer=array.ctypes.data,
        device="host",
        kind="numpy",
        owner=array,
        array=array,
        readonly=not array.flags.writeable,
    )


def _addressable(array: np.ndarray[Any, Any], expected: str, where: str, writable: bool) -> np.ndarray[Any, Any]:
    """The array itself when its elements can be addressed by element strides, else a copy, with a warning."""
    width = array.dtype.itemsize
    if _fits_elements(array, width):
        return array
    if writable:
        raise TilewrightError(
            f"{where}: expected byte strides and an address that are multiples of {width} ({expected}), "
            f"got strides {array.strides} at {array.ctypes.data:#x}"
        )
    warnings.warn(
        f"{where}: copied, since its byte strides {array.strides} or its address do not fit elements of {width} bytes",
        TilewrightWarning,
        stacklevel=5,
    )
    return array.copy(order="C")


def _fits_elements(array: np.ndarray[Any, Any], width: int) -> bool:
    """Whether every element's address is the base's plus a multiple of the element size, and aligned."""
    if array.size == 0:
        return True
    used = (stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1)
    return array.ctypes.data % width == 0 and all(stride % width == 0 for stride in used)


def _from_number(value: object, expected: str, where: str, writable: bool) -> TensorArgument:
    """A rank-0 argument by value; the number has to be one that the element type has (i32: no fraction, in range)."""
    if writable:
        raise TilewrightError(f"{where}: expected memory that can be written, got a number")
    element = dtypes.element_type(expected)
    array: np.ndarray[Any, Any]
    number: Any = value
    if isinstance(value, np.generic):
        _check_dtype(dtypes.name_of_numpy(number.dtype), number.dtype, expected, where)
        array = np.array(number)
    elif isinstance(value, bool) != (expected == "i1"):
        raise TilewrightError(f"{where}: expected element type {expected}, got the {type(value).__name__} {value!r}")
    elif isinstance(value, float) and element.dlpack[0] not in (2, 4):
        raise TilewrightError(f"{where}: expected element type {expected}, got the float {value!r}")
    else:
        try:
            with np.errstate(over="ignore"):  # a float beyond the type's range is its infinity
                array = np.array(number, dtype=element.numpy_dtype())
        except OverflowError:
            raise TilewrightError(f"{where}: expected a value that {expected} can hold, got {value!r}") from None
    return TensorArgument(expected, (), (), array.ctypes.data, "host", "scalar", array, array=array, readonly=True)


def _cuda_interface(obj: object) -> dict[str, Any] | None:
    interface: Any = getattr(obj, "__cuda_array_interface__", None)
    return cast("dict[str, Any]", interface) if isinstance(interface, dict) else None


def _from_cuda_array(obj: object, interface: dict[str, Any], expected: str, where: str) -> TensorArgument:
    try:
        shape = tuple(int(size) for size in interface["shape"])
        pointer, readonly = interface["data"]
        typestr = str(interface["typestr"])
        strides_bytes: Sequence[int] | None = interface.get("strides")
        dtype = np.dtype(typestr)
    except (KeyError, TypeError, ValueError) as problem:
        raise TilewrightError(
            f"{where}: expected a complete __cuda_array_interface__, got {type(problem).__name__}: {problem}"
        ) from None
    if interface.get("mask") is not None:
        raise TilewrightError(f"{where}: expected an array without a mask, got a masked __cuda_array_interface__")
    _check_dtype(dtypes.name_of_numpy(dtype), dtype, expected, where)
    width = dtype.itemsize
    if strides_bytes is None:
        strides = contiguous_strides(shape)
    else:
        for dim, (size, stride) in enumerate(zip(shape, strides_bytes, strict=True)):
            if size > 1 and stride % width:
                raise TilewrightError(
                    f"{where}: dim {dim}: expected a stride in multiples of {width} bytes, got {stride}"
                )
        strides = normalised_strides(shape, tuple(stride // width for stride in strides_bytes))
    if pointer and pointer % width:
        raise TilewrightError(f"{where}: expected an address that is a multiple of {width}, got {pointer:#x}")
    return TensorArgument(
        dtype=expected,
        shape=shape,
        strides=strides,
        pointer=int(pointer or 0),
        device="cuda",
        kind="cuda_array",
        owner=obj,
        device_index=_ordinal(obj),
        stream=stream_of_interface(interface),
        readonly=bool(readonly),
    )


def _ordinal(obj: object) -> int:
    """The GPU an object says it is on (CuPy: `device.id`, others: `device.index`); the interface itself has no word
    for it."""
    device: Any = getattr(obj, "device", None)
    for attribute in ("id", "index"):
        value = getattr(device, attribute, None)
        if isinstance(value, int):
            return value
    return 0


def _from_dlpack(obj: Any, expected: str, where: str, consumer_stream: int) -> TensorArgument:
    torch = is_torch_tensor(obj)
    view = _dlpack_view(obj, where, torch, consumer_stream)
    _check_dtype(dtypes.name_of_dlpack(*view.dtype), f"DLPack code, bits, lanes {view.dtype}", expected, where)
    strides = view.strides if view.strides is not None else contiguous_strides(view.shape)
    strides = normalised_strides(view.shape, strides)
    kind: ArgumentKind = "torch" if torch else "dlpack"
    if view.device_type in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        # A producer other than torch has made our stream wait already, when it was told of it.
        stream = current_stream_of(obj) if torch else None
        return TensorArgument(
            expected, view.shape, strides, view.pointer, "cuda", kind, (obj, view.capsule),
            device_index=view.device_id, stream=stream, readonly=view.readonly,
        )  # fmt: skip
    if view.device_type not in (dlpack.CPU, dlpack.CUDA_HOST):
        raise TilewrightError(
            f"{where}: expected memory of the host or of a CUDA device, got DLPack device type {view.device_type}"
        )
    array = _array_at(view, strides, expected)
    return TensorArgument(
        expected, view.shape, strides, view.pointer, "host", kind, (obj, view.capsule), array=array,
        readonly=view.readonly,
    )  # fmt: skip


def _dlpack_view(obj: Any, where: str, torch: bool, consumer_stream: int) -> dlpack.DLPackView:
    try:
        options: dict[str, Any] = {}
        if obj.__dlpack_device__()[0] in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            # torch is ordered by an event at launch (-1: the producer does nothing); others do it in this call, where
            # the protocol writes the legacy default stream as 1.
            options["stream"] = -1 if torch else (consumer_stream or 1)
        try:
            capsule = obj.__dlpack__(**options, max_version=(1, 0))
        except TypeError:  # a producer from before DLPack 1.0
            capsule = obj.__dlpack__(**options)
        return dlpack.read_capsule(capsule)
    except (BufferError, RuntimeError, ValueError, TypeError, AttributeError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise TilewrightError(f"{where}: expected a tensor that DLPack can share, got: {reason}") from None


def _array_at(view: dlpack.DLPackView, strides: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """The host memory of a capsule as an array; NumPy's own from_dlpack knows no bf16."""
    element = dtypes.element_type(dtype)
    low, high = byte_span(view.shape, strides, element.bytes)
    if high == low:
        return np.empty(view.shape, element.numpy_dtype())
    memory: Any = (ctypes.c_char * (high - low)).from_address(view.pointer + low)
    memory.keeps_alive = view.capsule  # the array holds `memory`, and so the capsule
    array = np.ndarray(
        view.shape,
        element.numpy_dtype(),
        buffer=memory,
        offset=-low,
        strides=tuple(stride * element.bytes for stride in strides),
    )
    if view.readonly:
        array.flags.writeable = False
    return array
