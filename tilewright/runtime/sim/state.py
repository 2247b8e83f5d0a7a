"""What the compiled ops of a kernel work on: the values of one batch of blocks in one role.

A value is an array that broadcasts over (loop axes..., blocks, threads): an axis of size 1 means that the value is the
same along it, and the axes of vectorised `simt.unroll` loops stand in front, the innermost first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.report import Diagnostic, Report, Site

if TYPE_CHECKING:
    from tilewright.runtime.sim.async_copies import AsyncCopies
    from tilewright.runtime.sim.groups import Groups
    from tilewright.runtime.sim.machine import Machine
    from tilewright.runtime.sim.races import GlobalOrder, RaceModel

WARP = 32


class Waiting(Protocol):
    """What a role that cannot go on yields: it is resumed when `ready()` is true."""

    site: Site

    def ready(self) -> bool:
        """Whether the role may go on."""
        ...

    def reason(self) -> str:
        """What it waits for, as a deadlock report says it."""
        ...


Step: TypeAlias = Callable[["State"], None]
"""An op that never waits."""
WaitingStep: TypeAlias = Callable[["State"], Generator[Waiting, None, None]]
"""An op that may wait, or holds one that may."""


class BlockBarrier:
    """The block barrier of a batch: opens when every role has arrived."""

    def __init__(self, roles: int) -> None:
        self.roles = roles
        self.arrived = 0
        self.generation = 0

    def arrive(self) -> int:
        """One role arrives; the generation that it must wait to be over."""
        mine = self.generation
        self.arrived += 1
        if self.arrived == self.roles:
            self.arrived = 0
            self.generation += 1
        return mine


@dataclass(slots=True)
class BarrierWait:
    """A role at the block barrier."""

    site: Site
    barrier: BlockBarrier
    generation: int

    def ready(self) -> bool:
        """Whether all roles have arrived."""
        return self.barrier.generation > self.generation

    def reason(self) -> str:
        """What it waits for."""
        return "the block barrier"


@dataclass(slots=True)
class Fork:
    """A role that has started others (name, generator, each) and goes on when all of them have ended."""

    site: Site
    children: list[tuple[str, Generator[Waiting, None, None]]]
    left: int

    def ready(self) -> bool:
        """Whether all have ended."""
        return not self.left

    def reason(self) -> str:
        """What it waits for."""
        return f"the end of {self.left} roles"


@dataclass(slots=True)
class Shared:
    """Shared memory of a batch, one row of `pitch` bytes a block; 0xFF bytes, which are NaN in every float type."""

    data: Array
    pitch: int

    @staticmethod
    def allocate(blocks: int, size: int) -> Shared:
        """Memory of at least `size` bytes for each of `blocks` blocks."""
        pitch = max(16, -(-size // 16) * 16)
        return Shared(np.full(blocks * pitch, 0xFF, np.uint8), pitch)


@dataclass(slots=True)
class State:
    """One role of one batch of blocks: its values, its mask and what it shares with the other roles."""

    env: list[Any]
    """Values by slot: arrays; for a register array its storage."""
    blocks: int
    threads: int
    first_block: int
    report: Report
    buffers: list[Buffer]
    shared: Shared
    barrier: BlockBarrier
    races: RaceModel | None = None
    """Order within the batch's blocks, at level `check`."""
    order: GlobalOrder | None = None
    """Who wrote which global memory in this launch, at level `check`."""
    copies: AsyncCopies | None = None
    """Copies to shared memory that go on."""
    mask: Array | None = None
    """Which threads are active, broadcast to (blocks, threads); None means all."""
    loops: dict[int, int] = field(default_factory=dict[int, int])
    """Current value of each sequential `simt.unroll` variable, by slot."""
    poisoned: dict[int, tuple[Array, Site]] = field(default_factory=dict[int, "tuple[Array, Site]"])
    """By slot: where an address value wrapped around on its way, and the op that did."""
    grid: int = 1
    """Blocks of the launch."""
    first_thread: int = 0
    """Number in its block of the role's first thread."""
    machine: Machine | None = None
    """What runs beside the threads, in a kernel that has such ops; the same for all roles."""
    matrix: Groups | None = None
    """Matrix instructions under way, once the role has started one."""
    stores: Groups | None = None
    """Asynchronous stores under way, once the role has asked for one."""
    flying: dict[int, Array] = field(default_factory=dict[int, Array])
    """By slot of a register array, at level `check`: which registers an instruction under way has."""
    touched: set[int] = field(default_factory=set[int])
    """Slots of accumulators that other ops have touched since the last fence, at level `check`."""

    def active(self) -> Array:
        """Which threads are active, (blocks, threads)."""
        mask = np.ones((1, 1), np.bool_) if self.mask is None else self.mask
        return np.broadcast_to(mask, (self.blocks, self.threads))

    def active_warps(self) -> Array:
        """Which warps have an active thread, (blocks, warps of the role)."""
        return np.asarray(self.active().reshape(self.blocks, -1, WARP).any(-1))

    def fault(self, kind: str, site: Site, where: Array, message: str, index: Array | None = None) -> None:
        """Report the lanes in `where` (.., blocks, threads), if any: the first of them by name."""
        if not where.any():
            return
        where = np.broadcast_to(where, np.broadcast_shapes(where.shape, (self.blocks, self.threads)))
        count = int(np.count_nonzero(where))
        # Name the lowest block and thread, whatever the loop axes in front.
        flat = where.reshape(-1, self.blocks, self.threads)
        lane = int(np.argmax(flat.any(0)))
        iteration = int(np.argmax(flat.reshape(flat.shape[0], -1)[:, lane]))
        block, thread = divmod(lane, self.threads)
        at = None
        if index is not None:
            at = int(np.broadcast_to(index, where.shape).reshape(-1, self.blocks * self.threads)[iteration, lane])
        self.report.add(
            Diagnostic(kind, site, message, self.first_block + block, self.first_thread + thread, at, count)
        )
