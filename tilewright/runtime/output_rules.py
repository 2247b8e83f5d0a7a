"""Which memory may be an output: every element its own, forward strides, and no partial overlap with an input.

Overlap is decided by elements, not by the bytes between the first and the last: the two halves of the columns of one
buffer interleave in memory and do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.tensor_argument import TensorArgument, described

OVERLAP_WORK = 20_000
"""Candidates that the exact test of two layouts may try before overlap is assumed."""

ENUMERATED_ELEMENTS = 1 << 16
"""Up to here a layout whose strides are not nested is checked by listing its offsets."""


def check_output(
    output: TensorArgument,
    inputs: Mapping[str, TensorArgument],
    name: str = "out",
    *,
    index: int | None = None,
    in_place: bool = False,
) -> None:
    """Raise `TilewrightError` where `output` cannot be written in parallel, or shares elements with an input.

    With `in_place`, an input that is exactly the same memory (address, shape, strides, element type) is allowed;
    the caller knows that every element is read before it is written.
    """
    where = described(name, index)
    if output.readonly:
        raise TilewrightError(f"{where}: expected memory that can be written, got a read-only {output.kind}")
    for dim, (size, stride) in enumerate(zip(output.shape, output.strides, strict=True)):
        if size > 1 and stride <= 0:
            raise TilewrightError(f"{where}: dim {dim}: expected a positive stride of an output, got {stride}")
    if 0 not in output.shape and overlaps_itself(output.shape, output.strides):
        raise TilewrightError(
            f"{where}: expected a place of its own for each element, got shape {output.shape} with strides "
            f"{output.strides}, where some share one"
        )
    for input_name, argument in inputs.items():
        if in_place and _same_layout(output, argument):
            continue
        if share_elements(output, argument):
            wish = "the same memory and layout or none in common" if in_place else "no memory in common"
            raise TilewrightError(
                f"{where}: expected {wish} with input {input_name!r}, got overlap: output at {output.pointer:#x} "
                f"shape {output.shape} strides {output.strides}, input at {argument.pointer:#x} "
                f"shape {argument.shape} strides {argument.strides}"
            )


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements of a layout share a place; True when that is too much work to find out. Strides are in
    elements, sizes at least 1."""
    dims = sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    reach = 0
    for stride, size in dims:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False  # each stride steps over all that the smaller ones reach
    count = 1
    for _, size in dims:
        count *= size
        if count > ENUMERATED_ELEMENTS:
            return True
    offsets = np.zeros(1, dtype=np.int64)
    for stride, size in dims:
        offsets = (offsets[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return len(np.unique(offsets)) < count


def share_elements(first: TensorArgument, second: TensorArgument) -> bool:
    """Whether some byte belongs to an element of both; True when that is too much work to find out."""
    if (first.device, first.device_index) != (second.device, second.device_index):
        return False
    (low_a, high_a), (low_b, high_b) = first.span, second.span
    if low_a == high_a or low_b == high_b:
        return False
    if first.pointer + high_a <= second.pointer + low_b or second.pointer + high_b <= first.pointer + low_a:
        return False
    try:
        # NumPy's stub allows only its two special values of max_work; any bound is documented.
        work: Any = OVERLAP_WORK
        return bool(np.shares_memory(_addresses(first), _addresses(second), max_work=work))
    except np.exceptions.TooHardError:
        return True


class _Layout:
    """A layout in the form that NumPy makes an array of. Its memory is never touched, and may be a GPU's."""

    def __init__(self, argument: TensorArgument) -> None:
        width = argument.element_bytes
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "typestr": f"|V{width}",
            "shape": argument.shape,
            "strides": tuple(stride * width for stride in argument.strides),
            "data": (argument.pointer, True),
        }


def _addresses(argument: TensorArgument) -> np.ndarray[Any, Any]:
    return np.asarray(_Layout(argument))


def _same_layout(first: TensorArgument, second: TensorArgument) -> bool:
    return (first.pointer, first.shape, first.strides, first.dtype, first.device, first.device_index) == (
        second.pointer, second.shape, second.strides, second.dtype, second.device, second.device_index,
    )  # fmt: skip
