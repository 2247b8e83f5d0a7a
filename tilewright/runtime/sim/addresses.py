"""Signed 32-bit arithmetic that wraps on its way to an address (level `check`).

Integer data may wrap as it likes. What an address, a mask, a branch or a loop bound is computed from may not, unless
the access is masked off: so a wrapped value is only marked where it arises, the marks follow the values, and the access
that uses one reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.simt.async_copy import CpAsyncOp
from tilewright.dialects.simt.matrix import LdmatrixOp
from tilewright.dialects.simt.mbarriers import MbarArriveOp, MbarExpectOp, MbarWaitOp
from tilewright.dialects.simt.memory import LoadOp, StoreOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.tma import TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.wgmma import StMatrixOp, WgmmaOp, WgmmaRegsOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State, Step

PLACED = (MbarArriveOp, MbarExpectOp, MbarWaitOp, StMatrixOp, TmaLoadOp, TmaStoreOp, WgmmaOp, WgmmaRegsOp)
"""Ops of sm_90a whose i32 operands say where."""

_EXACT: dict[type[Operation], Callable[[Array, Array], Array]] = {
    arith.AddiOp: lambda a, b: np.add(a, b, dtype=np.int64),
    arith.SubiOp: lambda a, b: np.subtract(a, b, dtype=np.int64),
    arith.MuliOp: lambda a, b: np.multiply(a, b, dtype=np.int64),
    arith.ShLIOp: lambda a, b: np.left_shift(a, np.clip(b, 0, 31), dtype=np.int64),
    arith.TruncIOp: lambda a, _: a,
}
"""What an op with an i32 result would give in 64 bits, from its first and last operand."""


def address_values(kernel: KernelOp) -> set[SSAValue]:
    """All values of a kernel that an address, a mask, a branch or a loop bound is computed from."""
    pending: list[SSAValue] = []
    for op in kernel.walk():
        if isinstance(op, LoadOp | StoreOp):
            pending += [op.index, *([] if op.mask is None else [op.mask])]
            pending += op.reach or ()
        elif isinstance(op, PLACED):
            pending += [operand for operand in op.operands if operand.type == i32]
        elif isinstance(op, LdmatrixOp):
            pending.append(op.index)
        elif isinstance(op, CpAsyncOp):
            pending += [op.source_index, op.target_index, *([] if op.valid is None else [op.valid])]
        elif isinstance(op, scf.IfOp):
            pending.append(op.cond)
        elif isinstance(op, scf.ForOp):
            pending += [op.lb, op.ub, op.step]
    found: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        pending += _sources(value)
    return found


def _sources(value: SSAValue) -> list[SSAValue]:
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp):
            return []
        position = owner.args.index(value)
        if position == 0:
            return [loop.lb, loop.step]
        return [loop.iter_args[position - 1], *_yielded(owner, position - 1)]
    if isinstance(owner, scf.IfOp):
        position = owner.results.index(value)
        return [v for region in owner.regions if region.blocks for v in _yielded(region.block, position)]
    if isinstance(owner, scf.ForOp):
        position = owner.results.index(value)
        return [owner.iter_args[position], *_yielded(owner.body.block, position)]
    return list(owner.operands) if owner.name.startswith("arith.") else []


def _yielded(block: Block, position: int) -> list[SSAValue]:
    last = block.last_op
    return [last.operands[position]] if isinstance(last, scf.YieldOp) else []


def marking(op: Operation, run: Step, target: int, operands: Sequence[int], site: Site) -> Step:
    """The step of an arith op that an address depends on, with marks for wrapped results carried along."""
    exact = _EXACT.get(type(op)) if op.results[0].type == i32 else None
    conjunction = isinstance(op, arith.AndIOp) and op.results[0].type == i1
    select = isinstance(op, arith.SelectOp)

    def run_marking(state: State) -> None:
        env, poisoned = state.env, state.poisoned
        mark: tuple[Array, Site] | None = None
        if poisoned:
            mark = _inherited(state, operands, conjunction, select)
        run(state)
        if exact is not None:
            wrapped = exact(env[operands[0]], env[operands[-1]]) != env[target]
            if wrapped.any():
                mark = (wrapped, site) if mark is None else (mark[0] | wrapped, mark[1])
        if mark is not None:
            poisoned[target] = mark
        elif poisoned:
            poisoned.pop(target, None)

    return run_marking


def _inherited(state: State, operands: Sequence[int], conjunction: bool, select: bool) -> tuple[Array, Site] | None:
    """The mark that a result gets from its operands."""
    marks = [state.poisoned.get(s) for s in operands]
    site = next((mark[1] for mark in marks if mark is not None), None)
    if site is None:
        return None
    none = np.zeros((1, 1), np.bool_)
    where = [none if mark is None else mark[0] for mark in marks]
    if conjunction:
        # False and anything is False.
        left, right = (state.env[s] for s in operands)
        found = (where[0] & (right | where[1])) | (where[1] & (left | where[0]))
    elif select:
        found = where[0] | np.where(state.env[operands[0]], where[1], where[2])
    else:
        found = where[0]
        for other in where[1:]:
            found = found | other
    return (found, site) if found.any() else None


def report_control(state: State, slots: Sequence[int], where: str) -> None:
    """Report a branch or a loop that depends on a wrapped value."""
    for slot in slots:
        mark = state.poisoned.get(slot)
        if mark is not None:
            lanes = mark[0] if state.mask is None else mark[0] & state.mask
            state.fault("index-wrap", mark[1], lanes, f"32-bit arithmetic wraps on the way to {where}")


def move_marks(state: State, target: int, sources: Sequence[int]) -> None:
    """A value that comes from one of several others through control flow takes the marks of all."""
    marks = [mark for mark in (state.poisoned.get(s) for s in sources) if mark is not None]
    if marks:
        found = marks[0][0]
        for mark in marks[1:]:
            found = found | mark[0]
        state.poisoned[target] = (found, marks[0][1])
    else:
        state.poisoned.pop(target, None)
