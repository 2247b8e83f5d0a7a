"""Channels in the tile interpreter: what a slot holds, and who may touch it when.

A slot is undefined from the moment it is acquired until it is written, and again once it is released; its buffers are
written between acquire and publish alone, through the results of the acquire, and read between receive and release
alone, through those of the receive. Accumulators of matrix instructions that read a slot may not be read before the
slot is released. All of this holds on hardware, where copies and matrix instructions run on while the threads go on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp, PublishOp, ReceiveOp, ReleaseOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.tile_interpreter.values import Frame, undefined

Waits: TypeAlias = Generator[Operation, None, None]
"""Yields the op that cannot run yet, as often as it is tried; ends when it has run."""


class Ring:
    """The slots of a channel, and how many turns each step has had: released <= received <= published <= acquired."""

    def __init__(self, op: ChannelOp) -> None:
        self.op = op
        self.slots: list[list[Array]] = [[undefined(p) for p in op.type.parts] for _ in range(op.type.stages.data)]
        self.acquired = self.published = self.received = self.released = 0
        for slot in self.slots:
            for buffer in slot:
                buffer.flags.writeable = False

    def slot(self, turn: int) -> list[Array]:
        """The buffers of a turn."""
        return self.slots[turn % len(self.slots)]

    def poison(self, turn: int, writeable: bool) -> None:
        """Make a slot undefined; whether it may be written from now on."""
        for buffer, part in zip(self.slot(turn), self.op.type.parts, strict=True):
            buffer.flags.writeable = True
            buffer[...] = undefined(part)
            buffer.flags.writeable = writeable


def run_channel(frame: Frame, op: ChannelOp) -> None:
    """A ring, all slots free and undefined."""
    ring = Ring(op)
    frame.rings.append(ring)
    frame.env[op.res] = ring


def run_acquire(frame: Frame, op: AcquireOp) -> Waits:
    """Waits for a free slot."""
    ring = _ring(frame, op.channel)
    if ring.acquired != ring.published:
        raise TilewrightError("tile.acquire: the slot that was acquired last is not published", location_of(op))
    while ring.acquired - ring.released >= len(ring.slots):
        yield op
    ring.poison(ring.acquired, writeable=True)
    frame.env.update(zip(op.buffers, ring.slot(ring.acquired), strict=True))
    ring.acquired += 1
    frame.turns += 1


def run_publish(frame: Frame, op: PublishOp) -> None:
    """The slot may be received, and no longer written."""
    ring = _ring(frame, op.channel)
    if ring.published == ring.acquired:
        raise TilewrightError("tile.publish: no slot has been acquired", location_of(op))
    for buffer in ring.slot(ring.published):
        buffer.flags.writeable = False
    ring.published += 1
    frame.turns += 1


def run_receive(frame: Frame, op: ReceiveOp) -> Waits:
    """Waits for a published slot."""
    ring = _ring(frame, op.channel)
    while ring.received >= ring.published:
        yield op
    frame.env.update(zip(op.buffers, ring.slot(ring.received), strict=True))
    ring.received += 1
    frame.turns += 1


def run_release(frame: Frame, op: ReleaseOp) -> None:
    """Slots received so far become free and undefined, but for the last `lag`; there may be none."""
    ring = _ring(frame, op.channel)
    while ring.released < ring.received - op.lag.value.data:
        frame.landed(ring.slot(ring.released))
        ring.poison(ring.released, writeable=False)
        ring.released += 1
        frame.turns += 1


def finish(frame: Frame) -> None:
    """At the end of a block every slot is free: nothing may run on when its shared memory is taken away."""
    for ring in frame.rings:
        if not ring.acquired == ring.published == ring.received == ring.released:
            raise TilewrightError(
                f"tile.channel: at the end of the block {ring.acquired} slots have been acquired, {ring.published} "
                f"published, {ring.received} received and {ring.released} released",
                location_of(ring.op),
            )


def check_shared(frames: Sequence[Frame]) -> None:
    """Blocks of a cluster have shared the same rectangles, in the same turns."""
    first = frames[0].shared
    for frame in frames[1:]:
        for turn, (op, place) in enumerate(frame.shared):
            if turn >= len(first) or first[turn] != (op, place):
                there = "nothing" if turn >= len(first) else str(list(first[turn][1]))
                raise TilewrightError(
                    f"tile.copy: blocks of a cluster share different copies: {list(place)} in one, {there} in another",
                    location_of(op),
                )
        if len(frame.shared) < len(first):
            op, place = first[len(frame.shared)]
            raise TilewrightError(
                f"tile.copy: blocks of a cluster share different copies: {list(place)} in one, nothing in another",
                location_of(op),
            )


def _ring(frame: Frame, channel: SSAValue) -> Ring:
    found = frame.env[channel]
    assert isinstance(found, Ring)
    return found
