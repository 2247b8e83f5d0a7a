"""Operands of matrix instructions in shared memory, found as the hardware finds them: by a start address, two byte
offsets and a swizzle, whatever array they were meant to be in.

Source: PTX ISA 8.0, matrix descriptors of wgmma; canonical layouts as measured on an H200 for 128-byte swizzles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.tensor_maps import CHUNK, swizzled_chunks

CORE_ROWS = 8
"""Rows of a core of the layout."""
TF32_BITS = np.uint32(0xFFFFE000)
"""Of a float32, those that tf32 has: 10 bits of the fraction."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A rows x depth operand (rows along its own dim, m or n) of 16-byte chunks."""

    offsets: Array
    """Chunks counted from the start address, before the swizzle; (rows, chunks along k), or for `mn` (k, chunks)."""
    transposed: bool
    """Whether chunks lie along the operand's own dim."""
    swizzle: int
    element: Attribute

    def places(self, start: Array) -> Array:
        """Chunk numbers in a block's shared memory for start chunks (..., ): (..., offsets' shape)."""
        return swizzled_chunks(start[..., None, None] + self.offsets, self.swizzle)

    def values(self, chunks: Array) -> Array:
        """Chunks as gathered at `places`, as float32 (..., rows, depth)."""
        bits = 4 if not isinstance(self.element, BFloat16Type | Float16Type) else 2
        flat = chunks.view(np.uint16 if bits == 2 else np.uint32)
        if isinstance(self.element, BFloat16Type):
            wide = (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
        elif isinstance(self.element, Float16Type):
            wide = flat.view(np.float16).astype(np.float32)
        else:
            wide = (flat & TF32_BITS).view(np.float32)
        return np.swapaxes(wide, -1, -2) if self.transposed else wide


def make_operand(
    element: Attribute, size: int, rows: int, depth: int, major: str, offsets: tuple[int, int], swizzle: int
) -> Operand:
    """The operand of an instruction; `offsets`: the leading and the stride byte offset, `size`: bytes of an element."""
    leading, stride = offsets
    if major == "k":
        row = np.arange(rows)[:, None]
        along = np.arange(depth * size // CHUNK)[None, :] * CHUNK
        found = row // CORE_ROWS * stride + row % CORE_ROWS * swizzle + along
        return Operand(found // CHUNK, False, swizzle, element)
    k = np.arange(depth)[:, None]
    along = np.arange(rows * size // CHUNK)[None, :] * CHUNK
    found = along % swizzle + along // swizzle * leading + k % CORE_ROWS * swizzle + k // CORE_ROWS * stride
    return Operand(found // CHUNK, True, swizzle, element)
