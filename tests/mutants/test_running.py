"""A mutant in a small project of its own: caught, survived, endless, and the copy is as it was."""

from __future__ import annotations

import shutil

import pytest

from tests.mutants.mapping import CoverageMap, KnownTest, trace
from tests.mutants.mutants import Mutant
from tests.mutants.running import Control, ControlFailed, Outcome, Worker
from tests.mutants.trees import ROOT

SOURCE = "def count(n):\n    while n > 0:\n        n -= 1\n    return n\n"
TESTS = """
from tilewright.passes.count import count

def test_type():
    assert isinstance(count(2), int)

def test_end():
    assert count(3) == 0

def test_wrong():
    assert count(3) == 7
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Worker:
    folder = tmp_path_factory.mktemp("worker")
    tree = folder / "tree"
    (tree / "tilewright/passes").mkdir(parents=True)
    for place in ("tilewright/__init__.py", "tilewright/passes/__init__.py"):
        (tree / place).write_text("")
    (tree / "tilewright/passes/count.py").write_text(SOURCE)
    shutil.copytree(ROOT / "tests/mutants", tree / "tests/mutants", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests/test_count.py").write_text(TESTS)
    (tree / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\npythonpath = .\n")
    return Worker(folder, patience=2.0)


def test_the_map_says_which_lines_a_test_runs(worker: Worker) -> None:
    known = CoverageMap()
    trace(worker.folder, ["tests/test_count.py"], known, workers=1)
    # The head of the function runs at import, and belongs to no test.
    assert {name: test.lines for name, test in known.tests.items()} == {
        f"tests/test_count.py::{name}": {"passes/count.py": 0b11100} for name in ("test_type", "test_end")
    }
    assert known.left_out == {"tests/test_count.py::test_wrong": "failed"}


def planned(*names: str) -> list[KnownTest]:
    return [KnownTest(f"tests/test_count.py::{name}", 0.01, {"passes/count.py": 2}) for name in names]


def changed(old: str, new: str) -> Mutant:
    start = SOURCE.index(old)
    return Mutant("m", "boundary", "passes/count.py", SOURCE, start, start + len(old), new, 2, range(2, 3), True)


def test_caught(worker: Worker) -> None:
    outcome = worker.run(changed("return n", "return n + 1"), planned("test_type", "test_end", "test_wrong"))
    assert (outcome.verdict, outcome.by, outcome.ran) == ("caught", "tests/test_count.py::test_end", 2)
    assert (worker.tree / "tilewright/passes/count.py").read_text() == SOURCE
    Control().confirm(worker, outcome, planned("test_end"))


def test_survived(worker: Worker) -> None:
    outcome = worker.run(changed("n > 0", "n >= 1"), planned("test_type", "test_end"))
    assert (outcome.verdict, outcome.ran, outcome.planned) == ("survived", 2, 2)


def test_endless(worker: Worker) -> None:
    outcome = worker.run(changed("n -= 1", "n -= 0"), planned("test_type", "test_end"))
    assert (outcome.verdict, outcome.by) == ("timeout", "tests/test_count.py::test_type")


def test_no_program(worker: Worker) -> None:
    outcome = worker.run(changed("def count(n)", "def other(n)"), planned("test_type"))
    assert outcome.verdict == "caught"
    assert "cannot import name" in outcome.message


def test_nothing_reaches_it(worker: Worker) -> None:
    assert worker.run(changed("n -= 1", "n -= 2"), []) == Outcome("unreached")


def test_a_test_that_fails_anyway_catches_nothing(worker: Worker) -> None:
    outcome = worker.run(changed("n > 0", "n >= 1"), planned("test_wrong"))
    assert outcome.verdict == "caught"
    with pytest.raises(ControlFailed, match="test_wrong fails without a mutant too"):
        Control().confirm(worker, outcome, planned("test_wrong"))
