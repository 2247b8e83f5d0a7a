"""Between option text and a pass or target object: what a dataclass field takes, and how its value is written.

    build(TilePass, Spec("tile", {"sizes": (Value("8"), Value("16"))}, ...), "pass")    # TilePass(sizes=(8, 16))
    written(TilePass(sizes=(8, 16)))                                                     # tile{sizes=8,16}

Fields are int, float, bool, str, Literal, Enum, tuples and lists of these, and any of them or None. A member of an Enum
is named by its value if that is a string, else by its name in lower case with dashes.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tilewright.api.opt.pipeline_text import BARE_VALUE, Spec, Value
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import one_line
from tilewright.dialects.suggest import did_you_mean
from tilewright.passes.options import option_text

if TYPE_CHECKING:
    from xdsl.utils.arg_spec import ArgSpecConvertible

_T = TypeVar("_T", bound="ArgSpecConvertible")

_NUMBER = re.compile(r"[+-]?[0-9]+")
_SCALARS = (int, float, bool, str)
_SEQUENCES = (tuple, list, Sequence)


@dataclasses.dataclass(frozen=True, slots=True)
class Accepts:
    """What a field's type lets in; prints as a person reads it, such as `a list of int` or `one of fast, exact`."""

    scalars: frozenset[type] = frozenset()
    choices: tuple[tuple[str, object], ...] = ()
    """Text -> value of each choice, of a Literal or an Enum."""
    several: type | None = None
    """tuple or list, where several values are taken."""
    length: int | None = None
    """How many values a tuple of fixed length takes."""
    optional: bool = False

    def __str__(self) -> str:
        names = [kind.__name__ for kind in _SCALARS if kind in self.scalars]
        choices = ", ".join(text for text, _ in self.choices)
        if self.several is not None:
            if choices:
                names.append(f"{{{choices}}}")
            return f"a list of {'' if self.length is None else f'{self.length} '}{' or '.join(names)}"
        if choices:
            names.append(f"one of {choices}")
        return " or ".join(names)

    def merged(self, other: Accepts) -> Accepts:
        """Return what lets in what either does."""
        return Accepts(
            self.scalars | other.scalars,
            self.choices + other.choices,
            self.several or other.several,
            self.length if other.several is None else other.length,
            self.optional or other.optional,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option of a pass or target: a field of its dataclass."""

    field: str
    accepts: Accepts
    required: bool
    default: object = None

    @property
    def name(self) -> str:
        """The option as pipelines write it."""
        return self.field.replace("_", "-")


def options_of(cls: type) -> list[Option]:
    """Return the options of a pass or target class, in the order of its fields.

    Raises TilewrightError for a field of a type that has no text; that is a fault of the class.
    """
    hints = _field_types(cls)
    found: list[Option] = []
    for field in dataclasses.fields(cls):
        if not field.init or field.name == "name":
            continue
        accepts = _accepts(hints[field.name])
        default: object = None
        required = False
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            required = not accepts.optional
        found.append(Option(field.name, accepts, required, default))
    return found


def _field_types(cls: type) -> dict[str, Any]:
    """Field -> its type, resolved where the class that declares it stands; other annotations are not looked at."""
    found: dict[str, Any] = {}
    wanted = {field.name for field in dataclasses.fields(cls) if field.init}
    for declaring in cls.__mro__:
        try:
            annotations = inspect.get_annotations(declaring)
            mine = {name: annotations[name] for name in annotations if name in wanted and name not in found}
            # A class with these annotations alone: others may name what only type checkers import.
            alone = type(declaring.__name__, (), {"__annotations__": mine, "__module__": declaring.__module__})
            found.update(get_type_hints(alone, localns=dict(vars(declaring))) if mine else {})
        except (NameError, AttributeError, TypeError) as error:
            reason = one_line(str(error))
            raise TilewrightError(f"the options of {cls.__qualname__} cannot be known: {reason}") from error
    return found


def build(cls: type[_T], spec: Spec, kind: str) -> _T:
    """Return the pass or target `cls` with the options of `spec`; `kind` is `pass` or `target`, for messages.

    Raises TilewrightError for an unknown option (with the nearest name), a value of the wrong type, a missing option,
    and whatever the class itself objects to.
    """
    try:
        options = {option.field: option for option in options_of(cls)}
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or spec.location) from error
    given: dict[str, object] = {option.field: option.default for option in options.values() if not option.required}
    for key, values in spec.options.items():
        option = options.get(key.replace("-", "_"))
        if option is None:
            known = [option.name for option in options.values()]
            hint = did_you_mean(key, known) or (f"; it has {', '.join(known)}" if known else "; it has none")
            raise TilewrightError(f"{kind} '{spec.name}' has no option '{key}'{hint}", spec.location)
        where = f"option '{key}' of {kind} '{spec.name}'"
        given[option.field] = _convert(values, option.accepts, where, spec)
    missing = [option.name for option in options.values() if option.field not in given]
    if missing:
        raise TilewrightError(f"{kind} '{spec.name}' needs the option '{missing[0]}'", spec.location)
    try:
        return cls(**given)
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or spec.location) from error
    except (ValueError, TypeError) as error:
        raise TilewrightError(f"{kind} '{spec.name}': {one_line(str(error))}", spec.location) from error


def written(thing: ArgSpecConvertible) -> str:
    """Return a pass or target as pipeline text that `build` makes an equal one of, with all options, defaults too.

    An option that is None or empty by default, and that nobody set, has no text and is left out.
    """
    words: list[str] = []
    for option in options_of(type(thing)):
        value = cast(object, getattr(thing, option.field))
        text = value_text(value)
        if text is not None:
            words.append(f"{option.name}={text}")
        elif option.required or value != option.default:
            words.append(option.name)
    return thing.name + (f"{{{' '.join(words)}}}" if words else "")


def value_text(value: object) -> str | None:
    """Return a value as option text, or None for None and for an empty list, which are written as a bare key."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return ",".join(_scalar_text(each) for each in cast("Sequence[object]", value)) or None
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    if isinstance(value, Enum):
        return _word(option_text(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _word(value, quote=value in ("true", "false") or _NUMBER.fullmatch(value) is not None)
    return str(value)


def _word(text: str, *, quote: bool = False) -> str:
    if not quote and BARE_VALUE.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _accepts(hint: Any) -> Accepts:
    """Return what the type `hint` lets in."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        merged = Accepts()
        for member in get_args(hint):
            merged = merged.merged(_accepts(member))
        return merged
    if origin is Literal:
        return Accepts(choices=tuple((str(choice), choice) for choice in get_args(hint)))
    if origin in _SEQUENCES:
        members = get_args(hint)
        merged = Accepts()
        for member in members:
            if member is not Ellipsis:
                merged = merged.merged(_accepts(member))
        fixed = len(members) if origin is tuple and Ellipsis not in members else None
        return dataclasses.replace(merged, several=list if origin is list else tuple, length=fixed)
    if hint is types.NoneType:
        return Accepts(optional=True)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Accepts(choices=tuple((option_text(member), member) for member in hint))
    if hint in _SCALARS:
        return Accepts(frozenset({hint}))
    raise TilewrightError(f"an option of type {hint} has no text")


def _convert(values: tuple[Value, ...], accepts: Accepts, where: str, spec: Spec) -> object:
    """Return what the field becomes; a bare key is true for a bool, None where that is allowed, else an empty list."""
    if not values:
        if bool in accepts.scalars:
            return True if accepts.several is None else accepts.several((True,))
        if accepts.optional:
            return None
        if accepts.several is not None and accepts.length is None:
            return accepts.several()
        raise TilewrightError(f"{where} needs a value: expected {accepts}", spec.location)
    if accepts.several is None:
        if len(values) != 1:
            raise TilewrightError(f"{where} takes one value, got {len(values)}: expected {accepts}", spec.location)
        return _convert_one(values[0], accepts, where, spec)
    if accepts.length is not None and len(values) != accepts.length:
        raise TilewrightError(f"{where} takes {accepts.length} values, got {len(values)}", spec.location)
    return accepts.several(_convert_one(value, accepts, where, spec) for value in values)


def _convert_one(value: Value, accepts: Accepts, where: str, spec: Spec) -> object:
    """Return one value as the narrowest type that is let in: a choice, bool, int, float, then str."""
    text = value.text
    for choice, meaning in accepts.choices:
        if text == choice:
            return meaning
    if not value.quoted:
        if bool in accepts.scalars and text in ("true", "false"):
            return text == "true"
        if int in accepts.scalars and len(text) <= 64 and _NUMBER.fullmatch(text):
            return int(text)
        if float in accepts.scalars and len(text) <= 64 and "_" not in text:
            try:
                return float(text)
            except ValueError:
                pass
    if str in accepts.scalars:
        return text
    hint = did_you_mean(text, [choice for choice, _ in accepts.choices])
    raise TilewrightError(f"{where}: expected {accepts}, got '{text}'{hint}", spec.location)
