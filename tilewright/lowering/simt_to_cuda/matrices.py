"""`ldmatrix`, `mma.sync` and `cp.async` as C++: one call of a wrapper each."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp, element_bits
from tilewright.dialects.simt.types import GlobalType
from tilewright.lowering.simt_to_cuda.structured import place
from tilewright.lowering.simt_to_cuda.writer import Write, Writer


def _register(w: Writer, regs: SSAValue, indices: Sequence[SSAValue]) -> str:
    return "&" + w.name(regs) + ("".join(f"[{w.name(i)}]" for i in indices) or "[0]")


def _ldmatrix(w: Writer, op: LdmatrixOp) -> None:
    trans = "true" if op.trans else "false"
    target, row = _register(w, op.regs, op.indices), place(w, op.memory, op.index)
    w.line(f"tw_ldmatrix<{op.count.value.data}, {trans}>({target}, {row});")


def _mma_sync(w: Writer, op: MmaSyncOp) -> None:
    c, a, b = ((op.c, op.c_indices), (op.a, op.a_indices), (op.b, op.b_indices))
    operands = ", ".join(_register(w, regs, indices) for regs, indices in (c, a, b))
    w.line(f"tw_mma_{op.shape.data}({operands});")


def _cp_async(w: Writer, op: CpAsyncOp) -> None:
    assert isinstance(op.source.type, GlobalType)
    size = element_bits(op.source.type.element) // 8
    target, source = (
        place(w, memory, index) for memory, index in ((op.target, op.target_index), (op.source, op.source_index))
    )
    bytes_ = op.width.value.data * size
    if op.valid is None:
        w.line(f"tw_cp_async<{bytes_}>({target}, {source});")
    else:
        w.line(f"tw_cp_async_zfill<{bytes_}>({target}, {source}, {w.name(op.valid)} * {size});")


def _commit(w: Writer, _op: CpAsyncCommitOp) -> None:
    w.line("tw_cp_async_commit();")


def _wait(w: Writer, op: CpAsyncWaitOp) -> None:
    w.line(f"tw_cp_async_wait<{op.pending.value.data}>();")


MATRICES: dict[type[Operation], Write] = {
    CpAsyncCommitOp: _commit,
    CpAsyncOp: _cp_async,
    CpAsyncWaitOp: _wait,
    LdmatrixOp: _ldmatrix,
    MmaSyncOp: _mma_sync,
}
"""Each op for matrices of a warp and asynchronous copies."""
