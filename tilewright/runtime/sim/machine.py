"""What runs beside the threads of a batch of blocks: barriers in memory, copies under way, and the clocks of all.

A copy to shared memory lands at the latest legal moment, when no role can go on, or at once (`earliest`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.clocks import VectorClocks
from tilewright.runtime.sim.mbarriers import Mbarriers
from tilewright.runtime.sim.named_barriers import NamedBarriers
from tilewright.runtime.sim.report import Diagnostic, Report, Site
from tilewright.runtime.sim.state import Shared
from tilewright.runtime.sim.tensor_maps import TensorMap

CHUNK = 16
"""Bytes that the asynchronous units move at least."""
Chunks = np.complex128
"""A dtype of 16 bytes: chunks are moved as such, and never computed with."""


class Landing(Protocol):
    """A copy under way."""

    site: Site

    def land(self, machine: Machine) -> None:
        """Its bytes arrive."""
        ...


@dataclass(slots=True)
class Machine:
    """The state of a batch that its roles share."""

    report: Report
    first_block: int
    blocks: int
    shared: Shared
    maps: Sequence[TensorMap]
    mbarriers: Mbarriers
    named: NamedBarriers
    clocks: VectorClocks | None
    eager: bool
    random: Random | None = None
    """Picks which copy lands next; without it the oldest does."""
    queue: deque[Landing] = field(default_factory=deque["Landing"])
    unwritten: list[Callable[[Machine], None]] = field(default_factory=list["Callable[[Machine], None]"])
    """Stores that have read shared memory and have not written global memory."""

    def chunks(self) -> Array:
        """Shared memory of all blocks in chunks, (blocks * chunks of a block,)."""
        return self.shared.data.view(Chunks)

    def chunk_pitch(self) -> int:
        """Chunks from one block's memory to the next."""
        return self.shared.pitch // CHUNK

    def start(self, copy: Landing) -> None:
        """A copy begins."""
        if self.eager:
            copy.land(self)
        else:
            self.queue.append(copy)

    def advance(self) -> bool:
        """A copy lands: they are not ordered among each other."""
        if not self.queue:
            return False
        if self.random is not None:
            self.queue.rotate(self.random.randrange(len(self.queue)))
        self.queue.popleft().land(self)
        return True

    def write_stores(self) -> None:
        """Stores that have read shared memory write global memory."""
        for write in self.unwritten:
            write(self)
        self.unwritten.clear()

    def fault(self, kind: str, site: Site, message: str, block: int, thread: int = 0, count: int = 1) -> None:
        """Report what no thread does: `block` counts within the batch."""
        self.report.add(Diagnostic(kind, site, message, self.first_block + block, thread, None, count))

    def finish(self) -> None:
        """The end of the blocks: reports copies that nobody has waited for, at level `check`."""
        self.write_stores()
        if self.clocks is None:
            while self.advance():
                pass
            return
        for copy in self.queue:
            self.fault("left-in-flight", copy.site, "the kernel ends while a copy to shared memory is under way", 0)
        self.queue.clear()
        self.mbarriers.finish(self)
