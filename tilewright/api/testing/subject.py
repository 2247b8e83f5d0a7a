"""What is put to test: passes that run as one step, or a comparison of two executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xdsl.passes import ModulePass

from tilewright.api.opt.options import written
from tilewright.api.opt.pipeline import PassStep, make_pipeline
from tilewright.api.testing.places import Place, default_places, place_after
from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import CHECKS

PassLike = str | ModulePass | type[ModulePass]
"""A pass by name (options in braces, several with commas), an instance, or a class that needs no options."""

Kind = Literal["passes", "reference-sim", "sim-cpu"]
REFERENCE_SIM = "reference-sim"
SIM_CPU = "sim-cpu"
EXECUTORS: dict[str, str] = {
    REFERENCE_SIM: "the whole pipeline: the reference against the simulator with all checks",
    SIM_CPU: "the simulator against the emitted C++ on the CPU, bit for bit",
}
"""Subjects that are no passes, with what each compares."""


@dataclass(frozen=True)
class Subject:
    """What is put to test, and where."""

    name: str
    """As `-p` takes it: passes with their options, or a key of `EXECUTORS`."""
    passes: tuple[ModulePass, ...] = ()
    places: tuple[Place, ...] = ()
    kind: Kind = "passes"
    only_checks: bool = False
    """Whether the passes change nothing by design."""

    @property
    def pass_names(self) -> tuple[str, ...]:
        """The names of the passes, without options."""
        return tuple(p.name for p in self.passes)


def executors_subject(name: str) -> Subject:
    """The subject that compares two executors."""
    return Subject(name, kind="reference-sim" if name == REFERENCE_SIM else "sim-cpu")


def subject_of(what: PassLike | Sequence[PassLike], after: str | Sequence[str] | None = None) -> Subject:
    """The subject that passes make, run in order as one step; `after` names the passes after which they are tried.

    By default they are tried where they stand in the pipelines, else at the points of the first one's level
    (`places.POINTS`). Raises TilewrightError for a name that is not known, and for a class that needs options.
    """
    if isinstance(what, str) and what in EXECUTORS:
        return executors_subject(what)
    passes: list[ModulePass] = []
    for each in [what] if isinstance(what, str | type | ModulePass) else what:
        passes += _made(each)
    if not passes:
        raise TilewrightError("expected at least one pass to test, got none")
    level = level_of_pass(passes[0])
    if after is None:
        places = default_places(passes, level)
    else:
        places = tuple(place_after(name, level) for name in ([after] if isinstance(after, str) else after))
    checks = all(p.name in CHECKS for p in passes)
    return Subject(",".join(written(p) for p in passes), tuple(passes), places, only_checks=checks)


def level_of_pass(each: ModulePass) -> str:
    """The level that a module must be at for the pass; of passes that do not say, the tensor level."""
    found: Any = getattr(each, "level", "tensor")
    return str(found)


def _made(each: PassLike) -> list[ModulePass]:
    if isinstance(each, ModulePass):
        return [each]
    if isinstance(each, str):
        steps = make_pipeline(each)
        nested = [str(step) for step in steps if not isinstance(step, PassStep)]
        if nested:
            raise TilewrightError(f"expected passes that run on the module, got {nested[0]}")
        return [step.module_pass for step in steps if isinstance(step, PassStep)]
    try:
        return [each()]
    except TypeError as error:
        raise TilewrightError(f"{each.name}: expected a pass that needs no options, or an instance: {error}") from None
