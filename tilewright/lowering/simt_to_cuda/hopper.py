"""Ops of sm_90a as C++: roles, barriers in memory, tensor maps, matrix instructions of a warpgroup."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.clusters import ClusterBarrierOp, ClusterRankOp
from tilewright.dialects.simt.mbarriers import (
    FenceOp,
    MbarArriveOp,
    MbarExpectOp,
    MbarInitOp,
    MbarOp,
    MbarWaitOp,
    NamedBarrierOp,
)
from tilewright.dialects.simt.roles import ElectOp, RolesOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.tma import BulkCommitOp, BulkWaitOp, PrefetchMapOp, TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import MbarType, RegsType, SharedType
from tilewright.dialects.simt.wgmma import StMatrixOp, WgmmaCommitOp, WgmmaFenceOp, WgmmaOp, WgmmaRegsOp, WgmmaWaitOp
from tilewright.lowering.simt_to_cuda.structured import place
from tilewright.lowering.simt_to_cuda.writer import Write, Writer
from tilewright.passes.core import error_at

MBAR_BYTES = 8
_LAYOUTS = {128: 1, 64: 2, 32: 3}
"""Swizzle in bytes to the layout type of a matrix descriptor."""
_TYPES: dict[type[Attribute], str] = {BFloat16Type: "bf16", Float16Type: "f16", Float32Type: "tf32"}
_WIDTHS = (8, 16, 32, 64, 96, 128, 192, 256)
"""Columns for which the header has an instruction."""
REGISTERS = 65536
"""Registers of a multiprocessor (CUDA C++ Programming Guide, compute capability 9.0)."""


def _slot(w: Writer, bar: SSAValue, index: SSAValue) -> str:
    return f"{w.name(bar)} + {MBAR_BYTES} * {w.name(index)}"


def _mbar(w: Writer, op: MbarOp) -> None:
    w.line(f"const unsigned {w.bind(op.res)} = tw_shared_address(tw_smem + {op.offset.value.data});")


def _mbar_init(w: Writer, op: MbarInitOp) -> None:
    assert isinstance(op.bar.type, MbarType)
    for n in range(op.bar.type.count.data):
        w.line(f"tw_mbar_init({w.name(op.bar)} + {MBAR_BYTES * n}, {op.arrivals.value.data});")


def _mbar_arrive(w: Writer, op: MbarArriveOp) -> None:
    if op.rank is None:
        w.line(f"tw_mbar_arrive({_slot(w, op.bar, op.slot)});")
    else:
        w.line(f"tw_mbar_arrive_at({_slot(w, op.bar, op.slot)}, {w.name(op.rank)});")


def _cluster_rank(w: Writer, op: ClusterRankOp) -> None:
    w.line(f"const int {w.bind(op.res)} = tw_cluster_rank();")


def _cluster_barrier(w: Writer, _op: ClusterBarrierOp) -> None:
    w.line("tw_cluster_barrier();")


def _mbar_expect(w: Writer, op: MbarExpectOp) -> None:
    w.line(f"tw_mbar_expect({_slot(w, op.bar, op.slot)}, {op.bytes.value.data});")


def _mbar_wait(w: Writer, op: MbarWaitOp) -> None:
    w.line(f"tw_mbar_wait({_slot(w, op.bar, op.slot)}, {w.name(op.parity)});")


def _fence(w: Writer, op: FenceOp) -> None:
    w.line(f"tw_fence_{op.kind.data}();")


def _named_barrier(w: Writer, op: NamedBarrierOp) -> None:
    w.line(f"tw_named_barrier<{op.number.value.data}, {op.threads.value.data}>();")


def _elect(w: Writer, op: ElectOp) -> None:
    scope = op.scope.data
    if scope == "role":
        condition = f"threadIdx.x == {first_thread_of_role(op)}"
    else:
        period = {"warp": 32, "warpgroup": WARPGROUP}.get(scope)
        condition = "threadIdx.x == 0" if period is None else f"threadIdx.x % {period} == 0"
    with w.braces(f"if ({condition})"):
        w.body(op.body.block)


def first_thread_of_role(op: Operation) -> int:
    """The first thread of the role that an op is in; 0 outside of roles."""
    inner, outer = op, op.parent_op()
    while outer is not None:
        if isinstance(outer, RolesOp):
            number = next(n for n, body in enumerate(outer.bodies) if body is inner.parent_region())
            return outer.roles[number].first * WARPGROUP
        inner, outer = outer, outer.parent_op()
    return 0


def _roles(w: Writer, op: RolesOp) -> None:
    kernel = op.parent_op()
    while not isinstance(kernel, KernelOp):
        assert kernel is not None  # a kernel is being written
        kernel = kernel.parent_op()
    at_start = REGISTERS // kernel.threads.value.data // 8 * 8
    group = w.fresh()
    # The shuffle tells the compiler that the number is the same in a whole warp.
    w.line(f"const int {group} = __shfl_sync(TW_ALL_LANES, static_cast<int>(threadIdx.x) / {WARPGROUP}, 0);")
    for role, body in zip(op.roles, op.bodies, strict=True):
        with w.braces(f"if ({group} >= {role.first} && {group} < {role.last})"):
            if role.registers:
                word = "more" if role.registers > at_start else "fewer"
                w.line(f"tw_{word}_registers<{role.registers}>();")
            w.body(body.block)


def _prefetch_map(w: Writer, op: PrefetchMapOp) -> None:
    w.line(f"tw_prefetch_map(&{w.name(op.map)});")


def _tma_load(w: Writer, op: TmaLoadOp) -> None:
    to = f"tw_shared_address({w.name(op.shared)} + {w.name(op.index)})"
    places = ", ".join(w.name(c) for c in reversed(op.coordinates))
    name = "tw_tma_load"
    if op.multicast is not None:
        name += f"_multicast<{sum(1 << rank for rank in op.ranks)}>"
    w.line(f"{name}({to}, &{w.name(op.map)}, {_slot(w, op.bar, op.slot)}, {places});")


def _tma_store(w: Writer, op: TmaStoreOp) -> None:
    source = f"tw_shared_address({w.name(op.shared)} + {w.name(op.index)})"
    places = ", ".join(w.name(c) for c in reversed(op.coordinates))
    w.line(f"tw_tma_store({source}, &{w.name(op.map)}, {places});")


def _bulk_commit(w: Writer, _op: BulkCommitOp) -> None:
    w.line("tw_bulk_commit();")


def _bulk_wait(w: Writer, op: BulkWaitOp) -> None:
    w.line(f"tw_bulk_wait{'_read' if op.read is not None else ''}<{op.pending.value.data}>();")


def _wgmma_fence(w: Writer, _op: WgmmaFenceOp) -> None:
    w.line("tw_wgmma_fence();")


def _wgmma_commit(w: Writer, _op: WgmmaCommitOp) -> None:
    w.line("tw_wgmma_commit();")


def _wgmma_wait(w: Writer, op: WgmmaWaitOp) -> None:
    w.line(f"tw_wgmma_wait<{op.pending.value.data}>();")
    for accumulator in op.accumulators:
        assert isinstance(accumulator.type, RegsType)
        first = w.name(accumulator) + "[0]" * len(accumulator.type.sizes)
        w.line(f"tw_pin<{prod(accumulator.type.sizes)}>(&{first});")


def _wgmma(w: Writer, op: WgmmaOp) -> None:
    assert isinstance(op.acc.type, RegsType)
    if op.tile.n not in _WIDTHS:
        raise error_at(op, f"simt.wgmma: expected n to be one of {', '.join(map(str, _WIDTHS))}, got {op.tile.n}")
    operands: list[str] = []
    for array, index, (lbo, sbo) in zip((op.lhs, op.rhs), (op.lhs_index, op.rhs_index), op.offsets, strict=True):
        assert isinstance(array.type, SharedType)
        layout = _LAYOUTS[array.type.swizzle.data]
        address = f"tw_shared_address({w.name(array)} + {w.name(index)})"
        operands.append(f"tw_wgmma_operand<{lbo}, {sbo}, {layout}>({address})")
    assert isinstance(op.lhs.type, SharedType)
    name = f"tw_wgmma_{_TYPES[type(op.lhs.type.element)]}_n{op.tile.n}"
    trans = ", ".join("1" if major == "mn" else "0" for major in op.major)
    first = f"&{w.name(op.acc)}" + "".join(f"[{w.name(i)}]" for i in op.indices)
    w.line(f"{name}<{op.pitch}, {trans}>({first}, {', '.join(operands)});")


def _wgmma_regs(w: Writer, op: WgmmaRegsOp) -> None:
    if op.tile.n not in _WIDTHS:
        raise error_at(op, f"simt.wgmma.regs: expected n to be one of {', '.join(map(str, _WIDTHS))}, got {op.tile.n}")
    assert isinstance(op.rhs.type, SharedType)
    address = f"tw_shared_address({w.name(op.rhs)} + {w.name(op.rhs_index)})"
    layout = _LAYOUTS[op.rhs.type.swizzle.data]
    right = f"tw_wgmma_operand<{op.lbo.value.data}, {op.sbo.value.data}, {layout}>({address})"
    left, first = (
        f"&{w.name(regs)}" + "".join(f"[{w.name(i)}]" for i in indices)
        for regs, indices in ((op.lhs, op.lhs_indices), (op.acc, op.indices))
    )
    row, column = op.steps
    w.line(f"tw_wgmma_tf32_regs_n{op.tile.n}<{row}, {column}>({first}, {left}, {right});")


def _stmatrix(w: Writer, op: StMatrixOp) -> None:
    source = w.name(op.regs) + "".join(f"[{w.name(i)}]" for i in op.indices)
    trans = "true" if op.trans is not None else "false"
    w.line(f"tw_stmatrix<{trans}>(tw_shared_address({place(w, op.shared, op.index)}), &{source});")


HOPPER: dict[type[Operation], Write] = {
    BulkCommitOp: _bulk_commit,
    BulkWaitOp: _bulk_wait,
    ClusterBarrierOp: _cluster_barrier,
    ClusterRankOp: _cluster_rank,
    ElectOp: _elect,
    FenceOp: _fence,
    MbarArriveOp: _mbar_arrive,
    MbarExpectOp: _mbar_expect,
    MbarInitOp: _mbar_init,
    MbarOp: _mbar,
    MbarWaitOp: _mbar_wait,
    NamedBarrierOp: _named_barrier,
    PrefetchMapOp: _prefetch_map,
    RolesOp: _roles,
    StMatrixOp: _stmatrix,
    TmaLoadOp: _tma_load,
    TmaStoreOp: _tma_store,
    WgmmaCommitOp: _wgmma_commit,
    WgmmaFenceOp: _wgmma_fence,
    WgmmaOp: _wgmma,
    WgmmaRegsOp: _wgmma_regs,
    WgmmaWaitOp: _wgmma_wait,
}
"""Each op that sm_90a brings; a source with one of them has `tilewright_hopper.cuh` in front."""
