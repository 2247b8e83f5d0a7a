"""Which passes there are, as one literal table; a pass is imported when it is asked for.

The name of a pass gives its file and its class: `fuse-groups` is `FuseGroupsPass` in `fuse_groups.py`. This module
imports no xDSL, so that listing the passes costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

TENSOR_PASSES = (
    "infer-shapes",
    "canonicalize",
    "cse",
    "cancel-movement",
    "decompose",
    "fuse-elementwise",
    "fuse-groups",
)
"""Rewrites of `lin` programs; canonicalize and cse serve all levels."""

CHECKS = (
    "verify-dims",
    "verify-level",
    "verify-facts",
)
"""Passes that change nothing and raise when a promise is broken."""

TILE_PASSES = (
    "interchange-loops",
    "choose-mma",
    "stage-results",
    "promote-to-shared",
    "block-registers",
    "map-threads",
    "coalesce",
    "vectorise",
    "pad-shared",
    "allocate-shared",
    "insert-barriers",
    "remove-barriers",
    "prove-bounds",
    "finish-schedule",
    "make-persistent",
    "pipeline-copies",
    "specialise-warps",
)
"""Decisions of the schedule, each written on the ops."""

ENTRY_POINT_GROUP = "tilewright.passes"
"""Other packages name passes here: `my-pass = "my_package.my_module:MyPass"`."""


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A pass by name, with the place of its class; nothing is imported before `load`."""

    name: str
    module: str
    class_name: str

    def load(self) -> type[ModulePass]:
        """Import and return the pass's class; TilewrightError when the module or the class is not there."""
        if find_spec(self.module) is None:
            raise TilewrightError(f"pass {self.name} is not available: there is no module {self.module}")
        found = getattr(import_module(self.module), self.class_name, None)
        if found is None:
            raise TilewrightError(f"pass {self.name} is not available: {self.module} has no class {self.class_name}")
        return found

    def summary(self) -> str:
        """The first line of the class's docstring, read from the source without an import; empty if there is none."""
        spec = find_spec(self.module)
        if spec is None or spec.origin is None:
            return ""
        return _first_line_of_docstring(Path(spec.origin), self.class_name)


def _first_line_of_docstring(source: Path, class_name: str) -> str:
    """The first line of the docstring of a class that a file defines, or imports from a file beside it."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
        if isinstance(node, ast.ImportFrom) and any(alias.name == class_name for alias in node.names):
            beside = source.with_name((node.module or "").rpartition(".")[2] + ".py")
            if beside.exists() and beside != source:
                return _first_line_of_docstring(beside, class_name)
    return ""


def entries(names: Iterable[str], package: str) -> dict[str, PassEntry]:
    """The entries of passes that live one a file in `package`."""
    table: dict[str, PassEntry] = {}
    for name in names:
        class_name = "".join(word.capitalize() for word in name.split("-")) + "Pass"
        table[name] = PassEntry(name, f"{package}.{name.replace('-', '_')}", class_name)
    return table


PASSES: dict[str, PassEntry] = entries(TENSOR_PASSES + CHECKS + TILE_PASSES, "tilewright.passes")
"""Every pass of this package by name."""

_registered: dict[str, type[ModulePass]] = {}  # filled by `register_pass` alone, for the life of the process

_PassT = TypeVar("_PassT", bound="type[ModulePass]")


def register_pass(cls: _PassT) -> _PassT:
    """Class decorator: make a pass known by its name in this process, to pipelines and to `tilewright-opt`.

    For passes that live outside this package. Raises TilewrightError when another class has the name already.
    """
    known = _registered.get(cls.name)
    same_place = known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
    if cls.name in PASSES or (known is not None and not same_place):
        raise TilewrightError(
            f"there is a pass {cls.name} already; {cls.__module__}.{cls.__qualname__} needs a name of its own"
        )
    _registered[cls.name] = cls
    return cls


@cache
def plugin_passes() -> dict[str, PassEntry]:
    """Passes that installed packages offer through the entry point group; a name of our own is never taken over."""
    found: dict[str, PassEntry] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name not in PASSES:
            found[point.name] = PassEntry(point.name, point.module, point.attr)
    return found


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass by name: this package's, those registered in this process, plugins'; call a value to load it."""
    table: dict[str, Callable[[], type[ModulePass]]] = {name: entry.load for name, entry in plugin_passes().items()}
    for name, cls in _registered.items():
        table[name] = _constant(cls)
    table.update({name: entry.load for name, entry in PASSES.items()})
    return table


def _constant(cls: type[ModulePass]) -> Callable[[], type[ModulePass]]:
    return lambda: cls
