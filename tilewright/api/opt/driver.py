"""One part of an input through the pipeline: parse, verify, passes with their dumps and remarks, print or emit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException

from tilewright.api.opt.timing import Stopwatch
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.source_text import one_line
from tilewright.dialects.verify import verify_module

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

    from tilewright.api.opt.arguments import OptArguments
    from tilewright.api.opt.pipeline_text import Spec
    from tilewright.passes.remarks import Remark


@dataclass(frozen=True)
class Driver:
    """What is done with each part of the input; `say` takes whole lines for standard error."""

    arguments: OptArguments
    pipeline: list[tuple[ModulePass, Spec]]
    target: Target | None
    stopwatch: Stopwatch
    say: Callable[[str], object]

    def run(self, text: str, filename: str, ctx: Context, remarks: list[Remark]) -> str:
        """Return the text that the part becomes: IR, or what the target emits.

        Remarks of the passes are appended to `remarks` as they come, also when a pass fails. Raises TilewrightError.
        """
        with self._measuring("parse"):
            module = parse_module(text, filename, ctx)
        with self._measuring("verify"):
            verify_module(module)
        for number, (module_pass, _) in enumerate(self.pipeline, start=1):
            self._run_pass(module_pass, module, ctx, remarks, last=number == len(self.pipeline))
        with self._measuring("print" if self.target is None else f"target {self.target.name}"):
            return self._result(module, ctx)

    def _run_pass(
        self, module_pass: ModulePass, module: ModuleOp, ctx: Context, remarks: list[Remark], *, last: bool
    ) -> None:
        name = module_pass.name
        if self.arguments.print_ir_before_all:
            self._dump(f"Before {name}", module)
        with ExitStack() as stack:
            if self.arguments.remarks:
                from tilewright.passes.remarks import collecting_remarks

                collected = stack.enter_context(collecting_remarks())
                stack.callback(lambda: remarks.extend(collected))
            try:
                with self._measuring(name):
                    module_pass.apply(ctx, module)
            except TilewrightError as error:
                self._dump_failure(name, module)
                if error.location is not None or name in error.message:
                    raise
                raise TilewrightError(f"pass '{name}': {error.message}") from error
            except DiagnosticException as error:
                # PassFailedException and VerifyException of xDSL: the message is meant for the user, the notes are not.
                self._dump_failure(name, module)
                raise TilewrightError(f"pass '{name}': {one_line(str(error))}") from error
            except RecursionError as error:
                raise TilewrightError(f"pass '{name}': the program is nested too deeply") from error
        if self.arguments.verify_each or last:
            try:
                with self._measuring("verify"):
                    verify_module(module)
            except TilewrightError as error:
                self._dump_failure(name, module)
                raise TilewrightError(f"{error.message} (after pass '{name}')", error.location) from error
        if self.arguments.print_ir_after_all:
            self._dump(f"After {name}", module)

    def _result(self, module: ModuleOp, ctx: Context) -> str:
        output = StringIO()
        if self.target is None:
            output.write(self._print(module))
        else:
            self.target.emit(ctx, module, output)
        text = output.getvalue()
        return text if text.endswith("\n") else text + "\n"

    def _print(self, module: ModuleOp) -> str:
        output = StringIO()
        printer = Printer(
            stream=output,
            print_generic_format=self.arguments.print_op_generic,
            print_debuginfo=self.arguments.print_debuginfo,
        )
        printer.print_op(module)
        output.write("\n")
        return output.getvalue()

    def _dump_failure(self, name: str, module: ModuleOp) -> None:
        """Dump what a failed pass has left, if dumps are asked for; it may be too broken to print."""
        if self.arguments.print_ir_after_all:
            try:
                self._dump(f"After {name} Failed", module)
            except Exception as error:
                self.say(f"// the module cannot be printed: {one_line(str(error))}\n")

    def _dump(self, when: str, module: ModuleOp) -> None:
        self.say(f"// -----// IR Dump {when} //----- //\n{self._print(module)}\n")

    def _measuring(self, step: str) -> AbstractContextManager[None]:
        return self.stopwatch.measuring(step)
