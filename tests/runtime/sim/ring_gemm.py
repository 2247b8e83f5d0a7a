"""A small matrix product in `simt` for sm_90a, with everything that the large ones have, and a way to break it.

The kernel is in `ring_gemm.mlir`, and for clusters of two blocks in `cluster_gemm.mlir`; lines of them end in a mark by
which a test replaces them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.sim.report import Report

BF16 = ml_dtypes.bfloat16
TILE = 64

TEXT = (Path(__file__).parent / "ring_gemm.mlir").read_text()
CLUSTERS = (Path(__file__).parent / "cluster_gemm.mlir").read_text()


def planted(text: str = TEXT, **marks: str) -> str:
    """The kernel's text with the lines of these marks (underscores for spaces) replaced; "" is no line."""
    lines: list[str] = list(text.splitlines())
    for mark, line in {"after_the_producer's_loop": "", **marks}.items():
        (at,) = [i for i, text in enumerate(lines) if text.endswith("  // " + mark.replace("_", " "))]
        # A region may not be empty.
        lines[at] = line or f"%nothing{at} = arith.constant 0 : i32"
    return "\n".join(lines)


def line_of(mark: str, text: str = TEXT) -> int:
    """The number of the line with this mark, counted from 1."""
    (at,) = [i for i, line in enumerate(text.splitlines()) if line.endswith("  // " + mark)]
    return at + 1


@dataclass
class Gemm:
    """A product of given sizes: inputs, and what came out of the last run."""

    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        random = np.random.default_rng(7)
        self.a = random.standard_normal((self.m, self.k)).astype(BF16)
        self.b = random.standard_normal((self.k, self.n)).astype(BF16)
        self.c = np.full((self.m, self.n), np.nan, BF16)

    def run(self, text: str | None = None, *, grid: int = 1, level: Any = "check", **options: Any) -> Report:
        """Run the kernel of this text on `grid` blocks."""
        module = parse_module(planted() if text is None else text, "gemm.mlir", make_context())
        module.verify()
        (kernel,) = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
        down, across, steps = (-(-n // TILE) for n in (self.m, self.n, self.k))
        m, n, k = self.m, self.n, self.k
        if kernel.cluster is not None:
            down = -(-down // kernel.cluster_size) * kernel.cluster_size
        memory = [Buffer(x.reshape(-1)) for x in (self.a, self.b, self.c)]
        return compile_kernel(kernel, level, aliased=False).run(
            memory,
            [across, down * across, steps],
            grid=grid,
            map_sizes=[m, k, k, 1, k, n, n, 1, m, n, n, 1],
            **options,
        )

    def check(self) -> None:
        """The result is A * B, each element within a rounding to bf16 and the sums' own error."""
        exact = self.a.astype(np.float64) @ self.b.astype(np.float64)
        bound = np.abs(self.a.astype(np.float64)) @ np.abs(self.b.astype(np.float64))
        error = np.abs(self.c.astype(np.float64) - exact)
        assert (error <= np.abs(exact) * 2.0**-8 + (self.k + 1) * 2.0**-24 * bound).all()
