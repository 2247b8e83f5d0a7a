"""The pytest plugin in a project of its own: options, the fixture, and what a failure shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TEST = """
from dataclasses import dataclass
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from tilewright.passes.core import TilewrightPass
from tilewright.testing import assert_pass_preserves

@dataclass(frozen=True)
class MyPass(TilewrightPass):
    '''Says of every bound that it is proved.'''
    name = "my-pass"
    level = "tile"
    def apply(self, ctx, op):
        for inner in op.walk():
            if inner.name == "tile.copy":
                words = inner.properties["bounds"]
                inner.properties["bounds"] = ArrayAttr([StringAttr("proved")] * len(words.data))

def test_my_pass():
    assert_pass_preserves(MyPass)

def test_another(assert_pass_preserves):
    from tilewright.api.testing.profiles import current_settings
    print("settings", current_settings())
    assert assert_pass_preserves("decompose", examples=2).programs == 2
"""
ROOT = Path(__file__).parents[3]


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there, with the plugin by name, as where Tilewright is not installed."""
    (folder / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "tilewright.api.testing.pytest_plugin", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_failure_shows_the_program_and_how_to_run_it_again(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, "-rA", "--tilewright-profile", "quick", "--tilewright-seed", "3")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "settings Settings(profile='quick', seed=3, failures=" in done.stdout
    (file,) = (tmp_path / ".tilewright" / "failures").iterdir()
    relative = file.relative_to(tmp_path)
    assert "tilewright: run it again" in done.stdout
    assert f"tilewright fuzz --load test_it.py --replay {relative}" in done.stdout
    assert "--seed 0 --backend sim --check" in done.stdout
    assert "func.func @f" in done.stdout or "host.func @main" in done.stdout
    assert "/hypothesis/" not in done.stdout  # no frames of the tool that draws


def test_failures_go_where_they_are_wanted(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, "-q", "-k", "my_pass", "--tilewright-failures", "here")
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(list((tmp_path / "here").iterdir())) == 1


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, "--tilewright-profile", "huge")
    assert done.returncode != 0
    assert "invalid choice: 'huge'" in done.stderr


def test_the_plugin_imports_nothing_that_takes_time() -> None:
    code = (
        "import sys, tilewright.api.testing.pytest_plugin\n"
        "found = {'numpy', 'xdsl', 'hypothesis', 'tilewright.dialects'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
