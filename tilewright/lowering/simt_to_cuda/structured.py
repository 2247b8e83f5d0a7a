"""`simt` and `scf` ops as C++: ids, arrays, loads and stores, barriers, shuffles, loops and branches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.simt import structure as simt
from tilewright.dialects.simt.memory import (
    LoadOp,
    MisalignedOp,
    RegsAllocOp,
    RegsLoadOp,
    RegsStoreOp,
    SharedOp,
    StoreOp,
)
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.types import RegsType, SharedType
from tilewright.lowering.simt_to_cuda.writer import Write, Writer

SHARED = "tw_smem"
"""The name of the block's dynamic shared memory."""


def _tid(w: Writer, op: simt.TidOp) -> None:
    w.result(op, "static_cast<int>(threadIdx.x)")


def _block_id(w: Writer, op: simt.BlockIdOp) -> None:
    w.result(op, f"static_cast<int>(blockIdx.{op.dim.data})")


def _grid_dim(w: Writer, op: simt.GridDimOp) -> None:
    w.result(op, "static_cast<int>(gridDim.x)")


def _shared(w: Writer, op: SharedOp) -> None:
    element = w.c_type(op.res.type.element)
    name = w.bind(op.res)
    w.line(f"{element} *{name} = reinterpret_cast<{element} *>({SHARED} + {op.offset.value.data});")


def _regs_alloc(w: Writer, op: RegsAllocOp) -> None:
    sizes = "".join(f"[{n}]" for n in op.res.type.sizes) or "[1]"
    element = w.c_type(op.res.type.element)
    w.line(f"{element} {w.bind(op.res)}{sizes};")


def _register(w: Writer, regs: SSAValue, indices: Sequence[SSAValue]) -> str:
    return w.name(regs) + ("".join(f"[{w.name(i)}]" for i in indices) or "[0]")


def _regs_load(w: Writer, op: RegsLoadOp) -> None:
    w.result(op, _register(w, op.regs, op.indices))


def _regs_store(w: Writer, op: RegsStoreOp) -> None:
    w.line(f"{_register(w, op.regs, op.indices)} = {w.name(op.value)};")


def place(w: Writer, memory: SSAValue, index: SSAValue) -> str:
    """A pointer to an element of global or shared memory."""
    if isinstance(memory.type, SharedType) and memory.type.swizzle.data:
        return f"tw_swizzled<{memory.type.swizzle.data}>({w.name(memory)}, {w.name(index)})"
    return f"{w.name(memory)} + {w.name(index)}"


def _load(w: Writer, op: LoadOp) -> None:
    width, target = op.width.value.data, _register(w, op.regs, op.indices)
    suffix = "_readonly" if op.memory in w.read_only else ""
    assert isinstance(op.regs.type, RegsType)
    element = w.c_type(op.regs.type.element)
    other = w.literal(op.other)
    if op.reach is None:
        mask = "" if op.mask is None else f", {w.name(op.mask)}, {other}"
        masked, kind = ("", "") if op.mask is None else ("_or", f", {element}")
        w.line(f"tw_load{suffix}{masked}<{width}{kind}>(&{target}, {place(w, op.memory, op.index)}{mask});")
        return
    swizzle = op.memory.type.swizzle.data if isinstance(op.memory.type, SharedType) else 0
    where = ", ".join(w.name(value) for value in (op.memory, op.index, *op.reach))
    load = f"tw_load{suffix}_unaligned<{width}, {swizzle}, {element}>(&{target}, {where}, {other});"
    if op.mask is None:
        w.line(load)
        return
    with w.braces(f"if ({w.name(op.mask)})"):
        w.line(load)
    with w.braces("else"):
        w.line(f"tw_fill<{width}, {element}>(&{target}, {other});")


def _store(w: Writer, op: StoreOp) -> None:
    condition = "" if op.mask is None else f"if ({w.name(op.mask)}) "
    source, target = _register(w, op.regs, op.indices), place(w, op.memory, op.index)
    if op.reach is not None:
        around = ", ".join(w.name(value) for value in op.reach)
        w.line(f"{condition}tw_store_unaligned<{op.width.value.data}>({target}, &{source}, {around});")
        return
    w.line(f"{condition}tw_store<{op.width.value.data}>({target}, &{source});")


def _misaligned(w: Writer, op: MisalignedOp) -> None:
    w.result(op, f"tw_misaligned<{op.width.value.data}>({place(w, op.memory, op.index)})")


def _barrier(w: Writer, _op: BarrierOp) -> None:
    w.line("tw_barrier();")


def _shuffle(w: Writer, op: ShuffleOp) -> None:
    w.result(op, f"tw_shuffle_{op.mode.data}({w.name(op.value)}, {op.amount.value.data})")


def _unroll(w: Writer, op: simt.UnrollOp) -> None:
    variable = w.bind(op.variable)
    w.line("#pragma unroll")
    with w.braces(f"for (int {variable} = 0; {variable} < {op.count.value.data}; ++{variable})"):
        w.body(op.body.block)


def _for(w: Writer, op: scf.ForOp) -> None:
    """Carried values live in variables that the end of the body assigns, all at once."""
    index, *carried = op.body.block.args
    targets: list[str] = []
    for argument, initial, result in zip(carried, op.iter_args, op.res, strict=True):
        name = w.bind(argument)
        w.names[result] = name
        w.line(f"{w.c_type(argument.type)} {name} = {w.name(initial)};")
        targets.append(name)
    unroll = op.attributes.get("unroll")
    if isinstance(unroll, IntegerAttr):
        w.line(f"#pragma unroll {unroll.value.data}")
    variable, kind = w.bind(index), w.c_type(index.type)
    head = f"{kind} {variable} = {w.name(op.lb)}; {variable} < {w.name(op.ub)}; {variable} += {w.name(op.step)}"
    w.targets.append(targets)
    with w.braces(f"for ({head})"):
        w.body(op.body.block)
    w.targets.pop()


def _if(w: Writer, op: scf.IfOp) -> None:
    targets: list[str] = []
    for result in op.output:
        targets.append(w.bind(result))
        w.line(f"{w.c_type(result.type)} {targets[-1]};")
    w.targets.append(targets)
    with w.braces(f"if ({w.name(op.cond)})"):
        w.body(op.true_region.block)
    if op.false_region.blocks:
        with w.braces("else"):
            w.body(op.false_region.block)
    w.targets.pop()


def _yield(w: Writer, op: scf.YieldOp) -> None:
    targets = w.targets[-1]
    values = [w.name(v) for v in op.arguments]
    if len(targets) > 1:
        # A value may be another's old variable: read all before any is written.
        for i, value in enumerate(op.arguments):
            name = w.fresh()
            w.line(f"const {w.c_type(value.type)} {name} = {values[i]};")
            values[i] = name
    for target, value in zip(targets, values, strict=True):
        w.line(f"{target} = {value};")


STRUCTURED: dict[type[Operation], Write] = {
    BarrierOp: _barrier,
    LoadOp: _load,
    MisalignedOp: _misaligned,
    RegsAllocOp: _regs_alloc,
    RegsLoadOp: _regs_load,
    RegsStoreOp: _regs_store,
    SharedOp: _shared,
    ShuffleOp: _shuffle,
    StoreOp: _store,
    simt.BlockIdOp: _block_id,
    simt.GridDimOp: _grid_dim,
    simt.TidOp: _tid,
    simt.UnrollOp: _unroll,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: _yield,
}
"""Each op of `simt` and `scf` that kernels may hold."""
