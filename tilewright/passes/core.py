"""What every pass is: a frozen dataclass with a name, a level, typed options and a docstring; errors at an op.

Options are the fields of the dataclass: `bool`, `int`, `float`, `str`, an `Enum`, a `Literal` of strings or numbers, a
`tuple[X, ...]`, `list[X]` or `Sequence[X]` of these, and any of them `| None`; `options.py` says how each is written. A
subclass with a field of another type is a TypeError where it is defined, or, when a name in its annotations is not
known there yet, in `option_types`.
"""

from __future__ import annotations

import re
from abc import ABC
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Self

from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.passes.options import arguments_from, check_options, parameters_of
from tilewright.passes.statistics import count_statistic

_PASS_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

LEVELS = ("tensor", "tile", "simt", "any")
"""What `TilewrightPass.level` may be."""


class TilewrightPass(ModulePass, ABC):
    """Base of all passes of the project, and of those that users write.

    A subclass is a frozen dataclass whose fields are its options (the top of this file says of which types), with
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
        check_options(cls)
        name = cls.__dict__.get("name")
        if name is None:
            return  # an abstract base shared by several passes
        if not isinstance(name, str) or _PASS_NAME.fullmatch(name) is None:
            raise TypeError(f"{cls.__name__}: the name of a pass is lower case words with dashes, got {name!r}")
        if not cls.__dict__.get("__doc__"):
            raise TypeError(f"{cls.__name__}: a pass needs a docstring: what it changes, and what it relies on")

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """The pass with the options of a specification, as `xdsl-opt` reads it; ValueError for what does not fit."""
        if spec.name != cls.name:
            raise ValueError(f"expected a specification of {cls.name}, got one of {spec.name}")
        return cls(**arguments_from(cls, spec.normalize_parameter_names().parameters))

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """The pass as a specification, with the options that are not at their defaults or with all of them."""
        parameters: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if field.init and (include_default or value != default):
                parameters[field.name] = parameters_of(value)
        return ArgSpec(self.name, parameters)

    def statistic(self, statistic: str, n: int = 1) -> None:
        """Add `n` to a count of this pass, such as `self.statistic("loops moved")`; dropped when nobody collects."""
        count_statistic(self.name, statistic, n)


def error_at(op: Operation, message: str) -> TilewrightError:
    """A user error at an op, for `raise error_at(op, "...")`."""
    return TilewrightError(message, location_of(op))
