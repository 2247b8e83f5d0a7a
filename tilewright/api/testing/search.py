"""Draws programs, checks each, and shrinks the first that fails: Hypothesis does the drawing and the shrinking.

    outcome = search(subject, programs, examples=50, seed=7)
    outcome.failure            # None, or the smallest failing program that was found

The same arguments give the same programs in every process; Hypothesis keeps nothing on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import hypothesis
import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky, HypothesisException

from tilewright.api.testing.check import CheckFailed, check, fits
from tilewright.api.testing.places import Place
from tilewright.api.testing.program import Program
from tilewright.api.testing.reduce import reduce_program
from tilewright.api.testing.subject import Subject

SHRINK_SECONDS = {"tensor": 4.0, "tile": 25.0}
"""Level of a program -> after how long of Hypothesis's shrinking the smallest program so far is taken."""
REDUCE_SECONDS = 20.0
"""How long that program is then made smaller on its text."""
SIM_SHARE = 3
"""Of the programs that a pass of the tensor level changes, one in so many also goes through to the simulator."""

SUPPRESSED = (
    HealthCheck.data_too_large,
    HealthCheck.differing_executors,
    HealthCheck.filter_too_much,
    HealthCheck.function_scoped_fixture,
    HealthCheck.large_base_example,
    HealthCheck.nested_given,
    HealthCheck.too_slow,
)
"""Programs are slow to make and to run, and a call may stand in a property test of its own."""


@dataclass(frozen=True)
class Example:
    """A program, and where it meets the subject."""

    program: Program
    place: Place | None
    to_sim: bool = True


@dataclass
class Outcome:
    """What a search saw."""

    programs: int = 0
    changed: int = 0
    """How many programs the passes changed, the erasure of dead ops aside."""
    failure: Example | None = None
    error: CheckFailed | None = None
    seconds: float = 0.0

    def add(self, other: Outcome) -> None:
        """Take in what another search saw."""
        self.programs += other.programs
        self.changed += other.changed
        self.seconds += other.seconds
        if self.failure is None:
            self.failure, self.error = other.failure, other.error

    def __str__(self) -> str:
        return f"changed {self.changed} of {self.programs} programs"


@dataclass
class _Run:
    """The state of one search: the test function that Hypothesis calls, and the smallest failure so far."""

    subject: Subject
    stop: Callable[[], bool]
    cancelled: Callable[[], bool]
    on_program: Callable[[bool], None]
    outcome: Outcome = field(default_factory=Outcome)
    failing_since: float | None = None

    def __call__(self, example: Example) -> None:
        outcome = self.outcome
        if self.failing_since is None:
            if self.stop():
                return
        elif example != outcome.failure:
            budget = SHRINK_SECONDS[example.program.level]
            if time.monotonic() - self.failing_since > budget or self.cancelled():
                return
        error = self._checked(example)
        if error is None:
            return
        if self.failing_since is None:
            self.failing_since = time.monotonic()
        # Hypothesis runs the smallest example last; whatever it runs while shrinking is tried because it is smaller.
        outcome.failure, outcome.error = example, error
        raise error

    def _checked(self, example: Example) -> CheckFailed | None:
        if example == self.outcome.failure:
            return self.outcome.error
        error, changed = None, True
        try:
            changed = check(self.subject, example.place, example.program, to_sim=example.to_sim)
        except CheckFailed as failed:
            # Hypothesis tells bugs apart by where an exception is raised and by what caused it; here it is by class.
            error = type(failed)(str(failed))
        if self.failing_since is None:
            self.outcome.programs += 1
            self.outcome.changed += changed
            self.on_program(changed)
        return error


def examples_of(subject: Subject, programs: st.SearchStrategy[Program]) -> st.SearchStrategy[Example]:
    """Programs of a strategy, each with a place of the subject that it can be taken to."""

    @st.composite
    def draw_example(draw: st.DrawFn) -> Example:
        program = draw(programs)
        places = [place for place in subject.places or (None,) if fits(place, program)]
        hypothesis.assume(places)
        place = draw(st.sampled_from(places)) if len(places) > 1 else places[0]
        return Example(program, place, draw(st.integers(0, SIM_SHARE - 1)) == 0)

    return draw_example()


def search(
    subject: Subject,
    programs: st.SearchStrategy[Program],
    *,
    examples: int,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
    cancelled: Callable[[], bool] = lambda: False,
    on_program: Callable[[bool], None] = lambda changed: None,
) -> Outcome:
    """Check up to `examples` programs; the first that fails is shrunk and ends the search.

    `stop` is asked before each program, `cancelled` also while shrinking; `on_program` is told of each program whether
    it was changed. Raises what Hypothesis raises where a strategy gives nothing.
    """
    run = _Run(subject, stop, cancelled, on_program)
    started = time.monotonic()
    chosen = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=SUPPRESSED,
        verbosity=hypothesis.Verbosity.quiet,
    )

    def test(example: Example) -> None:
        run(example)

    wrapped = hypothesis.seed(seed)(chosen(hypothesis.given(examples_of(subject, programs))(test)))
    try:
        wrapped()
    except (CheckFailed, Flaky):
        if run.outcome.failure is None:
            raise
    except HypothesisException:
        if run.outcome.failure is None and run.outcome.programs == 0 and not stop():
            raise
    if run.outcome.failure is not None and run.outcome.error is not None:
        _reduce(subject, run.outcome, run.outcome.failure, type(run.outcome.error), cancelled)
    run.outcome.seconds = time.monotonic() - started
    return run.outcome


def _reduce(
    subject: Subject, outcome: Outcome, failure: Example, kind: type[CheckFailed], cancelled: Callable[[], bool]
) -> None:
    """Make the failing program smaller as long as it fails in the same way."""

    def still_fails(program: Program) -> bool:
        if cancelled():
            return False
        example = replace(failure, program=program)
        try:
            check(subject, example.place, program, to_sim=example.to_sim)
        except CheckFailed as error:
            if isinstance(error, kind):
                outcome.failure, outcome.error = example, error
                return True
        return False

    reduce_program(failure.program, still_fails, REDUCE_SECONDS)
