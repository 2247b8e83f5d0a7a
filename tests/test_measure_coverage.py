"""The report of `make coverage`: its sums, and what it lists, from a report as coverage writes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.measure_coverage import (
    Figures,
    Uncovered,
    below_package,
    by_room,
    ranges,
    reasons,
    summary,
    table,
    uncovered,
)

SOURCE = """\
def sign(n):
    if n < 0:
        return -1
    while n > 0:
        n -= 1
    return 0


def unused():
    return 1


sign(0)
"""


def measured(folder: Path, name: str) -> dict:
    """Coverage's own report of SOURCE, as for a file `name` of the package."""
    (folder / "subject.py").write_text(SOURCE, encoding="utf-8")
    alone = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    for command in (["run", "--rcfile=", "--branch", "subject.py"], ["json", "--rcfile=", "-q", "-o", "out.json"]):
        subprocess.run([sys.executable, "-m", "coverage", *command], cwd=folder, env=alone, check=True)
    return {name: json.loads((folder / "out.json").read_text(encoding="utf-8"))["files"]["subject.py"]}


def test_lines_and_branches_that_never_ran(tmp_path: Path):
    found = uncovered(measured(tmp_path, "passes/subject.py"))
    # Line 3 tells of the way from 2 to 3, line 5 of the way from 4 to 5: no branch is listed twice.
    assert found == [
        Uncovered("passes/subject.py", "sign", (3, 5), ()),
        Uncovered("passes/subject.py", "unused", (10,), ()),
    ]


def test_a_way_that_was_not_taken_between_lines_that_ran():
    part = {"missing_lines": [], "missing_branches": [[4, 9], [5, -1]]}
    found = uncovered({"lowering/a.py": {"functions": {"": part}}})
    assert [str(item) for item in found] == ["lowering/a.py  (module)  4->9, 5->exit"]


def test_only_the_two_rooms_are_listed():
    part = {"missing_lines": [4], "missing_branches": []}
    assert uncovered({"api/a.py": {"functions": {"f": part}}, "errors.py": {"functions": {"f": part}}}) == []


def test_figures_add_up_by_room(tmp_path: Path):
    one = measured(tmp_path, "passes/subject.py")
    rooms = by_room({**one, "passes/tile/other.py": one["passes/subject.py"], "top.py": one["passes/subject.py"]})
    # Statements: 2 defs, 5 + 1 in their bodies, 1 call; `if` and `while` have two ways each.
    assert rooms == {"(top)": Figures(1, 9, 3, 4, 2), "passes": Figures(2, 18, 6, 8, 4)}
    assert rooms["passes"].percent == 100 * 16 / 26
    assert table(rooms).splitlines()[-1].split() == ["all", "3", "27", "9", "12", "6", "61.54%"]
    kept = summary(rooms, [], ["-m", "pytest", "a b"])
    assert kept["rooms"]["all"]["missed_branches"] == 6
    assert kept["command"] == "python -m pytest 'a b'"


@pytest.mark.parametrize(
    "folder",
    ["/home/me/tilewright/tilewright", "/home/me/checkout/tilewright", "/venv/lib/python3.11/site-packages/tilewright"],
)
def test_files_are_known_by_their_place_in_the_package_that_ran(folder: str):
    assert below_package(Path(folder) / "passes" / "cse.py") == "passes/cse.py"
    assert below_package(Path(folder) / "__init__.py") == "__init__.py"


def test_another_package_is_a_fault_of_the_settings():
    with pytest.raises(SystemExit, match=r"coverage measured /venv/xdsl/ir\.py, which is no file of tilewright"):
        below_package(Path("/venv/xdsl/ir.py"))


def test_nothing_to_run_is_covered():
    assert Figures().percent == 100.0


def test_ranges_of_lines():
    assert ranges([7, 3, 4, 5]) == "3-5, 7"


def test_reasons_are_read_from_a_table():
    text = "| file | function | why |\n|---|---|---|\n| `passes/a.py` | `A.f` | no IR | reaches it |\n"
    assert reasons(text) == {("passes/a.py", "A.f"): "no IR | reaches it"}
