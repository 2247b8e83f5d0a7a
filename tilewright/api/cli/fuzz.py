"""`tilewright fuzz`: what to test, by how many, for how long; and files of failures run again."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import FAILURE, INTERRUPTED, Console
from tilewright.diagnostics import TilewrightError
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.registry import CHECKS, all_passes, load_passes_from

if TYPE_CHECKING:
    from tilewright.api.testing.fuzz import Summary

EXAMPLES = 100
"""Programs for each subject where neither `--examples` nor `--time` is given."""
CPU_SHARE = 10
"""The C++ compiler takes as long as so many programs in the simulator."""


def execute(console: Console, arguments: CliArguments) -> int:
    """Fuzz, or replay one file; 1 for any failure, 130 after Ctrl-C."""
    for path in arguments.load:
        load_passes_from(Path(path))
    if arguments.replay is not None:
        return _replay(console, Path(arguments.replay), arguments)
    try:
        from tilewright.api.testing.fuzz import Row, Summary, run_tasks, write_json
        from tilewright.api.testing.fuzz_work import Task
        from tilewright.api.testing.subject import subject_of
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise TilewrightError("tilewright fuzz needs hypothesis: pip install 'tilewright[testing]'") from None
    if arguments.examples is not None and arguments.examples < 1:
        raise TilewrightError(f"--examples: expected at least 1, got {arguments.examples}")
    if arguments.time is not None and not 0 < arguments.time < float("inf"):
        raise TilewrightError(f"--time: expected more than 0 seconds, got {arguments.time:g}")
    workers = arguments.workers if arguments.workers is not None else _cores()
    if workers < 1:
        raise TilewrightError(f"--workers: expected at least 1, got {workers}")
    seed = arguments.fuzz_seed if arguments.fuzz_seed is not None else int.from_bytes(os.urandom(4), "big")
    if seed < 0:
        raise TilewrightError(f"--seed: expected a number of at least 0, got {seed}")
    counts = _counts(arguments)
    summary = Summary({name: Row() for name in counts}, seed, workers)
    if arguments.corpus is not None:
        _replay_corpus(Path(arguments.corpus), summary)
    deadline = None if arguments.time is None else time.time() + arguments.time
    tasks = [
        Task(
            {name: share for name, n in counts.items() if (share := _share(n, worker, workers)) != 0},
            seed,
            worker,
            deadline,
            None if arguments.lane == "both" else arguments.lane,
            tuple(arguments.load),
            arguments.after,
            arguments.failures_dir,
        )
        for worker in range(workers)
    ]
    run_tasks([task for task in tasks if task.subjects], summary, console.stderr)
    console.stdout.write(summary.table(_replaying(arguments.load)))
    untested = [name for name in summary.never_changed() if not subject_of(name, arguments.after).only_checks]
    if untested:
        console.stderr.write(f"warning: no program was changed by {', '.join(untested)}: nothing was tested there\n")
    if arguments.output is not None:
        write_json(summary, Path(arguments.output))
    if summary.failures or summary.errors:
        return FAILURE
    return INTERRUPTED if summary.interrupted else 0


def subject_names(level: str | None) -> list[str]:
    """Every pass and lowering of a level (all if None) that changes programs, then what compares executors."""
    from tilewright.api.testing.subject import EXECUTORS, SIM_CPU
    from tilewright.runtime.cxx import cxx_unavailable_reason

    passes = {**all_passes(), **all_lowerings()}
    names = [
        name
        for name, load in passes.items()
        if name not in CHECKS and (level is None or getattr(load(), "level", "tensor") == level)
    ]
    if level is None:
        names += [name for name in EXECUTORS if name != SIM_CPU or cxx_unavailable_reason() is None]
    return names


def _counts(arguments: CliArguments) -> dict[str, int | None]:
    """Subject -> how many programs; None for as many as the time allows."""
    from tilewright.api.testing.subject import SIM_CPU, subject_of

    names = arguments.passes or subject_names(arguments.level)
    for name in names:
        subject_of(name, arguments.after)  # what is not known is said before anything runs
    default = None if arguments.time is not None else EXAMPLES
    count = arguments.examples if arguments.examples is not None else default
    few = None if count is None else max(1, count // CPU_SHARE)
    many_subjects = len(names) > 1
    return {name: few if name == SIM_CPU and many_subjects else count for name in names}


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not on Linux


def _share(count: int | None, worker: int, workers: int) -> int | None:
    return None if count is None else count // workers + (worker < count % workers)


def _replay(console: Console, path: Path, arguments: CliArguments) -> int:
    """The file against what it names, or against each `--pass` instead."""
    from tilewright.api.testing.replay import expect_complete, load_failure, replay
    from tilewright.api.testing.subject import Subject, subject_of

    if arguments.after is not None and not arguments.passes:
        raise TilewrightError("--after: expected --pass beside it, as --replay FILE alone runs what the file names")
    failure = load_failure(path)
    expect_complete(failure, path)
    sizes = ", ".join(f"{name} = {size}" for name, size in failure.program.sizes.items()) or "no symbols"
    subjects: list[Subject | None] = [subject_of(name, arguments.after) for name in arguments.passes]
    failed = False
    for subject in subjects or [None]:
        found = replay(failure, subject)
        name = subject.name if subject is not None else failure.subject or "the pipeline"
        verdict = "PASS     the results are those of the program" if found is None else f"FAIL     {found}"
        console.stdout.write(f"subject  {name}\ndims     {sizes}\n{verdict}\n")
        failed = failed or found is not None
    return FAILURE if failed else 0


def _replaying(load: Sequence[str]) -> str:
    """The command that runs a failure's file again, up to the file."""
    return shlex.join(["tilewright", "fuzz", *(word for path in load for word in ("--load", path)), "--replay"])


def _replay_corpus(folder: Path, summary: Summary) -> None:
    """The files of a corpus first, each against every subject, or against the one that it names."""
    from tilewright.api.testing.fuzz_work import Event
    from tilewright.api.testing.replay import corpus_files, expect_complete, load_failure, run_again
    from tilewright.api.testing.subject import subject_of

    files = {path: load_failure(path) for path in corpus_files(folder)}
    for path, failure in files.items():
        expect_complete(failure, path)
    for path, failure in files.items():
        for name in summary.rows:
            if failure.subject and failure.subject != name:
                continue
            found, changed = run_again(failure, subject_of(name))
            summary(Event(name, 1, int(changed), what="" if found is None else found, path=str(path)))
