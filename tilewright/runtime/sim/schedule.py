"""Runs the roles of one batch of blocks: each is a generator that goes on until it has to wait."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tilewright.runtime.sim.report import Diagnostic, Report
from tilewright.runtime.sim.state import Fork, Waiting

Role = Generator[Waiting, None, None]


class Background(Protocol):
    """What happens beside the roles, at the latest when none of them can run."""

    def advance(self) -> bool:
        """Let one thing happen; False when nothing is under way."""
        ...


@dataclass(slots=True, eq=False)
class _Runner:
    role: Role
    name: str
    parent: Fork | None
    wait: Waiting | None = None


def run_roles(
    roles: Sequence[Role],
    report: Report,
    first_block: int = 0,
    background: Background | None = None,
    seed: int | None = None,
) -> bool:
    """Run all roles to their end, in turns; False when those left all wait for what can no longer happen.

    With a `seed` the turns are in random order. A deadlock is reported with one line for each role that waits, naming
    the op it waits at.
    """
    runners = [_Runner(role, str(number), None) for number, role in enumerate(roles)]
    random = None if seed is None else Random(seed)
    while runners:
        moved = False
        turn = list(runners)
        if random is not None:
            random.shuffle(turn)
        for runner in turn:
            if runner.wait is not None and not runner.wait.ready():
                continue
            moved = True
            _step(runner, runners)
        if not moved and not (background is not None and background.advance()):
            _report(runners, report, first_block)
            return False
    return True


def _step(runner: _Runner, runners: list[_Runner]) -> None:
    """Let a role go on until it waits or ends; what it starts joins the others."""
    try:
        wait = runner.wait = next(runner.role)
    except StopIteration:
        runners.remove(runner)
        if runner.parent is not None:
            runner.parent.left -= 1
        return
    if isinstance(wait, Fork):
        runners.extend(_Runner(role, name, wait) for name, role in wait.children)


def _report(runners: Sequence[_Runner], report: Report, first_block: int) -> None:
    """A line for each role that waits for something itself."""
    left = [runner for runner in runners if not isinstance(runner.wait, Fork)]
    for runner in left:
        assert runner.wait is not None
        message = (
            f"role {runner.name} of {len(left)} left waits for {runner.wait.reason()}, and nothing can run that would "
            "let it go on"
        )
        report.add(Diagnostic("deadlock", runner.wait.site, message, first_block, 0))
