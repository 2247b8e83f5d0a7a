"""The verdicts of `make sanitize`, with a stand-in for the tool: what it prints is from compute-sanitizer's manual."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import sanitize

CLEAN = "========= COMPUTE-SANITIZER\n6 of 6 examples passed in 3.2 s\n========= ERROR SUMMARY: 0 errors\n"
FAULT = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at k+0x70
=========     by thread (37,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k+0x50
=========     and Read access at k+0x70 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
NO_RACE = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


@pytest.mark.parametrize(
    ("tool", "output", "code", "good", "text"),
    [
        ("memcheck", CLEAN, 0, True, "0 errors"),
        ("memcheck", FAULT, 1, False, "1 error"),
        ("memcheck", FAULT, 0, False, "1 error"),
        ("memcheck", CLEAN, 3, False, "0 errors, but the command ended with 3"),
        ("racecheck", NO_RACE, 0, True, "0 hazards"),
        ("racecheck", RACE, 1, False, "1 hazard"),
        ("synccheck", "Traceback (most recent call last):\n", 1, False, "no summary (exit code 1)"),
        ("initcheck", "", 0, False, "no summary (exit code 0)"),
        ("memcheck", FAULT + CLEAN, 0, False, "1 error"),
    ],
)
def test_the_verdict_needs_both_a_summary_and_an_exit_code(
    tool: str, output: str, code: int, good: bool, text: str
) -> None:
    assert sanitize.judge(tool, output, code) == sanitize.Verdict(tool, good, text)


def stand_in(folder: Path, faulty: str) -> str:
    """A program in place of compute-sanitizer that reports one fault under the tool `faulty`, and runs nothing."""
    path = folder / "compute-sanitizer"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "tool = sys.argv[sys.argv.index('--tool') + 1]\n"
        f"bad = tool == {faulty!r}\n"
        f"clean, fault = ({NO_RACE!r}, {RACE!r}) if tool == 'racecheck' else ({CLEAN!r}, {FAULT!r})\n"
        "print(*sys.argv[1:])\nprint(fault if bad else clean)\nsys.exit(1 if bad else 0)\n"
    )
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setattr("tilewright.runtime.cuda_driver.cuda_unavailable_reason", lambda: None)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_each_tool_runs_with_its_options(
    with_gpu: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_gpu.setattr(sanitize, "find_sanitizer", lambda: stand_in(tmp_path, "none"))
    assert sanitize.main(["--log-dir", str(tmp_path / "logs"), "--", "true", "x"]) == 0
    out = capsys.readouterr().out
    for tool in sanitize.TOOLS:
        assert f"\n{tool}: ok: 0 {'hazards' if tool == 'racecheck' else 'errors'} (" in f"\n{out}"
        first = (tmp_path / "logs" / f"{tool}.log").read_text().splitlines()[0]
        options = " --report-api-errors no" if tool == "memcheck" else ""
        assert first == f"--tool {tool} --error-exitcode 1{options} true x"


@pytest.mark.parametrize("faulty", list(sanitize.TOOLS))
def test_one_fault_fails_the_run_and_is_shown(
    with_gpu: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], faulty: str
) -> None:
    with_gpu.setattr(sanitize, "find_sanitizer", lambda: stand_in(tmp_path, faulty))
    assert sanitize.main([]) == 1
    out = capsys.readouterr().out
    assert out.count(": ok: ") == 3
    assert f"{faulty}: FAIL: 1 {'hazard' if faulty == 'racecheck' else 'error'} (" in out
    assert "k+0x70" in out


def test_without_a_gpu_or_the_tool_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tilewright.runtime.cuda_driver.cuda_unavailable_reason", lambda: "CUDA: no driver")
    assert sanitize.main([]) == 2
    assert capsys.readouterr().err == "sanitize: CUDA: no driver\n"
    monkeypatch.setattr("tilewright.runtime.cuda_driver.cuda_unavailable_reason", lambda: None)
    monkeypatch.setattr(sanitize, "find_sanitizer", lambda: None)
    assert sanitize.main([]) == 2
    assert "no compute-sanitizer on PATH" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(sanitize.find_sanitizer() is None, reason="compute-sanitizer is not installed")
def test_the_examples_are_clean(tmp_path: Path) -> None:
    assert sanitize.main(["--log-dir", str(tmp_path)]) == 0
