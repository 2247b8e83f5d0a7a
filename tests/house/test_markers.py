"""The markers of tests/conftest.py: a skip says why, and becomes a failure where the thing must be there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = """
import pytest

@pytest.mark.nvrtc
def test_compiles():
    pass

@pytest.mark.gpu
@pytest.mark.nvrtc
def test_compiles_and_runs():
    pass

@pytest.mark.nvrtc
def test_gives_up_by_itself():
    pytest.skip("its own reason")

@pytest.mark.slow
@pytest.mark.nvrtc
def test_slow():
    pass
"""


def results(folder: Path, *arguments: str, gpu: bool, nvrtc: bool, require: str = "") -> tuple[dict[str, str], str]:
    """Run the suite above under the project's conftest on a machine that has what is said.

    Returns test name -> outcome word, and all that pytest said.
    """
    missing = (
        f"_NEEDS.update(gpu=lambda: {None if gpu else 'no GPU'!r}, nvrtc=lambda: {None if nvrtc else 'no NVRTC'!r})"
    )
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    (folder / "conftest.py").write_text(f"{CONFTEST.read_text(encoding='utf-8')}\n{missing}\n", encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  gpu\n  nvrtc\n  slow\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", str(folder), *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "TILEWRIGHT_"))}
    environment["TILEWRIGHT_REQUIRE"] = require
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^test_it\.py::(\w+) (PASSED|FAILED|ERROR|SKIPPED)", said, re.MULTILINE)
    return {name.removeprefix("test_"): word for name, word in found}, said


def test_without_anything_all_skips_say_why(tmp_path: Path) -> None:
    outcomes, said = results(tmp_path, gpu=False, nvrtc=False)
    assert set(outcomes.values()) == {"SKIPPED"}
    for reason in ("no GPU", "no NVRTC", "slow: run with --slow"):
        assert reason in said


def test_with_everything_all_run(tmp_path: Path) -> None:
    outcomes, _ = results(tmp_path, "--slow", gpu=True, nvrtc=True)
    expected = dict.fromkeys(("compiles", "compiles_and_runs", "slow"), "PASSED")
    assert outcomes == {**expected, "gives_up_by_itself": "SKIPPED"}


@pytest.mark.parametrize("arguments", [("--require=nvrtc",), ()])
def test_what_is_required_and_missing_fails(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    outcomes, said = results(tmp_path, *arguments, gpu=True, nvrtc=False, require="" if arguments else "nvrtc")
    assert {name for name, word in outcomes.items() if word in ("ERROR", "FAILED")} == {
        "compiles",
        "compiles_and_runs",
        "gives_up_by_itself",
    }
    assert outcomes["slow"] == "SKIPPED"
    assert "nvrtc is required here: no NVRTC" in said


def test_what_lacks_only_the_optional_is_skipped(tmp_path: Path) -> None:
    outcomes, said = results(tmp_path, "--require=nvrtc", gpu=False, nvrtc=True)
    assert outcomes == {
        "compiles": "PASSED",
        "compiles_and_runs": "SKIPPED",
        # Nothing is missing, so a test that skips all the same hides something.
        "gives_up_by_itself": "FAILED",
        "slow": "SKIPPED",
    }
    assert "its own reason" in said
