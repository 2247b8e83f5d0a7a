"""Which passes there are, as one literal table; a pass is imported when it is asked for.

The name of a pass gives its file and its class: `fuse-groups` is `FuseGroupsPass` in `fuse_groups.py`. This module
imports no xDSL, so that listing the passes costs nothing.

A pass from elsewhere becomes known in one of three ways: its class is decorated with `@register_pass` in a module that
the program imports; `load_passes_from` imports a file by its path; or an installed package names it in the entry point
group `tilewright.passes`. A name that this package uses is never taken over.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from inspect import get_annotations
from pathlib import Path
from stat import S_ISREG
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tilewright.diagnostics import SourceLocation, TilewrightError

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
    "form-clusters",
    "make-persistent",
    "pipeline-copies",
    "share-copies",
    "specialise-warps",
)
"""Decisions of the schedule, each written on the ops."""

LOWERING_NAMES = (
    "lin-to-tile",
    "host-plan",
    "instantiate-variants",
    "tile-to-simt",
)
"""Names of the lowerings, which `tilewright.lowering.registry` holds: no pass from elsewhere may have one."""

ENTRY_POINT_GROUP = "tilewright.passes"
"""Other packages name passes here: `my-pass = "my_package.my_module:MyPass"`."""


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A pass by name, with the place of its class; nothing is imported before `load`."""

    name: str
    module: str
    class_name: str

    def load(self) -> type[ModulePass]:
        """Import and return the pass's class; TilewrightError when it is not there, cannot be imported or is no pass
        of this name."""
        if _source_of(self.module) is None:
            raise TilewrightError(f"pass {self.name} is not available: there is no module {self.module}")
        try:
            found: Any = import_module(self.module)
            for attribute in self.class_name.split("."):
                found = getattr(found, attribute, None)
        except Exception as error:
            raise TilewrightError(f"pass {self.name} is not available: {_in_one_line(error)}") from error
        if found is None:
            raise TilewrightError(f"pass {self.name} is not available: {self.module} has no class {self.class_name}")
        if not (isinstance(found, type) and getattr(found, "name", None) == self.name and hasattr(found, "apply")):
            raise TilewrightError(
                f"pass {self.name} is not available: {self.module}:{self.class_name} is no pass of that name"
            )
        return cast("type[ModulePass]", found)

    def summary(self) -> str:
        """The first line of the class's docstring, read from the source without an import; empty if there is none."""
        source = _source_of(self.module)
        return "" if source is None else _first_line_of_docstring(source, self.class_name)


def _source_of(module: str) -> Path | None:
    """The file of a module by dotted name, None where there is no such module."""
    try:
        spec = find_spec(module)
    except Exception:  # a package around it is not there, or fails while it is imported
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _in_one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}".removesuffix(": ")


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

_others: list[str] = []  # what else was registered, such as targets; filled by `note_registration` alone

_PassT = TypeVar("_PassT", bound="type[ModulePass]")


def register_pass(cls: _PassT) -> _PassT:
    """Class decorator: make a pass known by its name in this process, to pipelines and to `tilewright-opt`.

    For passes that live outside this package. Raises TilewrightError when another class has the name already, and
    TypeError for a class with options that is no dataclass. The same class of the same file may be registered again,
    as happens when a module is reloaded, or loaded by its path after it was imported by name.
    """
    if "__dataclass_fields__" not in cls.__dict__ and any(_is_option(cls, name) for name in get_annotations(cls)):
        raise TypeError(f"{cls.__name__} has options: expected @register_pass above @dataclass(frozen=True)")
    known = _registered.get(cls.name)
    taken = known is not None and place_of(known) != place_of(cls)
    if cls.name in PASSES or cls.name in LOWERING_NAMES or taken:
        raise TilewrightError(
            f"there is a pass {cls.name} already; {cls.__module__}.{cls.__qualname__} needs a name of its own"
        )
    _registered[cls.name] = cls
    return cls


def _is_option(cls: type, name: str) -> bool:
    return "ClassVar" not in str(get_annotations(cls)[name])


def note_registration(name: str) -> None:
    """Say that something that is no pass was registered, so that a file with nothing else in it counts as one."""
    _others.append(name)


def place_of(cls: type) -> tuple[str, str]:
    """Where a class is defined: the file (or module, without one) and the name in it."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return (cls.__module__ if file is None else str(Path(file).resolve()), cls.__qualname__)


def registered_passes() -> dict[str, type[ModulePass]]:
    """The passes that were registered in this process, by name in the order of registration."""
    return dict(_registered)


def load_passes_from(path: Path) -> list[str]:
    """Import a Python file by its path, and return the names of the passes that it registers with `@register_pass`.

    A file may register targets instead (`@register_target`); their names are not returned.

    The file is a module of its own, named after its path, so that two files of one name do not meet; loading a file
    again replaces its passes. It runs with the rights of the process: load files that you trust. Raises
    TilewrightError, at the file's line where there is one, when there is no such file, it does not parse, it raises
    while it is imported, or it registers nothing; what it had registered until then is forgotten.
    """
    try:
        there = S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
        there = False
    except OSError as problem:
        raise TilewrightError(f"cannot load passes: {problem.strerror or problem}: {str(path)[:80]}") from None
    if not there:
        raise TilewrightError(f"cannot load passes: there is no file {path}")
    digest = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    name = f"tilewright_loaded_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    before, others = dict(_registered), len(_others)
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up while the class is made
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, module.__dict__)
        found = [each for each, cls in _registered.items() if before.get(each) is not cls]
        if not found and len(_others) == others:
            raise TilewrightError(f"{path} registers no pass: decorate its classes with @register_pass")
    except BaseException as error:
        del sys.modules[name]
        _registered.clear()
        _registered.update(before)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _load_error(path, error) from error
    return found


def _load_error(path: Path, error: BaseException) -> TilewrightError:
    """What went wrong in a file of passes, in one line at the file's own line."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        location = SourceLocation(str(path), error.lineno or 1, error.offset or 1)
        return TilewrightError(f"cannot load passes: {error.msg}", location)
    if isinstance(error, OSError) and error.filename == str(path):
        return TilewrightError(f"cannot load passes: {error.strerror}: {path}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    location = SourceLocation(str(path), lines[-1] or 1, 1) if lines else None
    if isinstance(error, TilewrightError):
        return TilewrightError(error.message, error.location or location)
    return TilewrightError(f"cannot load passes: {_in_one_line(error)}", location)


@cache
def plugin_passes() -> dict[str, PassEntry]:
    """Passes that installed packages offer through the entry point group; a name of our own is never taken over."""
    found: dict[str, PassEntry] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name not in PASSES and point.name not in LOWERING_NAMES:
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
