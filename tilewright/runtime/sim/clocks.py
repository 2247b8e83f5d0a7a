"""Order between warps and the units that run beside them, by vector clocks.

Agents are the warps of a block, the copies that signal one mbarrier (an agent for each barrier), and for each
warpgroup its asynchronous stores and its matrix instructions. Each warp knows of every agent up to which tick all is
done before what it does next; it learns at barriers, at waits for mbarriers, groups of stores and matrix instructions.
Shared memory remembers the last write and the last read of each agent, a cell at a time: an access races with one that
its agent does not know of. What the warps write reaches the units only through `simt.fence async` of the writer: what a
warp knows to be fenced is kept beside what it knows. Source: PTX ISA 8.0, memory consistency model, proxies.

Blocks of a cluster write each other's shared memory by copies that go to several of them, and arrive at each other's
barriers: so a warp knows of the agents of its whole cluster, block by block. A cell is read by its own block alone, and
written by its own agents: a copy from another block is one of those that signal the barrier that it signals there.

Two threads of one warp count as one agent, so a race within a warp is not found in kernels that need this model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import WARP, State

WARPS_OF_GROUP = 4


class Faults(Protocol):
    """Where faults of units go; `block` counts within the batch."""

    def fault(self, kind: str, site: Site, message: str, block: int, thread: int = 0, count: int = 1) -> None:
        """Report one."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work of a unit: whose it is, and what was known as it started."""

    agent: int
    block: int
    """Within the batch: whose memory it is about."""
    thread: int
    """That started it."""
    tick: int
    known: Array
    """What the starting warps knew, (width,)."""
    starter: int | None = None
    """The block whose thread started it, where that is another."""


class VectorClocks:
    """A `RaceModel` for kernels whose order is more than block barriers. `cells` of `cell` bytes in each block; every
    `cluster` neighbouring blocks are one."""

    def __init__(self, blocks: int, warps: int, bars: Sequence[str], cells: int, cell: int, cluster: int = 1) -> None:
        self.blocks = blocks
        self.warps = warps
        self.bars = bars
        """Names of the mbarriers."""
        self.cells = cells
        self.cell = cell
        groups = -(-warps // WARPS_OF_GROUP)
        self.first_copy = warps
        self.first_store = warps + len(bars)
        self.first_matrix = self.first_store + groups
        self.first_copying = self.first_matrix + groups
        self.agents = self.first_copying + warps
        width = cluster * (self.agents + warps)
        self.cluster = cluster
        rank = np.arange(blocks) % cluster
        self.own = rank * self.agents
        """By block: where its own agents begin in what its cluster knows."""
        self.own_fenced = cluster * self.agents + rank * warps
        """By block: the same of its fenced warps."""
        self.known = np.zeros((blocks, warps, width), np.int32)
        """By warp: the tick of each agent that is done, block by block of the cluster; behind them, that of each warp
        that is fenced."""
        own = np.arange(warps)
        self.known[np.arange(blocks)[:, None], own, self.own[:, None] + own] = 1
        self.arrived = np.zeros((blocks, len(bars), width), np.int32)
        """By mbarrier: what those know that have arrived in this phase."""
        self.completed = np.zeros((blocks, len(bars), width), np.int32)
        """The same of the last phase that is complete."""
        self.named_arrived = np.zeros((blocks, 16, width), np.int32)
        self.named_completed = np.zeros((blocks, 16, width), np.int32)
        self.ticks = np.zeros((blocks, self.agents), np.int64)
        """Ticks of the units given out so far."""
        self.barriers = np.zeros((blocks, 1), np.int64)
        self.writer = np.full(blocks * cells, -1, np.int16)
        self.written = np.zeros(blocks * cells, np.int32)
        self.reads = np.zeros((blocks * cells, self.agents), np.int32)

    # Names.

    def name(self, agent: int) -> str:
        """An agent in a message."""
        if agent < self.first_copy:
            return f"warp {agent}"
        if agent < self.first_store:
            return f"a copy that signals {self.bars[agent - self.first_copy]}"
        if agent < self.first_matrix:
            return f"a store of warpgroup {agent - self.first_store}"
        if agent < self.first_copying:
            return f"a matrix instruction of warpgroup {agent - self.first_matrix}"
        return f"an asynchronous copy of warp {agent - self.first_copying}, which was not waited for,"

    def copy_agent(self, bar: Array) -> Array:
        """The agent of copies that signal an mbarrier."""
        return self.first_copy + bar

    def store_agent(self, warp: Array) -> Array:
        """The agent of the stores that a warp asks for."""
        return self.first_store + warp // WARPS_OF_GROUP

    def matrix_agent(self, group: Array) -> Array:
        """The agent of a warpgroup's matrix instructions."""
        return self.first_matrix + group

    # Order.

    def _next(self, blocks: Array, warps: Array) -> None:
        """What these warps do from now on is not what they have told of."""
        self.known[blocks, warps, self.own[blocks] + warps] += 1

    def tick_of(self, blocks: Array, warps: Array) -> Array:
        """The tick of what these warps do now."""
        return self.known[blocks, warps, self.own[blocks] + warps]

    def arrive(self, blocks: Array, warps: Array, bars: Array, at: Array | None = None) -> None:
        """Warps arrive at mbarriers, their own block's or those of the blocks `at`; each (block, warp) once."""
        np.maximum.at(self.arrived, (blocks if at is None else at, bars), self.known[blocks, warps])
        self._next(blocks, warps)

    def land(self, block: int, bar: int, tick: int) -> None:
        """A copy arrives at its mbarrier."""
        agent = self.own[block] + self.first_copy + bar
        self.arrived[block, bar, agent] = max(int(self.arrived[block, bar, agent]), tick)

    def complete(self, blocks: Array, bars: Array) -> None:
        """Phases of mbarriers are complete."""
        self.completed[blocks, bars] = self.arrived[blocks, bars]
        self.arrived[blocks, bars] = 0

    def acquire(self, blocks: Array, warps: Array, bars: Array) -> None:
        """Warps have waited for mbarriers; each (block, warp) once."""
        self.known[blocks, warps] = np.maximum(self.known[blocks, warps], self.completed[blocks, bars])

    def arrive_named(self, blocks: Array, warps: Array, number: int) -> None:
        """Warps arrive at a named barrier."""
        np.maximum.at(self.named_arrived, (blocks, np.full_like(blocks, number)), self.known[blocks, warps])
        self._next(blocks, warps)

    def complete_named(self, blocks: Array, number: int) -> None:
        """All have arrived."""
        self.named_completed[blocks, number] = self.named_arrived[blocks, number]
        self.named_arrived[blocks, number] = 0

    def acquire_named(self, blocks: Array, warps: Array, number: int) -> None:
        """Warps go on behind a named barrier."""
        self.known[blocks, warps] = np.maximum(self.known[blocks, warps], self.named_completed[blocks, number])

    def fence(self, blocks: Array, warps: Array) -> None:
        """What these warps have written is for the units to see."""
        self.known[blocks, warps, self.own_fenced[blocks] + warps] = self.tick_of(blocks, warps)
        self._next(blocks, warps)

    def learn(self, blocks: Array, warps: Array, agents: Array, ticks: Array) -> None:
        """Warps have waited for work of units of their block."""
        agents = self.own[blocks] + agents
        self.known[blocks, warps, agents] = np.maximum(self.known[blocks, warps, agents], ticks)

    def snapshot(self, blocks: Array, warps: Array) -> Array:
        """What warps know as they start work of a unit, (n, width); each (block, warp) once."""
        found = self.known[blocks, warps]
        self._next(blocks, warps)
        return found

    def tick(self, blocks: Array, agents: Array) -> Array:
        """New ticks of units."""
        self.ticks[blocks, agents] += 1
        return self.ticks[blocks, agents]

    def on_barrier(self, blocks: Array | None) -> None:
        """The block barrier: all warps of these blocks know what each knew."""
        where = np.arange(self.blocks) if blocks is None else np.flatnonzero(blocks)
        self.known[where] = self.known[where].max(1, keepdims=True)
        own = np.arange(self.warps)
        self.known[where[:, None], own, self.own[where][:, None] + own] += 1
        self.barriers[where] += 1

    def on_cluster_barrier(self) -> None:
        """The barrier of each cluster: all its warps know what each knew."""
        blocks, warps, width = self.known.shape
        together = self.known.reshape(-1, self.cluster, warps, width)
        together[...] = together.max((1, 2), keepdims=True)
        own = np.arange(warps)
        self.known[np.arange(blocks)[:, None], own, self.own[:, None] + own] += 1
        self.barriers += 1

    def epoch(self) -> Array:
        """Block barriers so far."""
        return self.barriers

    # Accesses of threads.

    def _lanes(self, state: State, cells: Array, active: Array | None) -> tuple[Array, Array, Array, Array, Array]:
        """(cell, block, warp, lane's place in the shape, shape) of each lane that accesses."""
        shape = np.broadcast_shapes(cells.shape, (state.blocks, state.threads), () if active is None else active.shape)
        lanes = None if active is None else np.flatnonzero(np.broadcast_to(active, shape))
        block = np.arange(state.blocks)[:, None]
        warp = ((state.first_thread + np.arange(state.threads)) // WARP)[None, :]
        flat: list[Array] = []
        for each in (cells + block * self.cells, block, warp):
            wide = np.broadcast_to(each, shape).reshape(-1)
            flat.append(wide if lanes is None else wide[lanes])
        places = np.arange(flat[0].size) if lanes is None else lanes
        return flat[0], flat[1], flat[2], places, np.asarray(shape)

    @staticmethod
    def _report(state: State, kind: str, site: Site, bad: Array, places: Array, shape: Array, message: str) -> None:
        where = np.zeros(int(np.prod(shape)), np.bool_)
        where[places[bad]] = True
        state.fault(kind, site, np.asarray(where.reshape(shape).any(0)), message)

    def on_read(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        at, block, warp, places, shape = self._lanes(state, cells, active)
        writer = self.writer[at]
        missing = writer < 0
        if missing.any():
            message = "shared memory is read before it is written"
            self._report(state, "uninitialised-shared", site, missing, places, shape, message)
        bad = (self.written[at] > self.known[block, warp, self.own[block] + writer]) & ~missing
        if bad.any():
            other = self.name(int(writer[bad][0]))
            message = f"read of what {other} writes, with nothing to order the two"
            self._report(state, "race", site, bad, places, shape, message)
        self.reads[at, warp] = self.tick_of(block, warp)

    def on_write(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        at, block, warp, places, shape = self._lanes(state, cells, active)
        writer = self.writer[at]
        bad = np.asarray((self.written[at] > self.known[block, warp, self.own[block] + writer]) & (writer >= 0))
        self.writer[at] = warp
        self.written[at] = self.tick_of(block, warp)
        now = self.writer[at]
        both = bad | (now != warp)
        if both.any():
            other = self.name(int(np.where(bad, writer, now)[both][0]))
            message = f"write to what {other} writes too, with nothing to order the two"
            self._report(state, "race", site, both, places, shape, message)
        unknown = self.reads[at] > self._of_own_block(block, warp)
        if unknown.any():
            read = np.asarray(unknown.any(1))
            other = self.name(int(np.argmax(unknown[np.argmax(read)])))
            message = f"write to what {other} reads, with nothing to order the two"
            self._report(state, "race", site, read, places, shape, message)

    def _of_own_block(self, block: Array, warp: Array) -> Array:
        """What warps know of their block's agents, (n, agents)."""
        if self.cluster == 1:
            return self.known[block, warp, : self.agents]
        return self.known[block[:, None], warp[:, None], self.own[block][:, None] + np.arange(self.agents)]

    def on_copy_start(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`: until its end, nobody knows of it."""
        self.on_write(state, site, cells, active)
        at, _, warp, _, _ = self._lanes(state, cells, active)
        self.writer[at] = self.first_copying + warp
        self.written[at] = np.iinfo(np.int32).max

    def on_copy_end(self, state: State, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        at, block, warp, _, _ = self._lanes(state, cells, active)
        self.writer[at] = warp
        self.written[at] = self.tick_of(block, warp)

    # Accesses of units.

    def _visible(self, unit: Unit) -> Array:
        """By agent of the block that it is about: the tick up to which its writes are visible to a unit."""
        own, fenced = int(self.own[unit.block]), int(self.own_fenced[unit.block])
        return np.concatenate(
            [unit.known[fenced : fenced + self.warps], unit.known[own + self.warps : own + self.agents]]
        )

    def _check_written(self, faults: Faults, site: Site, unit: Unit, at: Array, what: str) -> None:
        writer = self.writer[at]
        bad = (self.written[at] > self._visible(unit)[writer]) & (writer >= 0)
        if not bad.any():
            return
        first = int(np.argmax(bad))
        agent = int(writer[first])
        if agent < self.warps and int(self.written[at[first]]) <= int(unit.known[self.own[unit.block] + agent]):
            message = f"{what} {self.name(agent)} writes, without a simt.fence async after that"
        else:
            message = f"{what} {self.name(agent)} writes{_elsewhere(unit)}, with nothing to order the two"
        faults.fault("race", site, message, unit.block, unit.thread)

    def unit_read(self, faults: Faults, site: Site, unit: Unit, cells: Array) -> None:
        """A unit reads cells of its block."""
        at = cells.reshape(-1) + unit.block * self.cells
        if (self.writer[at] < 0).any():
            message = "shared memory is read before it is written"
            faults.fault("uninitialised-shared", site, message, unit.block, unit.thread)
        self._check_written(faults, site, unit, at, "read of what")
        self.reads[at, unit.agent] = unit.tick

    def unit_write(self, faults: Faults, site: Site, unit: Unit, cells: Array) -> None:
        """A unit writes cells of its block."""
        at = cells.reshape(-1) + unit.block * self.cells
        self._check_written(faults, site, unit, at, "write to what")
        own = int(self.own[unit.block])
        unknown = (self.reads[at] > unit.known[own : own + self.agents]).any(0)
        if unknown.any():
            other = self.name(int(np.argmax(unknown)))
            message = f"write to what {other} reads{_elsewhere(unit)}, with nothing to order the two"
            faults.fault("race", site, message, unit.block, unit.thread)
        self.writer[at] = unit.agent
        self.written[at] = unit.tick


def _elsewhere(unit: Unit) -> str:
    return "" if unit.starter is None else " in another block of the cluster"
