"""Global memory of a launch: flat arrays that the simulator reads and writes in place, or virtual memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.virtual import VirtualMemory


@dataclass(frozen=True, slots=True)
class Buffer:
    """One pointer argument: element 0 of the pointer is `data[offset]`.

    `data` is a flat array in the element's storage dtype (bf16: ml_dtypes.bfloat16; i1: bool), written in place, or
    virtual memory, which overlaps only itself. Element indices from `low` up to, not including, `high` may be accessed;
    by default all of `data`. `address` is the byte address of `data[0]` as far as alignment and sectors go.
    """

    data: Array | VirtualMemory
    offset: int = 0
    low: int | None = None
    high: int | None = None
    address: int = 0

    @property
    def first(self) -> int:
        """Least element index that may be accessed."""
        return -self.offset if self.low is None else self.low

    @property
    def end(self) -> int:
        """One past the greatest element index that may be accessed."""
        return self.data.size - self.offset if self.high is None else self.high

    def check(self, element: Attribute, name: str) -> None:
        """TilewrightError when the array cannot be the memory of pointer `name` to `element`."""
        dtype = storage_dtype(element)
        if not isinstance(self.data, VirtualMemory) and (self.data.ndim != 1 or not self.data.flags.c_contiguous):
            raise TilewrightError(f"{name}: expected a flat contiguous array, got shape {self.data.shape}")
        if self.data.dtype != dtype:
            raise TilewrightError(f"{name}: expected elements of dtype {dtype}, got {self.data.dtype}")
        if self.end > self.first and (self.first + self.offset < 0 or self.end + self.offset > self.data.size):
            raise TilewrightError(
                f"{name}: expected element indices within the array's {self.data.size} elements, got "
                f"{self.first}..{self.end} from offset {self.offset}"
            )
