"""Element types: one table from the name in IR to NumPy, C, DLPack and struct formats.

Everything that has to know how wide an element is, or what it is called elsewhere, reads `element_type(name)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type as every neighbour of the runtime names it."""

    name: str
    """Name in IR: `f32`, `bf16`, `i1`, ..."""
    bytes: int
    """Size of an element in memory."""
    c_name: str
    """Type in CUDA C++; without <stdint.h>, which NVRTC lacks."""
    typestr: str | None
    """`typestr` of the array interface; None where that protocol has no name for the type (bf16)."""
    dlpack: tuple[int, int]
    """DLDataType: (code, bits), lanes being 1. Codes of dlpack.h: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool."""
    struct_format: str | None
    """Format character of `struct` for a scalar passed by value; None for types that never are."""

    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype; bf16 is ml_dtypes.bfloat16."""
        return _numpy_dtype(self.name)


_TABLE: dict[str, ElementType] = {
    entry.name: entry
    for entry in (
        ElementType("f32", 4, "float", "<f4", (2, 32), "f"),
        ElementType("f16", 2, "__half", "<f2", (2, 16), None),
        ElementType("bf16", 2, "__nv_bfloat16", None, (4, 16), None),
        ElementType("i32", 4, "int", "<i4", (0, 32), "i"),
        ElementType("i64", 8, "long long", "<i8", (0, 64), "q"),
        ElementType("index", 8, "long long", "<i8", (0, 64), "q"),
        ElementType("i1", 1, "bool", "|b1", (6, 8), "?"),
    )
}

POINTER_FORMAT = "Q"
"""Format character of `struct` for a device pointer passed to a kernel."""

NAMES = tuple(_TABLE)
"""The names that `element_type` knows."""


def element_type(name: str) -> ElementType:
    """The table's entry for a name in IR; an unknown name is an error that lists the known ones."""
    try:
        return _TABLE[name]
    except KeyError:
        raise TilewrightError(f"element type: expected one of {', '.join(NAMES)}, got {name!r}") from None


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name != "bf16":
        return np.dtype(element_type(name).typestr)
    try:
        # Imported on first use: most programs have no bf16 argument on the host.
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise TilewrightError("bf16 arrays need ml_dtypes: pip install ml_dtypes") from None


@cache
def name_of_numpy(dtype: np.dtype[Any]) -> str | None:
    """Name in IR of a NumPy dtype in native byte order; None when there is none. int64 is `i64`, never `index`."""
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.names is not None or not dtype.isnative:
        return None
    return next((entry.name for entry in _TABLE.values() if entry.typestr == dtype.str), None)


@cache
def name_of_dlpack(code: int, bits: int, lanes: int) -> str | None:
    """Name in IR of a DLDataType; None when there is none."""
    if lanes != 1:
        return None
    return next((entry.name for entry in _TABLE.values() if entry.dlpack == (code, bits)), None)


def same_memory(first: str, second: str) -> bool:
    """Whether elements of the two types are the same bits with the same meaning (`index` and `i64`)."""
    alike = {"index": "i64"}
    return alike.get(first, first) == alike.get(second, second)
