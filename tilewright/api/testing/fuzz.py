"""`tilewright fuzz`: passes and executors put to random programs by several processes, with a table at the end."""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import shlex
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from tilewright.api.testing.fuzz_work import Event, Task, work
from tilewright.diagnostics import TilewrightError

FLUSH_SECONDS = 0.5
"""How often a worker process reports."""
ORPHAN_SECONDS = 5.0
"""How long a worker whose parent was killed may take to end by itself."""
UNWRITTEN = "(not written"
"""How the name of a failure begins whose file could not be written."""
LINE_SECONDS = 5.0
"""How often there is a line of progress where standard error is no terminal."""


@dataclass
class Row:
    """What is known of a subject."""

    programs: int = 0
    changed: int = 0
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Path of the file -> message."""
    errors: list[str] = field(default_factory=list[str])


@dataclass
class Summary:
    """What a run saw."""

    rows: dict[str, Row]
    seed: int
    workers: int
    seconds: float = 0.0
    interrupted: bool = False
    started: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        row = self.rows[event.subject]
        row.programs += event.programs
        row.changed += event.changed
        if event.what:
            row.failures[event.path or f"{UNWRITTEN} {len(row.failures)})"] = event.what
        if event.error and event.error not in row.errors:
            row.errors.append(event.error)

    @property
    def programs(self) -> int:
        """All programs so far."""
        return sum(row.programs for row in self.rows.values())

    @property
    def failures(self) -> int:
        """All failures so far."""
        return sum(len(row.failures) for row in self.rows.values())

    @property
    def failures_in_words(self) -> str:
        """Such as `2 failures`."""
        return f"{self.failures} failure{'' if self.failures == 1 else 's'}"

    @property
    def errors(self) -> int:
        """Subjects that could not be tried, or workers that died."""
        return sum(len(row.errors) for row in self.rows.values())

    @property
    def an_hour(self) -> int:
        """Programs an hour at the rate so far."""
        return round(3600 * self.programs / max(self.seconds, 1e-9))

    def never_changed(self) -> list[str]:
        """Subjects that left every program as it was, so that nothing was tested."""
        return [name for name, row in self.rows.items() if not (row.changed or row.failures or row.errors)]

    def table(self, replay: str = "tilewright fuzz --replay") -> str:
        """The summary as people read it; `replay` is the command that runs a file of a failure again."""
        width = max((len(name) for name in self.rows), default=7)
        lines = [f"{'subject':<{width}}  {'programs':>8}  {'changed':>8}  {'failures':>8}"]
        for name, row in self.rows.items():
            lines.append(f"{name:<{width}}  {row.programs:>8}  {row.changed:>8}  {len(row.failures):>8}")
        ended = "interrupted after" if self.interrupted else "in"
        lines.append(
            f"{self.programs} programs {ended} {self.seconds:.1f} s ({self.an_hour:,} an hour), "
            f"{self.failures_in_words}; seed {self.seed}, {self.workers} worker{'' if self.workers == 1 else 's'}"
        )
        for name, row in self.rows.items():
            lines += [f"error: {name}: {error}" for error in row.errors]
            for path, what in row.failures.items():
                lines += [f"failure: {name}: {path}", f"  {what.splitlines()[0]}"]
                lines += [] if path.startswith(UNWRITTEN) else [f"  {replay} {shlex.quote(path)}"]
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        """The summary as programs read it."""
        return {
            "seed": self.seed,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "programs": self.programs,
            "programs_per_hour": self.an_hour,
            "interrupted": self.interrupted,
            "subjects": [
                {
                    "name": name,
                    "programs": row.programs,
                    "changed": row.changed,
                    "failures": [{"path": path, "what": what} for path, what in row.failures.items()],
                    "errors": row.errors,
                }
                for name, row in self.rows.items()
            ],
        }


class Progress:
    """Programs, rate and failures on standard error: a line that is rewritten, or in a log one every few seconds."""

    def __init__(self, stream: TextIO, summary: Summary, fraction: Callable[[], float]) -> None:
        self.stream, self.summary, self.fraction = stream, summary, fraction
        self.rewrites = stream.isatty()
        self.last = time.monotonic()

    def show(self) -> None:
        """Write where the run stands, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self.last < (FLUSH_SECONDS / 2 if self.rewrites else LINE_SECONDS):
            return
        self.last = now
        done = min(1.0, self.fraction())
        summary = self.summary
        rate = round(3600 * summary.programs / max(now - summary.started, 1e-9))
        text = f"{summary.programs} programs, {rate:,} an hour, {summary.failures_in_words}"
        if self.rewrites:
            filled = int(30 * done)
            self.stream.write(f"\rfuzz [{'#' * filled}{'.' * (30 - filled)}] {100 * done:3.0f}% {text}\x1b[K")
        else:
            self.stream.write(f"fuzz {100 * done:.0f}% {text}\n")
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        if self.rewrites:
            self.stream.write("\n")
            self.stream.flush()


def run_tasks(tasks: Sequence[Task], summary: Summary, stream: TextIO) -> None:
    """Do the tasks, one in this process or each in one of its own, and take their events into the summary."""
    total = sum(count or 0 for task in tasks for count in task.subjects.values())
    deadline = tasks[0].deadline
    start = time.time()

    def fraction() -> float:
        of_programs = summary.programs / total if total else 0.0
        of_time = (time.time() - start) / max(deadline - start, 1e-9) if deadline is not None else 0.0
        return max(of_programs, of_time)

    progress = Progress(stream, summary, fraction)
    with _interruptible(summary):
        if len(tasks) == 1:

            def report(event: Event) -> None:
                summary(event)
                progress.show()

            work(tasks[0], report, lambda: summary.interrupted)
        else:
            _run_processes(tasks, summary, progress)
    progress.close()
    summary.seconds = time.monotonic() - summary.started


def _run_processes(tasks: Sequence[Task], summary: Summary, progress: Progress) -> None:
    # Spawned: a fork of a process that has threads (ours may have those of a test runner) can hang.
    processes = multiprocessing.get_context("spawn")
    events: Any = processes.Queue()
    cancel = processes.Event()
    workers = [processes.Process(target=_in_process, args=(task, events, cancel), daemon=True) for task in tasks]
    with _ignoring_interrupts():
        for worker in workers:
            worker.start()
    open_workers = len(workers)
    while open_workers:
        if summary.interrupted:
            cancel.set()
        try:
            found: Event | None = events.get(timeout=FLUSH_SECONDS)
        except queue.Empty:
            dead = [w for w in workers if w.exitcode not in (None, 0)]
            if dead:
                first = next(iter(summary.rows))
                summary(Event(first, error=f"a worker ended with exit code {dead[0].exitcode}"))
                open_workers -= len(dead)
                workers = [w for w in workers if w not in dead]
            progress.show()
            continue
        if found is None:
            open_workers -= 1
        else:
            summary(found)
        progress.show()
    for worker in workers:
        worker.join()


def _in_process(task: Task, events: Any, cancel: Any) -> None:
    """The main function of a worker process; None on the queue is its last word."""
    counts: dict[str, list[int]] = {}
    last = time.monotonic()

    def flush() -> None:
        for name, (programs, changed) in counts.items():
            events.put(Event(name, programs, changed))
        counts.clear()

    def report(event: Event) -> None:
        nonlocal last
        entry = counts.setdefault(event.subject, [0, 0])
        entry[0] += event.programs
        entry[1] += event.changed
        if event.what or event.error:
            events.put(Event(event.subject, what=event.what, path=event.path, error=event.error))
        if time.monotonic() - last > FLUSH_SECONDS:
            flush()
            last = time.monotonic()

    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_outlive_not, args=(parent,), daemon=True).start()
    try:
        work(task, report, lambda: cancel.is_set() or not parent.is_alive())
    except Exception as error:
        message = error.message if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
        report(Event(next(iter(task.subjects)), error=message))
    flush()
    events.put(None)


def _outlive_not(parent: BaseProcess) -> None:
    """Wait until the parent is gone, which may have been killed without a word, and end this process soon after."""
    parent.join()
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


@contextmanager
def _ignoring_interrupts() -> Generator[None]:
    """Processes started meanwhile ignore Ctrl-C from their first moment on: the terminal sends it to all, and it is the
    parent that decides."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interruptible(summary: Summary) -> Generator[None]:
    """Make the first Ctrl-C a wish to end; the second is the usual one."""

    def interrupt(number: int, frame: Any) -> None:
        if summary.interrupted:
            raise KeyboardInterrupt
        summary.interrupted = True

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not the main thread: whoever runs this takes care of signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def write_json(summary: Summary, path: Path) -> None:
    """Write the summary; TilewrightError if that cannot be done."""
    try:
        path.write_text(json.dumps(summary.as_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise TilewrightError(f"--output {path}: {error.strerror or error}") from None
