"""Products of a batch of matrices, every size symbolic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from examples.example import Array, Example, Sizes, main, normal


def build(dtype: str = "float32") -> tw.Tensor:
    """[B, M, K] x [B, K, N]."""
    B, M, N, K = tw.symbols("B M N K")
    a = tw.placeholder((B, M, K), dtype, name="a")
    b = tw.placeholder((B, K, N), dtype, name="b")
    return tw.batch_matmul(a, b)


def inputs(rng: np.random.Generator, sizes: Sizes) -> Sequence[Array]:
    """Normal values."""
    return normal(rng, sizes["B"], sizes["M"], sizes["K"]), normal(rng, sizes["B"], sizes["K"], sizes["N"])


EXAMPLE = Example(
    "batch_matmul",
    "a [B, M, K] times b [B, K, N]",
    build,
    inputs,
    [{"B": 6, "M": 48, "N": 64, "K": 32}, {"B": 3, "M": 17, "N": 31, "K": 13}, {"B": 2, "M": 4, "N": 3, "K": 0}],
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
