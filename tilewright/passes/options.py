"""Options of a pass: which types its fields may have, and how values come from and go to xDSL's `ArgSpec`.

A field is a `bool`, `int`, `float`, `str`, an `Enum`, a `Literal` of strings or numbers, or several of these:
`tuple[X, ...]`, `tuple[X, Y]`, `list[X]`, `Sequence[X]`; and any of them `| None`. In a pipeline's text an option is
written `my-pass{max-rounds=3 kind=fast sizes=8,16 loud}`: dashes for the underscores of the field, a list with commas,
a bool alone or with true and false, and a member of an enum by `option_text`.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ParameterType

_SEQUENCES = (tuple, list, Sequence)
_UNIONS = (Union, types.UnionType)


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


def check_options(cls: type) -> None:
    """Check the options that a class adds to its bases', as far as the names in their annotations are known by now.

    For use while the class is made, before `dataclass` has seen it. Raises TypeError.
    """
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
        if not (isinstance(default, Field) and not default.init):
            _check_option(cls, option, hint)


def arguments_from(cls: type[ModulePass], given: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """What to call a pass's class with, from values as an `ArgSpec` holds them (an enum's member by its text).

    Raises ValueError for an option that the pass does not have, a value of another type and one that is missing.
    """
    hints = option_types(cls)
    unknown = [option for option in given if option not in hints]
    if unknown:
        raise ValueError(f"{cls.name} has no option {unknown[0]}; it has {', '.join(hints) or 'none'}")
    arguments = {option: _value(f"{cls.name}: option {option}", hints[option], given[option]) for option in given}
    for field in fields(cls):
        if field.init and field.name not in arguments and field.default is MISSING and field.default_factory is MISSING:
            if not _is_optional(hints[field.name]):
                raise ValueError(f"{cls.name} needs the option {field.name}")
            arguments[field.name] = None
    return arguments


def parameters_of(value: object) -> tuple[ParameterType, ...]:
    """The value of an option as an `ArgSpec` holds it: a tuple of words and numbers, empty for None."""
    if value is None:
        return ()
    if isinstance(value, tuple | list):
        return tuple(word for each in cast("Sequence[object]", value) for word in parameters_of(each))
    return (option_text(value) if isinstance(value, Enum) else cast("ParameterType", value),)


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
    origin = get_origin(hint)
    if origin in _UNIONS:
        return all(member is types.NoneType or _is_option_type(member) for member in get_args(hint))
    if origin in _SEQUENCES:
        members = _members(hint)
        return bool(members) and all(_is_scalar(member) for member in members)
    return _is_scalar(hint)


def _is_scalar(hint: Any) -> bool:
    """Whether one word of a pipeline's text can be a value of the type; `int | float` can."""
    origin = get_origin(hint)
    if origin is Literal:
        return all(isinstance(choice, str | int | float) for choice in get_args(hint))
    if origin in _UNIONS:
        return all(_is_scalar(member) for member in get_args(hint))
    if not isinstance(hint, type):
        return False
    return hint in (bool, int, float, str) or issubclass(cast("type[Any]", hint), Enum)


def _members(hint: Any) -> list[Any]:
    """The types of a sequence's elements, without the `...`."""
    return [member for member in get_args(hint) if member is not Ellipsis]


def _alternatives(hint: Any) -> list[Any]:
    return (
        [inner for each in get_args(hint) for inner in _alternatives(each)] if get_origin(hint) in _UNIONS else [hint]
    )


def _is_optional(hint: Any) -> bool:
    return types.NoneType in _alternatives(hint)


_NOTHING = object()


def _value(what: str, hint: Any, words: tuple[Any, ...]) -> Any:
    """The option's value from its words; ValueError where no alternative of the type takes them."""
    alternatives = _alternatives(hint)
    if not words:
        if bool in alternatives:
            return True
        if types.NoneType in alternatives:
            return None
    for each in alternatives:
        if get_origin(each) in _SEQUENCES:
            members = _members(each)
            if Ellipsis in get_args(each) or get_origin(each) is not tuple:
                members *= len(words)
            values = [_scalar(m, w) for m, w in zip(members, words, strict=False)]
            if len(members) == len(words) and _NOTHING not in values:
                return values if get_origin(each) is list else tuple(values)
        elif len(words) == 1 and (value := _scalar(each, words[0])) is not _NOTHING:
            return value
    shown = ",".join(str(word) for word in words) or "nothing"
    raise ValueError(f"{what}: expected {hint.__name__ if isinstance(hint, type) else hint}, got {shown}")


def _scalar(hint: Any, word: Any) -> Any:
    """The word as a value of the type, or `_NOTHING`."""
    for each in _alternatives(hint):
        if get_origin(each) is Literal:
            found = [choice for choice in get_args(each) if choice == word and type(choice) is type(word)]
        elif isinstance(each, type) and issubclass(each, Enum):
            found = [member for member in each if member is word or option_text(member) == word]
        elif each is float and type(word) is int:
            found = [float(word)]
        else:
            found = [word] if type(word) is each else []
        if found:
            return found[0]
    return _NOTHING
