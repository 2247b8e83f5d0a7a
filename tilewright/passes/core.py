"""What every pass is: a frozen dataclass with a name, typed options and a docstring; and how it raises at an op."""

from __future__ import annotations

import re
from abc import ABC
from dataclasses import fields
from typing import Any, ClassVar, Self, get_type_hints

from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

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

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """The pass with the options of `spec`.

        A bare flag (`unroll`) sets a bool option. Raises TilewrightError that names the option, for an unknown option,
        a missing one, and a value of the wrong type.
        """
        parameters = dict(spec.normalize_parameter_names().parameters)
        hints = get_type_hints(cls)
        options = [f.name for f in fields(cls) if f.init]
        for key, value in parameters.items():
            if key not in options:
                known = ", ".join(options) or "none"
                raise TilewrightError(f"pass {cls.name} has no option '{key}' (options: {known})")
            if value == () and hints[key] is bool:
                parameters[key] = (True,)
            elif len(value) == 1 and hints[key] is float and type(value[0]) is int:
                parameters[key] = (float(value[0]),)
        try:
            return super().from_spec(ArgSpec(spec.name, parameters))
        except TilewrightError as error:
            raise TilewrightError(f"pass {cls.name}: {error.message}") from error
        except ValueError as error:
            raise TilewrightError(f"pass {cls.name}: {error}") from error


def error_at(op: Operation, message: str) -> TilewrightError:
    """A user error at an op, for `raise error_at(op, "...")`."""
    return TilewrightError(message, location_of(op))
