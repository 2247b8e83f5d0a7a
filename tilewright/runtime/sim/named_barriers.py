"""Named barriers of a batch of blocks: so many threads wait for each other at one of 15 numbers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.dialects.simt.mbarriers import NAMED_BARRIERS, NamedBarrierOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.compiler import Compiled, Compiler
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import WARP, State, Waiting

if TYPE_CHECKING:
    from tilewright.runtime.sim.clocks import VectorClocks


class NamedBarriers:
    """Threads that have arrived, and how often all had, (blocks, numbers) each."""

    def __init__(self, blocks: int) -> None:
        self.arrived = np.zeros((blocks, NAMED_BARRIERS), np.int64)
        self.generation = np.zeros((blocks, NAMED_BARRIERS), np.int64)
        self.threads = np.zeros((blocks, NAMED_BARRIERS), np.int64)
        """For how many it is, as those that are there say."""


@dataclass(slots=True)
class NamedWait:
    """A role at a named barrier."""

    site: Site
    barriers: NamedBarriers
    number: int
    threads: int
    blocks: Array
    before: Array
    """The generation of each of these blocks that must be over."""

    def ready(self) -> bool:
        """Whether all have arrived in all blocks."""
        return bool((self.barriers.generation[self.blocks, self.number] > self.before).all())

    def reason(self) -> str:
        """What it waits for."""
        open_ = self.barriers.generation[self.blocks, self.number] <= self.before
        block = int(self.blocks[np.argmax(open_)])
        there = int(self.barriers.arrived[block, self.number])
        return f"named barrier {self.number}, at which {there} of {self.threads} threads are"


def compile_named_barrier(compiler: Compiler, op: NamedBarrierOp) -> Compiled:
    """`simt.named_barrier`."""
    site = compiler.site(op)
    number, threads = op.number.value.data, op.threads.value.data

    def run(state: State) -> Generator[Waiting, None, None]:
        machine = state.machine
        assert machine is not None
        active = state.active()
        count = active.sum(1)
        blocks = np.flatnonzero(count)
        if not blocks.size:
            return
        named, clocks = machine.named, machine.clocks
        if clocks is not None:
            _check(state, site, active, count, threads, named, number)
            warps = np.nonzero(state.active_warps())
            clocks.arrive_named(warps[0], warps[1] + state.first_thread // WARP, number)
        before = named.generation[blocks, number].copy()
        _arrive(named, blocks, count[blocks], number, threads, clocks)
        wait = NamedWait(site, named, number, threads, blocks, before)
        if not wait.ready():
            yield wait
        if clocks is not None:
            warps = np.nonzero(state.active_warps())
            clocks.acquire_named(warps[0], warps[1] + state.first_thread // WARP, number)

    return Compiled(run, True)


def _arrive(
    named: NamedBarriers, blocks: Array, count: Array, number: int, threads: int, clocks: VectorClocks | None
) -> None:
    named.arrived[blocks, number] += count
    full = blocks[named.arrived[blocks, number] >= threads]
    if full.size:
        named.arrived[full, number] = 0
        named.generation[full, number] += 1
        if clocks is not None:
            clocks.complete_named(full, number)


def _check(
    state: State, site: Site, active: Array, count: Array, threads: int, named: NamedBarriers, number: int
) -> None:
    warps = active.reshape(state.blocks, -1, WARP)
    partial = warps.any(-1, keepdims=True) & ~warps
    state.fault("barrier-divergence", site, partial.reshape(active.shape), "a named barrier without all of its warp")
    arrived, there = named.arrived[:, number], named.threads[:, number]
    differs = (arrived > 0) & (there != threads)
    if differs.any():
        other = int(there[np.argmax(differs)])
        message = f"a named barrier of {other} threads for some and of {threads} for others"
        state.fault("named-barrier", site, differs[:, None] & active, message)
    named.threads[:, number] = np.where(count > 0, threads, there)
    over = (count + arrived > threads)[:, None] & active
    state.fault("named-barrier", site, over, f"more threads come to a named barrier than its {threads}")
