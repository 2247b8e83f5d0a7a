"""Passes from elsewhere: files loaded by path, and entry points of installed packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.passes import registry
from tilewright.passes.registry import all_passes, load_passes_from, registered_passes

PASS = '''from __future__ import annotations

from dataclasses import dataclass

from tilewright.passes import TilewrightPass, register_pass


@register_pass
@dataclass(frozen=True)
class {cls}(TilewrightPass):
    """Does nothing, {how}."""

    name = "{name}"
    level = "any"
    rounds: int = 1

    def apply(self, ctx: object, op: object) -> None:
        pass
'''


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    yield
    for name in [name for name in sys.modules if name.startswith("tilewright_loaded_")]:
        del sys.modules[name]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_registers_its_passes(tmp_path: Path) -> None:
    two = PASS.format(cls="OnePass", name="one", how="well") + PASS.format(cls="TwoPass", name="two", how="well")
    path = write(tmp_path / "mine.py", two.replace("from __future__ import annotations\n", ""))
    assert load_passes_from(path) == ["one", "two"]
    assert all_passes()["two"]().__name__ == "TwoPass"


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "mine.py", PASS.format(cls="MyPass", name="one", how="well"))
    second = write(tmp_path / "b" / "mine.py", PASS.format(cls="MyPass", name="two", how="badly"))
    assert load_passes_from(first) + load_passes_from(second) == ["one", "two"]
    modules = {cls.__module__ for cls in registered_passes().values()}
    assert len(modules) == 2
    assert modules <= set(sys.modules)


def test_loading_again_replaces(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", PASS.format(cls="MyPass", name="one", how="well"))
    load_passes_from(path)
    write(path, PASS.format(cls="MyPass", name="one", how="better"))
    assert load_passes_from(path) == ["one"]
    assert registered_passes()["one"].__doc__ == "Does nothing, better."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\n", "mine.py registers no pass: decorate its classes with @register_pass"),
        ("import os\ndef f(:\n", "mine.py:2:7: error: cannot load passes: invalid syntax"),
        ("x = 1\n\ny = 1 / 0\n", "mine.py:3:1: error: cannot load passes: ZeroDivisionError: division by zero"),
        ("import no_such_module\n", "mine.py:1:1: error: cannot load passes: ModuleNotFoundError: No module named"),
        ("def f():\n    raise SystemExit(3)\nf()\n", "mine.py:2:1: error: cannot load passes: SystemExit: 3"),
        (PASS.format(cls="CsePass", name="cse", how="well"), "there is a pass cse already"),
        (PASS.format(cls="PlanPass", name="host-plan", how="well"), "there is a pass host-plan already"),
        (PASS.format(cls="BadPass", name="bad", how="well").replace("int", "bytes"), "TypeError: BadPass.rounds: exp"),
    ],
)
def test_a_file_with_a_fault_is_one_line_and_leaves_nothing(tmp_path: Path, text: str, message: str) -> None:
    kept = write(tmp_path / "kept.py", PASS.format(cls="KeptPass", name="kept", how="well"))
    load_passes_from(kept)
    modules = set(sys.modules)
    path = write(tmp_path / "mine.py", text)
    with pytest.raises(TilewrightError) as caught:
        load_passes_from(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(registered_passes()) == ["kept"]
    assert {name for name in set(sys.modules) - modules if name.startswith("tilewright_loaded")} == set()


def test_a_path_without_a_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match=r"cannot load passes: there is no file .*nothing\.py"):
        load_passes_from(tmp_path / "nothing.py")
    with pytest.raises(TilewrightError, match="cannot load passes: there is no file"):
        load_passes_from(tmp_path)


def test_an_installed_package_offers_passes(tmp_path: Path) -> None:
    write(
        tmp_path / "their_passes.py", PASS.format(cls="TheirPass", name="theirs", how="well").replace("@reg", "# @reg")
    )
    write(tmp_path / "broken.py", "1 / 0\n")
    points = (
        "[tilewright.passes]\ntheirs = their_passes:TheirPass\ncse = their_passes:TheirPass\n"
        "gone = gone.deep:GonePass\n"
        "broken = broken:BrokenPass\nother-name = their_passes:TheirPass\nno-class = their_passes:NoPass\n"
    )
    write(
        tmp_path / "their_package-1.0.dist-info" / "METADATA",
        "Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n",
    )
    write(tmp_path / "their_package-1.0.dist-info" / "entry_points.txt", points)
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import all_passes, plugin_passes
print(plugin_passes()["theirs"].summary())
print(plugin_passes()["gone"].summary())
for name in ("theirs", "cse", "gone", "broken", "other-name", "no-class"):
    try:
        print(name, all_passes()[name]().__name__)
    except TilewrightError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.splitlines() == [
        "Does nothing, well.",
        "",
        "theirs TheirPass",
        "cse CsePass",
        "error: pass gone is not available: there is no module gone.deep",
        "error: pass broken is not available: ZeroDivisionError: division by zero",
        "error: pass other-name is not available: their_passes:TheirPass is no pass of that name",
        "error: pass no-class is not available: their_passes has no class NoPass",
    ]
