"""Statistics: how often a pass did a thing, counted by name.

A pass calls `self.statistic("loops moved")`; `apply_patterns` counts each rewrite by its pattern's name for the pass
that runs. Whoever drives passes opens `collecting_statistics` and says which pass runs with `running_pass`. Without a
collector nothing is counted.

    with collecting_statistics() as counts:
        run_pipeline(module, ctx, passes)
    for each in statistics_of(counts):
        print(each)    # canonicalize: 3 cast_to_same_type
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statistic:
    """One count; prints as `pass-name: value name`."""

    pass_name: str
    name: str
    value: int

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.value} {self.name}"


# Context variables, as for remarks: two threads or tasks that compile at once keep their counts apart.
_counts: ContextVar[dict[tuple[str, str], int] | None] = ContextVar("tilewright_statistics", default=None)
_running: ContextVar[str | None] = ContextVar("tilewright_running_pass", default=None)


@contextmanager
def collecting_statistics() -> Generator[dict[tuple[str, str], int]]:
    """Count what passes inside the `with` report, by (pass name, statistic); the innermost of two collectors counts."""
    counts: dict[tuple[str, str], int] = {}
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


@contextmanager
def running_pass(name: str) -> Generator[None]:
    """Say that the pass of this name runs inside the `with`; drivers of passes do."""
    token = _running.set(name)
    try:
        yield
    finally:
        _running.reset(token)


def current_pass() -> str | None:
    """The name of the pass that runs, None outside of any driver."""
    return _running.get()


def count_statistic(pass_name: str, statistic: str, n: int = 1) -> None:
    """Add `n` to a statistic of a pass."""
    counts = _counts.get()
    if counts is not None:
        key = (pass_name, statistic)
        counts[key] = counts.get(key, 0) + n


def statistics_of(counts: Mapping[tuple[str, str], int]) -> list[Statistic]:
    """The counts as a list, by pass in the order of their first report, the largest of each pass first."""
    order = {pass_name: i for i, pass_name in enumerate(dict.fromkeys(pass_name for pass_name, _ in counts))}
    found = [Statistic(pass_name, name, value) for (pass_name, name), value in counts.items()]
    return sorted(found, key=lambda each: (order[each.pass_name], -each.value, each.name))
