"""The source of kernels: what callers use. Compile with `--fmad=false`: the IR says where a product and a sum fuse."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from xdsl.dialects.builtin import BFloat16Type, Float16Type, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.memory import StoreOp
from tilewright.dialects.simt.roles import RolesOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType, MbarType, RegsType, SharedType, TmapType
from tilewright.dialects.simt.wgmma import WgmmaOp
from tilewright.lowering.simt_to_cuda.arithmetic import ARITHMETIC, Write
from tilewright.lowering.simt_to_cuda.hopper import HOPPER
from tilewright.lowering.simt_to_cuda.mathematics import MATHEMATICS
from tilewright.lowering.simt_to_cuda.names import kernel_symbol
from tilewright.lowering.simt_to_cuda.structured import SHARED, STRUCTURED
from tilewright.lowering.simt_to_cuda.types import c_type
from tilewright.lowering.simt_to_cuda.writer import Writer
from tilewright.passes.core import error_at

EMITTERS: dict[type[Operation], Write] = {**ARITHMETIC, **MATHEMATICS, **STRUCTURED, **HOPPER}
"""From the class of an op to the function that writes it; an op that is not here is an error."""

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


def emit_kernel(kernel: KernelOp, arch: str) -> str:
    """Complete CUDA C++ of one kernel for an architecture such as `sm_80`; its name is `kernel_symbol(kernel)`."""
    return _source([kernel], arch)


def emit_module(module: ModuleOp, arch: str = "sm_80") -> str:
    """Complete CUDA C++ of all simt kernels of a module, in order."""
    return _source([op for op in module.walk() if isinstance(op, KernelOp)], arch)


def _source(kernels: list[KernelOp], arch: str) -> str:
    if re.fullmatch(r"sm_[0-9]{2,3}[af]?", arch) is None:
        raise TilewrightError(f"architecture: expected sm_<number> such as sm_80 or sm_90a, got {arch!r}")
    used = {type(t) for kernel in kernels for t in _scalar_types(kernel)}
    parts = [f"#define {macro}" for type_, macro in _MACROS.items() if type_ in used]
    if any(isinstance(op, WgmmaOp) for k in kernels for op in k.walk()):
        parts.append("#define TW_MATRIX_INSTRUCTIONS")
    parts.append(intrinsics_header())
    arrays = [
        v.type for k in kernels for op in k.walk() for v in op.results if isinstance(v.type, SharedType | MbarType)
    ]
    if arrays:
        swizzled = any(isinstance(t, SharedType) and t.swizzle.data for t in arrays)
        alignment = SWIZZLED_ALIGNMENT if swizzled else VECTOR_ALIGNMENT
        parts.append(f"extern __shared__ __align__({alignment}) unsigned char {SHARED}[];\n")
    asynchronous = next((op for k in kernels for op in k.walk() if type(op) in HOPPER), None)
    if asynchronous is not None:
        if arch != "sm_90a":
            raise error_at(asynchronous, f"{asynchronous.name} is for sm_90a, got {arch}")
        parts.append(hopper_header())
    parts += [_kernel(kernel) for kernel in kernels]
    return "\n".join(parts)


def _scalar_types(kernel: KernelOp) -> set[Attribute]:
    """Types of all values of a kernel, of elements for arrays and pointers."""
    found: set[Attribute] = set()
    for op in kernel.walk():
        values: list[SSAValue] = list(op.results)
        for region in op.regions:
            for block in region.blocks:
                values += block.args
        for value in values:
            t = value.type
            found.add(t.element if isinstance(t, GlobalType | SharedType | RegsType | TmapType) else t)
    return found


def _kernel(kernel: KernelOp) -> str:
    written = {op.memory for op in kernel.walk() if isinstance(op, StoreOp)}
    w = Writer(EMITTERS, {p for p in kernel.pointers if p not in written})
    parameters: list[str] = []
    for argument in kernel.body.block.args:
        type_ = argument.type
        if isinstance(type_, TmapType):
            parameters.append(f"const __grid_constant__ TwTensorMap {w.bind(argument)}")
        elif isinstance(type_, GlobalType):
            const = "const " if argument in w.read_only else ""
            parameters.append(f"{const}{c_type(type_.element)} *__restrict__ {w.bind(argument)}")
        else:
            parameters.append(f"{c_type(type_)} {w.bind(argument)}")
    # With roles one block has a processor's registers, which the roles share out among themselves.
    least = ", 1" if any(isinstance(op, RolesOp) for op in kernel.walk()) else ""
    bounds = f"__launch_bounds__({kernel.threads.value.data}{least})"
    with w.braces(f'extern "C" __global__ void {bounds} {kernel_symbol(kernel)}({", ".join(parameters)})'):
        w.body(kernel.body.block)
    return "\n".join(w.lines) + "\n"
