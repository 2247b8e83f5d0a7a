"""Unaligned loads and stores: the accesses that each is made of are counted and checked, then each element is moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from tilewright.dialects.simt.memory import LoadOp, MisalignedOp, StoreOp
from tilewright.dialects.simt.types import GlobalType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.scalar_ops import carrier_dtype
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler
from tilewright.runtime.sim.memory import (
    Access,
    compile_load,
    compile_store,
    filler,
    make_access,
    write_elements,
    written,
)
from tilewright.runtime.sim.observers import report_wrap
from tilewright.runtime.sim.registers import check_initialised, flight_check, memory_registers
from tilewright.runtime.sim.state import State


@dataclass(frozen=True, slots=True)
class _Lanes:
    """An unaligned access under way, of the lanes in `active`."""

    index: Array
    before: Array
    after: Array
    active: Array


@dataclass(frozen=True, slots=True)
class _Unaligned:
    """What an op has: `word` and `single` are its accesses of all its elements at once, and of one."""

    word: Access
    single: Access
    before: int
    after: int
    """Slots of what may be touched around the first element."""

    @staticmethod
    def of(compiler: Compiler, op: LoadOp | StoreOp) -> _Unaligned:
        """The accesses of an op."""
        assert op.before is not None
        assert op.after is not None
        around = compiler.slot(op.before), compiler.slot(op.after)
        return _Unaligned(make_access(compiler, op), make_access(compiler, op, 1), *around)

    def lanes(self, state: State) -> _Lanes:
        """The operands of all lanes; reports a window that comes from wrapped arithmetic."""
        env = state.env
        active = np.ones((1, 1), np.bool_) if state.mask is None else state.mask
        if self.word.mask is not None:
            active = active & env[self.word.mask]
        for slot in (self.before, self.after):
            # A window that is wrong may leave no access that would be checked.
            report_wrap(state, slot, active, self.word.site)
        index, before, after = (env[slot].astype(np.int64) for slot in (self.word.index, self.before, self.after))
        return _Lanes(index, before, after, active)

    def observe(self, state: State, lanes: _Lanes, words: Sequence[Array], whole: Array) -> None:
        """Counts and checks the `words` of the lanes that move whole ones, and the elements of the others."""
        accesses = [(self.word, at, whole) for at in words]
        for k in range(self.word.width):
            inside = (-lanes.before <= k) & (k < lanes.after)
            accesses.append((self.single, lanes.index + k, lanes.active & ~whole & inside))
        for access, at, active in accesses:
            found = access.inside(state, at, active)
            if found is not None:
                access.observe(state, *found)

    def elements(self, state: State, lanes: _Lanes) -> tuple[Array, Array]:
        """Index of each element, (width, loop axes..., blocks, threads), and whether it is moved; legal in any case."""
        first, end = self.single.bounds(state)
        elements = self.single.widened(lanes.index, self.word.width)
        steps = elements - lanes.index
        moved = lanes.active & (-lanes.before <= steps) & (steps < lanes.after) & (elements >= first) & (elements < end)
        return np.where(moved, elements, first), moved


def _compile_load(compiler: Compiler, op: LoadOp) -> Compiled:
    """`simt.load`."""
    if op.reach is None:
        return compile_load(compiler, op)
    access, registers = _Unaligned.of(compiler, op), memory_registers(compiler, op)
    width, element = op.width.value.data, access.word.element
    carrier, other = carrier_dtype(element, "typed"), filler(op.other, element)
    mark = written(compiler, op.regs, registers)
    in_flight = flight_check(compiler, op, op.regs, registers)

    def run(state: State) -> None:
        if in_flight is not None:
            in_flight(state)
        lanes = access.lanes(state)
        skip = access.word.misaligned(state, lanes.index, width)
        whole = lanes.active & (lanes.before >= skip) & (lanes.after >= width + -skip % width)
        start = lanes.index - skip
        access.observe(state, lanes, [start, start + np.where(skip > 0, width, 0)], whole)
        elements, moved = access.elements(state, lanes)
        values = other
        if moved.any():
            memory, positions = access.single.positions(state, elements)
            values = np.where(moved, memory.take(positions).astype(carrier), other)
        registers.write(state, values, state.mask)
        mark(state)

    return Compiled(run, False)


def _compile_store(compiler: Compiler, op: StoreOp) -> Compiled:
    """`simt.store`."""
    if op.reach is None:
        return compile_store(compiler, op)
    access, registers = _Unaligned.of(compiler, op), memory_registers(compiler, op)
    width = op.width.value.data
    initialised = check_initialised(compiler, op, op.regs, registers) if compiler.checks else None
    in_flight = flight_check(compiler, op, op.regs, registers)

    def run(state: State) -> None:
        lanes = access.lanes(state)
        if not lanes.active.any():
            return
        if in_flight is not None:
            in_flight(state)
        if initialised is not None:
            initialised(state, lanes.active)
        aligned = access.word.misaligned(state, lanes.index, width) == 0
        whole = lanes.active & aligned & (lanes.before >= 0) & (lanes.after >= width)
        access.observe(state, lanes, [lanes.index], whole)
        elements, moved = access.elements(state, lanes)
        if moved.any():
            memory, positions = access.single.positions(state, elements)
            write_elements(access.word, state, registers, memory, positions, moved)

    return Compiled(run, False)


def _compile_misaligned(compiler: Compiler, op: MisalignedOp) -> Compiled:
    """`simt.misaligned`."""
    argument, index, target = compiler.kernel.pointers.index(op.memory), compiler.slot(op.index), compiler.slot(op.res)
    assert isinstance(op.memory.type, GlobalType)
    size, width = storage_dtype(op.memory.type.element).itemsize, op.width.value.data

    def run(state: State) -> None:
        buffer = state.buffers[argument]
        start = buffer.address // size + buffer.offset
        state.env[target] = ((state.env[index].astype(np.int64) + start) % width).astype(np.int32)

    return Compiled(run, False)


def access_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for loads and stores, aligned or not."""
    return {LoadOp: _compile_load, StoreOp: _compile_store, MisalignedOp: _compile_misaligned}
