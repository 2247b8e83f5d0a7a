"""The pass `remove-barriers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.sym import ApplyOp
from tilewright.dialects.tile.compute import MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import ForOp, SyncOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of, space

TURNS = (0, 1, 2)
"""How often a loop is walked: not at all, once, and twice, which shows every pair of neighbouring turns."""
MAX_LOOPS = 5
"""Beyond this many loops the walks would be too many, and all barriers stay."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a walk through a kernel: a barrier, or an access to a shared buffer."""

    op: Operation
    buffer: SSAValue | None
    writes: bool


@dataclass(frozen=True)
class RemoveBarriersPass(TilewrightPass):
    """Erases each `tile.sync` without which no two conflicting accesses to a shared buffer meet between two barriers.

    Walks through the kernel with every loop run zero, one and two times stand for all executions: what happens between
    two barriers spans at most two turns of a loop whose body has one, and a body without one is seen with itself. Two
    accesses conflict when one writes, unless they are the same copy to the same place, in which each thread writes its
    own elements every time.
    """

    name = "remove-barriers"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            loops = [o for o in kernel.walk() if isinstance(o, ForOp) and touches_shared(o)]
            if len(loops) > MAX_LOOPS:
                remark(
                    kernel,
                    self.name,
                    f"{len(loops)} loops touch shared memory, more than {MAX_LOOPS}: all barriers stay",
                )
                continue
            paths = [
                list(walk(kernel.body.block, dict(zip(loops, turns, strict=True))))
                for turns in product(TURNS, repeat=len(loops))
            ]
            removed: set[Operation] = set()
            # The innermost first: a barrier before a loop is cheaper than one in each of its turns.
            barriers = sorted((o for o in kernel.walk() if isinstance(o, SyncOp)), key=loop_depth, reverse=True)
            for barrier in barriers:
                removed.add(barrier)
                if any(has_hazard(path, removed) for path in paths):
                    removed.discard(barrier)
            for barrier in removed:
                barrier.detach()
                barrier.erase()
            if barriers:
                remark(kernel, self.name, f"{len(barriers) - len(removed)} of {len(barriers)} barriers are needed")


def loop_depth(op: Operation) -> int:
    """How many loops are around an op."""
    depth, outer = 0, op.parent_op()
    while outer is not None:
        depth += isinstance(outer, ForOp)
        outer = outer.parent_op()
    return depth


def touches_shared(loop: ForOp) -> bool:
    """Whether something inside a loop accesses shared memory or is a barrier."""
    return any(isinstance(o, SyncOp) or any(space(v) == "shared" for v in o.operands) for o in loop.walk())


def walk(block: Block, turns: dict[ForOp, int]) -> Iterator[Event]:
    """The events of one way through a block, each loop run as often as `turns` says (a loop without events once)."""
    for op in block.ops:
        if isinstance(op, ForOp):
            for _ in range(turns.get(op, 1)):
                yield from walk(op.body.block, turns)
        elif isinstance(op, SyncOp):
            yield Event(op, None, False)
        elif isinstance(op, ReduceOp):
            if op.scratch is not None:
                # A barrier before each of its two steps; none after, so that another writer of the scratch needs one.
                for writes in (True, False):
                    yield Event(op, None, False)
                    yield Event(op, op.scratch, writes)
        elif isinstance(op, CopyOp):
            for value, writes in ((op.source, False), (op.target, True)):
                if space(value) == "shared":
                    yield Event(op, value, writes)
        elif isinstance(op, MmaOp):
            for value in (op.lhs, op.rhs):
                if space(value) == "shared":
                    yield Event(op, value, False)
        elif isinstance(op, GatherOp) and space(op.target) == "shared":
            yield Event(op, op.target, True)


def moves(event: Event) -> bool:
    """Whether an access may go to another place of its buffer each time, by offsets that are no constants."""
    op = event.op
    if not isinstance(op, CopyOp):
        return False
    offsets = op.source_offsets if op.source is event.buffer else op.target_offsets
    return any(not isinstance(v.owner, ApplyOp) or v.owner.operands for v in offsets)


def has_hazard(path: Sequence[Event], removed: set[Operation]) -> bool:
    """Whether two conflicting accesses meet with no barrier between them, when the barriers in `removed` are gone."""
    since: list[Event] = []
    for event in path:
        if event.buffer is None:
            if event.op not in removed:
                since.clear()
            continue
        for earlier in since:
            same = earlier.op is event.op and not moves(event)
            if earlier.buffer is event.buffer and not same and (earlier.writes or event.writes):
                return True
        since.append(event)
    return False
