"""The rooms of the house: who may import whom, and what an import may cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tilewright"

ROOMS = ["diagnostics", "dialects", "passes", "lowering", "runtime", "api"]
"""From the ground up: a room imports itself and those before it."""

DOORS = {"targets", "testing"}
"""Public modules beside the rooms that only name what rooms define; nothing in the package imports them."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import in a file, those inside functions and TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            # `from tilewright import passes` imports the room tilewright.passes.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def room_of(name: str) -> str | None:
    """Return the room that a dotted name is in, or None for what is outside and for the package's own names."""
    parts = name.split(".")
    return parts[1] if parts[0] == "tilewright" and len(parts) > 1 and parts[1] in ROOMS else None


def upward_imports(path: Path, room: str) -> list[str]:
    return [
        f"{path.name}:{line}: {room} imports {name}"
        for line, name in imported_modules(path)
        if (other := room_of(name)) is not None and ROOMS.index(other) > ROOMS.index(room)
    ]


def test_rooms_are_those_of_the_package() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} - DOORS == set(ROOMS)


def test_doors_are_light_and_nothing_within_goes_through_them() -> None:
    assert [
        f"{path}:{line}: {name}"
        for path in MODULES
        for line, name in imported_modules(path)
        if path.stem not in DOORS
        and any(name == f"tilewright.{d}" or name.startswith(f"tilewright.{d}.") for d in DOORS)
    ] == []
    for door in (PACKAGE / f"{name}.py" for name in DOORS):
        if door.exists():
            assert loaded_after(f"import tilewright.{door.stem}") & {"numpy", "xdsl", "hypothesis"} == set()


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_upwards(room: str) -> None:
    files = [path for path in MODULES if path.relative_to(PACKAGE).with_suffix("").parts[0] == room]
    assert files
    assert [line for path in files for line in upward_imports(path, room)] == []


def test_an_upward_import_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("def f():\n    from tilewright.runtime.cuda import run\n    from tilewright import api\n")
    assert len(upward_imports(path, "passes")) == 2
    assert upward_imports(path, "api") == []


def test_no_relative_imports() -> None:
    python_files = [*MODULES, *(ROOT / "tests").rglob("*.py")]
    assert [
        f"{path}:{line}" for path in python_files for line, name in imported_modules(path) if name.startswith(".")
    ] == []


def test_no_import_through_the_links_at_the_top() -> None:
    links = {"dialects", "passes", "lowering", "runtime"}
    python_files = [*MODULES, *(ROOT / "tests").rglob("*.py")]
    assert [
        f"{path}:{line}: {name}"
        for path in python_files
        for line, name in imported_modules(path)
        if name.split(".")[0] in links
    ] == []


def loaded_after(statement: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after `statement`."""
    script = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_import_of_the_package_is_light() -> None:
    assert loaded_after("import tilewright") & {"numpy", "xdsl", "ml_dtypes"} == set()


def test_opt_tool_runs_without_numpy() -> None:
    """Loading every dialect and running the tool must not load NumPy: it would double the start-up time."""
    source = "func.func @f() {\\n  func.return\\n}"
    statement = (
        "import io\n"
        "from tilewright.api.opt.main import main\n"
        "from tilewright.dialects.registry import all_dialects\n"
        "[factory() for factory in all_dialects().values()]\n"
        f"code = main(['-p', 'cse'], io.StringIO('{source}'), io.StringIO(), sys.stderr)\n"
        "assert code == 0"
    )
    assert loaded_after(statement) & {"numpy", "ml_dtypes", "cuda", "pycuda"} == set()


def test_help_loads_no_xdsl() -> None:
    statement = (
        "import io\nfrom tilewright.api.opt.main import main\nmain(['--help'], None, io.StringIO(), io.StringIO())"
    )
    assert loaded_after(statement) & {"numpy", "xdsl"} == set()
