"""`tile_kernels()`: random tile kernels as an author writes them, each with a `lin` program of the same meaning."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tilewright.api.testing.program import Program
from tilewright.api.testing.tile_kernels_author import Author
from tilewright.api.testing.tile_kernels_folds import fold
from tilewright.api.testing.tile_kernels_pointwise import pointwise
from tilewright.api.testing.tile_kernels_products import product
from tilewright.api.testing.tile_kernels_text import Place
from tilewright.api.testing.tile_kernels_windows import window


@dataclass(frozen=True)
class TileProgram(Program):
    """A module with one `host.func @main` over one or two tile kernels, before host-plan."""

    meaning: str = ""
    """Text of a `lin` module whose `func.func @main` takes the same arguments and has the same results: `run_reference`
    on it gives the values, and bounds of the error of any honest execution, that of the tile kernels included."""


FAMILIES = (pointwise, fold, product, window)
READERS = (pointwise, fold, product)
"""Families that can take in what an earlier kernel has written."""


@st.composite
def tile_kernels(draw: st.DrawFn) -> TileProgram:
    """Random tile kernels as an author writes them: free, or with some decisions written on copies and buffers.

    One kernel, or two of which the second reads a result of the first; the families are elementwise work with gathers
    and masks, reductions, contractions, and windows that slide over a tile in shared memory. All are legal by the rules
    of the dialect, fit the shared memory of every device, and shrink to few ops on sizes of 1. Some claim that a tensor
    is contiguous (`strides [N, 1]`), which host-plan guards: call them with contiguous arrays. What lies outside
    for a gather, tails and masks are part of the meaning.
    """
    author = Author(draw)
    two = author.seldom(4)
    place: Place = author.choice(["scratch", "result"]) if two else "result"
    made = author.choice(FAMILIES)(author, author.kernel(), None, place)
    if two:
        author.choice(READERS)(author, author.kernel(), made[0], "result")
    seed = draw(st.integers(0, 2**16))
    return TileProgram(
        author.module.tile(), dict(author.module.values), seed, level="tile", meaning=author.module.meaning()
    )
