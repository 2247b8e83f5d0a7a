"""Roles run in turns until all end; when none can go on, each is reported."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from tilewright.diagnostics import SourceLocation
from tilewright.runtime.sim.report import Report, Site
from tilewright.runtime.sim.schedule import run_roles
from tilewright.runtime.sim.state import BarrierWait, BlockBarrier, Waiting

BARRIER = Site(7, "simt.barrier", SourceLocation("k.mlir", 3, 5), "")


def role(name: str, barrier: BlockBarrier, times: int, log: list[str]) -> Generator[Waiting, None, None]:
    for i in range(times):
        log.append(f"{name}{i}")
        yield BarrierWait(BARRIER, barrier, barrier.arrive())
    log.append(f"{name} ends")


def test_roles_meet_at_the_barrier() -> None:
    barrier, log, report = BlockBarrier(2), list[str](), Report("check", 1)
    assert run_roles([role("a", barrier, 2, log), role("b", barrier, 2, log)], report)
    assert log[:2] == ["a0", "b0"]
    assert sorted(log[2:4]) == ["a1", "b1"]
    assert sorted(log[4:]) == ["a ends", "b ends"]
    assert not report.diagnostics


def test_a_role_that_leaves_early_deadlocks_the_others() -> None:
    barrier, log, report = BlockBarrier(3), list[str](), Report("check", 1)
    roles = [role("a", barrier, 1, log), role("b", barrier, 2, log), role("c", barrier, 2, log)]
    assert not run_roles(roles, report, first_block=4)
    assert [str(d) for d in report.diagnostics] == [
        "k.mlir:3:5: simt.barrier: deadlock: role 1 of 2 left waits for the block barrier, and nothing can run that "
        "would let it go on; block 4, thread 0 (2 in all)"
    ]


@dataclass
class Full:
    """A wait for a slot that a producer fills."""

    site: Site
    slots: list[int]

    def ready(self) -> bool:
        return bool(self.slots)

    def reason(self) -> str:
        return "a slot"


def test_a_producer_lets_a_consumer_go_on() -> None:
    slots: list[int] = []
    got: list[int] = []
    report = Report("check", 1)

    def consumer() -> Generator[Waiting, None, None]:
        for _ in range(3):
            yield Full(BARRIER, slots)
            got.append(slots.pop())

    def producer() -> Generator[Waiting, None, None]:
        for i in range(3):
            slots.append(i)
            yield BarrierWait(BARRIER, done := BlockBarrier(1), done.arrive())

    assert run_roles([consumer(), producer()], report)
    assert sorted(got) == [0, 1, 2]
