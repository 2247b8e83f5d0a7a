"""A third target, as a package of its own would add it: OpenCL C for a small device.

Kernels take a last parameter, the block's shared memory (`clSetKernelArg` with a size and no pointer).
"""

# [imports]
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Attribute, Operation

from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.memory import LoadOp, SharedOp, StoreOp
from tilewright.dialects.simt.structure import BlockIdOp, KernelOp, TidOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.types import GlobalType
from tilewright.targets import (
    ARITHMETIC,
    MATHEMATICS,
    SHARED,
    STRUCTURED,
    Limits,
    Spelling,
    Target,
    Write,
    Writer,
    kernel_symbol,
    register_target,
    uses_shared_memory,
)

# [/imports]

# [spelling]
OPENCL_C = Spelling(
    integers={1: "bool", 32: "int", 64: "long"},
    unsigned={1: "bool", 32: "uint", 64: "ulong"},
    floats={Float32Type: "float"},
    cast="(({type})({value}))",
    long_suffix="L",
    function_suffix="",
)
# [/spelling]

# [header]
HEADER = """#pragma OPENCL FP_CONTRACT OFF
#define __int_as_float(bits) as_float(bits)
static inline int tw_floordiv_int(int a, int b) { int q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline long tw_floordiv_long(long a, long b) { long q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int tw_ceildiv_int(int a, int b) { int q = a / b; return q + (a % b != 0 && (a < 0) == (b < 0)); }
static inline long tw_ceildiv_long(long a, long b) { long q = a / b; return q + (a % b != 0 && (a < 0) == (b < 0)); }
static inline float tw_maximum(float a, float b) { return a != a || b != b ? NAN : fmax(a, b); }
static inline float tw_minimum(float a, float b) { return a != a || b != b ? NAN : fmin(a, b); }
static inline float tw_maxnum(float a, float b) { return fmax(a, b); }
static inline float tw_minnum(float a, float b) { return fmin(a, b); }
static inline float tw_fma(float a, float b, float c) { return fma(a, b, c); }
"""
# [/header]


# [entries]
def _tid(w: Writer, op: TidOp) -> None:
    w.result(op, "(int)get_local_id(0)")


def _block_id(w: Writer, op: BlockIdOp) -> None:
    w.result(op, f"(int)get_group_id({'xyz'.index(op.dim.data)})")


def _barrier(w: Writer, _op: BarrierOp) -> None:
    w.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


def _shared(w: Writer, op: SharedOp) -> None:
    element = w.c_type(op.res.type.element)
    w.line(f"__local {element} *{w.bind(op.res)} = (__local {element} *)({SHARED} + {op.offset.value.data});")


def _load(w: Writer, op: LoadOp) -> None:
    register = w.name(op.regs) + "".join(f"[{w.name(i)}]" for i in op.indices)
    memory = f"{w.name(op.memory)} + {w.name(op.index)}"
    conditions = [] if op.mask is None else [w.name(op.mask)]
    if op.before is not None and op.after is not None:
        conditions.append(f"-{w.name(op.before)} <= k && k < {w.name(op.after)}")
    memory = f"({memory})[k]"
    if conditions:
        memory = f"{' && '.join(conditions)} ? {memory} : {w.literal(op.other)}"
    with w.braces(f"for (int k = 0; k < {op.width.value.data}; ++k)"):
        w.line(f"(&{register})[k] = {memory};")


def _store(w: Writer, op: StoreOp) -> None:
    register = w.name(op.regs) + "".join(f"[{w.name(i)}]" for i in op.indices)
    condition = "" if op.mask is None else f"if ({w.name(op.mask)}) "
    with w.braces(f"{condition}for (int k = 0; k < {op.width.value.data}; ++k)"):
        w.line(f"({w.name(op.memory)} + {w.name(op.index)})[k] = (&{register})[k];")


def _operator(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        w.result(op, f"{w.name(op.lhs)} {sign} {w.name(op.rhs)}")

    return write


def _unsigned_operator(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        kind = w.unsigned_type(op.result.type)
        w.result(op, w.cast_to(op.result.type, f"({kind}){w.name(op.lhs)} {sign} ({kind}){w.name(op.rhs)}"))

    return write


def _call(function: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        w.result(op, f"{function}_{w.c_type(op.result.type)}({w.name(op.lhs)}, {w.name(op.rhs)})")

    return write


_PLAIN: dict[type[Operation], Write] = {**ARITHMETIC, **MATHEMATICS, **STRUCTURED}
_REPLACED: dict[type[Operation], Write] = {
    TidOp: _tid,
    BlockIdOp: _block_id,
    BarrierOp: _barrier,
    SharedOp: _shared,
    LoadOp: _load,
    StoreOp: _store,
    arith.DivSIOp: _operator("/"),
    arith.RemSIOp: _operator("%"),
    arith.DivUIOp: _unsigned_operator("/"),
    arith.RemUIOp: _unsigned_operator("%"),
    arith.FloorDivSIOp: _call("tw_floordiv"),
    arith.CeilDivSIOp: _call("tw_ceildiv"),
}
# C has no templates, and a small device no shuffles.
_MISSING = {ShuffleOp, arith.BitcastOp, arith.CeilDivUIOp, math.IPowIOp}
# [/entries]


# [target]
@register_target
@dataclass(frozen=True)
class OpenClTarget(Target):
    """OpenCL C of all simt kernels, for a device of 128 work-items a group and 32 KiB of local memory."""

    name = "opencl"
    extension: ClassVar[str] = ".cl"
    spelling: ClassVar[Spelling] = OPENCL_C
    emitters: ClassVar[Mapping[type[Operation], Write]] = {
        **{op: write for op, write in _PLAIN.items() if op not in _MISSING},
        **_REPLACED,
    }
    local_bytes: int = 32 * 1024

    @property
    def limits(self) -> Limits:
        return Limits(threads=128, shared_bytes=self.local_bytes, access_bytes=8, dtypes=("i1", "i32", "i64", "f32"))

    def header(self, kernels: Sequence[KernelOp]) -> str:
        return HEADER

    def head(self, w: Writer, kernel: KernelOp) -> str:
        parameters = [_parameter(w, argument.type, w.bind(argument)) for argument in kernel.body.block.args]
        if uses_shared_memory(kernel):
            parameters.append(f"__local uchar *{SHARED}")
        size = f"__attribute__((reqd_work_group_size({kernel.threads.value.data}, 1, 1)))"
        return f"__kernel {size} void {kernel_symbol(kernel)}({', '.join(parameters)})"


def _parameter(w: Writer, type_: Attribute, name: str) -> str:
    if isinstance(type_, GlobalType):
        return f"__global {w.c_type(type_.element)} *{name}"
    return f"{w.c_type(type_)} {name}"


# [/target]


# [program]
def opencl_text(module: ModuleOp) -> str:
    """The kernels of a tensor-level module, such as `tilewright.build_module` makes; the module becomes them."""
    target = OpenClTarget()
    target.lower(module, make_context())  # simt kernels, one for each variant, in place
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    return target.source(kernels)  # TilewrightError at an op without an entry, or over a limit


# [/program]
