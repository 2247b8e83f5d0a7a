"""What every pass is: a frozen dataclass with a name, typed options and a docstring; and how it raises at an op."""

from __future__ import annotations

import re
from abc import ABC
from typing import Any, ClassVar

from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of

_PASS_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class TilewrightPass(ModulePass, ABC):
    """Base of all passes of the project, and of those that users write.

    A subclass is a frozen dataclass whose fields are its options (int, float, bool, str, tuples of them, `| None`),
    with `name` in kebab case (the file's name with dashes) and a docstring that says what the pass changes and what it
    relies on. `apply(ctx, op)` changes the module in place; it raises `TilewrightError` for what the user can mend.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__dict__.get("name")
        if name is None:
            return  # an abstract base shared by several passes
        if not isinstance(name, str) or _PASS_NAME.fullmatch(name) is None:
            raise TypeError(f"{cls.__name__}: the name of a pass is lower case words with dashes, got {name!r}")
        if not cls.__dict__.get("__doc__"):
            raise TypeError(f"{cls.__name__}: a pass needs a docstring: what it changes, and what it relies on")


def error_at(op: Operation, message: str) -> TilewrightError:
    """A user error at an op, for `raise error_at(op, "...")`."""
    return TilewrightError(message, location_of(op))
