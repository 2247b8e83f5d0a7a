"""The `cuda` target: CUDA C++ for NVRTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.roles import RolesOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType, SharedType, TmapType
from tilewright.dialects.simt.wgmma import WgmmaOp, WgmmaRegsOp
from tilewright.lowering.simt_to_cuda.hopper import HOPPER
from tilewright.lowering.simt_to_cuda.names import kernel_symbol
from tilewright.lowering.simt_to_cuda.structured import SHARED
from tilewright.lowering.simt_to_cuda.writer import Writer
from tilewright.lowering.targets.base import Target, scalar_types, shared_memory_types
from tilewright.lowering.targets.limits import Limits, cuda_limits
from tilewright.passes.core import error_at

VECTOR_ALIGNMENT = 16
"""Bytes that the start of shared memory is a multiple of: the widest access."""
SWIZZLED_ALIGNMENT = 1024
"""The same where an array is swizzled: its pattern repeats after eight rows of 128 bytes."""

_MACROS: dict[type[Attribute], str] = {Float16Type: "TW_F16", BFloat16Type: "TW_BF16"}


@cache
def intrinsics_header() -> str:
    """The text of `tilewright_intrinsics.cuh`, which stands in front of every source."""
    return files("tilewright.lowering").joinpath("tilewright_intrinsics.cuh").read_text(encoding="utf-8")


@cache
def hopper_header() -> str:
    """The text of `tilewright_hopper.cuh`, which follows in sources that use what sm_90a brings."""
    return files("tilewright.lowering").joinpath("tilewright_hopper.cuh").read_text(encoding="utf-8")


@dataclass(frozen=True)
class CudaTarget(Target):
    """CUDA C++ of all simt kernels, complete for NVRTC; `arch` is the architecture, such as sm_80 or sm_90a.

    Compile with `--fmad=false`: the IR says where a product and a sum fuse.
    """

    name = "cuda"
    extension: ClassVar[str] = ".cu"
    arch: str = "sm_80"

    def __post_init__(self) -> None:
        if re.fullmatch(r"sm_[0-9]{2,3}[af]?", self.arch) is None:
            raise TilewrightError(f"architecture: expected sm_<number> such as sm_80 or sm_90a, got {self.arch!r}")

    @property
    def limits(self) -> Limits:
        """Those of the architecture."""
        return cuda_limits(self.arch)

    def options(self) -> dict[str, dict[str, Any]]:
        """Those of the limits, and the architecture for the lowerings whose choices depend on it."""
        own, arch = super().options(), {"arch": self.arch}
        return {**own, "lin-to-tile": {**own["lin-to-tile"], **arch}, "instantiate-variants": arch}

    def header(self, kernels: Sequence[KernelOp]) -> str:
        """The intrinsics, with NVIDIA's headers for 16-bit floats where kernels use them, and the shared memory."""
        used = {type(type_) for kernel in kernels for _, type_ in scalar_types(kernel)}
        parts = [f"#define {macro}" for type_, macro in _MACROS.items() if type_ in used]
        if any(isinstance(op, WgmmaOp | WgmmaRegsOp) for kernel in kernels for op in kernel.walk()):
            parts.append("#define TW_MATRIX_INSTRUCTIONS")
        parts.append(intrinsics_header())
        arrays = [t for kernel in kernels for t in shared_memory_types(kernel)]
        if arrays:
            swizzled = any(isinstance(t, SharedType) and t.swizzle.data for t in arrays)
            alignment = SWIZZLED_ALIGNMENT if swizzled else VECTOR_ALIGNMENT
            parts.append(f"extern __shared__ __align__({alignment}) unsigned char {SHARED}[];\n")
        asynchronous = next((op for kernel in kernels for op in kernel.walk() if type(op) in HOPPER), None)
        if asynchronous is not None:
            if self.arch != "sm_90a":
                raise error_at(asynchronous, f"{asynchronous.name} is for sm_90a, got {self.arch}")
            parts.append(hopper_header())
        return "\n".join(parts)

    def head(self, w: Writer, kernel: KernelOp) -> str:
        """`extern "C" __global__ void __launch_bounds__(threads) name(parameters)`."""
        parameters: list[str] = []
        for argument in kernel.body.block.args:
            type_ = argument.type
            if isinstance(type_, TmapType):
                parameters.append(f"const __grid_constant__ TwTensorMap {w.bind(argument)}")
            elif isinstance(type_, GlobalType):
                const = "const " if argument in w.read_only else ""
                parameters.append(f"{const}{w.c_type(type_.element)} *__restrict__ {w.bind(argument)}")
            else:
                parameters.append(f"{w.c_type(type_)} {w.bind(argument)}")
        # With roles one block has a processor's registers, which the roles share out among themselves.
        least = ", 1" if any(isinstance(op, RolesOp) for op in kernel.walk()) else ""
        bounds = f"__launch_bounds__({kernel.threads.value.data}{least})"
        if kernel.cluster is not None:
            if self.arch != "sm_90a":
                raise error_at(kernel, f"clusters are for sm_90a, got {self.arch}")
            bounds = f"__cluster_dims__({kernel.cluster_size}, 1, 1) {bounds}"
        return f'extern "C" __global__ void {bounds} {kernel_symbol(kernel)}({", ".join(parameters)})'
