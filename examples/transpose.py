"""2-D transpose, both dims symbolic: through shared memory, padded so that no two lanes meet in a bank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from examples.example import Array, Example, Sizes, main, normal


def build(dtype: str = "float32") -> tw.Tensor:
    """[M, N] -> [N, M]."""
    M, N = tw.symbols("M N")
    return tw.transpose(tw.placeholder((M, N), dtype, name="x"), (1, 0))


def inputs(rng: np.random.Generator, sizes: Sizes) -> Sequence[Array]:
    """Normal values."""
    return (normal(rng, sizes["M"], sizes["N"]),)


EXAMPLE = Example(
    "transpose",
    "transpose of x [M, N]",
    build,
    inputs,
    [{"M": 256, "N": 192}, {"M": 101, "N": 67}, {"M": 1, "N": 33}],
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
