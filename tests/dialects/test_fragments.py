"""The fragments of `ldmatrix` and `mma.sync` against the tables of the PTX ISA, spelled out register by register."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.fragment_page import page
from tilewright.dialects.simt.fragments import MMA_SHAPES, ldmatrix_elements

# By operand: (row, column) of each register, for group g = lane // 4 and thread t = lane % 4 of it.
TABLES = {
    ("m16n8k16", 16): {
        "a": lambda g, t: [
            (g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1),
            (g, 2 * t + 8), (g, 2 * t + 9), (g + 8, 2 * t + 8), (g + 8, 2 * t + 9),
        ],
        "b": lambda g, t: [(2 * t, g), (2 * t + 1, g), (2 * t + 8, g), (2 * t + 9, g)],
    },
    ("m16n8k8", 16): {
        "a": lambda g, t: [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)],
        "b": lambda g, t: [(2 * t, g), (2 * t + 1, g)],
    },
    ("m16n8k8", 32): {
        "a": lambda g, t: [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)],
        "b": lambda g, t: [(t, g), (t + 4, g)],
    },
}  # fmt: skip


@pytest.mark.parametrize("key", MMA_SHAPES, ids=str)
def test_mma_fragments(key: tuple[str, int]) -> None:
    shape = MMA_SHAPES[key]
    assert key in TABLES
    for lane in range(32):
        g, t = divmod(lane, 4)
        assert list(shape.a[lane]) == TABLES[key]["a"](g, t)
        assert list(shape.b[lane]) == TABLES[key]["b"](g, t)
        assert list(shape.c[lane]) == [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)]
    for places, rows, columns in ((shape.a, 16, shape.k), (shape.b, shape.k, 8), (shape.c, 16, 8)):
        held = [place for lane in places for place in lane]
        assert sorted(held) == [(row, column) for row in range(rows) for column in range(columns)]


def test_ldmatrix_gives_a_lane_a_word_of_each_matrix() -> None:
    plain, transposed = ldmatrix_elements(4, 2, False), ldmatrix_elements(2, 2, True)
    # Lane 13 is group 3, thread 1: row 3, elements 2 and 3 of each matrix; matrix 2 has its rows at lanes 16 to 23.
    assert plain[13] == tuple((8 * m + 3, e) for m in range(4) for e in (2, 3))
    assert transposed[13] == tuple((8 * m + row, 3) for m in range(2) for row in (2, 3))
    assert ldmatrix_elements(1, 4, False)[13] == ((3, 1),)
    assert ldmatrix_elements(1, 1, False)[13] == ((3, 4), (3, 5), (3, 6), (3, 7))


def test_the_page_is_the_table() -> None:
    assert (Path(__file__).parents[2] / "docs" / "design" / "fragments.md").read_text(encoding="utf-8") == page()
