"""The CUDA C++ of kernels: what the runtime calls."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda.table import EMITTERS
from tilewright.lowering.simt_to_cuda.target import CudaTarget, intrinsics_header

__all__ = ["EMITTERS", "emit_kernel", "emit_module", "intrinsics_header"]


def emit_kernel(kernel: KernelOp, arch: str) -> str:
    """Complete CUDA C++ of one kernel for an architecture such as `sm_80`; its name is `kernel_symbol(kernel)`."""
    return CudaTarget(arch).source([kernel])


def emit_module(module: ModuleOp, arch: str = "sm_80") -> str:
    """Complete CUDA C++ of all simt kernels of a module, in order."""
    return CudaTarget(arch).source([op for op in module.walk() if isinstance(op, KernelOp)])
