"""`tilewright fuzz`: its table, JSON, exit codes, replays, corpora, several workers, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tilewright.api.cli import main
from tilewright.api.testing.fuzz_work import derived_seed

PLANTED = str(Path(__file__).parent / "planted_file.py")


def fuzz(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = StringIO(), StringIO()
    code = main(["fuzz", *words], stdin=StringIO(), stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


def summary(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_passes_that_are_right(tmp_path: Path) -> None:
    words = ["--pass", "decompose", "--pass", "fuse-elementwise", "--examples", "6", "--seed", "3", "--workers", "1"]
    output = tmp_path / "out.json"
    code, out, err = fuzz(*words, "--output", str(output), "--failures-dir", str(tmp_path / "failures"))
    assert code == 0
    assert all(line.startswith("fuzz ") for line in err.splitlines())
    lines = out.splitlines()
    assert lines[0].split() == ["subject", "programs", "changed", "failures"]
    assert [line.split()[:2] for line in lines[1:3]] == [["decompose", "6"], ["fuse-elementwise", "6"]]
    assert lines[3].startswith("12 programs in ")
    assert lines[3].endswith("0 failures; seed 3, 1 worker")
    found = summary(output)
    assert (found["programs"], found["seed"], found["workers"], found["interrupted"]) == (12, 3, 1, False)
    assert [s["name"] for s in found["subjects"]] == ["decompose", "fuse-elementwise"]
    assert found["subjects"][0]["changed"] >= 1
    assert not (tmp_path / "failures").exists()


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """A run with a pass that is wrong, in two processes."""
    folder = tmp_path_factory.mktemp("fuzz")
    words = ["--load", PLANTED, "--pass", "planted-bounds", "--examples", "16", "--seed", "3", "--workers", "2"]
    code, out, _ = fuzz(*words, "--failures-dir", str(folder / "failures"), "--output", str(folder / "out.json"))
    return code, out, folder


def test_a_wrong_pass_is_reported_with_its_file(failed: tuple[int, str, Path]) -> None:
    code, out, folder = failed
    assert code == 1
    files = sorted((folder / "failures").iterdir())
    assert files
    for file in files:
        _, _, told = out.partition(f"failure: planted-bounds: {file}\n")
        reason, again = told.splitlines()[:2]
        assert reason.startswith("  after planted-bounds: the bound of dim 0 is said to be proved")
        assert again == f"  tilewright fuzz --load {PLANTED} --replay {file}"
    (subject,) = summary(folder / "out.json")["subjects"]
    assert {f["path"] for f in subject["failures"]} == {str(file) for file in files}
    assert all("said to be proved" in f["what"] for f in subject["failures"])


def test_a_file_is_replayed(failed: tuple[int, str, Path]) -> None:
    file = str(next((failed[2] / "failures").iterdir()))
    code, out, _ = fuzz("--replay", file, "--load", PLANTED)
    assert code == 1
    assert out.startswith("subject  planted-bounds\ndims     ")
    assert "FAIL     after planted-bounds: the bound of dim 0 is said to be proved" in out


def test_a_replay_takes_another_pass(failed: tuple[int, str, Path]) -> None:
    file = str(next((failed[2] / "failures").iterdir()))
    code, out, _ = fuzz("--replay", file, "--pass", "vectorise")
    assert code == 0
    assert out.startswith("subject  vectorise")
    assert "PASS " in out
    code, out, err = fuzz("--replay", file, "--after", "coalesce")
    assert (code, out) == (1, "")
    assert "error: --after: expected --pass beside it" in err


VECTOR = "tensor<?xf32, #sym.dims<M>>"
FUNCTION = f"func.func @f(%x: {VECTOR}) -> {VECTOR} {{\n  func.return %x : {VECTOR}\n}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"sym.symbol @M\n{FUNCTION}", "no size of M: expected a line such as '// sizes: M=33' at the top"),
        (
            f"// sizes: M=3\nsym.symbol @M\n{FUNCTION}{FUNCTION.replace('@f', '@g')}",
            "expected a program of one function, got 2",
        ),
    ],
)
def test_a_file_that_is_no_program_is_no_failure_of_the_pass(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    for words in (["--pass", "cse", "--corpus", str(tmp_path)], ["--replay", str(path)]):
        code, out, err = fuzz(*words)
        assert (code, out) == (1, "")
        assert f"error: {path}: {said}" in err


def test_a_pass_that_changed_nothing_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(f"// sizes: M=3\nsym.symbol @M\n{FUNCTION}")
    words = ["--examples", "1", "--workers", "1", "--seed", "1", "--corpus", str(tmp_path)]
    code, out, err = fuzz("--pass", "cancel-movement", "--pass", "reference-sim", "--pass", "verify-dims", *words)
    assert code == 0
    assert out.splitlines()[1].split() == ["cancel-movement", "2", "0", "0"]
    assert err.splitlines()[-1] == "warning: no program was changed by cancel-movement: nothing was tested there"


def test_a_replay_needs_the_pass(failed: tuple[int, str, Path]) -> None:
    file = next((failed[2] / "failures").iterdir())
    # In a process of its own: here the file has been loaded.
    done = subprocess.run(
        [sys.executable, "-m", "tilewright.api.cli", "fuzz", "--replay", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "unknown pass 'planted-bounds'" in done.stderr
    assert f"// replay: tilewright fuzz --load {os.path.relpath(PLANTED)} --replay {file}" in file.read_text()


def test_run_takes_the_command_in_the_file(failed: tuple[int, str, Path]) -> None:
    file = next((failed[2] / "failures").iterdir())
    line = next(line for line in file.read_text().splitlines() if line.startswith("// run: tilewright "))
    out = StringIO()
    assert main(line.removeprefix("// run: tilewright ").split(), stdin=StringIO(), stdout=out, stderr=out) == 0
    assert "PASS " in out.getvalue()


def test_a_corpus_comes_first(failed: tuple[int, str, Path]) -> None:
    words = ["--load", PLANTED, "--pass", "planted-bounds", "--examples", "1", "--workers", "1", "--seed", "1"]
    code, out, _ = fuzz(*words, "--corpus", str(failed[2] / "failures"), "--failures-dir", str(failed[2] / "more"))
    assert code == 1
    assert f"failure: planted-bounds: {failed[2] / 'failures'}" in out


def test_the_same_seed_and_workers_see_the_same(tmp_path: Path) -> None:
    seen: list[Any] = []
    for run in range(2):
        output = tmp_path / f"{run}.json"
        words = ["--pass", "canonicalize", "--pass", "vectorise", "--examples", "8", "--seed", "11", "--workers", "2"]
        assert fuzz(*words, "--output", str(output))[0] == 0
        seen.append(summary(output)["subjects"])
    assert seen[0] == seen[1]


def test_seeds_differ_between_workers_subjects_and_rounds() -> None:
    seeds = {derived_seed(1, w, s, r) for w in range(2) for s in ("a", "b") for r in range(2)}
    assert len(seeds) == 8
    assert derived_seed(1, 0, "a", 0) == derived_seed(1, 0, "a", 0)


def test_time_ends_a_run() -> None:
    started = time.monotonic()
    code, out, _ = fuzz("--pass", "decompose", "--time", "2", "--workers", "1", "--seed", "1")
    assert code == 0
    assert time.monotonic() - started < 30
    assert int(out.splitlines()[1].split()[1]) >= 1


def test_ctrl_c_ends_with_the_summary() -> None:
    words = ["fuzz", "--pass", "decompose", "--time", "60", "--workers", "2", "--seed", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "tilewright.api.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # the workers are at work
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert first.startswith("fuzz ")
    assert process.returncode == 130
    assert "interrupted after" in out
    assert "Traceback" not in err


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are still there."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


def running(pids: list[int]) -> list[int]:
    """Those of the processes that are there and no zombies, which have no command line."""
    files = {pid: Path(f"/proc/{pid}/cmdline") for pid in pids}
    return [pid for pid, file in files.items() if file.exists() and file.read_text()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see which processes there are")
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    words = ["fuzz", "--pass", "decompose", "--time", "600", "--workers", "2"]
    command = [sys.executable, "-m", "tilewright.api.cli", *words, "--failures-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # The first line comes with the workers at work; multiprocessing has a helper beside them.
        assert process.stderr.readline().startswith("fuzz ")
        started = children(process.pid)
        assert len(running(started)) >= 2
        process.kill()
    deadline = time.monotonic() + 60
    while (left := running(started)) and time.monotonic() < deadline:
        time.sleep(0.2)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pass", "vectorize"], "error: unknown pass 'vectorize'; did you mean 'vectorise'?"),
        (["--examples", "0"], "error: --examples: expected at least 1, got 0"),
        (["--time", "-1"], "error: --time: expected more than 0 seconds, got -1"),
        (["--workers", "0"], "error: --workers: expected at least 1, got 0"),
        (["--seed", "-3"], "error: --seed: expected a number of at least 0, got -3"),
        (["--load", "/no/such.py"], "error: cannot load passes: there is no file /no/such.py"),
        (["--replay", "/no/such.mlir"], "error: cannot read '/no/such.mlir': No such file or directory"),
        (["--pass", "cse", "--corpus", "/no/such"], "error: --corpus: there is no folder /no/such"),
    ],
)
def test_what_is_asked_wrongly_is_refused(words: list[str], said: str) -> None:
    code, out, err = fuzz(*words)
    assert (code, out) == (1, "")
    assert said in err
