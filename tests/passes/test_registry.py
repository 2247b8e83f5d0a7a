"""The table of passes: names, files and classes agree, and listing loads nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright import passes
from tilewright.diagnostics import TilewrightError
from tilewright.lowering.registry import LOWERINGS, all_lowerings
from tilewright.passes import registry
from tilewright.passes.core import TilewrightPass
from tilewright.passes.registry import PASSES, PassEntry, all_passes, register_pass

PACKAGE = Path(__file__).parents[2] / "tilewright"


def pass_classes(room: str) -> set[str]:
    """Names of the passes that files of a room define: a class named as its file, with `Pass` at the end."""
    found: set[str] = set()
    for path in sorted((PACKAGE / room).iterdir()):
        expected = "".join(word.capitalize() for word in path.stem.split("_")) + "Pass"
        # A pass may be a folder, with the class in the file of the same name or in __init__.
        sources = [path / f"{path.name}.py", path / "__init__.py"] if path.is_dir() else [path]
        for source in sources:
            if source.suffix == ".py" and source.exists():
                tree = ast.parse(source.read_text(encoding="utf-8"))
                if any(isinstance(node, ast.ClassDef) and node.name == expected for node in tree.body):
                    found.add(path.stem.replace("_", "-"))
    return found


def test_the_tables_are_the_files() -> None:
    assert pass_classes("passes") == set(PASSES)
    assert pass_classes("lowering") == set(LOWERINGS)


@pytest.mark.parametrize("entry", [*PASSES.values(), *LOWERINGS.values()], ids=lambda entry: entry.name)
def test_a_pass_is_what_the_table_says(entry: PassEntry) -> None:
    cls = entry.load()
    assert cls.name == entry.name
    assert cls.__name__ == entry.class_name
    assert is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]  # not in the type stubs
    assert entry.summary()
    assert (cls.__doc__ or "").strip().startswith(entry.summary())


def test_loading_a_pass_that_is_not_there_is_a_clean_error() -> None:
    with pytest.raises(TilewrightError, match=r"pass make-tea is not available: there is no module tilewright\.tea"):
        PassEntry("make-tea", "tilewright.tea", "MakeTeaPass").load()
    with pytest.raises(TilewrightError, match="has no class MakeTeaPass"):
        PassEntry("make-tea", "tilewright.passes.cse", "MakeTeaPass").load()
    assert PassEntry("make-tea", "tilewright.tea", "MakeTeaPass").summary() == ""
    assert PassEntry("make-tea", "tilewright.passes.cse", "MakeTeaPass").summary() == ""


def test_a_summary_is_not_looked_for_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that a module imports from another folder: listing passes would have to load that."""
    (tmp_path / "teapot.py").write_text("from tilewright.passes.cse import CsePass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert PassEntry("cse", "teapot", "CsePass").summary() == ""


def test_listing_passes_imports_no_xdsl() -> None:
    code = (
        "import sys\n"
        "from tilewright.passes.registry import all_passes, PASSES\n"
        "from tilewright.lowering.registry import all_lowerings\n"
        "all_passes(), all_lowerings(), PASSES['cse'].summary()\n"
        "assert not {'xdsl', 'numpy'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent)


def test_all_passes_load_by_call() -> None:
    assert all_passes()["cse"]().name == "cse"
    assert set(all_lowerings()) == set(LOWERINGS)


def test_a_registered_pass_is_found_and_its_name_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})

    @register_pass
    @dataclass(frozen=True)
    class CountOpsPass(TilewrightPass):
        """Counts."""

        name = "count-ops"
        most: int = 3

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    assert all_passes()["count-ops"]() is CountOpsPass
    assert [f.name for f in fields(CountOpsPass)] == ["most"]

    @dataclass(frozen=True)
    class OtherPass(TilewrightPass):
        """Has the same name."""

        name = "count-ops"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    with pytest.raises(TilewrightError, match="there is a pass count-ops already"):
        register_pass(OtherPass)


def test_a_pass_with_options_must_be_a_dataclass_when_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})

    class ForgetfulPass(TilewrightPass):
        """Forgot its decorator."""

        name = "forgetful"
        anchors: ClassVar[tuple[str, ...]] = ("builtin.module",)
        most: int = 3

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    with pytest.raises(TypeError, match=r"ForgetfulPass has options: expected @register_pass above @dataclass"):
        register_pass(ForgetfulPass)

    class PlainPass(TilewrightPass):
        """Has no options."""

        name = "plain"
        anchors: ClassVar[tuple[str, ...]] = ("builtin.module",)

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    assert register_pass(PlainPass) is PlainPass


def test_every_public_name_is_there_and_documented() -> None:
    for name in passes.__all__:
        found = getattr(passes, name)
        assert name == "LEVELS" or (found.__doc__ or "").strip()
        assert found is not None
    assert set(passes.__all__) <= set(dir(passes))
    with pytest.raises(AttributeError, match="no attribute 'make_tea'"):
        _ = passes.make_tea


def test_a_pass_needs_a_docstring_and_a_proper_name() -> None:
    with pytest.raises(TypeError, match="needs a docstring"):

        class NamelessPass(TilewrightPass):  # pyright: ignore[reportUnusedClass]
            name = "nameless"

    with pytest.raises(TypeError, match="lower case words with dashes"):

        class LoudPass(TilewrightPass):  # pyright: ignore[reportUnusedClass]
            """Shouts."""

            name = "Loud_Pass"
