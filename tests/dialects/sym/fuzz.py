"""Hold the symbolic algebra to its oracles over many random questions, and count what it decides.

    python -m tests.dialects.sym.fuzz [--cases 100000] [--first 0] [--workers 2] [--output FILE.json]

A PROVED or DISPROVED that an oracle refutes is an error, and the exit code is 1. Of the questions whose symbols all
have declared bounds, and that are true at every point, the share PROVED is counted, for all and per operator class.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.dialects.sym.generator import Case, seeded_case, to_relation
from tests.dialects.sym.oracles import Truth, by_isl, by_z3, enumerated
from tilewright.dialects.sym import Answer

CHUNK: Final = 250
Z3_EVERY: Final = 50
"""Z3 takes tens of milliseconds a case, so it sees one of so many."""
Z3_TIMEOUT_MS: Final = 200


@dataclass
class Tally:
    """Counts over a run of cases."""

    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter[str])
    asked: Counter[str] = field(default_factory=Counter[str])
    """Decidable questions that are true, by operator class."""
    proved: Counter[str] = field(default_factory=Counter[str])
    oracles: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    missed: list[int] = field(default_factory=list[int])
    seconds: float = 0.0
    """Time that the algebra took, apart from generating and from the oracles."""
    slowest: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in the counts of another run."""
        self.cases += other.cases
        for name in ("answers", "asked", "proved", "oracles"):
            getattr(self, name).update(getattr(other, name))
        self.wrong += other.wrong
        self.missed += other.missed
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)

    def share(self, name: str) -> float:
        """Part of the true, decidable questions of this class that were PROVED."""
        return self.proved[name] / self.asked[name] if self.asked[name] else 1.0


def refutes(truth: Truth, answer: Answer, contradiction: str | None) -> bool:
    """Whether an oracle that saw `truth` shows the answers of the algebra wrong."""
    if truth == "no model":
        return False
    if contradiction is not None:
        return True
    return (answer is Answer.PROVED and truth != "always") or (answer is Answer.DISPROVED and truth != "never")


def examine(seed: int, tally: Tally) -> None:
    """Ask one question and compare with the oracles."""
    case: Case = seeded_case(seed)
    begin = time.process_time()
    scope = case.scope()
    query = to_relation(case.query)
    answer = scope.prove(query)
    taken = time.process_time() - begin
    # A contradiction is asked for beside the query, which is timed alone.
    contradiction = scope.contradiction()
    tally.cases += 1
    tally.seconds += taken
    tally.slowest = max(tally.slowest, taken)
    tally.answers[answer.value] += 1
    truths: dict[str, Truth | None] = {"grid": enumerated(case), "isl": by_isl(case)}
    if seed % Z3_EVERY == 0:
        truths["z3"] = by_z3(case, Z3_TIMEOUT_MS)
    for name, truth in truths.items():
        if truth is None:
            continue
        tally.oracles[name] += 1
        if refutes(truth, answer, contradiction):
            tally.wrong.append(f"seed {seed}: {answer.value}, {name}: {truth}, contradiction {contradiction}: {case}")
    if case.bounded and truths["grid"] == "always":
        for name in ("all", *case.classes()):
            tally.asked[name] += 1
            tally.proved[name] += answer is Answer.PROVED
        if answer is not Answer.PROVED:
            tally.missed.append(seed)


def examine_range(first: int, count: int) -> Tally:
    """Examine `count` seeds from `first` on."""
    tally = Tally()
    for seed in range(first, first + count):
        examine(seed, tally)
    return tally


def summary(tally: Tally, first: int) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": f"python -m tests.dialects.sym.fuzz --cases {tally.cases} --first {first}",
        "python": platform.python_version(),
        "cases": tally.cases,
        "answers": dict(tally.answers),
        "cases seen by each oracle": dict(tally.oracles),
        "wrong": tally.wrong,
        "microseconds per case": round(1e6 * tally.seconds / max(tally.cases, 1), 1),
        "slowest case in milliseconds": round(1e3 * tally.slowest, 1),
        "proved of what is true and bounded": {
            name: {
                "asked": tally.asked[name],
                "proved": tally.proved[name],
                "percent": round(100 * tally.share(name), 2),
            }
            for name in sorted(tally.asked)
        },
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Fuzz the symbolic algebra against enumeration, isl and Z3.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="JSON file for the counts")
    parser.add_argument("--missed", type=int, default=0, help="print so many true questions that were not proved")
    options = parser.parse_args()
    total = Tally()
    starts = range(options.first, options.first + options.cases, CHUNK)
    counts = [min(CHUNK, options.first + options.cases - start) for start in starts]
    with ProcessPoolExecutor(options.workers) as pool:
        for tally in pool.map(examine_range, starts, counts):
            total.add(tally)
            line = (
                f"{total.cases}/{options.cases} cases, {len(total.wrong)} wrong, {100 * total.share('all'):.2f}% proved"
            )
            for fault in tally.wrong:
                print(f"\nwrong: {fault}", file=sys.stderr)
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    result = summary(total, options.first)
    print(json.dumps(result, indent=1))
    for seed in total.missed[: options.missed]:
        print(f"not proved, seed {seed}: {seeded_case(seed)}")
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
