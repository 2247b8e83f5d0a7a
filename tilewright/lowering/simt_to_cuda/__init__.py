"""From simt kernels to CUDA C++ text: one function an op, in tables, and no knowledge of what a kernel computes."""

from tilewright.lowering.simt_to_cuda.names import kernel_symbol
from tilewright.lowering.simt_to_cuda.source import emit_kernel, emit_module

__all__ = ["emit_kernel", "emit_module", "kernel_symbol"]
