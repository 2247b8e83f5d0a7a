"""What every pass is: a frozen dataclass with a name, a level, typed options and a docstring; errors at an op.

Options are the fields of the dataclass. A field is a `bool`, `int`, `float`, `str`, an `Enum`, a `Literal` of strings
or numbers, or several of these: `tuple[X, ...]`, `list[X]`, `Sequence[X]`; and any of them `| None`. In a pipeline's
text an option is written `my-pass{max-rounds=3 kind=fast sizes=8,16 loud}`: dashes for the underscores of the field, a
list with commas, a bool alone or with true and false, and a member of an enum by `option_text`. A subclass with a field
of another type is a TypeError where it is defined, or, when a name in its annotations is not known there yet, in
`option_types`.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from abc import ABC
from collections.abc import Sequence
from dataclasses import Field, fields
from enum import Enum
from typing import Any, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.passes.statistics import count_statistic

_PASS_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

LEVELS = ("tensor", "tile", "simt", "any")
"""What `TilewrightPass.level` may be."""


class TilewrightPass(ModulePass, ABC):
    """Base of all passes of the project, and of those that users write.

    A subclass is a frozen dataclass whose fields are its options (the types are listed at the top of this file), with
    `name` in kebab case, `level`, and a docstring that says what the pass changes and what it relies on. `apply(ctx,
    op)` changes the module in place; it raises `TilewrightError` for what the user can mend.
    """

    name: ClassVar[str]
    """Lower-case words with dashes; a pass of this package lives in the file of that name."""

    level: ClassVar[str] = "tensor"
    """What a module must be at for the pass to run: tensor, tile, simt or any. A lowering: the level it starts from."""

    anchors: ClassVar[tuple[str, ...]] = ("builtin.module", "func.func", "host.func", "tile.kernel", "simt.kernel")
    """Ops that a pipeline may run the pass on alone, as in `func.func(my-pass)`. Whatever the anchor is, `apply` gets a
    module: one with the symbols and requirements of the whole module and that one op. What the pass does to the op is
    kept, what it does to the rest is not. A pass that must see all functions or kernels at once, or that puts others in
    their place, names `builtin.module` alone."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        level = cls.__dict__.get("level", "any")
        # An option may be called level; then an instance's value is the level it needs.
        if not isinstance(level, Field) and level not in LEVELS:
            raise TypeError(f"{cls.__name__}: expected level to be one of {', '.join(LEVELS)}, got {level!r}")
        anchors = cls.__dict__.get("anchors", TilewrightPass.anchors)
        if not isinstance(anchors, tuple) or "builtin.module" not in anchors:
            raise TypeError(f"{cls.__name__}: expected anchors to be a tuple with builtin.module, got {anchors!r}")
        _check_options(cls)
        name = cls.__dict__.get("name")
        if name is None:
            return  # an abstract base shared by several passes
        if not isinstance(name, str) or _PASS_NAME.fullmatch(name) is None:
            raise TypeError(f"{cls.__name__}: the name of a pass is lower case words with dashes, got {name!r}")
        if not cls.__dict__.get("__doc__"):
            raise TypeError(f"{cls.__name__}: a pass needs a docstring: what it changes, and what it relies on")

    def statistic(self, statistic: str, n: int = 1) -> None:
        """Add `n` to a count of this pass, such as `self.statistic("loops moved")`; dropped when nobody collects."""
        count_statistic(self.name, statistic, n)


def error_at(op: Operation, message: str) -> TilewrightError:
    """A user error at an op, for `raise error_at(op, "...")`."""
    return TilewrightError(message, location_of(op))


def option_text(member: Enum) -> str:
    """How a member of an enum is written as an option: its value if that is a string, else its name as in `two-way`."""
    return member.value if isinstance(member.value, str) else member.name.lower().replace("_", "-")


def option_types(cls: type[ModulePass]) -> dict[str, Any]:
    """Each option of a pass with its type, resolved; TypeError at an annotation that is unknown or of another type."""
    try:
        hints = get_type_hints(cls)
    except (NameError, AttributeError) as error:
        raise TypeError(f"{cls.__name__}: the type of an option is not known: {error}") from error
    found = {field.name: hints[field.name] for field in fields(cls) if field.init}
    for option, hint in found.items():
        _check_option(cls, option, hint)
    return found


def _check_options(cls: type) -> None:
    """Check the options that a class adds, as far as the names in their annotations are known by now."""
    try:
        annotations = inspect.get_annotations(cls)
    except NameError:
        return  # from Python 3.14 on annotations are evaluated on demand: `option_types` checks them later
    names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    for option, annotation in annotations.items():
        hint = annotation
        if isinstance(annotation, str):
            try:
                # As typing.get_type_hints does; the text is the program's own.
                hint = eval(annotation, dict(names), dict(vars(cls)))
            except (NameError, AttributeError):
                continue  # defined later, or inside a function: `option_types` checks it
        default = cls.__dict__.get(option)
        if isinstance(default, Field) and not default.init:
            continue
        _check_option(cls, option, hint)


def _check_option(cls: type, option: str, hint: Any) -> None:
    if get_origin(hint) is ClassVar or hint is ClassVar:
        return
    if not _is_option_type(hint):
        shown = hint.__name__ if isinstance(hint, type) else str(hint)
        raise TypeError(
            f"{cls.__name__}.{option}: expected an option of type bool, int, float, str, an Enum, a Literal, a tuple, "
            f"list or Sequence of these, or None besides, got {shown}"
        )


def _is_option_type(hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return all(member is types.NoneType or _is_option_type(member) for member in arguments)
    if origin in (tuple, list, Sequence):
        members = [member for member in arguments if member is not Ellipsis]
        return bool(members) and all(_is_scalar(member) for member in members)
    return _is_scalar(hint)


def _is_scalar(hint: Any) -> bool:
    """Whether one word of a pipeline's text can be a value of the type; `int | float` can."""
    origin = get_origin(hint)
    if origin is Literal:
        return all(isinstance(choice, str | int | float) for choice in get_args(hint))
    if origin in (Union, types.UnionType):
        return all(_is_scalar(member) for member in get_args(hint))
    if not isinstance(hint, type):
        return False
    return hint in (bool, int, float, str) or issubclass(cast("type[Any]", hint), Enum)
