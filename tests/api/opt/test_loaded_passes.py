"""Passes of the user's own: loaded from a file, listed, explained with their options, counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.opt.support import IDENTITY, one_line_of, run

SOURCE = '''
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tilewright.passes import TilewrightPass, register_pass


class Way(Enum):
    TWO_WAY = 1
    ONE = "uno"


@register_pass
@dataclass(frozen=True)
class LoadedPass(TilewrightPass):
    """Counts what it is told to.

    Nothing else happens.
    """

    name = "NAME"
    level = "any"

    way: Way = Way.TWO_WAY
    """Which way
    to go."""
    kind: Literal["fast", "exact"] = "fast"
    sizes: tuple[int, ...] = ()
    pair: tuple[int, int] = (1, 2)
    limit: int | None = None
    deep: bool = False

    def apply(self, ctx, op):
        self.statistic("rounds", 3)
        self.statistic(f"way {self.way.name.lower()}")
'''

# The registry is the process's: each test that loads has a name of its own.


def write(folder: Path, name: str, source: str = SOURCE) -> str:
    path = folder / "my passes.py"
    path.write_text(source.replace("NAME", name), encoding="utf-8")
    return str(path)


def test_a_loaded_pass_runs_and_counts(tmp_path: Path) -> None:
    path = write(tmp_path, "test-loaded-runs")
    pipeline = "test-loaded-runs{way=uno},func.func(test-loaded-runs)"
    code, out, err = run("--load", path, "-p", pipeline, "--statistics")
    assert (code, out) == (0, run()[1])
    assert err == (
        "// -----// Pass statistics //----- //\n"
        "test-loaded-runs\n  (S)       6 rounds\n  (S)       1 way one\n  (S)       1 way two_way\n"
    )


def test_a_loaded_pass_as_option(tmp_path: Path) -> None:
    path = write(tmp_path, "test-loaded-option")
    argv = ("--test-loaded-option=sizes=1,2 deep", f"--load={path}", "--dump-pass-pipeline")
    assert run(*argv)[2] == ("builtin.module(test-loaded-option{way=two-way kind=fast sizes=1,2 pair=1,2 deep=true})\n")
    assert "unknown option '--test-loadd-option'" in run("--test-loadd-option", f"--load={path}")[2]


def test_what_the_help_of_a_pass_says(tmp_path: Path) -> None:
    path = write(tmp_path, "test-loaded-help")
    assert "test-loaded-help" in run("--load", path, "--list-passes")[1]
    code, out, err = run("--load", path, "--help-pass", "test-loaded-help")
    assert (code, err) == (0, "")
    assert out == (
        "test-loaded-help\n"
        "    Counts what it is told to.\n\n    Nothing else happens.\n\n"
        "    level any\n"
        "    runs on builtin.module, func.func, host.func, tile.kernel, simt.kernel\n"
        f"    defined in {path}\n\n"
        "    options:\n"
        "        way : one of two-way, uno (default two-way)\n"
        "            Which way to go.\n"
        "        kind : one of fast, exact (default fast)\n"
        "        sizes : a list of int (default none)\n"
        "        pair : a list of 2 int (default 1,2)\n"
        "        limit : int (default none)\n"
        "        deep : bool (default false)\n"
    )


def test_bad_options_of_a_loaded_pass(tmp_path: Path) -> None:
    path = write(tmp_path, "test-loaded-options")
    for options, message in (
        ("way=two", "expected one of two-way, uno, got 'two'; did you mean 'two-way'?"),
        ("kind=exakt", "expected one of fast, exact, got 'exakt'; did you mean 'exact'?"),
        ("pair=1", "takes 2 values, got 1"),
        ("sizes=1,x", "expected a list of int, got 'x'"),
        ("limit=1_0", "expected int, got '1_0'"),
    ):
        code, _, err = run("--load", path, "-p", f"test-loaded-options{{{options}}}")
        assert code == 1
        assert message in one_line_of(err)


def test_the_long_list_holds_the_help_of_every_pass() -> None:
    code, out, err = run("--list-passes=full")
    assert (code, err) == (0, "")
    names = [line.split()[0] for line in run("--list-passes")[1].splitlines()]
    assert {line for line in out.splitlines() if line and not line.startswith(" ")} >= set(names)
    assert "        tile-sizes : a list of int (default none)" in out
    assert "        level : str (required)" in out
    assert run("--help-pass", "cse", "--help-pass=canonicalize")[1].startswith("cse\n")
    assert "unknown pass 'csee'; did you mean 'cse'?" in one_line_of(run("--help-pass", "csee")[2])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "registers no pass"),
        ("x = 1\ny = (\n", "my passes.py:2:"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_a_diagnostic(source: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my passes.py"
    path.write_text(source, encoding="utf-8")
    code, out, err = run("--load", str(path), "-p", "cse")
    assert (code, out) == (1, "")
    assert message in one_line_of(err)


def test_a_missing_file_of_passes_is_one_line() -> None:
    assert "there is no file" in one_line_of(run("--load", "/no/such/file.py")[2])


@pytest.mark.parametrize("name", ["tidy-up", "opening", "print-all", "h5"])
def test_a_loaded_pass_whose_name_begins_as_a_short_option_may_have_one_dash(name: str, tmp_path: Path) -> None:
    """-t, -o, -p and -h take their values behind them too: `-ofile`. A name that is no pass is still read so."""
    path = write(tmp_path, name)
    result = tmp_path / "result.mlir"
    code, out, err = run("--load", path, f"-{name}=way=uno", "--cse", f"-o{result}", "--dump-pass-pipeline")
    assert (code, out) == (0, "")
    assert err.startswith(f"builtin.module({name}{{way=uno ")
    assert result.read_text(encoding="utf-8").startswith("builtin.module")
    assert "unknown target 'cudaa'" in one_line_of(run("--load", path, "-tcudaa")[2])


def test_two_files_in_a_process(tmp_path: Path) -> None:
    """As a person does it: a fresh process, two files, each with a pass of its own."""
    words: list[str] = []
    for number in (1, 2):
        path = tmp_path / f"mine{number}.py"
        path.write_text(SOURCE.replace("NAME", f"mine-{number}"), encoding="utf-8")
        words += ["--load", str(path)]
    command = [sys.executable, "-m", "tilewright.api.opt.main", *words, "-p", "mine-2,mine-1", "--dump-pass-pipeline"]
    done = subprocess.run(command, input=IDENTITY, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("builtin.module(mine-2{")
