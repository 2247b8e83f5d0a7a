"""Loads and stores: global and shared memory, masks, vector accesses; and what each level adds to them.

An access of `width` elements has one more axis in front of the loop axes. At every level an access outside its buffer
is found: `fast` and `count` stop with an error, `check` reports it, moves the lane to a legal element and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.memory import LoadOp, SharedOp, StoreOp
from tilewright.dialects.simt.types import GlobalType, SharedType
from tilewright.runtime.numerics import Array, round_to, storage_dtype
from tilewright.runtime.scalar_ops import carrier_dtype
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, nothing
from tilewright.runtime.sim.counting import MAX_ACCESS
from tilewright.runtime.sim.observers import Observer, observers, report_wrap, swizzled_bytes
from tilewright.runtime.sim.registers import RegisterAccess, check_initialised, flight_check, memory_registers
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State
from tilewright.runtime.sim.virtual import VirtualMemory

PATTERN = 1024
"""Bytes after which a swizzle repeats, at the latest."""


@dataclass(frozen=True, slots=True)
class Access:
    """What loads and stores of one site have in common."""

    site: Site
    index: int
    """Slot of the element index."""
    mask: int | None
    """Slot of the op's own mask."""
    width: int
    element: Attribute
    axes: int
    """Number of loop axes, so that the axis of a vector access stands in front of them."""
    argument: int
    """Number of the pointer argument; -1 for shared memory."""
    shared_offset: int
    """Byte offset of a shared array in the block's shared memory."""
    shared_count: int
    """Elements of a shared array."""
    swizzle: int
    """Of a shared array, in bytes."""
    checks: bool
    observers: tuple[Observer, ...]

    def bounds(self, state: State) -> tuple[int, int]:
        """First legal element index, and one past the last."""
        if self.argument < 0:
            return 0, self.shared_count
        buffer = state.buffers[self.argument]
        return buffer.first, buffer.end

    def locate(self, state: State) -> tuple[Array, Array | None, Array | None] | None:
        """(element indices that are legal, active lanes, lanes of the op's mask); None when no lane is active.

        Lanes that are not active get some legal index.
        """
        env = state.env
        own: Array | None = None if self.mask is None else env[self.mask]
        if own is not None and own.all():
            own = None
        active = own if state.mask is None else state.mask if own is None else own & state.mask
        found = self.inside(state, env[self.index], active)
        return None if found is None else (*found, own)

    def inside(self, state: State, index: Array, active: Array | None) -> tuple[Array, Array | None] | None:
        """(element indices that are legal, active lanes) of an access at `index`; None when no lane is active."""
        first, end = self.bounds(state)
        if active is not None:
            if not active.any():
                return None
            index = np.where(active, index, first)
        if int(index.min()) < first or int(index.max()) + self.width > end:
            where = (index < first) | (index > end - self.width)
            if active is not None:
                where = where & active
            if where.any():
                index, active = self._outside(state, index, active, where, first, end)
                if active is not None and not active.any():
                    return None
        return index, active

    def _outside(
        self, state: State, index: Array, active: Array | None, where: Array, first: int, end: int
    ) -> tuple[Array, Array | None]:
        what = f"elements {first}..{end - 1} exist" if end > first else "the buffer is empty"
        if not self.checks:
            at = int(np.broadcast_to(index, where.shape)[where][0])
            width = f" (width {self.width})" if self.width > 1 else ""
            raise TilewrightError(
                f"{self.site.op_name} out of bounds: element {at}{width} of a {self.site.space} array: {what}",
                self.site.location,
            )
        state.fault("out-of-bounds", self.site, where, what, index)
        # The observers will not see these lanes: say here if the address is wrong because it wrapped.
        report_wrap(state, self.index, where, self.site)
        active = ~where if active is None else active & ~where
        return np.where(active, index, first), active

    def positions(self, state: State, index: Array) -> tuple[Array | VirtualMemory, Array]:
        """(flat memory, positions in it): (width if over 1, loop axes..., blocks or 1, threads or 1)."""
        if self.swizzle:
            return self._swizzled(state, index)
        if self.argument >= 0:
            buffer = state.buffers[self.argument]
            memory = buffer.data
            positions = index.astype(np.int64) if buffer.offset == 0 else np.add(index, buffer.offset, dtype=np.int64)
        else:
            memory = state.shared.data.view(storage_dtype(self.element))
            size = memory.itemsize
            rows = np.arange(state.blocks, dtype=np.int64) * (state.shared.pitch // size) + self.shared_offset // size
            positions = index + rows[:, None]
        return memory, self.widened(positions, self.width)

    def misaligned(self, state: State, index: Array, width: int) -> Array:
        """How many elements lie between the last multiple of `width` elements in memory and each index."""
        size = storage_dtype(self.element).itemsize
        start = self.shared_offset // size
        if self.argument >= 0:
            buffer = state.buffers[self.argument]
            start = buffer.address // size + buffer.offset
        return (index.astype(np.int64) + start) % width

    def widened(self, positions: Array, width: int) -> Array:
        """With an axis in front for the `width` elements from each position on, where that is more than one."""
        if width == 1:
            return positions
        missing = self.axes + 2 - positions.ndim
        if missing:
            positions = positions.reshape((1,) * missing + positions.shape)
        return positions[None] + np.arange(width).reshape((width,) + (1,) * (self.axes + 2))

    def _swizzled(self, state: State, index: Array) -> tuple[Array, Array]:
        """`positions` of a swizzled array."""
        memory = state.shared.data.view(storage_dtype(self.element))
        size = memory.itemsize
        places = swizzled_bytes(self.widened(index.astype(np.int64), self.width) * size, self.swizzle)
        rows = np.arange(state.blocks, dtype=np.int64) * state.shared.pitch + self.shared_offset
        return memory, (places + rows[:, None]) // size

    def observe(self, state: State, index: Array, active: Array | None) -> None:
        """Count and check."""
        for observer in self.observers:
            observer(state, index, active)


def shared_array(compiler: Compiler, op: Operation, memory: SSAValue) -> tuple[int, int]:
    """(byte offset, elements) of the shared array that an op accesses; TilewrightError for one that does not fit."""
    owner = memory.owner
    if not isinstance(owner, SharedOp) or not isinstance(memory.type, SharedType):
        raise TilewrightError("expected shared memory made by simt.shared", location_of(op))
    offset, count = owner.offset.value.data, memory.type.count
    size = storage_dtype(memory.type.element).itemsize
    if offset % size:
        raise TilewrightError(
            f"expected an offset in shared memory that is a multiple of {size} bytes, got {offset}",
            location_of(owner),
        )
    limit = compiler.kernel.smem.value.data
    if offset < 0 or offset + count * size > limit:
        raise TilewrightError(
            f"shared array of bytes {offset}..{offset + count * size} is outside the kernel's {limit} bytes",
            location_of(owner),
        )
    return offset, count


def make_access(compiler: Compiler, op: LoadOp | StoreOp, width: int | None = None) -> Access:
    """The common part of a load or store, with the observers of the level; of `width` elements instead of the op's."""
    memory = op.memory
    width = op.width.value.data if width is None else width
    shared = isinstance(memory.type, SharedType)
    argument, offset, count = -1, 0, 0
    if isinstance(memory.type, SharedType):
        offset, count = shared_array(compiler, op, memory)
        size = storage_dtype(memory.type.element).itemsize
        if memory.type.swizzle.data and width * size > MAX_ACCESS:
            raise TilewrightError(
                f"expected accesses of a swizzled array of at most {MAX_ACCESS} bytes, got {width * size}",
                location_of(op),
            )
    else:
        argument = compiler.kernel.pointers.index(memory)
    assert isinstance(memory.type, GlobalType | SharedType)
    site = compiler.site(op, "shared" if shared else "global")
    return Access(
        site=site,
        index=compiler.slot(op.index),
        mask=None if op.mask is None else compiler.slot(op.mask),
        width=width,
        element=memory.type.element,
        axes=len(compiler.vector_loops),
        argument=argument,
        shared_offset=offset,
        shared_count=count,
        swizzle=memory.type.swizzle.data if isinstance(memory.type, SharedType) else 0,
        checks=compiler.checks,
        observers=observers(compiler, op, site, argument, offset, width),
    )


def filler(value: Attribute, element: Attribute) -> Array:
    """The `else` constant of a masked load, as a value is carried."""
    dtype = carrier_dtype(element, "typed")
    if isinstance(value, FloatAttr):
        return round_to(element, np.asarray(value.value.data)).astype(dtype)
    if isinstance(value, IntegerAttr):
        return np.asarray(value.value.data).astype(dtype)
    raise TilewrightError(f"expected a number after else, got {value}")


def compile_load(compiler: Compiler, op: LoadOp) -> Compiled:
    """`simt.load`."""
    access = make_access(compiler, op)
    registers = memory_registers(compiler, op)
    carrier = carrier_dtype(access.element, "typed")
    other = filler(op.other, access.element)
    mark = written(compiler, op.regs, registers)
    in_flight = flight_check(compiler, op, op.regs, registers)

    def run(state: State) -> None:
        found = access.locate(state)
        if found is None:
            # No lane reads; those that the op alone masks off still get the constant.
            if access.mask is not None:
                registers.write(state, other, state.mask)
                mark(state)
            return
        index, active, own = found
        if in_flight is not None:
            in_flight(state)
        access.observe(state, index, active)
        memory, positions = access.positions(state, index)
        values = memory.take(positions)
        if values.dtype != carrier:
            values = values.astype(carrier)
        if own is not None:
            values = np.where(own, values, other)
        registers.write(state, values, state.mask)
        mark(state)

    return Compiled(run, False)


def written(compiler: Compiler, regs: SSAValue, registers: RegisterAccess) -> Callable[[State], None]:
    """A function that marks the registers as written, at level `check`."""
    if not compiler.checks:
        return nothing().step()
    slot = compiler.shadows[regs]

    def mark(state: State) -> None:
        registers.write_to(state, state.env[slot], np.True_, state.mask)

    return mark


def compile_store(compiler: Compiler, op: StoreOp) -> Compiled:
    """`simt.store`."""
    access = make_access(compiler, op)
    registers = memory_registers(compiler, op)
    initialised = check_initialised(compiler, op, op.regs, registers) if compiler.checks else None
    in_flight = flight_check(compiler, op, op.regs, registers)

    def run(state: State) -> None:
        found = access.locate(state)
        if found is None:
            return
        index, active, _ = found
        if in_flight is not None:
            in_flight(state)
        if initialised is not None:
            initialised(state, active)
        access.observe(state, index, active)
        memory, positions = access.positions(state, index)
        write_elements(access, state, registers, memory, positions, active)

    return Compiled(run, False)


def write_elements(
    access: Access,
    state: State,
    registers: RegisterAccess,
    memory: Array | VirtualMemory,
    positions: Array,
    active: Array | None,
) -> None:
    """Stores registers at the positions of active lanes, one store for each iteration, block and thread, even where
    all write the same."""
    values = registers.read(state, False)
    shape = (*registers.counts, state.blocks, state.threads)
    positions = np.broadcast_to(positions, shape)
    values = np.broadcast_to(values, shape)
    lanes = None if active is None else np.broadcast_to(active, shape)
    if access.axes > 1:
        # The last of several stores to one element is that of the last iteration: the outermost loop's axis goes first.
        front = 1 if access.width > 1 else 0
        last = front + access.axes
        order = (*range(front), *reversed(range(front, last)), last, last + 1)
        positions, values = positions.transpose(order), values.transpose(order)
        lanes = None if lanes is None else lanes.transpose(order)
    if lanes is not None:
        positions, values = positions[lanes], values[lanes]
    memory[positions] = values


def compile_shared(compiler: Compiler, op: SharedOp) -> Compiled:
    """A shared array: only its place matters, and accesses know it."""
    if op.res.type.swizzle.data and op.offset.value.data % PATTERN:
        raise TilewrightError(
            f"expected a swizzled array at a multiple of {PATTERN} bytes, got {op.offset.value.data}", location_of(op)
        )
    return nothing()


def memory_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for memory; those of loads and stores are in `unaligned`."""
    return {SharedOp: compile_shared}
