"""The `cuda` target of the opt tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda.source import emit_module


@dataclass(frozen=True)
class CudaTarget(Target):
    """CUDA C++ of all simt kernels, complete for NVRTC; `arch` is the architecture, such as sm_80 or sm_90a."""

    name = "cuda"
    arch: str = "sm_80"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the source to `output`. Raises TilewrightError at an op that has no C++, or where no kernel is simt."""
        if not any(isinstance(op, KernelOp) for op in module.ops):
            raise TilewrightError("target cuda: expected a simt.kernel in the module, got none: run tile-to-simt first")
        output.write(emit_module(module, self.arch))
