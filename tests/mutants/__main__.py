"""Put faults into passes/ and lowering/, one at a time, and see whether a test fails: `make mutants`.

    python -m tests.mutants                    run what has no result yet, then report; Ctrl-C loses nothing
    python -m tests.mutants --list             all mutants, with their results
    python -m tests.mutants --show NAME        the change, and the tests it gets
    python -m tests.mutants --only NAME        run these, whatever results there are
    python -m tests.mutants --report           what is known so far

docs/design/mutants.md says how mutants are made and drawn, and how survivors are judged.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from tests.mutants.choosing import chosen_tests
from tests.mutants.mapping import CoverageMap, package_digest, test_file_digests, up_to_date
from tests.mutants.mutants import Mutant, all_mutants, all_sites
from tests.mutants.report import equivalents, line_of, passes, report
from tests.mutants.results import Result, Results
from tests.mutants.running import SECONDS, Control, ControlFailed, Outcome, Worker
from tests.mutants.trees import ROOT, project_files

FOLDER: Final = ROOT / ".mutants"
"""The map and the results; git ignores it."""


def say(text: str) -> None:
    """Tell the person who waits."""
    print(text, file=sys.stderr, flush=True)


def tree_hash() -> str:
    """A hash of the package and the tests as they are now."""
    files = project_files()
    parts = [package_digest(files), *(f"{k} {v}" for k, v in sorted(test_file_digests(files).items()))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="list all mutants with their results")
    action.add_argument("--show", metavar="NAME", help="print a mutant's change and the tests that it gets")
    action.add_argument("--report", action="store_true", help="report on the results there are; run nothing")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="run these, whatever results there are")
    parser.add_argument("--first", metavar="N", type=int, help="run at most so many")
    parser.add_argument("--fresh", action="store_true", help="forget all results first (by default a run resumes)")
    parser.add_argument(
        "--control", action="store_true", help="run the tests of each without the mutant: all must pass"
    )
    parser.add_argument("--keep-map", action="store_true", help="use the map of tests there is, though files changed")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="mutants at a time (2)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each mutant (40); more on a busy machine")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the map and the results are kept")
    return parser.parse_args(arguments)


def find(mutants: list[Mutant], names: list[str]) -> list[Mutant]:
    """The mutants of these names; SystemExit for one that there is not."""
    known = {m.name: m for m in mutants}
    for name in names:
        if name not in known:
            sys.exit(f"there is no mutant {name}; --list names them")
    return [known[name] for name in names]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 if nothing is left to do."""
    options = parse(arguments)
    results = Results(options.folder / "results.jsonl")
    try:
        mutants, why = all_mutants(), equivalents()
    except ValueError as error:
        sys.exit(str(error))
    tree = tree_hash()
    if options.list:
        for mutant in mutants:
            print(line_of(mutant, results.of(mutant)))
        sites = sum(map(len, all_sites().values()))
        print(f"{len(mutants)} mutants, drawn from {sites} sites or written by hand")
        return 0
    if options.report:
        print(report(mutants, results, tree, why))
        return 0 if passes(mutants, results, why) else 1
    if options.fresh:
        results.clear()
    keep = options.keep_map or options.show is not None
    known = up_to_date(options.folder, workers=options.workers, keep=keep, say=say)
    if options.show is not None:
        (mutant,) = find(mutants, [options.show])
        tests = chosen_tests(mutant, known)
        print(f"{mutant.why}\n" * bool(mutant.why) + mutant.diff())
        print(f"{len(tests)} tests, {sum(t.seconds for t in tests):.1f} s:")
        print("\n".join(f"  {t.seconds:6.2f} s  {t.name}" for t in tests))
        return 0
    wanted = find(mutants, options.only) if options.only else mutants
    todo = [m for m in wanted if options.only or options.control or results.is_open(m, tree)][: options.first]
    complete = Runner(known, results, tree, options).run(todo)
    if options.control or options.only or options.first:
        return 0 if complete else 1
    print(report(mutants, results, tree, why))
    return 0 if complete and passes(mutants, results, why) else 1


class Runner:
    """Runs mutants, a few at a time, and tells how it goes."""

    def __init__(self, known: CoverageMap, results: Results, tree: str, options: argparse.Namespace) -> None:
        self.known, self.results, self.tree = known, results, tree
        self.count: int = options.workers
        self.control: bool = options.control
        self.seconds: float = options.seconds
        self.confirmed = Control()
        self.workers: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self.stopping = threading.Event()

    def run(self, todo: list[Mutant]) -> bool:
        """Run all of `todo`; False if one could not be judged, or (with `control`) a test failed without a mutant."""
        if not todo:
            return True
        started, good = time.monotonic(), True
        with tempfile.TemporaryDirectory(prefix="mutants-") as name:
            made = [Worker(Path(name) / str(n)) for n in range(min(self.count, len(todo)))]
            for worker in made:
                self.workers.put(worker)
            pool = ThreadPoolExecutor(len(made))
            futures: dict[Future[Outcome | None], Mutant] = {pool.submit(self.one, m): m for m in todo}
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    good = self.finished(futures[future], future, done, len(todo), started) and good
            except KeyboardInterrupt:
                say("\nstopped; what was run is kept, and the next run goes on from here")
                return False
            finally:
                self.stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in made:
                    worker.stop()
                pool.shutdown()
        return good

    def one(self, mutant: Mutant) -> Outcome | None:
        """Run one mutant in the next free copy; None when the run was stopped meanwhile."""
        tests = chosen_tests(mutant, self.known)
        worker = self.workers.get()
        try:
            if self.stopping.is_set():
                return None
            if self.control:
                return worker.run(None, tests, self.seconds)
            outcome = worker.run(mutant, tests, self.seconds)
            if not self.stopping.is_set():
                self.confirmed.confirm(worker, outcome, tests, self.seconds)
            return None if self.stopping.is_set() else outcome
        finally:
            self.workers.put(worker)

    def finished(self, mutant: Mutant, future: Future[Outcome | None], done: int, count: int, started: float) -> bool:
        """Keep and tell the outcome of one; False if it is none."""
        try:
            outcome = future.result()
        except (ControlFailed, RuntimeError) as error:
            say(f"{mutant.name}: {error}")
            return False
        if outcome is None:
            return False
        result = Result(mutant.name, mutant.key(), self.tree, outcome)
        if not self.control:
            self.results.add(result)
        left = (time.monotonic() - started) / done * (count - done)
        bar = "#" * (20 * done // count)
        say(f"[{bar:20}] {done}/{count}, {left / 60:.0f} min left  {line_of(mutant, result)}")
        return not self.control or outcome.verdict in ("survived", "unreached")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `--list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
