"""The wheel holds all of the package and nothing else. A folder that is forgotten is missing in the wheel alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tilewright"


def can_build() -> bool:
    """Return whether setuptools is there and understands the project's metadata."""
    try:
        return int(version("setuptools").split(".")[0]) >= 77
    except ImportError:
        return False


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel that is built from a copy of what git would give."""
    if not can_build():
        pytest.skip("no setuptools >= 77 to build with")
    import shutil

    source = tmp_path_factory.mktemp("source")
    # A copy, since a build leaves build/ and *.egg-info in its source; the links at the top come along as links.
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    shutil.copytree(PACKAGE, source / "tilewright", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("dialects", "passes", "lowering", "runtime"):
        (source / room).symlink_to(Path("tilewright") / room)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(out), str(source)], check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_module_is_in_the_wheel(wheel_names: set[str]) -> None:
    modules = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")}
    assert modules - wheel_names == set()


def test_headers_and_type_marker_are_in_the_wheel(wheel_names: set[str]) -> None:
    headers = {str(path.relative_to(ROOT)) for kind in ("*.cuh", "*.hpp") for path in PACKAGE.rglob(kind)}
    assert {path.rpartition(".")[2] for path in headers} == {"cuh", "hpp"}, "the headers are part of the package"
    assert (headers | {"tilewright/py.typed"}) - wheel_names == set()


def test_the_wheel_holds_one_package(wheel_names: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tilewright"}


def test_the_licence_is_in_the_wheel(wheel_names: set[str]) -> None:
    assert any(name.endswith("/LICENSE") for name in wheel_names)


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
