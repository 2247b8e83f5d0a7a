"""The sample is what is promised of it, and stays when other code changes; faults written by hand fit the code."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.choosing import chosen_tests, in_turns
from tests.mutants.handwritten import Handwritten
from tests.mutants.mapping import CoverageMap, KnownTest, is_test_file
from tests.mutants.mutants import MOST_A_FILE, SAMPLE, Mutant, handwritten, sample, sites, to_name
from tests.mutants.report import equivalents, passes, report
from tests.mutants.results import Result, Results
from tests.mutants.running import Outcome
from tests.mutants.table import OPERATORS

FILE = "passes/some.py"
TEXT = """
LIMIT = 8

def first(a, b):
    if a < b:
        return a - b
    return a

def second(a, b):
    if a < b:
        return a - b
    return b
"""


@pytest.fixture(scope="module")
def drawn() -> list[Mutant]:
    return sample()


def test_the_sample_is_full_and_spread(drawn: list[Mutant]) -> None:
    assert len(drawn) == SAMPLE == len({m.name for m in drawn})
    assert {m.operator for m in drawn} == {operator.name for operator in OPERATORS}
    assert max(Counter((m.operator, m.file) for m in drawn).values()) <= MOST_A_FILE
    assert {m.file.split("/")[0] for m in drawn} == {"passes", "lowering"}


def test_each_is_another_program_in_one_place(drawn: list[Mutant]) -> None:
    for mutant in [*drawn, *handwritten()]:
        before, after = mutant.text, mutant.changed()
        assert after != before
        assert after[: mutant.start] == before[: mutant.start]
        assert after.endswith(before[mutant.end :])
        assert mutant.line in mutant.lines
        if mutant.file.endswith(".py"):
            ast.parse(after)


def test_faults_by_hand_are_twenty_in_both_rooms() -> None:
    found = handwritten()
    assert len(found) == len({m.name for m in found}) == 20
    assert {m.file.split("/")[0] for m in found} == {"passes", "lowering"}
    assert all(m.why for m in found)


def test_a_fault_that_no_longer_fits_is_named(tmp_path: Path) -> None:
    (tmp_path / "tilewright/passes").mkdir(parents=True)
    (tmp_path / "tilewright" / FILE).write_text(TEXT)
    with pytest.raises(ValueError, match=r"gone: its text stands 0 times.*\n.*twice: its text stands 2 times"):
        handwritten(
            tmp_path, [Handwritten(n, FILE, t, "", "") for n, t in (("gone", "xyz"), ("twice", "return a - b"))]
        )


def names(text: str) -> set[str]:
    return {to_name(site) for site in sites(FILE, text)}


def test_names_do_not_depend_on_what_stands_elsewhere() -> None:
    moved = "# a new line\n" + TEXT.replace("LIMIT = 8", "LIMIT = 9\nOTHER = 1")
    functions = {to_name(s) for s in sites(FILE, TEXT) if s.edit.place is not None and s.edit.place.scope}
    assert functions
    assert functions <= names(moved)
    # The two functions hold the same statement, and are told from each other.
    assert len(names(TEXT)) == len(list(sites(FILE, TEXT)))
    assert names(TEXT.replace("b:\n        return a - b\n    return b", "b:\n        return 0\n    return b")) < names(
        TEXT
    )


def some_mutant(**changes: object) -> Mutant:
    given = {
        "name": "m",
        "operator": "boundary",
        "file": "passes/cse.py",
        "text": "y",
        "start": 0,
        "end": 1,
        "new": "x",
    }
    return Mutant(**{**given, "new": "x", "line": 5, "lines": range(5, 7), "in_function": True, **changes})  # type: ignore[arg-type]


def test_tests_that_run_the_lines_come_first() -> None:
    lines = {"close": 1 << 6, "broad": 1 << 5 | 0xFF << 20, "far": 1 << 50}
    tests = {n: KnownTest(f"tests/t.py::{n}", 1.0, {"passes/cse.py": bits}) for n, bits in lines.items()}
    tests["other"] = KnownTest("tests/t.py::other", 1.0, {"passes/grouping.py": 1})
    known = CoverageMap({t.name: t for t in tests.values()})
    chosen = [t.name.partition("::")[2] for t in chosen_tests(some_mutant(), known)]
    assert chosen == ["close", "broad", "far"]
    assert len(chosen_tests(some_mutant(), known, budget=2.5)) == 2
    assert chosen_tests(some_mutant(file="passes/none.py"), known) == []


def test_the_thorough_get_half_of_the_time() -> None:
    small = [KnownTest(f"tests/a.py::small{n:02}", 1.0, {"passes/cse.py": 1 << 5}) for n in range(40)]
    large = KnownTest("tests/a.py::large", 12.0, {"passes/cse.py": 0xFFFF})
    chosen = chosen_tests(some_mutant(), CoverageMap({t.name: t for t in [*small, large]}))
    assert chosen.index(large) == 15
    assert len(chosen) == 15 + 1 + 3


def test_files_and_functions_take_turns() -> None:
    many = [KnownTest(f"tests/a.py::many[{n}]", 0.1, {FILE: 1}) for n in range(5)]
    other = KnownTest("tests/a.py::other", 0.1, {FILE: 0xFF})
    one = KnownTest("tests/b.py::one", 0.1, {FILE: 0xFFFF})
    order = in_turns([one, *many, other])
    assert order[0] in many
    assert order[1:3] == [one, other]
    assert sorted(t.name for t in order) == sorted(t.name for t in [*many, one, other])


def test_the_map_is_kept(tmp_path: Path) -> None:
    shared = {FILE: 0b1010, "lowering/x.py": 1}
    known = CoverageMap(
        {n: KnownTest(n, 0.5, dict(shared)) for n in "ab"}, "p", {"tests/test_a.py": "h"}, {"c": "failed"}
    )
    known.save(tmp_path / "map.json")
    assert CoverageMap.load(tmp_path / "map.json") == known
    assert CoverageMap.load(tmp_path / "none.json") == CoverageMap()


def test_own_tests_are_no_tests_of_the_compiler() -> None:
    assert is_test_file("tests/passes/test_cse.py")
    assert not is_test_file("tests/mutants/test_mutants.py")
    assert not is_test_file("tests/passes/support.py")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results.jsonl")


def test_a_run_goes_on_where_it_stopped(results: Results, drawn: list[Mutant]) -> None:
    caught, survivor, new = drawn[:3]
    results.add(Result(caught.name, caught.key(), "old", Outcome("caught", "tests/t.py::a")))
    results.add(Result(survivor.name, survivor.key(), "old", Outcome("survived", ran=3, planned=3)))
    with results.path.open("a") as file:
        file.write('{"name": "cut o')
    read_again = Results(results.path)
    assert [read_again.is_open(m, "old") for m in (caught, survivor, new)] == [False, False, True]
    assert [read_again.is_open(m, "new") for m in (caught, survivor, new)] == [False, True, True]


def test_enough_must_be_caught_and_the_rest_judged(results: Results, drawn: list[Mutant]) -> None:
    mutants = drawn[:10]
    for mutant in mutants[:9]:
        results.add(Result(mutant.name, mutant.key(), "t", Outcome("timeout", "tests/t.py::a")))
    assert not passes(mutants, results, {})
    results.add(Result(mutants[9].name, mutants[9].key(), "t", Outcome("survived")))
    assert not passes(mutants, results, {})
    assert passes(mutants, results, {mutants[9].name: "no difference"})
    assert not passes([*mutants[:1], mutants[9]], results, {mutants[9].name: "no difference"})
    assert "9 of 10 caught (90.0%)" in report(mutants, results, "t", {})


def test_verdicts_are_reasons(tmp_path: Path) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text('[a]\nequivalent = "the other branch does the same"\n')
    assert equivalents(path) == {"a": "the other branch does the same"}
    path.write_text('[a]\nequivalent = " "\n')
    with pytest.raises(ValueError, match="expected one line"):
        equivalents(path)


def test_the_verdicts_of_the_project_can_be_read() -> None:
    equivalents()
