"""Memory layouts of array arguments: views of the same values that lie otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np

from tilewright.api.testing.chance import Chance
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.backends.base import ALIGNMENT
from tilewright.runtime.numerics import Array


@dataclass(frozen=True, slots=True)
class ViewLayout:
    """How an array of a rank lies in memory. The default is contiguous in row-major order, at an aligned address."""

    order: tuple[int, ...]
    """Dims from the slowest to the fastest: (1, 0) is the transpose of a contiguous matrix."""
    padding: tuple[int, ...]
    """For each dim, elements behind its last one that belong to nobody: the next slower dim steps over them."""
    reversed_dims: tuple[int, ...] = ()
    """Dims with a negative stride."""
    repeated_dims: tuple[int, ...] = ()
    """Dims with stride 0: every index reads the same, that of index 0 of the values."""
    offset: int = 0
    """Elements by which the base address is off the alignment."""

    @staticmethod
    def contiguous(rank: int) -> ViewLayout:
        """Row-major, without gaps."""
        return ViewLayout(tuple(range(rank)), (0,) * rank)

    @property
    def is_contiguous(self) -> bool:
        """Whether it is row-major without gaps at an aligned address."""
        return self == ViewLayout.contiguous(len(self.order))

    def of(self, values: Array) -> Array:
        """A view with this layout. Its elements are those of `values`; along a repeated dim, those at index 0.

        What lies between the elements is 0x55 in every byte. TilewrightError for an array of another rank.
        """
        if values.ndim != len(self.order):
            raise TilewrightError(f"layout: expected an array of rank {len(self.order)}, got {values.ndim}")
        if values.size == 0:
            return values.copy()
        strides = [0] * values.ndim
        step = 1
        for dim in reversed(self.order):
            if dim not in self.repeated_dims:
                strides[dim] = step
                step = step * values.shape[dim] + self.padding[dim]
        item = values.dtype.itemsize
        memory = np.full(ALIGNMENT + (self.offset + step) * item, 0x55, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT + self.offset * item
        flat = memory[start : start + step * item].view(values.dtype)
        made = np.lib.stride_tricks.as_strided(flat, values.shape, [s * item for s in strides])
        # The ellipsis keeps an array of rank 0 an array.
        backwards = tuple(slice(None, None, -1 if d in self.reversed_dims else 1) for d in range(values.ndim))
        made = made[(*backwards, ...)]
        # Written once where indices meet.
        once = tuple(slice(0, 1) if d in self.repeated_dims else slice(None) for d in range(values.ndim))
        made[once] = values[once]
        return made


@st.composite
def layouts(draw: st.DrawFn, rank: int, *, repeated: bool = True, reversed_: bool = True) -> ViewLayout:
    """Layouts of arrays of a rank: contiguous, padded rows, dims in any order, an unaligned base, and strides that are
    negative (unless `reversed_` is False) or 0 (unless `repeated` is). Shrinks to contiguous."""
    chance = Chance(draw)
    order = tuple(chance.order(rank)) if chance.flag(3) else tuple(range(rank))
    padding = tuple(chance.choose((0, 0, 0, 1, 3, 4)) for _ in range(rank)) if chance.flag(2) else (0,) * rank
    backward = tuple(d for d in range(rank) if chance.flag(4)) if reversed_ and chance.flag(4) else ()
    same = tuple(d for d in range(rank) if chance.flag(3)) if repeated and chance.flag(4) else ()
    offset = chance.choose((0, 0, 0, 1, 2, 3))
    return ViewLayout(order, padding, backward, same, offset)
