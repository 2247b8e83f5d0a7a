"""From simt kernels to CUDA C++ text: one function an op, in tables, and no knowledge of what a kernel computes.

The names below are imported on first use: targets derive from the tables here without the CUDA target itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.lowering.simt_to_cuda.names import kernel_symbol
    from tilewright.lowering.simt_to_cuda.source import emit_kernel, emit_module

__all__ = ["emit_kernel", "emit_module", "kernel_symbol"]

_HOME = {"emit_kernel": "source", "emit_module": "source", "kernel_symbol": "names"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use and keep it."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
