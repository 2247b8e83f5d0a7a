"""Runs the roles of one batch of blocks: each is a generator that goes on until it has to wait."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from tilewright.runtime.sim.report import Diagnostic, Report
from tilewright.runtime.sim.state import Waiting

Role = Generator[Waiting, None, None]


def run_roles(roles: Sequence[Role], report: Report, first_block: int = 0) -> bool:
    """Run all roles to their end, in turns; False when those left all wait for what can no longer happen.

    A deadlock is reported with one line for each role that waits, naming the op it waits at.
    """
    waiting: dict[Role, Waiting | None] = dict.fromkeys(roles)
    while waiting:
        runnable = [role for role, wait in waiting.items() if wait is None or wait.ready()]
        if not runnable:
            for number, wait in enumerate(waiting.values()):
                assert wait is not None
                message = f"role {number} of {len(waiting)} left waits, and nothing can run that would let it go on"
                report.add(Diagnostic("deadlock", wait.site, message, first_block, 0))
            return False
        for role in runnable:
            try:
                waiting[role] = next(role)
            except StopIteration:
                del waiting[role]
    return True
