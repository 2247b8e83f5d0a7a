"""Targets: what kernels are written as, and what the device that runs them can take.

    from tilewright.targets import Target, Limits, register_target

`docs/guides/adding-a-target.md` adds one. The names below are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.lowering.simt_to_cuda.arithmetic import ARITHMETIC
    from tilewright.lowering.simt_to_cuda.mathematics import MATHEMATICS
    from tilewright.lowering.simt_to_cuda.names import kernel_symbol
    from tilewright.lowering.simt_to_cuda.structured import SHARED, STRUCTURED
    from tilewright.lowering.simt_to_cuda.table import EMITTERS
    from tilewright.lowering.simt_to_cuda.target import CudaTarget
    from tilewright.lowering.simt_to_cuda.types import CUDA_CPP, Spelling
    from tilewright.lowering.simt_to_cuda.writer import Write, Writer
    from tilewright.lowering.targets.base import Target, scalar_types, uses_shared_memory
    from tilewright.lowering.targets.limits import DTYPES, Limits
    from tilewright.lowering.targets.registry import all_targets, register_target

_HOME: dict[str, str] = {
    "ARITHMETIC": "simt_to_cuda.arithmetic",
    "CUDA_CPP": "simt_to_cuda.types",
    "CudaTarget": "simt_to_cuda.target",
    "DTYPES": "targets.limits",
    "EMITTERS": "simt_to_cuda.table",
    "Limits": "targets.limits",
    "MATHEMATICS": "simt_to_cuda.mathematics",
    "SHARED": "simt_to_cuda.structured",
    "STRUCTURED": "simt_to_cuda.structured",
    "Spelling": "simt_to_cuda.types",
    "Target": "targets.base",
    "Write": "simt_to_cuda.writer",
    "Writer": "simt_to_cuda.writer",
    "all_targets": "targets.registry",
    "kernel_symbol": "simt_to_cuda.names",
    "register_target": "targets.registry",
    "scalar_types": "targets.base",
    "uses_shared_memory": "targets.base",
}
"""Public name -> the file of the lowering room that defines it."""

__all__ = [
    "ARITHMETIC",
    "CUDA_CPP",
    "DTYPES",
    "EMITTERS",
    "MATHEMATICS",
    "SHARED",
    "STRUCTURED",
    "CudaTarget",
    "Limits",
    "Spelling",
    "Target",
    "Write",
    "Writer",
    "all_targets",
    "kernel_symbol",
    "register_target",
    "scalar_types",
    "uses_shared_memory",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use and keep it."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"tilewright.lowering.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
