"""Random programs at random sizes on a backend, each held to the reference within its error bounds.

python -m tests.runtime.gpu_corpus [--count 500] [--calls 4] [--seed 0] [--json FILE] [--backend cuda] [--jobs N]
                                   [--limit 240]

Each process takes a program from text to results: lowering, NVRTC, reference and launch. So compilation, which is most
of the time, is spread over the machine's cores, and a program costs the compilation of the variants that it launches
and no others. Ends with 1 when a result is outside its bounds, or a program does not get that far.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hypothesis.errors import HypothesisWarning, Unsatisfiable

import tilewright as tw
from tests.api.testing.draws import drawn
from tilewright.api.testing.check import SetupFailed, meaning_of
from tilewright.api.testing.execute import parse
from tilewright.api.testing.lin_programs import lin_programs
from tilewright.api.testing.program import Program
from tilewright.api.testing.shapes import symbol_sizes
from tilewright.runtime.cuda_driver import cuda_unavailable_reason
from tilewright.runtime.reference import compare

State = Literal["right", "wrong", "error"]


@dataclass(frozen=True)
class Outcome:
    """What came of one program."""

    number: int
    state: State
    message: str = ""
    calls: int = 0
    """Calls that were compared, each at other sizes."""
    launches: int = 0
    elements: int = 0
    """Elements of the results that were compared."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Those of the call that was not right."""


@dataclass(frozen=True)
class Task:
    """A program of the corpus, what it runs on, and at how many sizes."""

    number: int
    program: Program
    backend: str
    calls: int = 1


def programs(count: int, seed: int) -> list[Program]:
    """The corpus: `lin_programs` drawn from a seed, each with its sizes, inputs and lane."""
    return drawn(lin_programs(), count, seed)


def sizes_of(task: Task) -> list[Mapping[str, int]]:
    """The program's own sizes, and others that its symbols allow; fewer where there are not so many."""
    found: list[Mapping[str, int]] = [task.program.sizes]
    if task.calls > 1 and task.program.sizes:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HypothesisWarning)  # of how long a strategy is when printed
                others = drawn(symbol_sizes(parse(task.program)), 2 * task.calls, task.number)
        except Unsatisfiable:
            others = []
        for sizes in others:
            if sizes not in found and len(found) < task.calls:
                found.append(sizes)
    return found


def run_program(task: Task) -> Outcome:
    """Take a program to its results at all its sizes and compare them with the reference: what one process does at a
    time. Stops at the first call that is not right."""
    calls = launches = elements = 0
    sizes: Mapping[str, int] = {}
    try:
        kernel = tw.compile(parse(task.program), target=task.backend)
        for sizes in sizes_of(task):
            try:
                meaning = meaning_of(replace(task.program, sizes=sizes))
            except SetupFailed:
                if sizes == task.program.sizes:
                    raise
                continue  # ops require more of sizes than the program states: there is nothing to compare with
            answer = kernel(*meaning.inputs)
            results = answer if isinstance(answer, tuple) else (answer,)
            calls, launches = calls + 1, launches + kernel.stats()["launches"]
            elements += sum(expected.rounded.size for expected in meaning.expected)
            for position, (result, expected) in enumerate(zip(results, meaning.expected, strict=True)):
                if (mismatch := compare(result, expected)) is not None:
                    message = f"result {position}: {mismatch}"
                    return Outcome(task.number, "wrong", message, calls, launches, elements, sizes)
    except Exception as problem:  # pycuda has types of its own; whatever it is, the other programs run
        message = f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
        return Outcome(task.number, "error", message, calls, launches, elements, sizes)
    return Outcome(task.number, "right", "", calls, launches, elements)


def run_corpus(
    tasks: Sequence[Task], jobs: int, limit: float, report: Callable[[Outcome, int], None] = lambda *_: None
) -> list[Outcome]:
    """The outcomes of all tasks in their order, by `jobs` processes; `report` gets each with the number done. What is
    not done after `limit` seconds (a kernel that hangs, a process that died) is an error."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # a process a core is enough
    deadline = time.monotonic() + limit
    found: dict[int, Outcome] = {}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:  # ends its processes when it is left
        answers = pool.imap_unordered(run_program, tasks)
        for done in range(1, len(tasks) + 1):
            try:
                outcome = answers.next(max(0.0, deadline - time.monotonic()))
            except multiprocessing.TimeoutError:
                break
            found[outcome.number] = outcome
            report(outcome, done)
    late = f"not done after {limit:.0f} s"
    return [found.get(task.number, Outcome(task.number, "error", late)) for task in tasks]


def summary(tasks: Sequence[Task], outcomes: Sequence[Outcome], seed: int, seconds: float) -> dict[str, Any]:
    """The corpus as JSON: counts, and each program that is not right with all it takes to run it again."""
    states = [each.state for each in outcomes]
    return {
        "backend": tasks[0].backend if tasks else "",
        "seed": seed,
        "programs": len(tasks),
        **{state: states.count(state) for state in ("right", "wrong", "error")},
        "calls": sum(each.calls for each in outcomes),
        "launches": sum(each.launches for each in outcomes),
        "elements": sum(each.elements for each in outcomes),
        "seconds": round(seconds, 1),
        "failures": [
            {**asdict(outcome), "program": asdict(replace(task.program, sizes=outcome.sizes or task.program.sizes))}
            for task, outcome in zip(tasks, outcomes, strict=True)
            if outcome.state != "right"
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool; see the text of the module."""
    parser = argparse.ArgumentParser("gpu_corpus", description="Hold random programs on a backend to the reference.")
    parser.add_argument("--count", type=int, default=500, help="programs (default 500)")
    parser.add_argument("--seed", type=int, default=0, help="of the programs (default 0)")
    parser.add_argument("--calls", type=int, default=4, help="sizes to run each program at (default 4)")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "cpu", "sim"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for all of them (default 240)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the summary there")
    options = parser.parse_args(arguments)
    if options.backend == "cuda" and (reason := cuda_unavailable_reason()) is not None:
        print(f"gpu_corpus: {reason}", file=sys.stderr)
        return 2
    started = time.monotonic()
    drawn_programs = programs(options.count, options.seed)
    tasks = [Task(number, program, options.backend, options.calls) for number, program in enumerate(drawn_programs)]
    print(f"{len(tasks)} programs drawn in {time.monotonic() - started:.0f} s", flush=True)

    def report(outcome: Outcome, done: int) -> None:
        if outcome.state != "right":
            print(f"program {outcome.number} {outcome.sizes}: {outcome.state}: {outcome.message}", flush=True)
        if done % 50 == 0 or done == len(tasks):
            print(f"[{done}/{len(tasks)}] {time.monotonic() - started:.0f} s", flush=True)

    outcomes = run_corpus(tasks, options.jobs, options.limit, report)
    found = summary(tasks, outcomes, options.seed, time.monotonic() - started)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(
        f"{found['backend']}: {found['right']} of {found['programs']} programs within bounds, {found['wrong']} outside,"
        f" {found['error']} errors; {found['calls']} calls, {found['launches']} launches, {found['elements']} elements,"
        f" {found['seconds']} s"
    )
    return 0 if found["right"] == found["programs"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
