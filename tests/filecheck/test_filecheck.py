"""Runs the `// RUN:` lines of every .mlir file below this folder, in this process.

A process for each command would cost 0.2-0.5 s; here the tool is a function call. The lines are pipes of tilewright-opt
and filecheck, with `not`, `2>&1`, `%s` (the file), `%t` (a file of the test's own) and the words of substitutions.py.
lit runs the same files (`make lit`).
"""

from __future__ import annotations

import contextlib
import io
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from tilewright.api.opt.main import main

HERE = Path(__file__).parent
SUBSTITUTIONS: dict[str, str] = runpy.run_path(str(HERE / "substitutions.py"))["SUBSTITUTIONS"]
FILES = sorted(path for path in HERE.rglob("*.mlir") if "Output" not in path.parts)


def run_lines(text: str) -> list[str]:
    """Return the commands after `// RUN:`; a line that ends in a backslash goes on in the next."""
    found: list[str] = []
    open_line = ""
    for line in text.splitlines():
        _, run, command = line.partition("RUN:")
        if not run or not line.lstrip().startswith("//"):
            continue
        command = f"{open_line} {command.strip()}".strip()
        if command.endswith("\\"):
            open_line = command[:-1]
        else:
            found.append(command)
            open_line = ""
    assert not open_line, "the last RUN line ends in a backslash"
    return found


def expand(command: str, source: Path, scratch: Path) -> list[list[str]]:
    """Return the commands of one RUN line, each as its words, in the order of the pipe."""
    for word, meaning in SUBSTITUTIONS.items():
        command = command.replace(word, meaning)
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    stages: list[list[str]] = [[]]
    for token in lexer:
        if token == "|":
            stages.append([])
        else:
            stages[-1].append(token.replace("%s", str(source)).replace("%t", str(scratch)))
    return stages


def check(arguments: list[str], text: str) -> tuple[int, str]:
    """Run filecheck on `text`; return its exit code and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        options = parse_argv_options(["filecheck", *arguments])
        code = Matcher(options, FInput("<stdin>", FInput.canonicalize_line_ends(text)), Parser.from_opts(options)).run()
    return code, said.getvalue()


def run_stage(words: list[str], text: str) -> tuple[int, str, str]:
    """Run one command of a pipe on `text`; return exit code, what goes down the pipe, and standard error."""
    wants_failure = words[0] == "not"
    words = words[1:] if wants_failure else words
    merged = "2>&1" in words
    words = [word for word in words if word != "2>&1"]
    if words[0] == "tilewright-opt":
        out, err = io.StringIO(), io.StringIO()
        code = main(words[1:], io.StringIO(text), out, out if merged else err)
        result, said = out.getvalue(), err.getvalue()
    elif words[0] == "filecheck":
        code, said = check(words[1:], text)
        result = ""
    else:
        raise AssertionError(f"expected tilewright-opt, filecheck or not in a RUN line, got {words[0]!r}")
    return (int(code == 0) if wants_failure else code), result, said


def run_pipe(command: str, source: Path, scratch: Path) -> None:
    """Run one RUN line; every command must succeed, as under lit, which sets pipefail."""
    text = ""
    for words in expand(command, source, scratch):
        code, text_out, said = run_stage(words, text)
        if code != 0:
            pytest.fail(f"{shlex.join(words)} ended with {code}\n{said}\ninput of this command:\n{text}", pytrace=False)
        text = text_out


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_file(path: Path, tmp_path: Path) -> None:
    commands = run_lines(path.read_text(encoding="utf-8"))
    assert commands, f"{path} has no RUN line"
    for command in commands:
        run_pipe(command, path, tmp_path / "t")


def test_the_runner_fails_what_must_fail(tmp_path: Path) -> None:
    source = tmp_path / "a.mlir"
    source.write_text("// CHECK: func.func @wrong\nfunc.func @f() {\n  func.return\n}\n", encoding="utf-8")
    for command in ("tilewright-opt %s | filecheck %s", "tilewright-opt %s -p nothing", "not tilewright-opt %s"):
        with pytest.raises(pytest.fail.Exception):
            run_pipe(command, source, tmp_path / "t")


def test_the_runner_passes_what_must_pass(tmp_path: Path) -> None:
    source = tmp_path / "a.mlir"
    source.write_text("// CHECK: @f\n// ERR: unknown pass\nfunc.func @f() {\n  func.return\n}\n", encoding="utf-8")
    run_pipe("TW_ROUNDTRIP", source, tmp_path / "t")
    run_pipe("TW_GENERIC_ROUNDTRIP", source, tmp_path / "t")
    run_pipe("not tilewright-opt %s -p nothing 2>&1 | filecheck --check-prefix=ERR %s", source, tmp_path / "t")


def test_lit_finds_the_same_files() -> None:
    lit = Path(sys.executable).with_name("lit")
    command = [sys.executable, str(lit), "--show-tests", str(HERE)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {line.split(" :: ")[1] for line in listed if " :: " in line}
    assert found == {str(path.relative_to(HERE.parent)) for path in FILES}


def test_run_lines_join_at_a_backslash() -> None:
    assert run_lines("// RUN: a \\\n// RUN:   b\nx\n// RUN: c\n") == ["a  b", "c"]
