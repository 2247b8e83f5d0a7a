"""IR between passes: which dumps are asked for, with mlir-opt's banners on standard error, or as a tree of files.

    // -----// IR Dump After cse //----- //                                  a pass on the module
    // -----// IR Dump After cse ('func.func' operation: @f) //----- //      a pass on one function

Under `--print-ir-tree-dir=DIR` each dump is a file: DIR/builtin_module_no-symbol-name/0_cse.mlir for the first, and
DIR/builtin_module_no-symbol-name/func_func_f/0_0_cse.mlir for the second, where numbers count the dumps of the module
and of the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from tilewright.api.opt.nested import symbol_of
from tilewright.api.opt.output import reason
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import one_line

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from tilewright.api.opt.arguments import OptArguments

_UNSAFE_IN_FILE = re.compile(r"[^\w.-]", re.ASCII)

_MAX_FILE_NAME = 100
"""Characters of a symbol in a file name; file systems take 255 bytes in all."""


class Unprintable(TilewrightError):
    """IR that a pass has left in such a state that it has no text, although it may verify."""


def print_op(op: Operation, arguments: OptArguments, *, generic: bool = False) -> str:
    """Return an op as the command line asks for, or in generic form, with a newline at the end; may be Unprintable."""
    output = StringIO()
    printer = Printer(
        stream=output,
        print_generic_format=generic or arguments.print_op_generic,
        print_debuginfo=arguments.print_debuginfo,
    )
    try:
        printer.print_op(op)
    except RecursionError as error:
        # Of a program whose brackets are few, a long sum in an affine map: xDSL prints it term inside term.
        raise Unprintable(f"'{op.name}' holds what is too long or nested too deeply to be printed") from error
    except Exception as error:
        detail = one_line(f"{type(error).__name__}: {error}")
        raise Unprintable(f"'{op.name}' cannot be printed: {detail} (--debug shows the traceback)") from error
    output.write("\n")
    return output.getvalue()


@dataclass
class Dumps:
    """Which passes are dumped, and where to; one object for each part of the input."""

    arguments: OptArguments
    say: Callable[[str], object]
    """Takes whole lines for standard error."""
    part: int = 0
    """Number of the part of a split input; a tree of files of its own for each but the first."""
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    """Dumps so far, by directory."""

    def wants_before(self, name: str) -> bool:
        """Return whether the IR before this pass is dumped."""
        return self.arguments.print_ir_before_all or name in self.arguments.print_ir_before

    def wants_after(self, name: str) -> bool:
        """Return whether the IR after this pass is dumped, if it succeeds."""
        return not self.arguments.print_ir_after_failure and self._selected(name)

    @property
    def on_change_only(self) -> bool:
        """Whether a pass that changed nothing is passed over."""
        return self.arguments.print_ir_after_change

    def before(self, name: str, op: Operation, module: ModuleOp) -> None:
        """Dump the IR before a pass on `op`, if that is asked for."""
        if self.wants_before(name):
            self._dump(f"Before {name}", name, op, module)

    def after(self, name: str, op: Operation, module: ModuleOp, text_before: str | None) -> None:
        """Dump the IR after a pass; `text_before` is the op before it, where only changes are of interest."""
        if self.wants_after(name) and not (self.on_change_only and print_op(op, self.arguments) == text_before):
            self._dump(f"After {name}", name, op, module)

    def after_failure(self, name: str, op: Operation, module: ModuleOp) -> None:
        """Dump what a failed pass has left; it may be too broken to print."""
        if not (self.arguments.print_ir_after_failure or self._selected(name)):
            return
        try:
            self._dump(f"After {name} Failed", name, op, module)
        except Unprintable as error:
            self.say(f"// {error.message}\n")

    def _selected(self, name: str) -> bool:
        """Whether dumps after this pass are asked for; modifiers alone, or a tree of files alone, mean all passes."""
        arguments = self.arguments
        if name in arguments.print_ir_after or arguments.print_ir_after_all:
            return True
        named = arguments.print_ir_after or arguments.print_ir_before or arguments.print_ir_before_all
        modified = arguments.print_ir_after_change or arguments.print_ir_after_failure
        return not arguments.print_ir_after and (modified or (arguments.print_ir_tree_dir is not None and not named))

    def _dump(self, when: str, name: str, op: Operation, module: ModuleOp) -> None:
        nested = not isinstance(op, ModuleOp)
        symbol = symbol_of(op)
        which = f" ('{op.name}' operation{'' if symbol is None else f': @{one_line(symbol)}'})" if nested else ""
        shown = module if nested and self.arguments.print_ir_module_scope else op
        text = f"// -----// IR Dump {when}{which} //----- //\n{print_op(shown, self.arguments)}\n"
        if self.arguments.print_ir_tree_dir is None:
            self.say(text)
        else:
            self._write(Path(self.arguments.print_ir_tree_dir), name, op, module, text)

    def _write(self, root: Path, name: str, op: Operation, module: ModuleOp, text: str) -> None:
        folder = root / f"part_{self.part}" if self.part else root
        folder /= _folder_name(module)
        numbers = [self._count(folder, step=op is module)]
        if op is not module:
            folder /= _folder_name(op)
            numbers.append(self._count(folder, step=True))
        path = folder / f"{'_'.join(map(str, numbers))}_{name}.mlir"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise TilewrightError(f"cannot write '{one_line(str(path))}': {reason(error)}") from error

    def _count(self, folder: Path, *, step: bool) -> int:
        """Return the number of the last dump in `folder`, after counting one more if `step`; 0 before the first."""
        key = str(folder)
        if step:
            self._counts[key] = self._counts.get(key, -1) + 1
        return self._counts.get(key, 0)


def _folder_name(op: Operation) -> str:
    symbol = symbol_of(op) or "no-symbol-name"
    return f"{op.name.replace('.', '_')}_{_UNSAFE_IN_FILE.sub('_', symbol)[:_MAX_FILE_NAME]}"
