"""Softmax of each row, both dims symbolic: short rows stay on chip, long ones are walked three times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from examples.example import Array, Example, Sizes, main, normal


def build(dtype: str = "float32") -> tw.Tensor:
    """softmax over the last axis of [M, N]."""
    M, N = tw.symbols("M N")
    return tw.softmax(tw.placeholder((M, N), dtype, name="x"), axis=-1)


def inputs(rng: np.random.Generator, sizes: Sizes) -> Sequence[Array]:
    """Normal values, spread so that rows have a clear maximum."""
    return (normal(rng, sizes["M"], sizes["N"]) * np.float32(4),)


EXAMPLE = Example(
    "row_softmax",
    "softmax of the rows of x [M, N]",
    build,
    inputs,
    [{"M": 64, "N": 1024}, {"M": 7, "N": 1023}, {"M": 2, "N": 5000}, {"M": 1, "N": 1}],
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
