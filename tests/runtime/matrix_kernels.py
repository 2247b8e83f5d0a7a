"""Hand-written kernels with `ldmatrix`, `mma.sync` and `cp.async`: their text, and numbers to run them on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.lowering.support import parsed
from tilewright.dialects.simt.structure import KernelOp

Array = np.ndarray[Any, Any]
KERNELS = Path(__file__).parent / "kernels"
TILE = 256
"""Elements of a tile of the pipeline."""


def text_of(name: str) -> str:
    """The text of a kernel."""
    return (KERNELS / f"{name}.mlir").read_text(encoding="utf-8")


def without(text: str, line: str, number: int = 0) -> str:
    """A text without the `number`th line that says this."""
    lines = text.splitlines()
    del lines[[i for i, each in enumerate(lines) if each.strip() == line][number]]
    return "\n".join(lines) + "\n"


def kernel_of(text: str) -> KernelOp:
    """The one kernel of a text."""
    (kernel,) = (op for op in parsed(text).walk() if isinstance(op, KernelOp))
    return kernel


def matmul_inputs(blocks: int, dtype: Any = ml_dtypes.bfloat16, k: int = 16) -> tuple[Array, Array, Array]:
    """A (blocks, 16, k), B (blocks, k, 8) and an empty C (blocks, 16, 8)."""
    random = np.random.default_rng(5)
    a = random.standard_normal((blocks, 16, k)).astype(dtype)
    b = random.standard_normal((blocks, k, 8)).astype(dtype)
    return a, b, np.zeros((blocks, 16, 8), np.float32)


def tiles_inputs(blocks: int) -> tuple[Array, Array, Array]:
    """A (blocks, 32, 32), B transposed (blocks, 16, 32) and an empty C (blocks, 32, 16) of `warp_tiles`."""
    random = np.random.default_rng(7)
    a = random.standard_normal((blocks, 32, 32)).astype(ml_dtypes.bfloat16)
    b = random.standard_normal((blocks, 16, 32)).astype(ml_dtypes.bfloat16)
    return a, b, np.zeros((blocks, 32, 16), np.float32)


def pipeline_inputs(blocks: int, tiles: int, missing: int) -> tuple[Array, Array, Array]:
    """x, which lacks the last `missing` elements of the last tile; an empty y; and what y is to be, in float64."""
    whole = np.zeros(blocks * tiles * TILE, np.float32)
    count = whole.size - missing
    whole[:count] = np.random.default_rng(6).standard_normal(count)
    expected = whole.reshape(blocks, tiles, 64, 4)[:, :, ::-1].sum((1, 3), dtype=np.float64).reshape(-1)
    return whole[:count].copy(), np.zeros(blocks * 64, np.float32), expected
