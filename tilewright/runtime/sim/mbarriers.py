"""Barriers in shared memory (mbarrier) of a batch of blocks: phases, arrivals, bytes, and waits by parity.

A phase is complete when as many threads have arrived as the barrier was made for, and as many bytes have landed as were
announced; then the next begins.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.mbarriers import FenceOp, MbarArriveOp, MbarExpectOp, MbarInitOp, MbarOp, MbarWaitOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import MbarType
from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, nothing
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import WARP, State, Waiting

if TYPE_CHECKING:
    from tilewright.runtime.sim.machine import Machine

MBAR_BYTES = 8


def mbar_columns(kernel: KernelOp) -> dict[int, int]:
    """Byte offset of each barrier of a kernel to its number, in the order of the offsets."""
    offsets: set[int] = set()
    for op in kernel.walk():
        if isinstance(op, MbarOp):
            first = op.offset.value.data
            count = op.res.type.count.data
            offsets.update(range(first, first + MBAR_BYTES * count, MBAR_BYTES))
            if first + MBAR_BYTES * count > kernel.smem.value.data:
                raise TilewrightError(
                    f"barriers of bytes {first}..{first + MBAR_BYTES * count} are outside the kernel's "
                    f"{kernel.smem.value.data} bytes",
                    location_of(op),
                )
    return {offset: number for number, offset in enumerate(sorted(offsets))}


def mbar_names(kernel: KernelOp) -> tuple[str, ...]:
    """What reports call the barriers of a kernel, in the order of their numbers: `%full[1]`."""
    names = {offset: f"the mbarrier at byte {offset}" for offset in mbar_columns(kernel)}
    for op in kernel.walk():
        if isinstance(op, MbarOp) and op.res.name_hint is not None:
            for slot in range(op.res.type.count.data):
                names[op.offset.value.data + MBAR_BYTES * slot] = f"%{op.res.name_hint}[{slot}]"
    return tuple(names.values())


class Mbarriers:
    """The barriers of a batch, (blocks, barriers) each."""

    def __init__(self, blocks: int, names: Sequence[str], warps: int) -> None:
        count = len(names)
        self.names = names
        """What reports call each."""
        self.arrivals = np.zeros((blocks, count), np.int64)
        """For which each was made; 0 before that."""
        self.left = np.zeros((blocks, count), np.int64)
        """Arrivals that this phase still takes."""
        self.bytes = np.zeros((blocks, count), np.int64)
        """Announced and not landed."""
        self.phase = np.zeros((blocks, count), np.int64)
        """Phases that are complete."""
        self.seen = np.full((blocks, count, warps), -1, np.int64)
        """The last phase that each warp has waited for."""
        self.maker = np.zeros((blocks, count, 2), np.int64)
        """The warp that made each, and its tick, at level `check`."""
        self.fenced = np.zeros((blocks, count), np.bool_)
        """Whether a fence came after they were made."""
        self.last_copy: dict[tuple[int, int], tuple[int, Site]] = {}
        """By block and barrier: the tick and the op of the last copy that signals it."""
        self.last_arrival: dict[tuple[int, int, int], tuple[int, Site]] = {}
        """By block, and another block of its cluster and its warp that arrives there: the tick and op of the last."""

    def _close(self, machine: Machine) -> None:
        """Begin the next phase where one is complete."""
        done = (self.left == 0) & (self.bytes == 0) & (self.arrivals > 0)
        if done.any():
            self.phase += done
            self.left = np.where(done, self.arrivals, self.left)
            if machine.clocks is not None:
                machine.clocks.complete(*np.nonzero(done))

    def arrive(self, machine: Machine, site: Site, counts: Array) -> None:
        """So many threads arrive at each."""
        while counts.any():
            now = np.minimum(counts, self.left)
            if not now.any():
                block, bar = (int(n[0]) for n in np.nonzero(counts))
                made = int(self.arrivals[block, bar])
                if made:
                    message = f"more than its {made} threads arrive at {self.names[bar]} in one phase"
                    machine.fault("mbarrier", site, message, block)
                return
            self.left -= now
            counts = counts - now
            self._close(machine)

    def expect(self, counts: Array, size: int) -> None:
        """Announce bytes."""
        self.bytes += counts * size

    def land(self, machine: Machine, block: int, bar: int, size: int) -> None:
        """Bytes land."""
        self.bytes[block, bar] -= size
        self._close(machine)

    def finish(self, machine: Machine) -> None:
        """The end of the blocks, at level `check`: copies that landed without that any warp knows."""
        clocks = machine.clocks
        assert clocks is not None
        for (block, bar), (tick, site) in self.last_copy.items():
            if int(clocks.known[block, :, clocks.own[block] + clocks.first_copy + bar].max()) < tick:
                message = f"the kernel ends and nobody has waited at {self.names[bar]} for this copy"
                machine.fault("left-in-flight", site, message, block)
        for (block, other, warp), (tick, site) in self.last_arrival.items():
            if int(clocks.known[block, :, clocks.own[other] + warp].max()) < tick:
                message = "a block may end before another of its cluster arrives here at its barrier"
                machine.fault("left-in-flight", site, message, block, warp * WARP)


def per_warp(state: State, value: Array, active: Array | None = None) -> Array:
    """A value (blocks or 1, threads or 1) as its first active thread of each warp has it, (blocks, warps); or the first
    of those that `active` (blocks, threads) names."""
    count = state.threads // WARP
    if value.shape[-1] == 1:
        return np.broadcast_to(value, (state.blocks, count))
    wide = np.broadcast_to(value, (state.blocks, state.threads)).reshape(state.blocks, count, WARP)
    if state.mask is None and active is None:
        return wide[:, :, 0]
    first = (state.active() if active is None else active).reshape(state.blocks, count, WARP).argmax(-1)
    return np.take_along_axis(wide, first[..., None], -1)[..., 0]


def checked_slot(state: State, site: Site, slot: Array, count: int) -> Array:
    """A slot of an array of barriers; one that does not exist is a fault, and becomes one that does."""
    if int(slot.min()) >= 0 and int(slot.max()) < count:
        return slot
    outside = ((slot < 0) | (slot >= count)) & state.active()
    if outside.any():
        message = f"barriers 0..{count - 1} exist"
        if state.machine is None or state.machine.clocks is None:
            raise TilewrightError(f"{site.op_name} out of bounds: {message}", site.location)
        state.fault("out-of-bounds", site, outside, message, slot)
    return np.clip(slot, 0, count - 1)


@dataclass(frozen=True, slots=True)
class Slots:
    """Where an op finds its barrier."""

    site: Site
    first: int
    """Number of the array's first barrier."""
    count: int
    slot: int

    def numbers(self, state: State) -> Array:
        """The barrier of each thread, (blocks or 1, threads or 1)."""
        return self.first + checked_slot(state, self.site, state.env[self.slot], self.count)

    def per_block(self, state: State, total: int, active: Array | None = None) -> Array:
        """How many active threads, or of those in `active`, name each of the barriers, (blocks, total)."""
        numbers = np.broadcast_to(self.numbers(state), (state.blocks, state.threads))
        blocks, threads = np.nonzero(state.active() if active is None else active)
        counts = np.zeros((state.blocks, total), np.int64)
        np.add.at(counts, (blocks, numbers[blocks, threads]), 1)
        return counts


def make_slots(compiler: Compiler, op: Operation, bar: SSAValue, slot: SSAValue) -> Slots:
    """The barriers of an op; TilewrightError for ones that are not made by `simt.mbar`."""
    if not isinstance(bar.owner, MbarOp):
        raise TilewrightError("expected barriers made by simt.mbar", location_of(op))
    assert isinstance(bar.type, MbarType)
    first = compiler.mbar_columns[bar.owner.offset.value.data]
    return Slots(compiler.site(op), first, bar.type.count.data, compiler.slot(slot))


def compile_mbar(compiler: Compiler, op: MbarOp) -> Compiled:
    """Barriers: only their place matters, and ops on them know it."""
    return nothing()


def compile_init(compiler: Compiler, op: MbarInitOp) -> Compiled:
    """`simt.mbar.init`: all barriers of an array."""
    if not isinstance(op.bar.owner, MbarOp):
        raise TilewrightError("expected barriers made by simt.mbar", location_of(op))
    assert isinstance(op.bar.type, MbarType)
    first = compiler.mbar_columns[op.bar.owner.offset.value.data]
    numbers = slice(first, first + op.bar.type.count.data)
    arrivals = op.arrivals.value.data
    site = compiler.site(op)

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        bars = machine.mbarriers
        count = state.active().sum(1)
        blocks = np.flatnonzero(count)
        if machine.clocks is not None:
            several = (count > 1)[:, None] & state.active()
            state.fault("mbarrier", site, several, "several threads initialise a barrier")
            again = np.asarray((bars.arrivals[:, numbers] > 0).any(1))[:, None] & state.active()
            state.fault("mbarrier", site, again, "a barrier is initialised again")
        bars.arrivals[blocks, numbers] = arrivals
        bars.left[blocks, numbers] = arrivals
        bars.fenced[blocks, numbers] = False
        if machine.clocks is not None:
            warps = state.first_thread // WARP + state.active_warps()[blocks].argmax(1)
            bars.maker[blocks, numbers, 0] = warps[:, None]
            bars.maker[blocks, numbers, 1] = machine.clocks.tick_of(blocks, warps)[:, None]

    return Compiled(run, False)


def compile_fence(compiler: Compiler, op: FenceOp) -> Compiled:
    """`simt.fence`."""
    if not compiler.checks:
        return nothing()
    asynchronous = op.kind.data == "async"

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        assert machine.clocks is not None
        if asynchronous:
            blocks, warps = np.nonzero(state.active_warps())
            machine.clocks.fence(blocks, warps + state.first_thread // WARP)
        else:
            machine.mbarriers.fenced[np.flatnonzero(state.active().any(1))] = True

    return Compiled(run, False)


def _arriving(compiler: Compiler, op: MbarArriveOp | MbarExpectOp, size: int) -> Compiled:
    slots = make_slots(compiler, op, op.bar, op.slot)
    total = len(compiler.mbar_columns)

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        counts = slots.per_block(state, total)
        if machine.clocks is not None:
            blocks, warps = np.nonzero(state.active_warps())
            numbers = per_warp(state, slots.numbers(state))[blocks, warps]
            warps = warps + state.first_thread // WARP
            check_made(machine, slots.site, blocks, warps, numbers)
            machine.clocks.arrive(blocks, warps, numbers)
        if size:
            machine.mbarriers.expect(counts, size)
        machine.mbarriers.arrive(machine, slots.site, counts)

    return Compiled(run, False)


def compile_arrive(compiler: Compiler, op: MbarArriveOp) -> Compiled:
    """`simt.mbar.arrive`."""
    return _arriving(compiler, op, 0) if op.rank is None else _arriving_at(compiler, op, op.rank)


def _arriving_at(compiler: Compiler, op: MbarArriveOp, rank: SSAValue) -> Compiled:
    """Arrivals at the barriers of blocks of the cluster, rank by rank."""
    slots = make_slots(compiler, op, op.bar, op.slot)
    place = compiler.slot(rank)
    total, cluster = len(compiler.mbar_columns), compiler.kernel.cluster_size

    def run(state: State) -> None:
        machine = state.machine
        assert machine is not None
        ranks = np.broadcast_to(state.env[place], (state.blocks, state.threads))
        outside = ((ranks < 0) | (ranks >= cluster)) & state.active()
        if outside.any():
            message = f"blocks 0..{cluster - 1} of the cluster exist"
            if machine.clocks is None:
                raise TilewrightError(f"{slots.site.op_name} out of bounds: {message}", slots.site.location)
            state.fault("out-of-bounds", slots.site, outside, message, ranks)
        for number in range(cluster):
            active = state.active() & (ranks == number)
            if not active.any():
                continue
            # What a block of the cluster counts goes to the block of that rank.
            from_each = slots.per_block(state, total, active)
            counts = np.zeros_like(from_each)
            counts[number::cluster] = from_each.reshape(-1, cluster, total).sum(1)
            if machine.clocks is not None:
                blocks, warps = np.nonzero(active.reshape(state.blocks, -1, WARP).any(-1))
                numbers = per_warp(state, slots.numbers(state), active)[blocks, warps]
                warps = warps + state.first_thread // WARP
                at = blocks // cluster * cluster + number
                check_made(machine, slots.site, blocks, warps, numbers, at)
                for to, block, warp, tick in zip(
                    *(n.tolist() for n in (at, blocks, warps, machine.clocks.tick_of(blocks, warps))), strict=True
                ):
                    if to != block:
                        machine.mbarriers.last_arrival[to, block, warp] = (tick, slots.site)
                machine.clocks.arrive(blocks, warps, numbers, at)
            machine.mbarriers.arrive(machine, slots.site, counts)

    return Compiled(run, False)


def compile_expect(compiler: Compiler, op: MbarExpectOp) -> Compiled:
    """`simt.mbar.expect`."""
    return _arriving(compiler, op, op.bytes.value.data)


@dataclass(slots=True)
class MbarWait:
    """A role at mbarriers: for each (block, warp) the barrier and the parity; `open` those not seen complete yet."""

    site: Site
    machine: Machine
    blocks: Array
    warps: Array
    numbers: Array
    parity: Array
    open: Array
    reported: bool = False

    @property
    def bars(self) -> Mbarriers:
        """The barriers of the batch."""
        return self.machine.mbarriers

    def ready(self) -> bool:
        """Whether all phases are complete; reports one that was, and the one after it too, before it was looked at."""
        if self.machine.clocks is not None and not self.reported:
            self._look_for_missed()
        self.open &= (self.bars.phase[self.blocks, self.numbers] & 1) == self.parity
        return not self.open.any()

    def _look_for_missed(self) -> None:
        """Two phases are complete where one is waited for: by parity they look the same."""
        following = self.bars.seen[self.blocks, self.numbers, self.warps] + 1
        phase = self.bars.phase[self.blocks, self.numbers]
        missed = self.open & ((following & 1) == self.parity) & (phase > following + 1)
        if missed.any():
            self.reported = True
            at = int(np.argmax(missed))
            message = (
                f"{self.bars.names[int(self.numbers[at])]} has completed {int(phase[at])} phases while phase "
                f"{int(following[at])} is waited for: by parity they look the same"
            )
            self.machine.fault("missed-phase", self.site, message, int(self.blocks[at]), int(self.warps[at]) * WARP)

    def note_seen(self) -> None:
        """Remember the phase that each warp has waited for."""
        last = self.bars.seen[self.blocks, self.numbers, self.warps]
        now = np.where(((last + 1) & 1) == self.parity, last + 1, last)
        self.bars.seen[self.blocks, self.numbers, self.warps] = now

    def reason(self) -> str:
        """What it waits for: the first barrier, and how far it is."""
        at = int(np.argmax(self.open))
        block, bar = int(self.blocks[at]), int(self.numbers[at])
        bars = self.bars
        return (
            f"phase {int(bars.phase[block, bar])} (parity {int(self.parity[at])}) of {bars.names[bar]} in block "
            f"{block} of the batch: {int(bars.left[block, bar])} of {int(bars.arrivals[block, bar])} arrivals and "
            f"{int(bars.bytes[block, bar])} bytes are missing"
        )


def compile_wait(compiler: Compiler, op: MbarWaitOp) -> Compiled:
    """`simt.mbar.wait`."""
    slots = make_slots(compiler, op, op.bar, op.slot)
    parity = compiler.slot(op.parity)
    checks = compiler.checks

    def run(state: State) -> Generator[Waiting, None, None]:
        machine = state.machine
        assert machine is not None
        blocks, warps = np.nonzero(state.active_warps())
        if not blocks.size:
            return
        numbers = per_warp(state, slots.numbers(state))[blocks, warps]
        wanted = per_warp(state, state.env[parity])[blocks, warps]
        warps = warps + state.first_thread // WARP
        wait = MbarWait(slots.site, machine, blocks, warps, numbers, wanted, np.ones(blocks.shape, np.bool_))
        if checks:
            check_made(machine, slots.site, blocks, warps, numbers)
        if not wait.ready():
            yield wait
        if checks:
            assert machine.clocks is not None
            wait.note_seen()
            machine.clocks.acquire(blocks, warps, numbers)

    return Compiled(run, True)


def check_made(
    machine: Machine, site: Site, blocks: Array, warps: Array, numbers: Array, at: Array | None = None
) -> None:
    """Report barriers that warps use before they are initialised, or without an order after that: those of their own
    block, or of the blocks `at`."""
    bars, clocks = machine.mbarriers, machine.clocks
    assert clocks is not None
    at = blocks if at is None else at
    missing = bars.arrivals[at, numbers] == 0
    maker = bars.maker[at, numbers]
    bad = missing | (maker[:, 1] > clocks.known[blocks, warps, clocks.own[at] + maker[:, 0]])
    if bad.any():
        first = int(np.argmax(bad))
        what = "before it is initialised" if missing[first] else "with nothing to order that after its initialisation"
        message = f"{bars.names[int(numbers[first])]} is used {what}"
        machine.fault("mbarrier", site, message, int(blocks[first]), int(warps[first]) * WARP)


def mbarrier_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for mbarriers and fences."""
    return {
        FenceOp: compile_fence,
        MbarArriveOp: compile_arrive,
        MbarExpectOp: compile_expect,
        MbarInitOp: compile_init,
        MbarOp: compile_mbar,
        MbarWaitOp: compile_wait,
    }
