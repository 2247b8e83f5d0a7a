"""Which tests run which lines of passes/ and lowering/: made once by running the suite under coverage, kept on disk.

The map is made anew for the test files that changed, and for all of them when the package did. Modules are imported
once for many tests, so lines that run at import belong to no test; `tests_of.py` says what stands for them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tests.mutants.trees import (
    OWN_FOLDER,
    PACKAGE,
    ROOMS,
    ROOT,
    copy_project,
    digest,
    environment,
    project_files,
    python,
)

HEADER_READERS: Final = ("runtime/cpu_unit.py",)
"""Outside the rooms: what compiles the headers for this machine. No coverage tells who runs C++."""
COVERAGE_CONFIG: Final = """[run]
parallel = true
data_file = {folder}/coverage
include = {include}
context = ${{TILEWRIGHT_MUTANTS_TEST-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse, already-imported
"""


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test that passed: its processor time, and for each file (below `tilewright/`) the lines it runs, as bits."""

    name: str
    seconds: float
    lines: dict[str, int]

    @property
    def breadth(self) -> int:
        """How many lines of the two rooms it runs."""
        return sum(bits.bit_count() for bits in self.lines.values())


@dataclass
class CoverageMap:
    """Every test that passed, by its pytest id, and what the map was made from."""

    tests: dict[str, KnownTest] = field(default_factory=dict[str, KnownTest])
    package: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Test file -> hash of it and of what stands around it."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Tests that did not pass -> how they ended."""

    def save(self, path: Path) -> None:
        """Write it; sets of lines that many tests share are written once."""
        sets: dict[tuple[str, int], int] = {}
        tests: dict[str, list[Any]] = {}
        for name, test in self.tests.items():
            numbers = [sets.setdefault(item, len(sets)) for item in sorted(test.lines.items())]
            tests[name] = [round(test.seconds, 4), numbers]
        content = {
            "package": self.package,
            "files": self.files,
            "left_out": self.left_out,
            "sets": [[file, f"{bits:x}"] for file, bits in sets],
            "tests": tests,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(content), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    @classmethod
    def load(cls, path: Path) -> CoverageMap:
        """Read it; an empty map where there is none."""
        if not path.exists():
            return cls()
        content = json.loads(path.read_text(encoding="utf-8"))
        sets = [(file, int(bits, 16)) for file, bits in content["sets"]]
        tests = {
            name: KnownTest(name, seconds, dict(sets[n] for n in numbers))
            for name, (seconds, numbers) in content["tests"].items()
        }
        return cls(tests, content["package"], content["files"], content["left_out"])


def is_test_file(name: str) -> bool:
    """Whether pytest collects tests of the compiler from a file of the project."""
    path = PurePosixPath(name)
    return path.parts[0] == "tests" and path.match("test_*.py") and not name.startswith(f"{OWN_FOLDER}/")


def package_digest(files: Iterable[str]) -> str:
    """A hash of what all tests rest on: the package, the examples, and how pytest is set up."""
    wanted = (f"{PACKAGE}/", "examples/", "benchmarks/", "pyproject.toml", "tests/conftest.py")
    return digest(ROOT, (name for name in files if name.startswith(wanted)))


def test_file_digests(files: Iterable[str]) -> dict[str, str]:
    """For each test file a hash of it, of what stands below its folder, and of helpers in the folders above."""
    names = [name for name in files if name.startswith("tests/") and not name.startswith(f"{OWN_FOLDER}/")]
    helpers = [name for name in names if not is_test_file(name)]
    found: dict[str, str] = {}
    for name in filter(is_test_file, names):
        folder = PurePosixPath(name).parent
        around = [
            h
            for h in helpers
            if folder in PurePosixPath(h).parents
            or (h.endswith(".py") and PurePosixPath(h).parent in (folder, *folder.parents))
        ]
        found[name] = digest(ROOT, [name, *around])
    return found


def up_to_date(folder: Path, *, workers: int, keep: bool, say: Callable[[str], None]) -> CoverageMap:
    """The map of the project as it is now; the suite, or a part of it, runs where the kept one is too old.

    `keep` uses a map of older files as it is. Raises RuntimeError when pytest could not run at all.
    """
    path = folder / "map.json"
    known = CoverageMap.load(path)
    if keep and known.tests:
        return known
    files = project_files()
    package, now = package_digest(files), test_file_digests(files)
    if known.package != package:
        known = CoverageMap(package=package)
    stale = {name for name, value in now.items() if known.files.get(name) != value}
    gone = known.files.keys() - now.keys()
    if not stale and not gone:
        return known
    for name in [*known.tests, *known.left_out]:
        if name.partition("::")[0] in stale | gone:
            known.tests.pop(name, None)
            known.left_out.pop(name, None)
    known.files = now
    if stale:
        say(f"map: running {len(stale)} of {len(now)} test files under coverage, once")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutants-map-") as name:
            copy_project(Path(name) / "tree")
            trace(Path(name), sorted(stale), known, workers)
        say(f"map: {len(known.tests)} tests reach the two rooms; {time.monotonic() - started:.0f} s")
        failed = sorted(name for name, outcome in known.left_out.items() if outcome != "skipped")
        if failed:
            say(f"map: {len(failed)} tests fail without any mutant and are left out, {failed[0]} among them")
    known.save(path)
    return known


def trace(scratch: Path, test_files: list[str], into: CoverageMap, workers: int) -> None:
    """Run test files under coverage in `scratch/tree`, a copy of the project, and add what they ran to the map."""
    tree, data = scratch / "tree", scratch / "data"
    data.mkdir()
    include = [f"{tree}/{PACKAGE}/{room}/*" for room in ROOMS] + [f"{tree}/{PACKAGE}/{f}" for f in HEADER_READERS]
    config = scratch / "coveragerc"
    config.write_text(COVERAGE_CONFIG.format(folder=data, include=", ".join(include)), encoding="utf-8")
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.tracing"]
    command += ["-n", str(workers)] if workers > 1 else []
    env = environment(
        tree,
        scratch,
        first_on_path=str(tree / OWN_FOLDER / "subprocesses"),
        COVERAGE_PROCESS_START=str(config),
        TILEWRIGHT_MUTANTS_TRACE=str(data),
        TILEWRIGHT_MUTANTS_TEST="",
    )
    done = subprocess.run(
        [*command, *test_files], cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not make the map:\n{done.stdout[-4000:]}")
    _read(data, tree, into)


def _read(data: Path, tree: Path, into: CoverageMap) -> None:
    """Add what the processes of one run wrote."""
    # Coverage is needed to make a map, not to use one.
    from coverage import CoverageData
    from coverage.exceptions import DataError

    lines: dict[str, dict[str, int]] = defaultdict(dict)
    for path in sorted(data.glob("coverage.*")):
        found = CoverageData(basename=str(path))
        try:
            found.read()
        except DataError:
            continue  # of a process that a test ended before it had written
        for measured in found.measured_files():
            file = str(Path(measured).relative_to(tree / PACKAGE))
            for line, contexts in found.contexts_by_lineno(measured).items():
                for context in filter(None, contexts):
                    lines[context][file] = lines[context].get(file, 0) | 1 << line
    for path in sorted(data.glob("tests-*.json")):
        for name, (seconds, outcome) in json.loads(path.read_text(encoding="utf-8")).items():
            if outcome != "passed":
                into.left_out[name] = outcome
            elif name in lines:
                into.tests[name] = KnownTest(name, seconds, lines[name])
