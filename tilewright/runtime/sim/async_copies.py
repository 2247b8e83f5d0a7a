"""`cp.async`: copies to shared memory that land later than they are asked for.

The hardware may read the source and write the destination at any time between the copy and the wait for its group. Each
of the two ends of that can be had: `latest`, where source and destination are touched at the wait, and `earliest`,
where both are at the copy. At level `check` whatever would make a difference between them is reported in either: an
access to the destination in between (by the race model), a source that changes, a copy that nobody waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.types import GlobalType, SharedType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler
from tilewright.runtime.sim.counting import global_sectors, shared_wavefronts
from tilewright.runtime.sim.memory import shared_array
from tilewright.runtime.sim.observers import Place, alignment_check, report_wrap, swizzled_bytes, written_pointers
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State

Landing: TypeAlias = Literal["latest", "earliest"]
LANDINGS: tuple[Landing, ...] = ("latest", "earliest")


@dataclass(slots=True)
class Copy:
    """One execution of a copy, by all its threads. Arrays are (width if said so, blocks or 1, threads)."""

    site: Site
    argument: int
    """Number of the pointer argument that is read."""
    source: Array
    """(width, ...): positions in the buffer; legal ones where nothing is read."""
    target: Array
    """(width, ...): positions in shared memory, in elements of `dtype`."""
    read: Array
    """(width, ...): whether the element is read; else it is zero."""
    dtype: np.dtype[np.generic]
    cells: Array
    """(pieces, ...): as the race model counts; only at level `check`."""
    group: Array
    """Number of the thread's group that the copy is in."""
    flying: Array
    """(blocks, threads): who has not waited for it."""
    values: Array | None
    """(width, ...): what the source held at the copy; None where that does not matter."""

    def fetch(self, state: State) -> Array:
        """What the source holds now, zeros included."""
        return np.where(self.read, state.buffers[self.argument].data.take(self.source), np.zeros((), self.dtype))

    def store(self, state: State, values: Array, lanes: Array) -> None:
        """Write shared memory for the threads in `lanes` (blocks, threads)."""
        memory = state.shared.data.view(self.dtype)
        shape = (self.target.shape[0], state.blocks, state.threads)
        where = np.broadcast_to(lanes, shape)
        memory[np.broadcast_to(self.target, shape)[where]] = np.broadcast_to(values, shape)[where]


@dataclass(slots=True)
class AsyncCopies:
    """The copies of one batch of blocks that go on, in order, and how many groups each thread has committed."""

    landing: Landing
    flying: list[Copy] = field(default_factory=list[Copy])
    committed: Array = field(default_factory=lambda: np.zeros((1, 1), np.int64))

    def start(self, state: State, copy: Copy) -> None:
        """A copy begins."""
        if state.races is not None:
            state.races.on_copy_start(state, copy.site, copy.cells, _unless_all(copy.flying))
        if self.landing == "earliest" or state.races is not None:
            copy.values = copy.fetch(state)
        if self.landing == "earliest":
            assert copy.values is not None
            copy.store(state, copy.values, copy.flying)
        self.flying.append(copy)

    def commit(self, state: State) -> None:
        """The threads that are active close a group."""
        self.committed = self.committed + (1 if state.mask is None else state.mask)

    def wait(self, state: State, pending: int) -> None:
        """The threads that are active wait until at most `pending` of their groups go on."""
        left: list[Copy] = []
        for copy in self.flying:
            done = copy.flying & (copy.group < self.committed - pending)
            if state.mask is not None:
                done = done & state.mask
            if done.any():
                self._land(state, copy, done)
                copy.flying = copy.flying & ~done
            if copy.flying.any():
                left.append(copy)
        self.flying = left

    def _land(self, state: State, copy: Copy, done: Array) -> None:
        if self.landing == "latest" or state.races is not None:
            now = copy.fetch(state)
            if self.landing == "latest":
                copy.store(state, now, done)
            if copy.values is not None and state.races is not None:
                changed = (_bits(now) != _bits(copy.values)).any(0)
                message = "global memory that the copy reads was written before the wait for it"
                state.fault("source-changed", copy.site, changed & done, message)
        if state.races is not None:
            state.races.on_copy_end(state, copy.cells, _unless_all(done))

    def finish(self, state: State) -> None:
        """The threads end."""
        for copy in self.flying:
            state.fault("unfinished-copy", copy.site, copy.flying, "a thread ends without having waited for its copy")


def _bits(values: Array) -> Array:
    """The values as unsigned integers: a NaN is what it was if its bits are."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _unless_all(lanes: Array) -> Array | None:
    return None if lanes.all() else lanes


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Where the threads of a copy point, each (blocks or 1, threads)."""

    source: Array
    target: Array
    valid: Array
    active: Array


def compile_cp_async(compiler: Compiler, op: CpAsyncOp) -> Compiled:
    """`simt.cp_async`."""
    assert isinstance(op.source.type, GlobalType)
    assert isinstance(op.target.type, SharedType)
    dtype = storage_dtype(op.source.type.element)
    size, width = dtype.itemsize, op.width.value.data
    offset, count = shared_array(compiler, op, op.target)
    argument = compiler.kernel.pointers.index(op.source)
    site = compiler.site(op, "global")
    slots = (compiler.slot(op.source_index), compiler.slot(op.target_index))
    valid_slot = None if op.valid is None else compiler.slot(op.valid)
    source_place = Place(site, argument, 0, size, width, ())
    swizzle = op.target.type.swizzle.data
    target_place = Place(site, -1, offset, size, width, (), swizzle)
    aligned = (alignment_check(source_place), alignment_check(target_place))
    cell = compiler.cell
    stored = argument in written_pointers(compiler.kernel)
    if compiler.counts:
        compiler.access_sites.append(site)
    # Positions, masks and values of the copies of two stages, which are kept until they have landed.
    compiler.bytes_per_thread += 2 * prod(loop.count for loop in compiler.loops) * (24 * width + 32)

    def wide(state: State, slot: int) -> Array:
        value: Array = state.env[slot]
        return np.broadcast_to(value, (value.shape[0], state.threads)).astype(np.int64)

    def locate(state: State) -> _Lanes:
        source, target = (wide(state, slot) for slot in slots)
        valid = np.full((1, state.threads), width, np.int64) if valid_slot is None else wide(state, valid_slot)
        active = np.ones((1, state.threads), np.bool_)
        if state.mask is not None:
            active = active & state.mask
        buffer = state.buffers[argument]
        checks = (
            ((valid < 0) | (valid > width), f"expected 0 to {width} valid elements", valid),
            ((valid > 0) & ((source < buffer.first) | (source + valid > buffer.end)),
             f"elements {buffer.first}..{buffer.end - 1} of global memory exist", source),
            ((target < 0) | (target > count - width), f"elements 0..{count - 1} of shared memory exist", target),
        )  # fmt: skip
        for wrong, message, index in checks:
            outside = wrong & active
            if outside.any():
                if not compiler.checks:
                    at = int(np.broadcast_to(index, outside.shape)[outside][0])
                    raise TilewrightError(f"{op.name} out of bounds: {message}, got {at}", site.location)
                state.fault("out-of-bounds", site, outside, message, index)
                for slot in slots:
                    report_wrap(state, slot, outside, site)
                active = active & ~outside
        return _Lanes(source, target, valid, active)

    def observe(state: State, lanes: _Lanes) -> None:
        active, reading = lanes.active, lanes.active & (lanes.valid > 0)
        counts = state.report.counts[site]
        target = target_place.addresses(state, lanes.target)
        requests, wavefronts = shared_wavefronts(target, size * width, active)
        times = state.blocks // np.broadcast_shapes(target.shape, active.shape)[0]
        counts.requests += requests * times
        counts.wavefronts += wavefronts * times
        source = source_place.addresses(state, np.where(reading, lanes.source, 0))
        _, sectors = global_sectors(source, size * width, reading)
        counts.sectors += sectors * (state.blocks // np.broadcast_shapes(source.shape, reading.shape)[0])
        if not compiler.checks:
            return
        if state.poisoned:
            for slot in (*slots, *([] if valid_slot is None else [valid_slot])):
                report_wrap(state, slot, active, site)
        aligned[0](state, lanes.source, reading)
        aligned[1](state, lanes.target, active)

    def run(state: State) -> None:
        lanes = locate(state)
        if not lanes.active.any():
            return
        if compiler.counts:
            observe(state, lanes)
        buffer = state.buffers[argument]
        step = np.arange(width)[:, None, None]
        read = (step < lanes.valid) & lanes.active
        elements = np.where(read, lanes.source + step, buffer.first)
        if stored and state.order is not None:
            state.order.on_access(state, site, argument, elements - buffer.first, read, False)
        rows = np.arange(state.blocks, dtype=np.int64) * (state.shared.pitch // size) + offset // size
        # A copy is in one chunk of a swizzle: its bytes stay together.
        place = swizzled_bytes(np.where(lanes.active, lanes.target, 0) * size, swizzle)
        cells = (place + offset) // cell + np.arange(size * width // cell)[:, None, None]
        assert state.copies is not None
        copy = Copy(
            site=site,
            argument=argument,
            source=elements + buffer.offset,
            target=place // size + rows[:, None] + step,
            read=read,
            dtype=dtype,
            cells=cells,
            group=state.copies.committed,
            flying=np.broadcast_to(lanes.active, (state.blocks, state.threads)),
            values=None,
        )
        state.copies.start(state, copy)

    return Compiled(run, False)


def compile_commit(compiler: Compiler, op: CpAsyncCommitOp) -> Compiled:
    """`simt.cp_async_commit`."""

    def run(state: State) -> None:
        assert state.copies is not None
        state.copies.commit(state)

    return Compiled(run, False)


def compile_wait(compiler: Compiler, op: CpAsyncWaitOp) -> Compiled:
    """`simt.cp_async_wait`."""
    pending = op.pending.value.data

    def run(state: State) -> None:
        assert state.copies is not None
        state.copies.wait(state, pending)

    return Compiled(run, False)


def copy_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for asynchronous copies."""
    return {CpAsyncOp: compile_cp_async, CpAsyncCommitOp: compile_commit, CpAsyncWaitOp: compile_wait}


def check_landing(landing: str) -> None:
    """TilewrightError for a landing that is none."""
    if landing not in LANDINGS:
        raise TilewrightError(f"expected copies to land latest or earliest, got {landing!r}")
