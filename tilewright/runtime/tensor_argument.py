"""The record of one argument or result, and the arithmetic of its layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import dtypes

DeviceKind = Literal["host", "cuda"]
ArgumentKind = Literal["numpy", "torch", "cuda_array", "dlpack", "scalar"]


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """One argument or result, wherever it came from. Strides are in elements and may be 0 or negative; in dims of
    size 0 or 1, where a stride has no meaning, it is what a contiguous layout of the inner dims has."""

    dtype: str
    """Element type as the kernel names it."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    """Address of the element at index 0 in every dim, on `device`."""
    device: DeviceKind
    kind: ArgumentKind
    owner: object
    """Keeps the memory alive."""
    array: np.ndarray[Any, Any] | None = None
    """The same memory as an array, when it is on the host."""
    device_index: int = 0
    """Ordinal of the GPU; 0 on the host."""
    stream: int | None = None
    """Handle of the stream on which the producer may still be writing; None when there is nothing to wait for."""
    readonly: bool = False

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return dtypes.element_type(self.dtype).bytes

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def span(self) -> tuple[int, int]:
        """Bytes touched, relative to `pointer`: from `low` (at most 0) up to and without `high`; (0, 0) if empty."""
        return byte_span(self.shape, self.strides, self.element_bytes)


def check_shape(
    argument: TensorArgument, expected: Sequence[int | None], name: str, *, index: int | None = None
) -> None:
    """Raise where `argument` has another rank than `expected`, or another size in a dim that is not None there."""
    where = described(name, index)
    if len(expected) != len(argument.shape):
        raise TilewrightError(f"{where}: expected {len(expected)} dims, got {len(argument.shape)}")
    for dim, (wanted, got) in enumerate(zip(expected, argument.shape, strict=True)):
        if wanted is not None and wanted != got:
            raise TilewrightError(f"{where}: dim {dim}: expected {wanted}, got {got}")


def described(name: str, index: int | None) -> str:
    """How messages name an argument: `argument 2 ('w')`."""
    return f"argument {name!r}" if index is None else f"argument {index} ({name!r})"


def byte_span(shape: tuple[int, ...], strides: tuple[int, ...], element_bytes: int) -> tuple[int, int]:
    """`TensorArgument.span` of a layout with strides in elements."""
    low = high = 0
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0, 0
        reach = (size - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low * element_bytes, (high + 1) * element_bytes


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous layout, the last dim fastest."""
    result: list[int] = []
    following = 1
    for size in reversed(shape):
        result.append(following)
        following *= size or 1
    return tuple(reversed(result))


def normalised_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those that mean nothing replaced: a dim of size 0 or 1 gets the stride a contiguous layout of the
    dims inside it would give it, as do all dims of an empty tensor. So `ldx == N` holds of any [1, N] view."""
    if 0 in shape:
        return contiguous_strides(shape)
    if 1 not in shape:
        return strides
    result: list[int] = []
    following = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        used = stride if size > 1 else following
        result.append(used)
        following = used * size
    return tuple(reversed(result))
