"""DLPack capsules, read and made with ctypes alone (https://dmlc.github.io/dlpack/latest/c_api.html).

Reading covers what NumPy cannot take: memory on a GPU, and bf16. Neither direction copies. Both capsule kinds are
known: `dltensor` and, from DLPack 1.0 on, `dltensor_versioned`, which also says whether the memory may be written.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    addressof,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from typing import Any, NamedTuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""DLDeviceType values that the runtime can use."""

READ_ONLY = 1
"""Bit of `flags` in a versioned capsule."""


class _DLDevice(Structure):
    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class _DLDataType(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _DLTensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _DLDevice),
        ("ndim", c_int32),
        ("dtype", _DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _DLManagedTensor(Structure):
    _fields_ = (("dl_tensor", _DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class _DLManagedTensorVersioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", _DLTensor),
    )


_is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
# In a destructor the capsule has no references left, so it must not become a Python object there.
_is_valid_address = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer_address = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class DLPackView(NamedTuple):
    """What a capsule describes. The memory lives as long as `capsule` does, which is left unconsumed."""

    pointer: int
    """Address of the element at index 0 in every dim."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In elements; None means contiguous, the last dim fastest."""
    dtype: tuple[int, int, int]
    """(code, bits, lanes)."""
    device_type: int
    device_id: int
    readonly: bool
    capsule: object


def read_capsule(capsule: object) -> DLPackView:
    """Describe a capsule that `__dlpack__` gave. Raises `ValueError` for anything else, a used capsule included."""
    readonly = False
    if _is_valid(capsule, _VERSIONED):
        managed = _DLManagedTensorVersioned.from_address(_get_pointer(capsule, _VERSIONED))
        if managed.major != 1:
            raise ValueError(f"expected DLPack version 1, got {managed.major}.{managed.minor}")
        readonly = bool(managed.flags & READ_ONLY)
        tensor: Any = managed.dl_tensor
    elif _is_valid(capsule, _PLAIN):
        tensor = _DLManagedTensor.from_address(_get_pointer(capsule, _PLAIN)).dl_tensor
    else:
        raise ValueError(f"expected a fresh DLPack capsule, got {type(capsule).__name__}")
    rank: int = tensor.ndim
    return DLPackView(
        pointer=(tensor.data or 0) + tensor.byte_offset,
        shape=tuple(tensor.shape[:rank]) if rank else (),
        strides=tuple(tensor.strides[:rank]) if rank and tensor.strides else None,
        dtype=(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        device_type=tensor.device.device_type,
        device_id=tensor.device.device_id,
        readonly=readonly,
        capsule=capsule,
    )


_exports: dict[int, tuple[object, ...]] = {}
"""Address of each managed tensor that is out, to what has to live until its deleter is called."""


@CFUNCTYPE(None, c_void_p)
def _delete(managed: int) -> None:
    _exports.pop(managed, None)


@CFUNCTYPE(None, c_void_p)
def _destroy_capsule(capsule: int) -> None:
    """A capsule nobody consumed frees what it holds; a consumed one was renamed, and its consumer does that."""
    for name in (_PLAIN, _VERSIONED):
        if _is_valid_address(capsule, name):
            _exports.pop(_get_pointer_address(capsule, name), None)


def make_capsule(
    owner: object,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: tuple[int, int],
    device: tuple[int, int],
    *,
    readonly: bool = False,
    max_version: tuple[int, int] | None = None,
) -> object:
    """A capsule over memory that `owner` keeps alive. Strides in elements, `dtype` (code, bits), `device` (type, id).

    It is versioned when the consumer's `max_version` is 1.0 or later. Raises `BufferError` for read-only memory and
    a consumer that could not be told so.
    """
    rank = len(shape)
    dims, steps = (c_int64 * max(rank, 1))(*shape), (c_int64 * max(rank, 1))(*strides)
    tensor = _DLTensor(
        pointer,
        _DLDevice(*device),
        rank,
        _DLDataType(*dtype, 1),
        ctypes.cast(dims, POINTER(c_int64)),
        ctypes.cast(steps, POINTER(c_int64)),
        0,
    )
    deleter = ctypes.cast(_delete, c_void_p)
    if max_version is not None and max_version >= (1, 0):
        managed: Structure = _DLManagedTensorVersioned(1, 0, None, deleter, READ_ONLY if readonly else 0, tensor)
        name = _VERSIONED
    elif readonly:
        raise BufferError("read-only memory needs a consumer of DLPack 1.0 or later")
    else:
        managed, name = _DLManagedTensor(tensor, None, deleter), _PLAIN
    address = addressof(managed)
    _exports[address] = (managed, dims, steps, owner)
    return _new_capsule(address, name, ctypes.cast(_destroy_capsule, c_void_p))
