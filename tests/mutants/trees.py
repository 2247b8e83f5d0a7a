"""Copies of the project that mutants are put into: the working tree is never edited.

A copy holds what git would give (tracked, and not ignored), and takes precedence over an installed package through
PYTHONPATH. Bytecode in it is checked against the hash of its source, not its time: a fault that is put in and taken
out within a second, without a change of size, would else go unseen.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "tilewright"
ROOMS: Final = ("passes", "lowering")
"""Where mutants are made."""
OWN_FOLDER: Final = "tests/mutants"
"""Tests of the mutation check itself: they are no tests of the compiler."""


def project_files(root: Path = ROOT) -> list[str]:
    """Every file of the project as a path relative to `root`, sorted; links as they are."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({name for name in listed if name and os.path.lexists(root / name)})


def copy_project(target: Path, root: Path = ROOT) -> None:
    """Copy the project to `target`, which must not exist, and compile it."""
    for name in project_files(root):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_symlink():
            place.symlink_to(os.readlink(root / name))
        else:
            shutil.copyfile(root / name, place)
    compile_package(target)


def compile_package(tree: Path) -> None:
    """Write bytecode for the package of a copy that holds as long as the source's hash is the same."""
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(str(tree / PACKAGE), quiet=1, invalidation_mode=mode, workers=1)


def environment(tree: Path, scratch: Path, **more: str) -> dict[str, str]:
    """The environment of a pytest that runs in `tree`: its package, and caches of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TILEWRIGHT_", "COVERAGE_"))}
    kept.update(
        PYTHONPATH=os.pathsep.join(filter(None, (more.pop("first_on_path", ""), str(tree)))),
        PYTHONHASHSEED="0",
        TILEWRIGHT_CACHE_DIR=str(scratch / "cache"),
        TMPDIR=str(scratch),
        **more,
    )
    (scratch / "cache").mkdir(parents=True, exist_ok=True)
    return kept


def python() -> str:
    """The interpreter that runs this."""
    return sys.executable


def digest(root: Path, names: Iterable[str]) -> str:
    """A hash of the names and contents of files."""
    total = hashlib.sha256()
    for name in sorted(names):
        path = root / name
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:16]
