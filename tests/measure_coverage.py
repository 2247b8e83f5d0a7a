"""`make coverage`: lines and branches of the installed package that the tests run, by room.

python -m tests.measure_coverage [--workers N] [--report-only] [--output FILE] [-- PYTEST ARGUMENTS]

Runs pytest under coverage (settings: pyproject.toml), the workers of pytest-xdist and the processes that tests start
included, then prints a table by room and what of passes/ and lowering/ no test runs. docs/design/coverage.md gives
reasons for functions that are not run through; the others are marked. Ends with pytest's exit code.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "tilewright"
REASONS: Final = ROOT / "docs" / "design" / "coverage.md"
LISTED_ROOMS: Final = ("passes", "lowering")
"""Rooms whose uncovered lines are listed one by one."""

# | `passes/cse.py` | `CsePass.apply` | reason |
_REASON = re.compile(r"^\| `([^`]+\.py)` \| `([^`]+)` \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Figures:
    """Sums over the files of a room. A branch is one way out of a line that has several."""

    files: int = 0
    statements: int = 0
    missed_statements: int = 0
    branches: int = 0
    missed_branches: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.files + other.files,
            self.statements + other.statements,
            self.missed_statements + other.missed_statements,
            self.branches + other.branches,
            self.missed_branches + other.missed_branches,
        )

    @property
    def percent(self) -> float:
        """Statements and branches that ran, of all; 100 where there are none."""
        total = self.statements + self.branches
        return 100.0 * (1 - (self.missed_statements + self.missed_branches) / total) if total else 100.0


@dataclass(frozen=True)
class Uncovered:
    """What of a function never ran: whole lines, and ways from a line that ran to one that ran by another way."""

    file: str
    function: str
    lines: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        parts = [ranges(self.lines)] if self.lines else []
        parts += [f"{start}->{'exit' if end < 0 else end}" for start, end in self.branches]
        return f"{self.file}  {self.function or '(module)'}  {', '.join(parts)}"


def room_of(file: str) -> str:
    """The room of a file below `tilewright/`: its first folder, `(top)` for the files beside the rooms."""
    return file.partition("/")[0] if "/" in file else "(top)"


def ranges(lines: Iterable[int]) -> str:
    """Lines as text, neighbours joined: 3-5, 9."""
    runs: list[list[int]] = []
    for line in sorted(lines):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def by_room(report: Mapping[str, Any]) -> dict[str, Figures]:
    """Figures of each room, sorted by name, from the files of a report (paths below `tilewright/`)."""
    rooms: dict[str, Figures] = defaultdict(Figures)
    for file, entry in report.items():
        found = entry["summary"]
        rooms[room_of(file)] += Figures(
            1, found["num_statements"], found["missing_lines"], found["num_branches"], found["missing_branches"]
        )
    return dict(sorted(rooms.items()))


def uncovered(report: Mapping[str, Any]) -> list[Uncovered]:
    """What of the listed rooms never ran, function by function."""
    found: list[Uncovered] = []
    for file, entry in sorted(report.items()):
        if room_of(file) not in LISTED_ROOMS:
            continue
        for function, part in entry["functions"].items():
            lines = set(part["missing_lines"])
            # A way out of a line that never ran, or into one, is told by that line.
            branches = [(a, b) for a, b in part["missing_branches"] if a not in lines and b not in lines]
            if lines or branches:
                found.append(Uncovered(file, function, tuple(sorted(lines)), tuple(sorted(branches))))
    return found


def reasons(text: str) -> dict[tuple[str, str], str]:
    """The table of docs/design/coverage.md: (file, function) -> why no test runs all of it."""
    return {(file, function): reason for file, function, reason in _REASON.findall(text)}


def read_report() -> dict[str, Any]:
    """Combine what the processes wrote and read it: path below the package -> coverage's entry for the file."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "coverage.json"
        coverage("json", "--quiet", "-o", str(output))
        files = json.loads(output.read_text(encoding="utf-8"))["files"]
    return {below_package(ROOT / name): entry for name, entry in files.items()}


def below_package(path: Path) -> str:
    """The path of a file below the package's folder, wherever the package that ran is installed."""
    package = next((folder for folder in path.parents if folder.name == PACKAGE), None)
    if package is None:
        raise SystemExit(f"coverage measured {path}, which is no file of {PACKAGE}")
    return path.relative_to(package).as_posix()


def coverage(*arguments: str) -> int:
    """Run coverage's own command in the project's folder; its exit code, which is not 0 when it could do nothing."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT).returncode


def table(rooms: Mapping[str, Figures]) -> str:
    """A line for each room and one for all of them."""
    lines = [f"{'room':<10} {'files':>5} {'statements':>10} {'missed':>6} {'branches':>8} {'missed':>6} {'covered':>8}"]
    for name, f in {**rooms, "all": sum(rooms.values(), Figures())}.items():
        lines.append(
            f"{name:<10} {f.files:>5} {f.statements:>10} {f.missed_statements:>6}"
            f" {f.branches:>8} {f.missed_branches:>6} {f.percent:>7.2f}%"
        )
    return "\n".join(lines)


def summary(rooms: Mapping[str, Figures], missing: Sequence[Uncovered], command: Sequence[str]) -> dict[str, Any]:
    """What is kept of a run: when, by which command, the figures, and what of the listed rooms is open."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", *command]),
        "python": platform.python_version(),
        "rooms": {
            name: {
                "files": f.files,
                "statements": f.statements,
                "missed_statements": f.missed_statements,
                "branches": f.branches,
                "missed_branches": f.missed_branches,
                "percent": round(f.percent, 2),
            }
            for name, f in {**rooms, "all": sum(rooms.values(), Figures())}.items()
        },
        "uncovered": [str(item) for item in missing],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report; the exit code of pytest, or of coverage where there is nothing to report."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure_coverage", description="Branch coverage by room.")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests (2)")
    parser.add_argument("--report-only", action="store_true", help="report the last run again")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file too")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST ARGUMENTS", help="after --, such as --slow or a folder")
    options = parser.parse_args(arguments)

    command = ["-m", "coverage", "run", "-m", "pytest", "-q", "-n", str(options.workers), *options.pytest]
    code = 0
    if not options.report_only:
        (ROOT / "build" / "coverage").mkdir(parents=True, exist_ok=True)
        coverage("erase")
        code = subprocess.run([sys.executable, *command], cwd=ROOT).returncode
        if failed := coverage("combine", "--quiet"):
            return code or failed
    report = read_report()
    rooms, missing = by_room(report), uncovered(report)
    why = reasons(REASONS.read_text(encoding="utf-8"))
    print(table(rooms))
    print(f"\nnot run in {' and '.join(LISTED_ROOMS)}; * has no reason in {REASONS.relative_to(ROOT)}:")
    for item in missing:
        print(" " if (item.file, item.function or "(module)") in why else "*", item)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(summary(rooms, missing, command), indent=2) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
