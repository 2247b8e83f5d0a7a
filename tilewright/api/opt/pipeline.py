"""A pipeline looked up: passes as objects, those under an anchor together, and the text that would make it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tilewright.api.opt.catalogue import look_up, pass_factories
from tilewright.api.opt.options import build, written
from tilewright.api.opt.pipeline_text import ANY, FUNCTIONS, MODULE, Spec, parse_pipeline
from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PIPELINE_ORIGIN = "<pipeline>"
"""What stands for a file name in errors about `-p`."""


@dataclass(frozen=True, slots=True)
class PassStep:
    """A pass, ready to run, and its place in the pipeline's text."""

    module_pass: ModulePass
    spec: Spec

    @property
    def name(self) -> str:
        return self.module_pass.name

    def __str__(self) -> str:
        return written(self.module_pass)


@dataclass(frozen=True, slots=True)
class NestStep:
    """Passes that each op of the anchor's kind goes through, one op after the other, each alone."""

    anchor: str
    steps: tuple[PassStep, ...]

    def op_names(self) -> tuple[str, ...]:
        """Return the names of the ops that are run on."""
        return FUNCTIONS if self.anchor == ANY else (self.anchor,)

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.steps))})"


Step: TypeAlias = PassStep | NestStep


def make_pipeline(text: str) -> list[Step]:
    """Return what `-p` names; TilewrightError in the text for what is unknown or cannot run where it stands."""
    elements = parse_pipeline(text, PIPELINE_ORIGIN)
    factories = pass_factories() if elements else {}
    steps: list[Step] = []
    for element in elements:
        if isinstance(element, Spec):
            steps.append(_pass_step(factories, element, MODULE))
        else:
            inner = tuple(_pass_step(factories, spec, element.anchor) for spec in element.passes)
            steps.append(NestStep(element.anchor, inner))
    return steps


def canonical_text(steps: Iterable[Step]) -> str:
    """Return the pipeline as a line that `make_pipeline` takes: the module's anchor around it, all options written."""
    return f"{MODULE}({','.join(map(str, steps))})"


def passes_of(steps: Iterable[Step]) -> list[PassStep]:
    """Return all passes in the order of the text."""
    return [each for step in steps for each in (step.steps if isinstance(step, NestStep) else (step,))]


def _pass_step(factories: Mapping[str, Callable[[], type[ModulePass]]], spec: Spec, anchor: str) -> PassStep:
    cls = look_up(factories, spec, "pass")
    anchors: tuple[str, ...] = getattr(cls, "anchors", (MODULE, *FUNCTIONS))
    fits = set(anchors) & set(FUNCTIONS) if anchor == ANY else anchor in anchors
    if not fits:
        raise TilewrightError(
            f"pass '{spec.name}' cannot run on '{anchor}': it runs on {' or '.join(repr(each) for each in anchors)}",
            spec.location,
        )
    return PassStep(build(cls, spec, "pass"), spec)
