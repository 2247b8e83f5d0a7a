"""Which accesses are not ordered: the interface that loads, stores and barriers report to, and the epoch model.

Two accesses race when different threads make them, one of them writes, and nothing orders them. The order that NumPy
happens to run them in does not matter, so a race is found even where lockstep execution gives the right numbers.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State
from tilewright.runtime.sim.virtual import VirtualMemory, virtual_zeros


class RaceModel(Protocol):
    """What a model of happens-before has to answer.

    `cells` numbers the pieces of the block's shared memory that an access touches, (pieces, loop axes..., blocks or 1,
    threads); `active` broadcasts to it, None is all lanes.
    """

    def on_read(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """A read of shared memory: reports races with writes, and reads of what nobody has written."""
        ...

    def on_write(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """A write to shared memory: reports races with reads and writes."""
        ...

    def on_copy_start(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """Each thread starts an asynchronous copy to its cells: reports what is not ordered before it."""
        ...

    def on_copy_end(self, state: State, cells: Array, active: Array | None) -> None:
        """Each thread has waited for its copy to these cells: from here on they are a write of the thread."""
        ...

    def on_barrier(self, blocks: Array | None) -> None:
        """A block barrier of the blocks where `blocks` (blocks,) is true; None is all."""
        ...

    def epoch(self) -> Array:
        """Barriers so far, (blocks or 1, 1): orders accesses to global memory within a block."""
        ...


TID_BITS = 11
MANY = (1 << TID_BITS) - 1
"""Stands for several readers; a block has at most 1024 threads."""


class EpochModel:
    """Order by block barriers alone: two accesses of one epoch (the time between two barriers) are not ordered.

    That is all there is as long as every thread synchronises by the block barrier. For each cell the last write and the
    readers of its last epoch are kept as `epoch << 11 | thread`. An asynchronous copy is an agent of its own from its
    start to the wait of its thread: nobody may access its cells, not even that thread, however many barriers go by.
    While all blocks do the same to shared memory there is one row for all of them; the first access that differs by
    block gives each its own.
    """

    def __init__(self, blocks: int, threads: int, cells: int) -> None:
        self.blocks = blocks
        self.cells = cells
        self.threads = np.arange(threads, dtype=np.int64)
        self.rows = 1
        self.writes = np.full(cells, -1, np.int64)
        self.reads = np.full(cells, -1, np.int64)
        self.copying: Array | None = None
        """For each cell the thread whose copy to it goes on, or -1; None while there was no copy."""
        self.epochs = np.zeros((1, 1), np.int64)

    def epoch(self) -> Array:
        """Barriers so far."""
        return self.epochs

    def on_barrier(self, blocks: Array | None) -> None:
        """A new epoch."""
        if blocks is None or blocks.all():
            self.epochs = self.epochs + 1
        else:
            self._expand()
            self.epochs = np.broadcast_to(self.epochs, (self.blocks, 1)) + blocks[:, None]

    def _expand(self) -> None:
        """Give each block its own row."""
        if self.rows < self.blocks:
            self.writes = np.tile(self.writes, self.blocks)
            self.reads = np.tile(self.reads, self.blocks)
            if self.copying is not None:
                self.copying = np.tile(self.copying, self.blocks)
            self.rows = self.blocks

    def _lanes(self, cells: Array, active: Array | None) -> tuple[Array, Array, Array | None, tuple[int, ...]]:
        """(cell and key of each active lane, which lanes these are, shape of all lanes)."""
        per_block = self.epochs.shape[0] > 1 or cells.shape[-2] > 1
        if active is not None and active.ndim > 1 and active.shape[-2] > 1:
            per_block = True
        if per_block:
            self._expand()
        if self.rows > 1:
            cells = cells + (np.arange(self.blocks, dtype=np.int64) * self.cells)[:, None]
        keys = (self.epochs << TID_BITS) | self.threads
        shape = np.broadcast_shapes(cells.shape, keys.shape, () if active is None else active.shape)
        cells, keys = np.broadcast_to(cells, shape), np.broadcast_to(keys, shape)
        if active is None:
            return cells, keys, None, shape
        lanes = np.broadcast_to(active, shape)
        return cells[lanes], keys[lanes], lanes, shape

    @staticmethod
    def _report(
        state: State, kind: str, site: Site, found: Array, lanes: Array | None, shape: tuple[int, ...], message: str
    ) -> None:
        if not found.any():
            return
        if lanes is not None:
            where = np.zeros(shape, np.bool_)
            where[lanes] = found
            found = where
        # Any piece of a vector access counts for the access.
        state.fault(kind, site, np.asarray(found.any(0)), message)

    @staticmethod
    def _unordered(last: Array, keys: Array) -> Array:
        """Lanes whose cell another thread accessed in this epoch."""
        return (last >= (keys & ~MANY)) & (last != keys)

    def on_read(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        at, keys, lanes, shape = self._lanes(cells, active)
        last = self.writes[at]
        busy = self._busy(state, site, "read of", at, lanes, shape)
        unwritten = last < 0 if busy is None else (last < 0) & ~busy
        missing = "shared memory is read before it is written"
        self._report(state, "uninitialised-shared", site, unwritten, lanes, shape, missing)
        unordered = self._unordered(last, keys)
        if unordered.any():
            other = int(last[unordered][0]) & MANY
            message = f"read of what thread {other} writes, without a barrier between"
            self._report(state, "race", site, unordered, lanes, shape, message)
        others = self._unordered(self.reads[at], keys)
        self.reads[at] = keys
        others |= self.reads[at] != keys
        if others.any():
            self.reads[at[others]] = keys[others] | MANY

    def on_write(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        at, keys, lanes, shape = self._lanes(cells, active)
        self._busy(state, site, "write to", at, lanes, shape)
        last = self.writes[at]
        unordered = self._unordered(last, keys)
        self.writes[at] = keys
        now = self.writes[at]
        both = unordered | (now != keys)
        if both.any():
            other = int(np.where(unordered, last, now)[both][0]) & MANY
            message = f"write to what thread {other} writes too, without a barrier between"
            self._report(state, "race", site, both, lanes, shape, message)
        readers = self.reads[at]
        read = self._unordered(readers, keys)
        if read.any():
            other = int(readers[read][0]) & MANY
            who = "several threads read" if other == MANY else f"thread {other} reads"
            self._report(state, "race", site, read, lanes, shape, f"write to what {who}, without a barrier between")

    def _busy(
        self, state: State, site: Site, what: str, at: Array, lanes: Array | None, shape: tuple[int, ...]
    ) -> Array | None:
        """Report an access to cells that a copy goes on to; where it does."""
        if self.copying is None:
            return None
        owner = self.copying[at]
        busy = owner >= 0
        if busy.any():
            thread = int(owner[busy][0])
            message = f"{what} what an asynchronous copy of thread {thread} may still be writing: it was not waited for"
            self._report(state, "in-flight", site, busy, lanes, shape, message)
        return busy

    def on_copy_start(self, state: State, site: Site, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        if self.copying is None:
            self.copying = np.full(self.rows * self.cells, -1, np.int16)
        at, keys, lanes, shape = self._lanes(cells, active)
        self._busy(state, site, "copy to", at, lanes, shape)
        for known, does in ((self.writes[at], "writes"), (self.reads[at], "reads")):
            unordered = self._unordered(known, keys)
            if unordered.any():
                other = int(known[unordered][0]) & MANY
                who = f"several threads {does[:-1]}" if other == MANY else f"thread {other} {does}"
                message = f"asynchronous copy to what {who}, without a barrier between"
                self._report(state, "race", site, unordered, lanes, shape, message)
        threads = (keys & MANY).astype(np.int16)
        self.copying[at] = threads
        twice = self.copying[at] != threads
        message = "two threads copy to one place at a time"
        self._report(state, "race", site, twice, lanes, shape, message)

    def on_copy_end(self, state: State, cells: Array, active: Array | None) -> None:
        """See `RaceModel`."""
        assert self.copying is not None
        at, keys, _, _ = self._lanes(cells, active)
        self.copying[at] = -1
        self.writes[at] = keys


class GlobalOrder:
    """Who wrote each element of the buffers that a kernel stores to, over all its blocks.

    Blocks are never ordered; threads of one block are, by its barriers. A writer is kept as
    `(block + 1) << 32 | epoch << 11 | thread`, 0 being nobody; epochs wrap after 2^21 barriers.
    """

    def __init__(self) -> None:
        self.writers: dict[int, Array | VirtualMemory] = {}

    def _keys(self, state: State) -> Array:
        blocks = np.arange(state.first_block + 1, state.first_block + state.blocks + 1, dtype=np.int64)[:, None]
        threads = np.arange(state.first_thread, state.first_thread + state.threads, dtype=np.int64)
        return (blocks << 32) | (self._epochs(state) << TID_BITS) | threads

    @staticmethod
    def _epochs(state: State) -> Array:
        assert state.races is not None
        return state.races.epoch() & ((1 << 21) - 1)

    def _known(self, state: State, argument: int, writes: bool) -> Array | VirtualMemory | None:
        """The writers of a buffer; None while nobody has written and nobody does."""
        known = self.writers.get(argument)
        if known is None and writes:
            buffer = state.buffers[argument]
            make = virtual_zeros if isinstance(buffer.data, VirtualMemory) else np.zeros
            known = self.writers[argument] = make(max(0, buffer.end - buffer.first), np.int64)
        return known

    @staticmethod
    def _conflicts(last: Array, keys: Array) -> Array:
        """Where somebody else wrote, and nothing orders the two."""
        other = (last >> 32 != keys >> 32) | (last >> TID_BITS == keys >> TID_BITS)
        return (last != 0) & (last != keys) & other

    def on_transfer(
        self, state: State, site: Site, argument: int, elements: Array, lane: tuple[int, int], writes: bool
    ) -> None:
        """A transfer of different `elements` (n,), counted from the first legal one, for a (block, thread) `lane`."""
        known = self._known(state, argument, writes)
        if known is None:
            return
        block, thread = lane
        epochs = self._epochs(state)
        epoch = int(epochs[block if epochs.shape[0] > 1 else 0, 0])
        key = (state.first_block + block + 1) << 32 | epoch << TID_BITS | (state.first_thread + thread)
        last = known[elements]
        conflict = self._conflicts(last, np.asarray(key))
        if writes:
            known[elements] = key
        if conflict.any():
            where = np.zeros((state.blocks, state.threads), np.bool_)
            where[block, thread] = True
            self._report(state, site, where, int(last[conflict][0]), writes)

    @staticmethod
    def _report(state: State, site: Site, where: Array, other: int, writes: bool) -> None:
        what = "write to" if writes else "read of"
        message = (
            f"{what} what block {(other >> 32) - 1}, thread {other & MANY} writes too, with nothing to order the two"
        )
        state.fault("global-race", site, where, message)

    def on_access(
        self, state: State, site: Site, argument: int, elements: Array, active: Array | None, writes: bool
    ) -> None:
        """An access to `elements` (width, loop axes..., blocks or 1, threads), counted from the first legal one."""
        known = self._known(state, argument, writes)
        if known is None:
            return
        keys = self._keys(state)
        shape = np.broadcast_shapes(elements.shape, keys.shape)
        at, keys = np.broadcast_to(elements, shape), np.broadcast_to(keys, shape)
        lanes = None
        if active is not None:
            lanes = np.broadcast_to(active, shape)
            at, keys = at[lanes], keys[lanes]
        last = known[at]
        conflict = self._conflicts(last, keys)
        if writes:
            known[at] = keys
            now = known[at]
            last = np.where(conflict, last, now)
            conflict |= now != keys
        if not conflict.any():
            return
        other = int(last[conflict][0])
        if lanes is not None:
            where = np.zeros(shape, np.bool_)
            where[lanes] = conflict
            conflict = where
        self._report(state, site, np.asarray(conflict.any(0)), other, writes)
