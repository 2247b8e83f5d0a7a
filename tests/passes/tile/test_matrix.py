"""Products for sm_90a compute the same after each pass of the tile pipeline, in the tile interpreter."""

from __future__ import annotations

import pytest

from tests.passes.tile.matrix import MATRIX, Matrix
from tests.passes.tile.matrix_programs import PRODUCTS


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_pass_preserves(name: str) -> None:
    case = PRODUCTS[name]
    matrix = Matrix(case.build(), case.tiles)
    changed: set[str] = set()
    for number, sizes in enumerate(case.sizes):
        changed |= matrix.check(sizes, seed=number)
    assert changed >= set(MATRIX), [str(r) for r in matrix.remarks]


@pytest.mark.parametrize("sizes", [{"M": 5, "N": 7, "K": 9}, {"M": 64, "N": 65, "K": 64}])
def test_what_no_tensor_map_can_move_is_left_to_the_threads(sizes: dict[str, int]) -> None:
    matrix = Matrix(PRODUCTS["plain"].build())
    assert not matrix.check(sizes) & set(MATRIX)
    (declined,) = {r.message for r in matrix.remarks if r.pass_name == "choose-mma"}
    assert declined == "multiply-adds of threads: the left operand: no dim of stride 1 for certain"
