"""Is a result within the bound of the reference?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.reference.bounded import distance

if TYPE_CHECKING:
    from tilewright.runtime.reference.executor import ReferenceValue


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The element that is furthest beyond its bound, in relation to it; or a wrong shape or dtype."""

    index: tuple[int, ...]
    got: object
    expected: object
    bound: float
    count: int
    """How many elements are beyond their bounds; 0 for a wrong shape or dtype."""
    message: str
    """One line: where, expected, got, bound."""

    def __str__(self) -> str:
        return self.message


def compare(got: Array, reference: ReferenceValue) -> Mismatch | None:
    """None when every element of `got` is within the bound, else the worst one.

    NaN equals NaN, an infinity equals itself, and a bound of inf accepts anything.
    """
    expected = reference.rounded
    if got.shape != expected.shape or got.dtype != expected.dtype:
        message = f"expected shape {expected.shape} and dtype {expected.dtype}, got {got.shape} and {got.dtype}"
        return Mismatch((), got.shape, expected.shape, 0.0, 0, message)
    with np.errstate(all="ignore"):
        off = distance(got.astype(np.float64), reference.value.astype(np.float64))
        beyond = off > reference.bound
        if not np.any(beyond):
            return None
        # How many times over the bound; an exact element that differs is the worst of all.
        excess = np.where(beyond, off / reference.bound, -1.0)
    excess = np.where(np.isnan(excess), np.inf, excess)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    bound = float(reference.bound[index])
    count = int(np.count_nonzero(beyond))
    message = (
        f"{count} of {beyond.size} elements beyond the bound; worst at {list(index)}: "
        f"expected {reference.value[index]} within {bound:.3g}, got {got[index]}"
    )
    return Mismatch(index, got[index], expected[index], bound, count, message)
