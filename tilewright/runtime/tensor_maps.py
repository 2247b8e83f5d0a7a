"""Tensor maps: how the tensor memory accelerator sees a tensor, encoded by the driver (cuTensorMapEncodeTiled).

What it asks for (CUDA driver API, cuTensorMapEncodeTiled): an address that 16 bytes divide, strides in bytes that 16
divide and that are below 2^40, sizes from 1 to 2^32, boxes of 1 to 256 elements a dim, and an inner box of at most the
bytes of the swizzle.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_uint32, c_uint64
from functools import lru_cache
from typing import Any, Final

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import libcuda
from tilewright.runtime.parameters import TENSOR_MAP_BYTES

_ALIGNMENT: Final = 64
_TYPES: Final = {"i8": 0, "i32": 3, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
"""CUtensorMapDataType; i8 as unsigned bytes, which is the same for moving them."""
_SWIZZLES: Final = {0: 0, 32: 1, 64: 2, 128: 3}
"""CUtensorMapSwizzle by bytes."""
_L2_PROMOTION_128: Final = 2
"""CU_TENSOR_MAP_L2_PROMOTION_L2_128B: what is fetched from memory comes in lines of 128 bytes."""
KEPT: Final = 1024
"""Maps that are kept: encoding one takes the driver about a microsecond, and Python several."""


@lru_cache(KEPT)
def tensor_map(
    pointer: int,
    element: str,
    element_bytes: int,
    dims: tuple[int, ...],
    strides: tuple[int, ...],
    box: tuple[int, ...],
    swizzle: int,
) -> bytes:
    """The 128 bytes of a map of the tensor at an address.

    Sizes, strides (in elements; the last is 1) and the box outermost dim first; `swizzle` in bytes. A tensor without
    elements gets a map of zeros, which nothing may use. Raises TilewrightError with the driver's reason.
    """
    if 0 in dims:
        return bytes(TENSOR_MAP_BYTES)
    rank = len(dims)
    room = ctypes.create_string_buffer(TENSOR_MAP_BYTES + _ALIGNMENT)
    start = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
    # A dim of size 1 may have any stride; the driver wants one that fits.
    bytes_apart = [max(16, s * element_bytes) if n > 1 else 16 for n, s in zip(dims[:-1], strides[:-1], strict=True)]
    libcuda.call(
        "cuTensorMapEncodeTiled",
        start,
        _TYPES[element],
        rank,
        pointer,
        _array(c_uint64, dims),
        _array(c_uint64, bytes_apart),
        _array(c_uint32, box),
        _array(c_uint32, [1] * rank),
        0,
        _SWIZZLES[swizzle],
        _L2_PROMOTION_128,
        0,
        action=f"make a tensor map of sizes {dims}, strides {strides}, boxes of {box} {element}",
    )
    return ctypes.string_at(start, TENSOR_MAP_BYTES)


def _array(kind: type[c_uint64 | c_uint32], outermost_first: Sequence[int]) -> ctypes.Array[Any]:
    if any(not 0 <= n < 1 << 8 * ctypes.sizeof(kind) for n in outermost_first):
        raise TilewrightError(f"tensor map: expected numbers of {8 * ctypes.sizeof(kind)} bits, got {outermost_first}")
    return (kind * max(1, len(outermost_first)))(*reversed(outermost_first))
