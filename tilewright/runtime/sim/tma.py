"""The tensor memory accelerator: boxes between global and shared memory, as copies that land later.

A load lands when its machine says so, and then counts at its barrier. A store has read shared memory at the latest when
its group is waited for, and has written global memory when that is waited for without `read`, or the kernel ends. At
level `check` what a store reads is compared with what was there when it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.memory import SharedOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.tma import BulkCommitOp, BulkWaitOp, PrefetchMapOp, TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import SharedType, TmapType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.clocks import Unit
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, nothing
from tilewright.runtime.sim.groups import Groups
from tilewright.runtime.sim.machine import CHUNK, Machine
from tilewright.runtime.sim.mbarriers import Slots, check_made, make_slots
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import WARP, State
from tilewright.runtime.sim.tensor_maps import TensorMap

BOX_ALIGNMENT = 128
"""A box in shared memory begins at a multiple of so many bytes (PTX ISA, cp.async.bulk.tensor)."""


@dataclass(frozen=True, slots=True)
class Box:
    """What loads and stores have in common: which map, where in the tensor, where in shared memory."""

    site: Site
    map: int
    coordinates: tuple[int, ...]
    """Slots."""
    index: int
    """Slot of the first element."""
    offset: int
    """Byte offset of the shared array."""
    count: int
    """Elements of the shared array."""
    box_count: int
    size: int
    """Bytes of an element."""

    def requests(self, state: State) -> list[tuple[int, int, tuple[int, ...], int]]:
        """(block, thread of the role, coordinates, first chunk in shared memory) of each active thread."""
        env = state.env
        found: list[tuple[int, int, tuple[int, ...], int]] = []
        blocks, threads = np.nonzero(state.active())
        columns = [_at(env[slot], blocks, threads) for slot in (*self.coordinates, self.index)]
        for block, thread, *places, index in zip(blocks.tolist(), threads.tolist(), *columns, strict=True):
            if not 0 <= index <= self.count - self.box_count:
                self._fault(
                    state, "out-of-bounds", block, thread, index, f"elements 0..{self.count - 1} of the array exist"
                )
                continue
            first = self.offset + index * self.size
            if first % BOX_ALIGNMENT:
                message = f"a box in shared memory begins at a multiple of {BOX_ALIGNMENT} bytes, not at {first}"
                self._fault(state, "misaligned", block, thread, index, message)
                continue
            if places[-1] * self.size % CHUNK:
                message = f"the innermost coordinate is a multiple of 16 bytes, not element {places[-1]}"
                self._fault(state, "misaligned", block, thread, index, message)
                continue
            found.append((block, thread, tuple(places), first // CHUNK))
        return found

    def _fault(self, state: State, kind: str, block: int, thread: int, index: int, message: str) -> None:
        if state.machine is None or state.machine.clocks is None:
            raise TilewrightError(f"{self.site.op_name}: {message}, got element {index}", self.site.location)
        where = np.zeros((state.blocks, state.threads), np.bool_)
        where[block, thread] = True
        state.fault(kind, self.site, where, message, np.full((1, 1), index))


def _at(value: Array, blocks: Array, threads: Array) -> list[int]:
    rows = blocks if value.shape[0] > 1 else 0 * blocks
    return value[rows, threads if value.shape[1] > 1 else 0 * threads].tolist()


def make_box(compiler: Compiler, op: TmaLoadOp | TmaStoreOp, coordinates: Sequence[SSAValue], shared: SSAValue) -> Box:
    """The common part of a load or store."""
    if not isinstance(shared.owner, SharedOp):
        raise TilewrightError("expected shared memory made by simt.shared", location_of(op))
    assert isinstance(shared.type, SharedType)
    assert isinstance(op.map.type, TmapType)
    return Box(
        compiler.site(op),
        compiler.kernel.maps.index(op.map),
        tuple(compiler.slot(c) for c in coordinates),
        compiler.slot(op.index),
        shared.owner.offset.value.data,
        shared.type.count,
        op.map.type.count,
        storage_dtype(shared.type.element).itemsize,
    )


def unit_cells(machine: Machine, chunks: Array) -> Array:
    """The cells of the race model that chunks of a block's shared memory are."""
    assert machine.clocks is not None
    each = CHUNK // machine.clocks.cell
    return chunks if each == 1 else (chunks[..., None] * each + np.arange(each)).reshape(-1)


# Loads.


@dataclass(slots=True)
class Load:
    """A box on its way to shared memory."""

    site: Site
    tensor: TensorMap
    coordinates: tuple[int, ...]
    block: int
    chunk: int
    bar: int
    unit: Unit | None

    def land(self, machine: Machine) -> None:
        """Write the box, and count its bytes."""
        chunks = self.tensor.box_chunks(self.chunk)
        machine.chunks()[chunks + self.block * machine.chunk_pitch()] = self.tensor.read(self.coordinates)
        if self.unit is not None:
            assert machine.clocks is not None
            machine.clocks.unit_write(machine, self.site, self.unit, unit_cells(machine, chunks))
            machine.clocks.land(self.block, self.bar, self.unit.tick)
        machine.mbarriers.land(machine, self.block, self.bar, self.tensor.spec.bytes)


def compile_load(compiler: Compiler, op: TmaLoadOp) -> Compiled:
    """`simt.tma.load`."""
    box = make_box(compiler, op, op.coordinates, op.shared)
    slots = make_slots(compiler, op, op.bar, op.slot)
    written = compiler.kernel.tensor_maps.data[box.map].pointer.data in stored_pointers(compiler.kernel)
    cluster, ranks = compiler.kernel.cluster_size, op.ranks

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        numbers = np.broadcast_to(slots.numbers(state), (state.blocks, state.threads))
        for block, thread, coordinates, chunk in box.requests(state):
            bar = int(numbers[block, thread])
            tensor = machine.maps[box.map]
            # What goes to several blocks lands in each at a time of its own.
            targets = [block // cluster * cluster + rank for rank in ranks] or [block]
            units: list[Unit | None] = [None] * len(targets)
            if machine.clocks is not None:
                started = _start(state, machine, block, thread, machine.clocks.first_copy + bar, targets)
                for unit in started:
                    _check_barrier(machine, slots, unit, bar, block)
                units = list(started)
                if written:
                    _order(state, box.site, tensor, coordinates, block, thread, False)
            for target, unit in zip(targets, units, strict=True):
                machine.start(Load(box.site, tensor, coordinates, target, chunk, bar, unit))

    return Compiled(run, False)


def _start(state: State, machine: Machine, block: int, thread: int, agent: int, targets: Sequence[int]) -> list[Unit]:
    """A thread starts work on the memory of each of the blocks `targets`."""
    clocks = machine.clocks
    assert clocks is not None
    number = state.first_thread + thread
    known = clocks.snapshot(np.asarray([block]), np.asarray([number // WARP]))[0]
    return [
        Unit(
            agent,
            target,
            number,
            int(clocks.tick(np.asarray([target]), np.asarray([agent]))[0]),
            known,
            None if target == block else block,
        )
        for target in targets
    ]


def _check_barrier(machine: Machine, slots: Slots, unit: Unit, bar: int, block: int) -> None:
    bars = machine.mbarriers
    check_made(machine, slots.site, *(np.asarray([n]) for n in (block, unit.thread // WARP, bar, unit.block)))
    if not bars.fenced[unit.block, bar]:
        message = f"{bars.names[bar]} is used without a simt.fence mbarrier_init after it was initialised"
        machine.fault("mbarrier", slots.site, message, unit.block, unit.thread)
    bars.last_copy[unit.block, bar] = (unit.tick, slots.site)


def _order(
    state: State, site: Site, tensor: TensorMap, coordinates: tuple[int, ...], block: int, thread: int, writes: bool
) -> None:
    """Hand the elements of a box to the model of global order."""
    elements = tensor.elements(coordinates)
    if elements.size and state.order is not None:
        state.order.on_transfer(state, site, tensor.spec.pointer, elements, (block, thread), writes)


# Stores.


@dataclass(slots=True)
class Store:
    """A box on its way to global memory; `live` has the one thread that asked."""

    site: Site
    live: Array
    tensor: TensorMap
    coordinates: tuple[int, ...]
    block: int
    chunk: int
    unit: Unit | None
    at_issue: Array | None
    """What it would have read at once, at level `check`."""
    data: Array | None = None
    """What it has read."""
    is_written: bool = False

    def read(self, machine: Machine) -> None:
        """Read shared memory, once."""
        if self.data is not None:
            return
        self.data = _box(machine, self.tensor, self.block, self.chunk)
        if self.at_issue is None or self.unit is None:
            return
        if not np.array_equal(self.at_issue.view(np.uint8), self.data.view(np.uint8)):
            message = "what a store reads changes between the store and the wait for it"
            machine.fault("operand-changed", self.site, message, self.block, self.unit.thread)

    def write(self, machine: Machine) -> None:
        """Write global memory, once."""
        self.read(machine)
        if not self.is_written:
            assert self.data is not None
            self.tensor.write(self.coordinates, self.data)
            self.is_written = True


def _box(machine: Machine, tensor: TensorMap, block: int, chunk: int) -> Array:
    return machine.chunks()[tensor.box_chunks(chunk) + block * machine.chunk_pitch()]


def compile_store(compiler: Compiler, op: TmaStoreOp) -> Compiled:
    """`simt.tma.store`."""
    box = make_box(compiler, op, op.coordinates, op.shared)

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        if state.stores is None:
            state.stores = Groups()
        for block, thread, coordinates, chunk in box.requests(state):
            tensor = machine.maps[box.map]
            live = np.zeros((state.blocks, state.threads), np.bool_)
            live[block, thread] = True
            unit = at_issue = None
            if tensor.view is not None and tensor.row_bytes % CHUNK:
                _partial_row(machine, box.site, tensor, block, state.first_thread + thread)
            clocks = machine.clocks
            if clocks is not None:
                agent = int(clocks.store_agent(np.asarray((state.first_thread + thread) // WARP)))
                (unit,) = _start(state, machine, block, thread, agent, [block])
                clocks.unit_read(machine, box.site, unit, unit_cells(machine, tensor.box_chunks(chunk)))
                at_issue = _box(machine, tensor, block, chunk)
                _order(state, box.site, tensor, coordinates, block, thread, True)
            store = Store(box.site, live, tensor, coordinates, block, chunk, unit, at_issue)
            if machine.eager:
                store.write(machine)
            state.stores.open.append(store)

    return Compiled(run, False)


def _partial_row(machine: Machine, site: Site, tensor: TensorMap, block: int, thread: int) -> None:
    message = (
        f"rows of the tensor are {tensor.row_bytes} bytes: the hardware clips a store at multiples of 16 and "
        "would write what is behind them"
    )
    if machine.clocks is None:
        raise TilewrightError(f"{site.op_name}: {message}", site.location)
    machine.fault("tensor-map", site, message, block, thread)


def compile_commit(compiler: Compiler, op: BulkCommitOp) -> Compiled:
    """`simt.bulk.commit`."""

    def run(state: State) -> None:
        if state.stores is None:
            state.stores = Groups()
        state.stores.commit(state.active())

    return Compiled(run, False)


def compile_wait(compiler: Compiler, op: BulkWaitOp) -> Compiled:
    """`simt.bulk.wait`: nothing has to be waited for here, as what it waits for happens now."""
    pending, only_read = op.pending.value.data, op.read is not None

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        if state.stores is None:
            return
        for group, lanes in state.stores.wait(pending, state.active()):
            for store in group.items:
                assert isinstance(store, Store)
                if (store.live & lanes).any():
                    finish_store(machine, store, only_read)
        if not only_read:
            machine.write_stores()

    return Compiled(run, False)


def finish_store(machine: Machine, store: Store, only_read: bool) -> None:
    """A thread has waited for its store."""
    if only_read:
        store.read(machine)
        machine.unwritten.append(store.write)
    else:
        store.write(machine)
    if machine.clocks is not None and store.unit is not None:
        unit = store.unit
        at, warp = np.asarray([unit.block]), np.asarray([unit.thread // WARP])
        machine.clocks.learn(at, warp, np.asarray([unit.agent]), np.asarray([unit.tick]))


def end_of_stores(state: State) -> None:
    """A role ends: stores that are not waited for are faults at level `check`, and are done all the same."""
    machine = state.machine
    if state.stores is None or machine is None:
        return
    for store, _ in state.stores.left():
        assert isinstance(store, Store)
        if machine.clocks is not None and store.unit is not None:
            message = "the kernel ends while a store may still read shared memory"
            machine.fault("left-in-flight", store.site, message, store.block, store.unit.thread)
        store.write(machine)


def stored_pointers(kernel: KernelOp) -> set[int]:
    """Numbers of the pointers that a kernel's tensor maps store to."""
    maps = {kernel.maps.index(op.map) for op in kernel.walk() if isinstance(op, TmaStoreOp)}
    return {kernel.tensor_maps.data[number].pointer.data for number in maps}


def compile_prefetch(compiler: Compiler, op: PrefetchMapOp) -> Compiled:
    """`simt.prefetch_map` changes no value."""
    return nothing()


def tma_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for the tensor memory accelerator."""
    return {
        BulkCommitOp: compile_commit,
        BulkWaitOp: compile_wait,
        PrefetchMapOp: compile_prefetch,
        TmaLoadOp: compile_load,
        TmaStoreOp: compile_store,
    }
