"""A chain of six elementwise steps with broadcasting: one kernel, each element read and written once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from examples.example import Array, Example, Sizes, main, normal


def build(dtype: str = "float32") -> tw.Tensor:
    """silu(x * scale + shift), rescaled by a value a row and clipped at 6."""
    M, N = tw.symbols("M N")
    x = tw.placeholder((M, N), dtype, name="x")
    scale = tw.placeholder((N,), dtype, name="scale")
    shift = tw.placeholder((N,), dtype, name="shift")
    row = tw.placeholder((M, 1), dtype, name="row")
    return tw.minimum(tw.silu(x * scale + shift) * row, 6.0)


def inputs(rng: np.random.Generator, sizes: Sizes) -> Sequence[Array]:
    """Normal values."""
    M, N = sizes["M"], sizes["N"]
    return normal(rng, M, N), normal(rng, N), normal(rng, N), normal(rng, M, 1)


EXAMPLE = Example(
    "elementwise_chain",
    "min(silu(x * scale + shift) * row, 6) on x [M, N]",
    build,
    inputs,
    [{"M": 128, "N": 256}, {"M": 77, "N": 131}, {"M": 0, "N": 9}],
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
