"""relu(x @ w + b) with symbolic batch and rows: one kernel, whatever B and M are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tw
from examples.example import Array, Example, Sizes, main, normal


def build(dtype: str = "float32") -> tw.Tensor:
    """[B, M, 512] x [512, 256] + [256]."""
    B, M = tw.symbols("B M")
    x = tw.placeholder((B, M, 512), dtype, name="x")
    w = tw.placeholder((512, 256), dtype, name="w")
    b = tw.placeholder((256,), dtype, name="b")
    return tw.relu(tw.matmul(x, w) + b)


def inputs(rng: np.random.Generator, sizes: Sizes) -> Sequence[Array]:
    """Normal values, the weights scaled so that results stay near 1."""
    return normal(rng, sizes["B"], sizes["M"], 512), normal(rng, 512, 256) / np.float32(22), normal(rng, 256)


EXAMPLE = Example(
    "matmul_bias_relu",
    "relu(x @ w + b), x [B, M, 512], w [512, 256]",
    build,
    inputs,
    [{"B": 4, "M": 64}, {"B": 3, "M": 37}, {"B": 0, "M": 5}],
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
