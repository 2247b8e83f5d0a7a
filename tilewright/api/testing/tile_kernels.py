"""`tile_kernels()`: random tile kernels as an author writes them, each with a `lin` program of the same meaning."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tilewright.api.testing.program import Program
from tilewright.api.testing.tile_kernels_author import Author
from tilewright.api.testing.tile_kernels_pointwise import pointwise
from tilewright.api.testing.tile_kernels_text import KernelText


@dataclass(frozen=True)
class TileProgram(Program):
    """A module with one `host.func @main` over one or two tile kernels, before host-plan."""

    meaning: str = ""
    """Text of a `lin` module whose `func.func @main` takes the same arguments and has the same results: `run_reference`
    on it gives the values, and bounds of the error of any honest execution, that of the tile kernels included."""


@st.composite
def tile_kernels(draw: st.DrawFn) -> TileProgram:
    """Random tile kernels."""
    author = Author(draw)
    kernel = KernelText("main_0")
    author.module.kernels.append(kernel)
    pointwise(author, kernel, None, "result")
    seed = draw(st.integers(0, 2**16))
    return TileProgram(
        author.module.tile(), dict(author.module.values), seed, level="tile", meaning=author.module.meaning()
    )
