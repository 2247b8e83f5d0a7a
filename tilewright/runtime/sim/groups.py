"""Groups of asynchronous work that are waited for in order: `commit` closes one, `wait N` leaves at most N open.

Each lane (a thread for stores, a warpgroup for matrix instructions) of each block has a queue of its own; lanes that do
the same share an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilewright.runtime.numerics import Array
from tilewright.runtime.sim.report import Site


class Item(Protocol):
    """One piece of work; `live` (blocks, lanes) says whose, and for whom it is still to be done."""

    site: Site
    live: Array


@dataclass(slots=True)
class Group:
    """What one `commit` closed, for the lanes in `live` (blocks, lanes)."""

    items: list[Item]
    live: Array


@dataclass(slots=True)
class Groups:
    """The work of one role of a batch."""

    open: list[Item] = field(default_factory=list[Item])
    closed: list[Group] = field(default_factory=list[Group])

    def commit(self, lanes: Array) -> None:
        """Close a group for these lanes, with what they started since the last."""
        self.closed.append(Group(self.open, lanes))
        self.open = [item for item in self.open if (item.live & ~lanes).any()]

    def wait(self, pending: int, lanes: Array) -> list[tuple[Group, Array]]:
        """Leave at most `pending` groups of these lanes: those that are done now, oldest first, and for which lanes."""
        newer = np.zeros(lanes.shape, np.int64)
        done: list[tuple[Group, Array]] = []
        left: list[Group] = []
        for group in reversed(self.closed):
            now = group.live & lanes & (newer >= pending)
            newer += group.live
            if now.any():
                done.append((group, now))
                group.live = group.live & ~now
            if group.live.any():
                left.append(group)
        self.closed = left[::-1]
        return done[::-1]

    def left(self) -> list[tuple[Item, Array]]:
        """All that nobody has waited for, with its lanes."""
        found = [(item, item.live & group.live) for group in self.closed for item in group.items]
        found += [(item, item.live) for item in self.open]
        return [(item, live) for item, live in found if live.any()]
