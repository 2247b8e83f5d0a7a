"""Global memory that only its extent makes large: values are a function of the index, and only what is stored is kept.

With it a launch on tensors of more than 2^31 elements is tried in a few of its blocks, without the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.numerics import Array

Values = Callable[[Array], Array]
"""From int64 positions, of any shape, to the values there, in the same shape."""


class VirtualMemory:
    """A flat array of `size` elements without storage: position p holds `values(p)` until something is stored there.

    Behaves as far as loads and stores need as a flat NumPy array of this dtype does. `stored` has what was stored, by
    position; memory grows with it alone.
    """

    ndim = 1

    def __init__(self, size: int, dtype: Any, values: Values) -> None:
        if size < 0:
            raise TilewrightError(f"expected at least 0 elements, got {size}")
        self.size = size
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.values = values
        self.stored: dict[int, Any] = {}

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def take(self, positions: Array) -> Array:
        """The values at these positions, in their shape; IndexError for one outside."""
        self._check(positions)
        found = np.array(self.values(positions), self.dtype)
        if found.shape != positions.shape:
            raise TilewrightError(f"values: expected shape {positions.shape}, got {found.shape}")
        if self.stored:
            flat = found.reshape(-1)
            for place, position in enumerate(positions.reshape(-1).tolist()):
                if position in self.stored:
                    flat[place] = self.stored[position]
        return found

    def __getitem__(self, positions: Array) -> Array:
        return self.take(positions)

    def __setitem__(self, positions: Array, values: Any) -> None:
        self._check(positions)
        # Rounds to the dtype as an array would; of several values for one position the last stays.
        kept = np.broadcast_to(np.asarray(values), positions.shape).astype(self.dtype)
        self.stored.update(zip(positions.reshape(-1).tolist(), kept.reshape(-1), strict=True))

    def _check(self, positions: Array) -> None:
        if positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < self.size:
            raise IndexError(f"positions {positions.min()}..{positions.max()} of {self.size} elements")


def virtual_zeros(size: int, dtype: Any) -> VirtualMemory:
    """Virtual memory that holds zeros."""
    return VirtualMemory(size, dtype, lambda positions: np.zeros(positions.shape, dtype))
