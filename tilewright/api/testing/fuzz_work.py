"""What one worker of `tilewright fuzz` does: rounds of programs for each subject in turn, until it is told to stop.

Everything that a worker draws follows from the run's seed, its own number, the subject and the round.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hypothesis.configuration import set_hypothesis_home_dir

from tilewright.api.testing.preserve import not_preserved
from tilewright.api.testing.program import Lane
from tilewright.api.testing.search import search
from tilewright.api.testing.strategies import default_programs
from tilewright.api.testing.subject import subject_of
from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import load_passes_from
from tilewright.runtime.cubin_cache import default_directory

ROUND = 40
"""Programs of a later round; Hypothesis begins each with the simplest program that there is."""
FIRST_ROUND = 5
"""Programs of the first round, and twice as many in each that follows, so that a short run meets every subject."""


@dataclass(frozen=True)
class Task:
    """What a worker gets."""

    subjects: Mapping[str, int | None]
    """Subject -> how many programs to try; None is as many as the time allows."""
    seed: int
    worker: int
    deadline: float | None
    """`time.time()` at which the worker starts no further program."""
    lane: Lane | None
    load: tuple[str, ...]
    after: str | None
    failures: str


@dataclass(frozen=True)
class Event:
    """What a worker reports of a subject since it last did."""

    subject: str
    programs: int = 0
    changed: int = 0
    what: str = ""
    """Of a failure: the whole message, else empty."""
    path: str = ""
    error: str = ""
    """Why the subject could not be tried at all."""


class Report(Protocol):
    """Where events go."""

    def __call__(self, event: Event) -> None: ...


def derived_seed(seed: int, worker: int, subject: str, round_number: int) -> int:
    """A seed for one round, the same in every process."""
    words = f"{seed}/{worker}/{subject}/{round_number}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big")


def work(task: Task, report: Report, cancelled: Callable[[], bool]) -> None:
    """Do a task; `cancelled` is asked often, and ends it at once."""
    for path in task.load:
        load_passes_from(Path(path))
    # What it learns of the code's constants; by default that is a folder in the working directory.
    set_hypothesis_home_dir(default_directory().with_name("tilewright-fuzz"))
    # The compiler's own objects live as long as the process; a seventh of the time went into looking at them again.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    left = dict(task.subjects)
    number = 0

    def stop() -> bool:
        return cancelled() or (task.deadline is not None and time.time() > task.deadline)

    while left and not stop():
        for name in list(left):
            if stop():
                return
            if not _round(task, name, number, left, report, stop, cancelled):
                left.pop(name, None)
        number += 1


def _round(
    task: Task,
    name: str,
    number: int,
    left: dict[str, int | None],
    report: Report,
    stop: Callable[[], bool],
    cancelled: Callable[[], bool],
) -> bool:
    """One round of a subject; whether there is to be another."""
    wanted = left[name]
    size = min(ROUND, FIRST_ROUND << min(number, 10))
    count = size if wanted is None else min(ROUND, wanted)
    if count <= 0:
        return False
    try:
        subject = subject_of(name, task.after)
        seed = derived_seed(task.seed, task.worker, name, number)
        outcome = search(
            subject,
            default_programs(subject, task.lane),
            examples=count,
            seed=seed,
            stop=stop,
            cancelled=cancelled,
            on_program=lambda changed: report(Event(name, 1, int(changed))),
        )
    except TilewrightError as error:
        report(Event(name, error=error.message))
        return False
    if outcome.failure is not None:
        error = not_preserved(subject, outcome, Path(task.failures))
        report(Event(name, what=str(error), path="" if error.path is None else str(error.path)))
        return False
    if wanted is not None:
        left[name] = wanted - count
        return wanted > count
    return True
