"""Matrix instructions of warpgroups: started now, done when their group is waited for.

Operands are read at the latest legal moment, the wait, or as the instruction starts; at level `check` the two
are compared. Products are exact and summed in float32, in an order that the hardware does not promise either.
Accumulators of an instruction under way may not be touched, nor before a wait that names them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.memory import SharedOp
from tilewright.dialects.simt.types import SharedType
from tilewright.dialects.simt.wgmma import (
    LEFT_REGISTERS,
    WgmmaCommitOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaRegsOp,
    WgmmaWaitOp,
)
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.clocks import WARPS_OF_GROUP, Unit
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, nothing
from tilewright.runtime.sim.groups import Groups
from tilewright.runtime.sim.machine import CHUNK, Machine
from tilewright.runtime.sim.matrices import as_tf32
from tilewright.runtime.sim.operands import Operand, make_operand
from tilewright.runtime.sim.registers import RegisterAccess, register_access
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State
from tilewright.runtime.sim.tma import unit_cells

ROWS = 64
ONE_THREAD = 1 << 18
"""Multiplications of one product up to which OpenBLAS takes one thread: more of them wait for each other on a machine
that is busy, which was up to a hundred times slower."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A `simt.wgmma` or `simt.wgmma.regs` of the kernel."""

    site: Site
    lhs: Operand | None
    """None where the left operand is in registers."""
    rhs: Operand
    lhs_offset: int
    rhs_offset: int
    lhs_index: int
    rhs_index: int
    size: int
    """Bytes of an element."""
    acc: int
    """Slot of the accumulators."""
    steps: tuple[int, int]
    """Registers from one row of accumulators to the next, and from one column to the next."""
    first: RegisterAccess
    """The first accumulator."""
    columns: int
    """n of the instruction."""
    smem_chunks: int
    left: RegisterAccess | None = None
    """The first register of a left operand in registers."""

    def starts(self, state: State, offset: int, index: int, live: Array) -> Array:
        """The start address in chunks for each warpgroup, (blocks, warpgroups or 1)."""
        value = state.env[index]
        if value.shape[-1] > 1:
            value = np.broadcast_to(value, (*value.shape[:-1], state.threads))
            if state.machine is not None and state.machine.clocks is not None:
                groups = value.reshape(*value.shape[:-1], -1, WARPGROUP)
                differs = (groups != groups[..., :1]).reshape(value.shape) & state.active()
                state.fault("wgmma", self.site, differs, "threads of a warpgroup name different operands")
            value = value[..., ::WARPGROUP]
        start = np.broadcast_to(value, (state.blocks, value.shape[-1])) * self.size + offset
        if not live.all():
            # Warpgroups that do not take part read what is at the start.
            start = np.where(live if start.shape[-1] > 1 else live.any(1, keepdims=True), start, 0)
        return start // CHUNK


@dataclass(slots=True)
class Started:
    """An instruction under way."""

    site: Site
    live: Array
    """(blocks, warpgroups)."""
    instruction: Instruction
    row: int
    """The first register."""
    lhs: Array
    """Chunk numbers in shared memory of all blocks, (blocks, warpgroups or 1, ...); none of an operand in registers."""
    rhs: Array
    read: tuple[Array, Array] | None
    """What the operands were as it started, when that is kept."""
    units: list[Unit]
    left: Array | None = None
    """A left operand that was in registers: (blocks, warpgroups, 64, 8)."""
    left_row: int = 0
    """Its first register."""


def compile_wgmma(compiler: Compiler, op: WgmmaOp) -> Compiled:
    """`simt.wgmma`."""
    shape = op.tile
    sizes: list[int] = []
    operands: list[Operand] = []
    offsets: list[int] = []
    for array, rows, major, pair in zip((op.lhs, op.rhs), (ROWS, shape.n), op.major, op.offsets, strict=True):
        assert isinstance(array.type, SharedType)
        if not isinstance(array.owner, SharedOp):
            raise TilewrightError("expected shared memory made by simt.shared", location_of(op))
        element = array.type.element
        sizes.append(storage_dtype(element).itemsize)
        offsets.append(array.owner.offset.value.data)
        operands.append(make_operand(element, sizes[-1], rows, shape.k, major, pair, array.type.swizzle.data))
    instruction = Instruction(
        compiler.site(op),
        operands[0],
        operands[1],
        offsets[0],
        offsets[1],
        compiler.slot(op.lhs_index),
        compiler.slot(op.rhs_index),
        sizes[0],
        compiler.slot(op.acc),
        (op.pitch, 1),
        register_access(compiler, op, op.acc, op.indices),
        shape.n,
        compiler.kernel.smem.value.data // CHUNK,
    )
    return _starter(compiler, op, instruction)


def compile_wgmma_regs(compiler: Compiler, op: WgmmaRegsOp) -> Compiled:
    """`simt.wgmma.regs`."""
    array = op.rhs
    assert isinstance(array.type, SharedType)
    if not isinstance(array.owner, SharedOp):
        raise TilewrightError("expected shared memory made by simt.shared", location_of(op))
    element, offsets = array.type.element, (op.lbo.value.data, op.sbo.value.data)
    size = storage_dtype(element).itemsize
    index = compiler.slot(op.rhs_index)
    instruction = Instruction(
        compiler.site(op),
        None,
        make_operand(element, size, op.tile.n, op.tile.k, "k", offsets, array.type.swizzle.data),
        0,
        array.owner.offset.value.data,
        index,
        index,
        size,
        compiler.slot(op.acc),
        op.steps,
        register_access(compiler, op, op.acc, op.indices),
        op.tile.n,
        compiler.kernel.smem.value.data // CHUNK,
        register_access(compiler, op, op.lhs, op.lhs_indices),
    )
    return _starter(compiler, op, instruction)


def _starter(compiler: Compiler, op: WgmmaOp | WgmmaRegsOp, instruction: Instruction) -> Compiled:
    checks = compiler.checks
    shadow = compiler.shadows[op.acc]
    left_shadow = compiler.shadows[op.lhs] if isinstance(op, WgmmaRegsOp) else None

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        if state.matrix is None:
            state.matrix = Groups()
        active = state.active().reshape(state.blocks, -1, WARPGROUP)
        live = active[:, :, 0]
        if not live.any():
            return
        started = _start(state, machine, instruction, live)
        if started is None:
            return
        state.matrix.open.append(started)
        if checks:
            _check(state, machine, started, active, shadow, left_shadow)

    return Compiled(run, False)


def _start(state: State, machine: Machine, instruction: Instruction, live: Array) -> Started | None:
    places: list[Array] = []
    site = instruction.site
    for operand, offset, index in (
        (instruction.lhs, instruction.lhs_offset, instruction.lhs_index),
        (instruction.rhs, instruction.rhs_offset, instruction.rhs_index),
    ):
        if operand is None:
            places.append(np.zeros((state.blocks, 1, 0, 0), np.int64))
            continue
        found = operand.places(instruction.starts(state, offset, index, live))
        if int(found.min()) < 0 or int(found.max()) >= instruction.smem_chunks:
            message = "an operand of a matrix instruction is outside the block's shared memory"
            if machine.clocks is None:
                raise TilewrightError(f"{site.op_name}: {message}", site.location)
            machine.fault("out-of-bounds", site, message, 0, state.first_thread)
            return None
        places.append(found)
    pitch = (np.arange(state.blocks) * machine.chunk_pitch())[:, None, None, None]
    lhs, rhs = places[0] + pitch, places[1] + pitch
    read = None
    if machine.eager or machine.clocks is not None:
        chunks = machine.chunks()
        read = chunks[lhs], chunks[rhs]
    row = instruction.first.place(state).base
    started = Started(site, live, instruction, row, lhs, rhs, read, [])
    if instruction.left is not None:
        started.left_row = instruction.left.place(state).base
        started.left = _left_operand(state.env[instruction.left.slot], started.left_row)
    clocks = machine.clocks
    if clocks is not None:
        first_warp = state.first_thread // WARPGROUP * WARPS_OF_GROUP
        for block, group in zip(*(n.tolist() for n in np.nonzero(live)), strict=True):
            warps = first_warp + group * WARPS_OF_GROUP + np.arange(WARPS_OF_GROUP)
            at = np.full(WARPS_OF_GROUP, block)
            # What one of the warps does not know is not ordered before the instruction, which reads for all.
            known = clocks.snapshot(at, warps).min(0)
            agent = int(clocks.matrix_agent(np.asarray(state.first_thread // WARPGROUP + group)))
            tick = int(clocks.tick(np.asarray([block]), np.asarray([agent]))[0])
            unit = Unit(agent, block, state.first_thread + group * WARPGROUP, tick, known)
            for found in places:
                mine = found[block, group if found.shape[1] > 1 else 0].reshape(-1)
                clocks.unit_read(machine, site, unit, unit_cells(machine, mine))
            started.units.append(unit)
    return started


def _left_operand(storage: Array, first: int) -> Array:
    """A of an instruction from the registers of its threads, (blocks, warpgroups, 64, 8): lane 4 g + t of warp w holds
    row 16 w + g + 8 i, k = t + 4 j in register 2 j + i."""
    blocks, threads = storage.shape[1:]
    parts = storage[first : first + LEFT_REGISTERS].reshape(2, 2, blocks, threads // WARPGROUP, 4, 8, 4)
    parts = parts.transpose(2, 3, 4, 1, 5, 0, 6)  # block, group, w, i, g, j, t
    return as_tf32(parts.reshape(blocks, threads // WARPGROUP, ROWS, 8))


def accumulator_registers(instruction: Instruction, row: int) -> Array:
    """The registers of an instruction, (2, n / 4)."""
    down, across = instruction.steps
    return row + np.arange(2)[:, None] * down + np.arange(instruction.columns // 4) * across


def _check(
    state: State, machine: Machine, started: Started, active: Array, shadow: int, left_shadow: int | None
) -> None:
    instruction = started.instruction
    if instruction.left is not None and left_shadow is not None:
        numbers = started.left_row + np.arange(LEFT_REGISTERS)
        missing = (~state.env[left_shadow][numbers]).any(0) & state.active()
        state.fault("uninitialised-register", started.site, missing, "an operand is read before it is written")
        if instruction.left.slot in state.touched:
            message = "an operand has been touched since the last simt.wgmma.fence"
            state.fault("wgmma", started.site, state.active(), message)
        if instruction.left.slot not in state.flying:
            state.flying[instruction.left.slot] = np.zeros(state.env[instruction.left.slot].shape[0], np.bool_)
        state.flying[instruction.left.slot][numbers] = True
    partial = active.any(-1, keepdims=True) & ~active
    whole = partial.reshape(state.blocks, state.threads)
    state.fault("barrier-divergence", started.site, whole, "a matrix instruction without all of its warpgroup")
    registers = accumulator_registers(instruction, started.row)
    missing = (~state.env[shadow][registers.reshape(-1)]).any(0) & state.active()
    state.fault("uninitialised-register", started.site, missing, "an accumulator is read before it is written")
    if instruction.acc in state.touched:
        message = "accumulators have been touched since the last simt.wgmma.fence"
        state.fault("wgmma", started.site, state.active(), message)
    if instruction.acc not in state.flying:
        count = int(state.env[instruction.acc].shape[0])
        state.flying[instruction.acc] = np.zeros(count, np.bool_)
    state.flying[instruction.acc][registers] = True


def compile_fence(compiler: Compiler, op: WgmmaFenceOp) -> Compiled:
    """`simt.wgmma.fence`."""
    if not compiler.checks:
        return nothing()

    def run(state: State) -> None:
        state.touched.clear()

    return Compiled(run, False)


def _groups(state: State) -> Array:
    """Which warpgroups are active, (blocks, warpgroups)."""
    return state.active()[:, ::WARPGROUP]


def compile_commit(compiler: Compiler, op: WgmmaCommitOp) -> Compiled:
    """`simt.wgmma.commit`."""

    def run(state: State) -> None:
        if state.matrix is None:
            state.matrix = Groups()
        state.matrix.commit(_groups(state))

    return Compiled(run, False)


def compile_wait(compiler: Compiler, op: WgmmaWaitOp) -> Compiled:
    """`simt.wgmma.wait`: what is waited for happens now."""
    pending = op.pending.value.data
    named = [compiler.slot(a) for a in op.accumulators]

    def run(state: State) -> None:
        machine, matrix = state.machine, state.matrix
        assert machine is not None
        if matrix is None:
            return
        for group, lanes in matrix.wait(pending, _groups(state)):
            items: list[Started] = []
            for item in group.items:
                assert isinstance(item, Started)
                items.append(item)
            _execute(state, machine, items, lanes)
        if machine.clocks is not None:
            _release(state, matrix, named)

    return Compiled(run, False)


def _release(state: State, matrix: Groups, named: list[int]) -> None:
    """Accumulators that a wait names, and that no instruction has any more, may be touched."""
    for slot in named:
        flying = state.flying.get(slot)
        if flying is None:
            continue
        flying[:] = False
        for item, _ in matrix.left():
            assert isinstance(item, Started)
            if item.instruction.acc == slot:
                flying[accumulator_registers(item.instruction, item.row)] = True
            elif item.instruction.left is not None and item.instruction.left.slot == slot:
                flying[item.left_row + np.arange(LEFT_REGISTERS)] = True


def _execute(state: State, machine: Machine, items: list[Started], lanes: Array) -> None:
    """Do the instructions of a group for these lanes; those with the same accumulators at once."""
    by_place: dict[tuple[int, int, int], list[Started]] = {}
    for item in items:
        by_place.setdefault((item.instruction.acc, item.row, item.instruction.columns), []).append(item)
    for same in by_place.values():
        lhs: list[Array] = []
        rhs: list[Array] = []
        now = lanes & same[0].live
        for item in same:
            if not np.array_equal(item.live, same[0].live):
                raise TilewrightError(
                    "the simulator expects the instructions of a group to be started by the same warpgroups",
                    item.site.location,
                )
            left, right = _read(machine, item, now)
            lhs.append(left if item.instruction.lhs is None else item.instruction.lhs.values(left))
            rhs.append(item.instruction.rhs.values(right))
        if not now.any():
            continue
        one = len(lhs) == 1
        a = lhs[0] if one else np.concatenate(lhs, -1)
        b = rhs[0] if one else np.concatenate(rhs, -1)
        _accumulate(state, same[0], _product(a, np.swapaxes(b, -1, -2)), now)
        if machine.clocks is not None:
            _learn(machine, same, now, state.first_thread // WARPGROUP)


def _product(a: Array, b: Array) -> Array:
    """a (..., m, k) times b (..., k, n) in float32."""
    step = max(1, ONE_THREAD // (a.shape[-1] * a.shape[-2]))
    columns = b.shape[-1]
    if columns <= step:
        return np.matmul(a, b)
    found = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], columns), np.float32)
    for first in range(0, columns, step):
        np.matmul(a, b[..., first : first + step], out=found[..., first : first + step])
    return found


def _read(machine: Machine, item: Started, now: Array) -> tuple[Array, Array]:
    found = _read_shared(machine, item, now)
    return found if item.left is None else (item.left, found[1])


def _read_shared(machine: Machine, item: Started, now: Array) -> tuple[Array, Array]:
    chunks = machine.chunks()
    if item.read is None:
        return chunks[item.lhs], chunks[item.rhs]
    if machine.clocks is None:
        return item.read
    late = chunks[item.lhs], chunks[item.rhs]
    for name, before, after in zip(("left", "right"), item.read, late, strict=True):
        differs = (before.view(np.uint64) != after.view(np.uint64)).any((-1, -2)) & now
        if differs.any():
            block = int(np.nonzero(differs)[0][0])
            message = f"the {name} operand changes between the matrix instruction and the wait for it"
            machine.fault("operand-changed", item.site, message, block)
    return item.read if machine.eager else late


def _accumulate(state: State, item: Started, product: Array, now: Array) -> None:
    """Add a product (blocks, warpgroups, 64, n) to the accumulators, where `now`."""
    storage = state.env[item.instruction.acc]
    blocks, threads = storage.shape[1:]
    groups, columns = threads // WARPGROUP, item.instruction.columns
    product = np.broadcast_to(product, (blocks, groups, ROWS, columns))
    # Row 16 w + 8 i + l of a warpgroup, column 8 j + 2 q + c is lane 4 l + q of warp w, register (i, 2 j + c).
    parts = product.reshape(blocks, groups, 4, 2, 8, columns // 8, 4, 2)
    parts = parts.transpose(3, 5, 7, 0, 1, 2, 4, 6)  # i, j, c, block, group, w, l, q
    where = None if now.all() else np.repeat(now, WARPGROUP, axis=1)
    down, across = item.instruction.steps
    for i in range(2):
        first = item.row + i * down
        to = storage[first : first + columns // 4 * across : across]
        add = parts[i].reshape(columns // 4, blocks, threads)
        if where is None:
            np.add(to, add, out=to)
        else:
            np.add(to, add, out=to, where=where)


def _learn(machine: Machine, items: list[Started], now: Array, first_group: int) -> None:
    clocks = machine.clocks
    assert clocks is not None
    for item in items:
        for unit in item.units:
            group = unit.agent - clocks.first_matrix
            if now[unit.block, group - first_group]:
                warps = group * WARPS_OF_GROUP + np.arange(WARPS_OF_GROUP)
                at = np.full(WARPS_OF_GROUP, unit.block)
                clocks.learn(at, warps, np.full(WARPS_OF_GROUP, unit.agent), np.full(WARPS_OF_GROUP, unit.tick))


def end_of_matrix(state: State) -> None:
    """A role ends: instructions that are not waited for are faults at level `check`."""
    machine = state.machine
    if state.matrix is None or machine is None or machine.clocks is None:
        return
    for item, live in state.matrix.left():
        block = int(np.nonzero(live)[0][0])
        message = "the kernel ends and a matrix instruction has not been waited for"
        machine.fault("left-in-flight", item.site, message, block, state.first_thread, int(live.sum()) * WARPGROUP)


def wgmma_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for matrix instructions."""
    return {
        WgmmaCommitOp: compile_commit,
        WgmmaFenceOp: compile_fence,
        WgmmaOp: compile_wgmma,
        WgmmaRegsOp: compile_wgmma_regs,
        WgmmaWaitOp: compile_wait,
    }
