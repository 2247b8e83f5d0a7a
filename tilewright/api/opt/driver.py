"""One part of an input through the pipeline: parse, verify, passes with their dumps and remarks, print or emit."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import DiagnosticException

from tilewright.api.opt.diagnostics import Diagnostics, PassBug
from tilewright.api.opt.dumps import Dumps, print_op
from tilewright.api.opt.nested import run_alone, symbol_of, targets
from tilewright.api.opt.pipeline import NestStep, PassStep, Step, canonical_text
from tilewright.api.opt.timing import Stopwatch
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.source_text import one_line
from tilewright.dialects.verify import verify_function, verify_module
from tilewright.passes.statistics import running_pass

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation
    from xdsl.utils.target import Target

    from tilewright.api.opt.arguments import OptArguments


@dataclass(frozen=True)
class Driver:
    """What is done with each part of the input."""

    arguments: OptArguments
    pipeline: list[Step]
    target: Target | None
    stopwatch: Stopwatch
    reproduced: list[str] = field(default_factory=list[str])
    """The reproducer that was written: the first failure's, where parts of a split input fail one after another."""

    def run(self, text: str, filename: str, ctx: Context, diagnostics: Diagnostics, dumps: Dumps) -> str:
        """Return the text that the part becomes: IR, or what the target emits. Raises TilewrightError."""
        with self.stopwatch.measuring("parse"):
            module = parse_module(text, filename, ctx)
        with self.stopwatch.measuring("verify"):
            verify_module(module)
        _Run(self, module, ctx, diagnostics, dumps).run()
        with self.stopwatch.measuring("print" if self.target is None else f"target {self.target.name}"):
            return self._result(module, ctx)

    def _result(self, module: ModuleOp, ctx: Context) -> str:
        if self.target is None:
            return print_op(module, self.arguments)
        output = StringIO()
        with _bugs_named(f"target '{self.target.name}'", "target", module, self.arguments):
            self.target.emit(ctx, module, output)
        text = output.getvalue()
        return text if text.endswith("\n") else text + "\n"


class _Run:
    """The passes of a pipeline on one module."""

    def __init__(self, driver: Driver, module: ModuleOp, ctx: Context, diagnostics: Diagnostics, dumps: Dumps) -> None:
        self.arguments = driver.arguments
        self.pipeline = driver.pipeline
        self.stopwatch = driver.stopwatch
        self.reproduced = driver.reproduced
        self.module = module
        self.ctx = ctx
        self.diagnostics = diagnostics
        self.dumps = dumps
        self.levels: frozenset[str] | None = None

    def run(self) -> None:
        for number, step in enumerate(self.pipeline, start=1):
            last = number == len(self.pipeline)
            if isinstance(step, PassStep):
                self._step(step, self.module, None, verify_all=last)
                continue
            for target in targets(self.module, step.op_names()):
                function = target
                for inner in step.steps:
                    function = self._step(inner, function, step, verify_all=False)
            if last:
                # What ran before each function was verified as it stood; now the module is asked as a whole.
                with _after(f"'{step}'"), self.stopwatch.measuring("verify"):
                    verify_module(self.module)

    def _step(self, step: PassStep, op: Operation, nest: NestStep | None, *, verify_all: bool) -> Operation:
        """Run a pass on `op`, the module or a function in it, with all that goes on around it; return the op then."""
        arguments, dumps, module, name = self.arguments, self.dumps, self.module, step.name
        dumps.before(name, op, module)
        text_before = print_op(op, arguments) if dumps.on_change_only and dumps.wants_after(name) else None
        levels = self._levels_before() if arguments.verify_each else None
        before = module.clone() if arguments.crash_reproducer is not None and not self.reproduced else None
        label = name if nest is None else f"{nest.anchor}({name})"
        where = f"'{name}'" if nest is None else f"'{name}' on '{op.name}' @{symbol_of(op)}"
        left = op
        try:
            with (
                self._remarking(),
                _bugs_named(f"pass {where}", "pass", module, arguments),
                self.stopwatch.measuring(label),
                running_pass(name),
            ):
                if nest is None:
                    step.module_pass.apply(self.ctx, module)
                else:
                    left = run_alone(step.module_pass, self.ctx, module, op)
            if arguments.verify_each or verify_all:
                with _after(where), self.stopwatch.measuring("verify"):
                    self._verify(name, left, levels)
        except BrokenPipeError:
            raise  # nobody reads what we say: no failure of the pass
        except BaseException as error:
            dumps.after_failure(name, left, module)
            if before is not None:
                anchored = step if nest is None else NestStep(left.name, (step,))
                self._reproduce(before, canonical_text([anchored]), error)
            raise
        dumps.after(name, left, module, text_before)
        return left

    def _levels_before(self) -> frozenset[str]:
        if self.levels is None:
            from tilewright.api.opt.levels import levels_of

            self.levels = levels_of(self.module)
        return self.levels

    def _verify(self, name: str, op: Operation, levels: frozenset[str] | None) -> None:
        """Verify what the pass has left, and that the module is at the level where it should be."""
        if op is self.module:
            verify_module(self.module)
        else:
            verify_function(op)
        if levels is not None:
            from tilewright.api.opt.levels import check_level

            self.levels = check_level(name, self.module, levels)

    @contextmanager
    def _remarking(self) -> Generator[None]:
        """Hand on the remarks that are made inside the `with`, if they are asked for, also when it raises."""
        if not (self.arguments.remarks or self.arguments.verify_diagnostics):
            yield
            return
        from tilewright.passes.remarks import collecting_remarks

        with collecting_remarks() as remarks:
            try:
                yield
            finally:
                for each in remarks:
                    self.diagnostics.remark(each)

    def _reproduce(self, before: ModuleOp, pipeline: str, error: BaseException) -> None:
        """Write the reproducer of a failed pass, and say where it is; the failure stays what is reported."""
        from tilewright.api.opt.reproducer import command, write_reproducer

        path = self.arguments.crash_reproducer
        assert path is not None
        message = error.message if isinstance(error, TilewrightError) else type(error).__name__
        try:
            write_reproducer(path, before, pipeline, message, self.arguments)
        except TilewrightError as failure:
            self.diagnostics.hint_later(f"no reproducer: {failure.message}")
        else:
            self.reproduced.append(path)
            self.diagnostics.hint_later(f"the reproducer is '{path}': {command(path, self.arguments)}")


DEEP = 32
"""Regions inside one another from which on a recursion without end may be the program's fault, and not a bug."""


def _nesting(op: Operation) -> int:
    """Return how many regions lie inside one another; without recursion."""
    deepest, waiting = 0, [(op, 0)]
    while waiting:
        outer, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(o, depth + 1) for region in outer.regions for block in region.blocks for o in block.ops]
    return deepest


@contextmanager
def _bugs_named(who: str, kind: str, module: ModuleOp, arguments: OptArguments) -> Generator[None]:
    """Turn whatever is raised inside the `with` into one located line that names who raised it; a bug is a PassBug."""
    try:
        yield
    except TilewrightError as error:
        if error.location is not None or who.split("'")[1] in error.message:
            raise
        raise TilewrightError(f"{who}: {error.message}") from error
    except DiagnosticException as error:
        # PassFailedException and VerifyException of xDSL: the message is meant for the user, the notes are not.
        raise TilewrightError(f"{who}: {one_line(str(error))}") from error
    except MemoryError as error:
        raise TilewrightError(f"{who}: out of memory") from error
    except (Exception, SystemExit, GeneratorExit) as error:
        if isinstance(error, RecursionError) and _nesting(module) > DEEP:
            raise TilewrightError(f"{who}: the program is nested too deeply") from error
        detail = one_line(str(error))
        what = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
        more = "--debug shows the traceback"
        if kind == "pass" and arguments.crash_reproducer is None:
            more += ", --crash-reproducer=FILE writes the input of the pass"
        raise PassBug(f"{who}: {what} (this is a bug in the {kind}; {more})") from error


@contextmanager
def _after(where: str) -> Generator[None]:
    """Say in a verifier's error after which pass it came."""
    try:
        yield
    except TilewrightError as error:
        raise TilewrightError(f"{error.message} (after pass {where})", error.location) from error
