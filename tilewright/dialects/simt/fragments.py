"""Fragments: which element of a matrix each lane of a warp holds in which register, for `mma.sync` and `ldmatrix`.

The one place that says so: the simulator, the C++ for this machine's cores and the tests take it from here. Source: PTX
ISA, "Matrix Fragments for mma.m16n8k16 / m16n8k8" and "ldmatrix". With `g = lane // 4`, `t = lane % 4` and `p`
elements in each 32-bit word of a fragment (2 of 16 bits, 1 of 32 bits), element `i` of word `r` is

    A (m x k)   row g + 8 (r % 2)    column p t + i + 4 p (r // 2)
    B (k x n)   row p t + i + 4 p r  column g
    C, D        row g + 8 r          column 2 t + i         (f32, `r` a pair of registers)

Register arrays hold elements, not words: element `i` of word `r` is register `p r + i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

LANES = 32
M, N = 16, 8
"""Rows of A and columns of B in every shape here."""
MATRIX_ROWS = 8
"""Rows of one matrix of `ldmatrix`, each of `ROW_BYTES` bytes."""
ROW_BYTES = 16
WORD_BYTES = 4

Places: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]
"""By lane, then by register: (row, column)."""


@dataclass(frozen=True)
class MmaShape:
    """One `mma.sync`: D (16 x 8, f32) = A (16 x k) B (k x 8) + C."""

    name: str
    k: int
    per_word: int
    """Elements of A and B in 32 bits."""

    @property
    def a_registers(self) -> int:
        """Elements of A that a lane holds."""
        return M * self.k // LANES

    @property
    def b_registers(self) -> int:
        """Elements of B that a lane holds."""
        return self.k * N // LANES

    @property
    def c_registers(self) -> int:
        """Elements of C and D that a lane holds."""
        return M * N // LANES

    @property
    def a(self) -> Places:
        """Where the registers of A are in A."""
        p = self.per_word
        return tuple(
            tuple(
                (lane // 4 + 8 * (r // p % 2), p * (lane % 4) + r % p + 4 * p * (r // p // 2))
                for r in range(self.a_registers)
            )
            for lane in range(LANES)
        )

    @property
    def b(self) -> Places:
        """Where the registers of B are in B, as (row along k, column)."""
        p = self.per_word
        return tuple(
            tuple((p * (lane % 4) + r % p + 4 * p * (r // p), lane // 4) for r in range(self.b_registers))
            for lane in range(LANES)
        )

    @property
    def c(self) -> Places:
        """Where the registers of C and D are."""
        return tuple(
            tuple((lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2) for r in range(self.c_registers))
            for lane in range(LANES)
        )


_SHAPES: tuple[tuple[str, int, int], ...] = (
    # Name, bits of an element of A and B as registers hold it, k. 32 bits are tf32.
    ("m16n8k16", 16, 16),
    ("m16n8k8", 16, 8),
    ("m16n8k8", 32, 8),
)
MMA_SHAPES: dict[tuple[str, int], MmaShape] = {(n, bits): MmaShape(n, k, 32 // bits) for n, bits, k in _SHAPES}
"""Every shape that `simt.mma_sync` has, by name and bits of an element of A and B."""


def ldmatrix_registers(matrices: int, size: int) -> int:
    """Registers that `ldmatrix` of so many matrices fills in each lane, of elements of `size` bytes."""
    return matrices * WORD_BYTES // size


def ldmatrix_elements(matrices: int, size: int, transposed: bool) -> Places:
    """What `ldmatrix` gives each lane: by lane and register, (lane whose address names the row, element in the row).

    Matrix i has its rows at the addresses of lanes 8 i to 8 i + 7. Lane l gets word l % 4 of row l // 4 of each
    matrix; with `transposed` (elements of 16 bits alone) elements 2 (l % 4) and 2 (l % 4) + 1 of column l // 4.
    """
    per = WORD_BYTES // size
    return tuple(
        tuple(
            (MATRIX_ROWS * (r // per) + per * (lane % 4) + r % per, lane // 4)
            if transposed
            else (MATRIX_ROWS * (r // per) + lane // 4, per * (lane % 4) + r % per)
            for r in range(matrices * per)
        )
        for lane in range(LANES)
    )
