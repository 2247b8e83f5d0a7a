"""When all iterations of a `simt.unroll` may run at once, as one more array axis.

Running the body statement by statement, each for all iterations, is the same as running iteration by iteration when no
iteration touches what another writes: no register is written in one and read or written in another, and no memory that
the body stores to is accessed by another access of the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import (
    LoadOp,
    MisalignedOp,
    RegsAllocOp,
    RegsLoadOp,
    RegsStoreOp,
    SharedOp,
    StoreOp,
)
from tilewright.dialects.simt.structure import BlockIdOp, GridDimOp, TidOp, UnrollOp
from tilewright.dialects.simt.sync import ShuffleOp
from tilewright.dialects.simt.types import RegsType, SharedType
from tilewright.runtime.numerics import storage_dtype
from tilewright.runtime.scalar_ops import SCALAR_OPS
from tilewright.runtime.sim.registers import RegisterUse, flat_registers, register_uses

MAX_ITERATIONS = 4096
"""Product of the counts of nested vectorised loops above which another loop stays sequential, for want of memory."""

_POINTWISE: frozenset[type[Operation]] = frozenset(
    {
        *SCALAR_OPS,
        BlockIdOp,
        GridDimOp,
        LdmatrixOp,
        LoadOp,
        MisalignedOp,
        MmaSyncOp,
        RegsAllocOp,
        RegsLoadOp,
        RegsStoreOp,
        SharedOp,
        ShuffleOp,
        StoreOp,
        TidOp,
        UnrollOp,
        scf.ForOp,
        scf.IfOp,
        scf.YieldOp,
    }
)


def is_parallel(loop: UnrollOp, aliased: bool) -> bool:
    """Whether the iterations of `loop` are independent of each other, whatever the values in memory.

    `aliased` says whether two pointer arguments may name the same memory.
    """
    inner = [op for op in loop.walk() if op is not loop]
    if any(type(op) not in _POINTWISE for op in inner):
        return False
    accesses = [op for op in inner if isinstance(op, LoadOp | StoreOp | LdmatrixOp)]
    for store in accesses:
        if not isinstance(store, StoreOp):
            continue
        if any(other is not store and may_alias(store.memory, other.memory, aliased) for other in accesses):
            return False
        # Stores of one op are done in the order of its axes, so loops between must be axes too.
        between = store.parent_op()
        while between is not loop and between is not None:
            if isinstance(between, scf.ForOp) or (isinstance(between, UnrollOp) and not is_parallel(between, aliased)):
                return False
            between = between.parent_op()
    return _registers_are_independent(loop, inner)


def may_alias(one: SSAValue, other: SSAValue, aliased: bool) -> bool:
    """Whether two memories may share an element."""
    if one is other:
        return True
    if isinstance(one.type, SharedType) != isinstance(other.type, SharedType):
        return False
    if not isinstance(one.type, SharedType):
        return aliased
    (first, end), (other_first, other_end) = _byte_range(one), _byte_range(other)
    return first < other_end and other_first < end


def _byte_range(memory: SSAValue) -> tuple[int, int]:
    assert isinstance(memory.type, SharedType)
    assert isinstance(memory.owner, SharedOp)
    offset = memory.owner.offset.value.data
    return offset, offset + memory.type.count * storage_dtype(memory.type.element).itemsize


def loops_around(op: Operation) -> list[UnrollOp]:
    """The `simt.unroll` loops around an op, outermost first."""
    found: list[UnrollOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, UnrollOp):
            found.append(parent)
        parent = parent.parent_op()
    return found[::-1]


def _registers_are_independent(loop: UnrollOp, inner: Sequence[Operation]) -> bool:
    """Whether each register that an iteration writes is touched by no other iteration."""
    outer = [*loops_around(loop), loop]
    outer_count = 1
    for around in outer[:-1]:
        outer_count *= around.count.value.data
    iterations = loop.count.value.data
    by_array: dict[SSAValue, list[tuple[Operation, RegisterUse]]] = {}
    for op in inner:
        for use in register_uses(op):
            by_array.setdefault(use.regs, []).append((op, use))
    for regs, accesses in by_array.items():
        if not any(use.writes for _, use in accesses) or _inside(regs, loop):
            continue
        assert isinstance(regs.type, RegsType)
        # One row for each combination of outer iterations: the least and greatest iteration that touches a register.
        least = np.full((outer_count, regs.type.count), iterations, np.int64)
        most = np.full((outer_count, regs.type.count), -1, np.int64)
        written = np.zeros((outer_count, regs.type.count), np.bool_)
        for op, use in accesses:
            flat = flat_registers(use.regs, use.indices, loops_around(op), use.width)
            flat = flat.reshape(outer_count, iterations, -1)
            flat = (flat[..., None] + np.arange(use.width)).reshape(outer_count, iterations, -1)
            row = np.broadcast_to(np.arange(outer_count)[:, None, None], flat.shape)
            iteration = np.broadcast_to(np.arange(iterations)[None, :, None], flat.shape)
            np.minimum.at(least, (row, flat), iteration)
            np.maximum.at(most, (row, flat), iteration)
            if use.writes:
                written[row, flat] = True
        if (written & (least < most)).any():
            return False
    return True


def _inside(value: SSAValue, loop: UnrollOp) -> bool:
    """Whether a value is defined inside a loop, and so is private to each iteration."""
    owner = value.owner
    op = owner.parent_op() if isinstance(owner, Block) else owner
    while op is not None:
        if op is loop:
            return True
        op = op.parent_op()
    return False
