"""Where results go: files written whole or not at all, and readers that leave early."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.opt.support import IDENTITY, PRINTED, one_line_of, run
from tilewright.api.opt.output import write_file

FAULTY = "%0 = arith.addi %x, %x : i32\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_failed_run_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "out.mlir"
    file.write_text("old", encoding="utf-8")
    text = f"{IDENTITY}// -----\n{FAULTY}// -----\n{FAULTY}// -----\n{IDENTITY}"
    code, out, err = run("--split-input-file", "-o", str(file), text=text)
    assert (code, out) == (1, "")
    assert [line.split(":")[1] for line in err.splitlines() if "error" in line] == ["5", "7"]
    assert file.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["out.mlir"]


def test_parts_are_written_into_one_file(tmp_path: Path) -> None:
    file = tmp_path / "out.mlir"
    text = f"// RUN: nothing\n// -----\n{IDENTITY}// -----\n\n// -----\n{IDENTITY}"
    assert run("--split-input-file", "-o", str(file), text=text) == (0, "", "")
    assert file.read_text(encoding="utf-8") == f"{PRINTED}\n// -----\n{PRINTED}"
    assert run(str(file), "--split-input-file", "-o", str(file)) == (0, "", "")
    assert file.read_text(encoding="utf-8") == f"{PRINTED}\n// -----\n{PRINTED}"


def test_only_blank_parts_are_an_error() -> None:
    code, _, err = run("--split-input-file", text="// a\n// -----\n\n")
    assert code == 1
    assert "the input holds only comments" in one_line_of(err)


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    file, link = tmp_path / "out", tmp_path / "link"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    write_file("new", str(link))
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    write_file("x", str(tmp_path / "fresh"))
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o666 & ~mask
    assert names(tmp_path) == ["fresh", "link", "out"]


def test_what_is_no_file_is_written_as_it_is(tmp_path: Path) -> None:
    write_file("x", os.devnull)
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    write_file("through", str(pipe))
    assert reader.communicate(timeout=30)[0] == b"through"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_of_the_shell_is_written() -> None:
    assert shell("$OPT -o >(cat >&2) && wait $!", IDENTITY) == (0, "", PRINTED)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    code, _, err = run("-o", "/dev/full")
    assert (code, one_line_of(err)) == (1, "error: cannot write '/dev/full': No space left on device")


# --- readers that leave


def shell(line: str, text: str) -> tuple[int, str, str]:
    """Run the tool as `$OPT` in bash with pipefail; exit code, output and errors."""
    environment = dict(os.environ, OPT=f"{sys.executable} -m tilewright.api.opt.main")
    command = ["bash", "-o", "pipefail", "-c", line]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def long_program() -> str:
    body = "".join(f"  %{n} = arith.constant {n} : i32\n" for n in range(4000))
    return f"func.func @f() {{\n{body}  func.return\n}}"


def test_head_on_the_result_ends_the_tool_quietly() -> None:
    code, out, err = shell("$OPT | head -1", long_program())
    assert (out, err) == ("builtin.module {\n", "")
    # The pipe may have taken all of it before its reader went.
    assert code in (0, 141)


def test_a_reader_that_is_gone_is_told_from_success() -> None:
    assert shell("$OPT | (exec 0<&-; sleep 1)", long_program()) == (141, "", "")


def test_head_on_dumps_ends_the_tool_quietly(tmp_path: Path) -> None:
    result = tmp_path / "out"
    line = f"$OPT -p cse,cse --print-ir-before-all --timing --remarks -o {result} 2>&1 | head -1"
    assert shell(line, long_program()) == (141, "// -----// IR Dump Before cse //----- //\n", "")
    assert not result.exists()
    assert names(tmp_path) == []


def test_head_on_help_is_quiet() -> None:
    code, out, err = shell("$OPT --list-passes=full | head -1", "")
    assert (out.count("\n"), err) == (1, "")
    assert code in (0, 141)
