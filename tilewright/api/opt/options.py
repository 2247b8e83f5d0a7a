"""From option text to a pass or target object: values become what the dataclass field says they are.

    build(TilePass, Spec("tile", {"sizes": (Value("8"), Value("16"))}, ...), "pass")    # TilePass(sizes=(8, 16))

Fields are int, float, bool, str, Literal of strings, tuples of these, and any of them or None.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible

from tilewright.api.opt.pipeline_text import Spec, Value
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import one_line
from tilewright.dialects.suggest import did_you_mean

_T = TypeVar("_T", bound=ArgSpecConvertible)
_Scalar = str | int | bool | float


@dataclasses.dataclass(frozen=True, slots=True)
class _Accepts:
    """What a field's type lets in."""

    scalars: frozenset[type]
    choices: tuple[str, ...] = ()
    several: bool = False
    optional: bool = False

    def __str__(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        names = " or ".join(kind.__name__ for kind in (int, float, bool, str) if kind in self.scalars)
        return f"a list of {names}" if self.several else names

    def merged(self, other: _Accepts) -> _Accepts:
        return _Accepts(
            self.scalars | other.scalars,
            self.choices + other.choices,
            self.several or other.several,
            self.optional or other.optional,
        )


def build(cls: type[_T], spec: Spec, kind: str) -> _T:
    """Return the pass or target `cls` with the options of `spec`; `kind` is `pass` or `target`, for messages.

    Raises TilewrightError for an unknown option (with the nearest name), a value of the wrong type, a missing option,
    and whatever the class itself objects to.
    """
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = get_type_hints(cls)
    parameters: dict[str, tuple[_Scalar, ...]] = {}
    for key, values in spec.options.items():
        name = key.replace("-", "_")
        if name not in fields:
            known = [known.replace("_", "-") for known in fields]
            hint = did_you_mean(key, known) or (f"; it has {', '.join(known)}" if known else "; it has none")
            raise TilewrightError(f"{kind} '{spec.name}' has no option '{key}'{hint}", spec.location)
        where = f"option '{key}' of {kind} '{spec.name}'"
        parameters[name] = _convert(values, _accepts(hints[name]), where, spec)
    missing = [
        name.replace("_", "-")
        for name, f in fields.items()
        if name not in parameters
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
        and not _accepts(hints[name]).optional
    ]
    if missing:
        raise TilewrightError(f"{kind} '{spec.name}' needs the option '{missing[0]}'", spec.location)
    try:
        return cls.from_spec(ArgSpec(spec.name, parameters))
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or spec.location) from error
    except (ValueError, TypeError) as error:
        raise TilewrightError(f"{kind} '{spec.name}': {one_line(str(error))}", spec.location) from error


def _accepts(hint: Any) -> _Accepts:
    """Return what the type `hint` lets in."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        merged = _Accepts(frozenset())
        for member in get_args(hint):
            merged = merged.merged(_accepts(member))
        return merged
    if origin is Literal:
        return _Accepts(frozenset({str}), choices=tuple(str(choice) for choice in get_args(hint)))
    if origin is tuple:
        members = [member for member in get_args(hint) if member is not Ellipsis]
        merged = _Accepts(frozenset(), several=True)
        for member in members:
            merged = merged.merged(_accepts(member))
        return merged
    if hint is types.NoneType:
        return _Accepts(frozenset(), optional=True)
    return _Accepts(frozenset({hint}))


def _convert(values: tuple[Value, ...], accepts: _Accepts, where: str, spec: Spec) -> tuple[_Scalar, ...]:
    """Return the values as the field takes them; a bare flag means true for a bool, and None where None is allowed."""
    if not values:
        if bool in accepts.scalars:
            return (True,)
        if accepts.optional:
            return ()
        raise TilewrightError(f"{where} needs a value: expected {accepts}", spec.location)
    if len(values) > 1 and not accepts.several:
        raise TilewrightError(f"{where} takes one value, got {len(values)}: expected {accepts}", spec.location)
    return tuple(_convert_one(value, accepts, where, spec) for value in values)


def _convert_one(value: Value, accepts: _Accepts, where: str, spec: Spec) -> _Scalar:
    """Return one value as the narrowest type that is let in: bool, int, float, then str."""
    text = value.text
    if not value.quoted:
        if bool in accepts.scalars and text in ("true", "false"):
            return text == "true"
        for number in (int, float):
            if number in accepts.scalars and len(text) <= 64:
                try:
                    return number(text)
                except ValueError:
                    continue
    if str in accepts.scalars and (not accepts.choices or text in accepts.choices):
        return text
    hint = did_you_mean(text, accepts.choices)
    raise TilewrightError(f"{where}: expected {accepts}, got '{text}'{hint}", spec.location)
