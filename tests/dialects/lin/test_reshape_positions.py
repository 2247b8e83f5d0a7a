"""Where a reshape reads: every element of small shapes, with dims of size 1 anywhere, against NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.dialects.lin.reshape import positions
from tilewright.dialects.sym import Expr
from tilewright.dialects.sym.index import dim, name_of

SHAPES = [(12,), (3, 4), (4, 3), (2, 6), (2, 2, 3), (1, 12), (12, 1), (3, 1, 4), (1, 2, 1, 6, 1), (2, 3, 2)]


@pytest.mark.parametrize("source", SHAPES)
@pytest.mark.parametrize("target", SHAPES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_every_element_comes_from_its_place(source: tuple[int, ...], target: tuple[int, ...], symbolic: bool):
    # Equal sizes above 1 are one symbol, so that runs are found; a 1 may as well be a symbol that happens to be 1.
    def spell(shape: tuple[int, ...], letter: str) -> list[Expr]:
        if not symbolic:
            return [Expr.const(n) for n in shape]
        return [Expr.symbol(f"{letter}{i}" if n == 1 else f"S{n}") for i, n in enumerate(shape)]

    values = {f"S{n}": n for n in range(2, 13)} | {f"{x}{i}": 1 for x in "ab" for i in range(5)}
    found = positions(spell(source, "a"), spell(target, "b"))
    elements, reshaped = np.arange(12).reshape(source), np.arange(12).reshape(target)
    for at in product(*(range(n) for n in target)):
        names = values | {name_of(dim(d)): i for d, i in enumerate(at)}
        assert elements[tuple(e.evaluate(names) for e in found)] == reshaped[at]


def test_dims_that_both_have_are_read_as_they_are():
    b, s, h = (Expr.symbol(x) for x in "BSH")
    assert positions([b * s, h], [b, s, h]) == [s * dim(0) + dim(1), dim(2)]
    assert positions([b, s, h], [b * s, h])[2] is dim(1)
