"""What `tilewright-opt` knows by name: passes, lowerings and targets, looked up lazily, with near misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tilewright.api.opt.options import build
from tilewright.api.opt.pipeline_text import Spec, parse_single
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

_T = TypeVar("_T")

TARGET_ORIGIN = "<target>"
"""What stands for a file name in errors about `-t`."""


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return name -> function that imports the class, for every pass and every lowering."""
    from tilewright.lowering.registry import all_lowerings
    from tilewright.passes.registry import all_passes

    return {**all_passes(), **all_lowerings()}


def target_factories() -> Mapping[str, Callable[[], type[Target]]]:
    """Return name -> function that imports the class, for every target that turns a module into text."""
    from tilewright.lowering.targets import TARGETS

    return TARGETS


def check_names(option: str, names: Sequence[str]) -> None:
    """Raise TilewrightError for the first of the names, given with `option`, that is no pass."""
    if not names:
        return
    known = pass_factories()
    for name in names:
        if name not in known:
            raise TilewrightError(f"{option}: unknown pass '{name}'{did_you_mean(name, known)}")


def make_target(text: str) -> Target:
    """Return the target that `-t` names."""
    spec = parse_single(text, TARGET_ORIGIN)
    return build(look_up(target_factories(), spec, "target"), spec, "target")


def list_targets() -> str:
    """Return one line for each target."""
    return table({name: first_line(factory()) for name, factory in target_factories().items()})


def list_dialects() -> str:
    """Return one line for each dialect: its name, and how much it defines."""
    from tilewright.dialects.registry import all_dialects

    rows: dict[str, str] = {}
    for name, factory in all_dialects().items():
        dialect = factory()
        rows[name] = f"{len(list(dialect.operations))} operations, {len(list(dialect.attributes))} types and attributes"
    return table(rows)


def look_up(factories: Mapping[str, Callable[[], _T]], spec: Spec, kind: str) -> _T:
    """Return the class that `spec` names; TilewrightError at its place, with a near miss, if there is none."""
    factory = factories.get(spec.name)
    if factory is None:
        hint = did_you_mean(spec.name, factories) or f" (see --list-{kind}{'es' if kind == 'pass' else 's'})"
        raise TilewrightError(f"unknown {kind} '{spec.name}'{hint}", spec.location)
    try:
        return factory()
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or spec.location) from error


def first_line(cls: type) -> str:
    """Return the first line of a class's docstring."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


def table(rows: Mapping[str, str]) -> str:
    """Return the rows in two columns."""
    width = max((len(name) for name in rows), default=0)
    return "".join(f"{name:<{width}}  {text}".rstrip() + "\n" for name, text in rows.items())
