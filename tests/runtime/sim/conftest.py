"""Helpers for simulator tests: a kernel from the text of its body, and a launch of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel, overlap
from tilewright.runtime.sim.report import Report, SiteCounts


@dataclass(frozen=True)
class Sim:
    """Builds and runs kernels; `arguments` is the text between the kernel's parentheses."""

    def kernel(self, body: str, arguments: str = "", threads: int = 32, smem: int = 0, params: str = "") -> KernelOp:
        text = f"simt.kernel @k({arguments}) threads {threads} smem {smem} grid [1] {params} {{{body}\n}}"
        module = parse_module(text, "k.mlir", make_context())
        module.verify()
        (kernel,) = module.body.block.ops
        assert isinstance(kernel, KernelOp)
        return kernel

    def run(
        self,
        body: str,
        arguments: str = "",
        buffers: Sequence[Buffer | np.ndarray[Any, Any]] = (),
        scalars: Sequence[int] = (),
        *,
        threads: int = 32,
        smem: int = 0,
        grid: int = 1,
        level: Any = "check",
        batch: int | None = None,
        blocks: Sequence[int] | None = None,
        vectorise: bool = True,
        progress: Callable[[int, int], None] | None = None,
        landing: Any = "latest",
    ) -> Report:
        params = f"params [{', '.join('1' for _ in scalars)}]" if scalars else ""
        kernel = self.kernel(body, arguments, threads, smem, params)
        memory = [b if isinstance(b, Buffer) else Buffer(b) for b in buffers]
        program = compile_kernel(kernel, level, aliased=overlap(memory), vectorise=vectorise)
        return program.run(memory, scalars, grid=grid, blocks=blocks, batch=batch, progress=progress, landing=landing)

    def counts(self, report: Report, op_name: str, space: str) -> SiteCounts:
        """The counters of the only access of this kind."""
        (found,) = [c for site, c in report.counts.items() if site.op_name == op_name and site.space == space]
        return found


@pytest.fixture(scope="session")
def sim() -> Sim:
    return Sim()
