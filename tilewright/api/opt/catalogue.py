"""What `tilewright-opt` knows by name: passes, lowerings and targets, looked up lazily, with near misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from tilewright.api.opt.options import build
from tilewright.api.opt.pipeline_text import Spec, parse_pipeline, parse_single
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

_T = TypeVar("_T")

PIPELINE_ORIGIN = "<pipeline>"
"""What stands for a file name in errors about `-p`."""

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


def make_pipeline(text: str) -> list[tuple[ModulePass, Spec]]:
    """Return the passes that `-p` names, each with its place in the text; TilewrightError says what is unknown."""
    specs = parse_pipeline(text, PIPELINE_ORIGIN)
    factories = pass_factories() if specs else {}
    return [(build(_look_up(factories, spec, "pass"), spec, "pass"), spec) for spec in specs]


def make_target(text: str) -> Target:
    """Return the target that `-t` names."""
    spec = parse_single(text, TARGET_ORIGIN)
    return build(_look_up(target_factories(), spec, "target"), spec, "target")


def list_passes() -> str:
    """Return one line for each pass: its name and the first line of its docstring."""
    from tilewright.lowering.registry import LOWERINGS
    from tilewright.passes.registry import PASSES, plugin_passes

    entries = {**plugin_passes(), **PASSES, **LOWERINGS}
    # A table may name passes that an installation leaves out; what cannot be loaded is not offered.
    present = {name: entry.summary() for name, entry in entries.items() if find_spec(entry.module) is not None}
    return _table(present)


def list_targets() -> str:
    """Return one line for each target."""
    return _table({name: _first_line(factory()) for name, factory in target_factories().items()})


def list_dialects() -> str:
    """Return one line for each dialect: its name, and how much it defines."""
    from tilewright.dialects.registry import all_dialects

    rows: dict[str, str] = {}
    for name, factory in all_dialects().items():
        dialect = factory()
        rows[name] = f"{len(list(dialect.operations))} operations, {len(list(dialect.attributes))} types and attributes"
    return _table(rows)


def _look_up(factories: Mapping[str, Callable[[], _T]], spec: Spec, kind: str) -> _T:
    factory = factories.get(spec.name)
    if factory is None:
        hint = did_you_mean(spec.name, factories) or f" (see --list-{kind}{'es' if kind == 'pass' else 's'})"
        raise TilewrightError(f"unknown {kind} '{spec.name}'{hint}", spec.location)
    try:
        return factory()
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or spec.location) from error


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _table(rows: Mapping[str, str]) -> str:
    width = max((len(name) for name in rows), default=0)
    return "".join(f"{name:<{width}}  {text}".rstrip() + "\n" for name, text in rows.items())
