"""`assert_pass_preserves`: a pass keeps what programs mean, tried on random programs over random symbolic shapes.

from tilewright.testing import assert_pass_preserves

def test_my_pass() -> None:
    assert_pass_preserves(MyPass)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
from xdsl.passes import ModulePass

from tilewright.api.testing.check import CheckFailed, SetupFailed, check
from tilewright.api.testing.failures import Failure, write_failure
from tilewright.api.testing.profiles import current_settings
from tilewright.api.testing.program import Program
from tilewright.api.testing.search import Example, Outcome, search
from tilewright.api.testing.strategies import default_programs
from tilewright.api.testing.subject import PassLike, Subject, subject_of
from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import registered_passes


class NotPreserved(AssertionError):
    """A program that means something else after the passes; `failure` has it, `path` is the file that was written."""

    def __init__(self, message: str, failure: Failure, path: Path | None) -> None:
        super().__init__(message)
        self.failure = failure
        self.path = path


class NeverChanged(AssertionError):
    """The passes changed no program: the test shows nothing about them."""


@dataclass(frozen=True)
class Coverage:
    """What a call of `assert_pass_preserves` saw."""

    programs: int
    changed: int
    """How many of them the passes changed, the erasure of dead ops aside."""
    seconds: float

    def __str__(self) -> str:
        return f"changed {self.changed} of {self.programs} programs"


def assert_pass_preserves(
    what: PassLike | Sequence[PassLike],
    *,
    programs: st.SearchStrategy[Program] | None = None,
    examples: int | None = None,
    seed: int | None = None,
    after: str | Sequence[str] | None = None,
    allow_unchanged: bool = False,
    failures: Path | str | None = None,
) -> Coverage:
    """Assert that passes keep the results of random programs, and that they change some of them.

    `what` is a pass (a class, an instance, or a name with options in braces), or several that run as one step. Where
    they are tried follows from the `level` of the first: passes of the pipelines at their own place, others at points
    of their level; `after="map-threads"` names the pass of the pipelines after which they are tried instead. After
    them the module must verify, its facts must follow again, its results must stay within the reference's bounds at
    its own level, and again at the end of the pipelines in the simulator, without races or accesses out of bounds.

    `programs` is a Hypothesis strategy of `Program` (by default random ones that the passes can meet), `examples` how
    many are tried and `seed` which ones; both, and `failures`, the folder for failure files (`.tilewright/failures`),
    come from the pytest plugin's options where they are not given. Raises `NotPreserved` for the smallest program that
    failed, and `NeverChanged` when no program was changed, unless that is allowed; to erase dead ops is no change.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    subject = subject_of(what, after)
    chosen = current_settings()
    strategy = default_programs(subject) if programs is None else programs
    outcome = search(
        subject,
        strategy,
        examples=chosen.examples if examples is None else examples,
        seed=chosen.seed if seed is None else seed,
    )
    if outcome.failure is not None:
        raise not_preserved(subject, outcome, chosen.failures if failures is None else Path(failures)) from None
    if outcome.changed == 0 and subject.kind == "passes" and not (allow_unchanged or subject.only_checks):
        places = "; ".join(str(place) for place in subject.places)
        raise NeverChanged(
            f"{subject.name} changed none of {outcome.programs} programs ({places}), dead ops aside, so nothing was "
            "tested: give programs= or after= where it has something to do, or allow_unchanged=True"
        )
    return Coverage(outcome.programs, outcome.changed, outcome.seconds)


def not_preserved(subject: Subject, outcome: Outcome, folder: Path) -> NotPreserved:
    """The error for the failure of an outcome, its file written."""
    example, error = outcome.failure, outcome.error
    if example is None or error is None:
        raise TilewrightError(f"{subject.name}: expected an outcome with a failure")
    failure = Failure(example.program, str(error), subject.name, example.place, defined_in(subject))
    path: Path | None = None
    try:
        path = write_failure(failure, folder)
    except TilewrightError as problem:
        trouble = problem.message
    else:
        trouble = ""
    lines = [str(error), blame(subject, example, error)]
    sizes = ", ".join(f"{name} = {size}" for name, size in example.program.sizes.items())
    place = "" if example.place is None else f"; {subject.name} in {example.place}"
    lines += [f"with {sizes or 'no symbols'}; seed {example.program.seed}, {example.program.lane} values{place}", ""]
    lines += [example.program.text.strip("\n"), ""]
    if path is None:
        lines.append(trouble)
    else:
        run, replay = failure.commands(path)
        lines += [f"written to {path}", f"  {replay}", f"  {run}"]
    return NotPreserved("\n".join(lines), failure, path)


def blame(subject: Subject, example: Example, error: CheckFailed) -> str:
    """Whether the program comes out right without the passes, in one line."""
    if subject.kind != "passes" or isinstance(error, SetupFailed):
        return "no pass under test has a part in this: the pipeline itself fails"
    try:
        check(subject_of("reference-sim"), None, example.program)
    except CheckFailed as other:
        return f"the pipeline without {subject.name} fails as well: {other}"
    return f"the pipeline without {subject.name} gives the right results"


def defined_in(subject: Subject) -> str:
    """The file of passes that no installed package registers, for `--load`; empty where there is none."""
    from tilewright.api.opt.catalogue import pass_factories

    local = registered_passes()
    factories = pass_factories()
    for each in subject.passes:
        if each.name in local or each.name not in factories or factories[each.name]() is not type(each):
            return source_of(each)
    return ""


def source_of(each: ModulePass) -> str:
    """The file that defines a pass's class, relative to the working directory where it lies below."""
    module = sys.modules.get(type(each).__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return ""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
