"""Hand-written scheduled kernels, lowered and run in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.tile_to_simt import TileToSimtPass
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate
from tilewright.runtime.sim.report import Report

KERNELS = Path(__file__).parent / "kernels"
NAMES = sorted(path.stem for path in KERNELS.glob("*.mlir"))


def kernel_text(name: str, index_width: int = 32) -> str:
    """The text of a kernel with this index width."""
    text = (KERNELS / f"{name}.mlir").read_text(encoding="utf-8")
    return text.replace("index_width 32", f"index_width {index_width}")


def parsed(text: str) -> ModuleOp:
    """A verified module."""
    module = parse_module(text, "kernel.mlir", make_context())
    module.verify()
    return module


def lowered(text: str) -> KernelOp:
    """The simt kernel of a text with one tile kernel."""
    module = parsed(text)
    TileToSimtPass().apply(make_context(), module)
    module.verify()
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    return kernel


def run(
    kernel: KernelOp, symbols: Mapping[str, int], arrays: Sequence[np.ndarray], values: Sequence[float] = ()
) -> Report:
    """Run at level `check` on flat arrays, in place; the host's part is to evaluate grid and params."""
    scalars = [*values, *(p.data.evaluate(symbols) for p in kernel.params.data)]
    grid = kernel.grid.data.evaluate(symbols)
    return simulate(kernel, [Buffer(a) for a in arrays], scalars, grid=grid, level="check")
