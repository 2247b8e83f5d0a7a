"""What the tests of the opt tool share: a small program, a pass that misbehaves, and the tool as a function call."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tilewright.api.opt.main import main
from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.dialects.sym.ops import SymbolOp
from tilewright.passes.registry import register_pass
from tilewright.passes.remarks import remark

IDENTITY = "func.func @f(%a: i32) -> i32 {\n  func.return %a : i32\n}\n"
TWO = f"sym.symbol @N\n{IDENTITY}{IDENTITY.replace('@f', '@g')}"
"""A size, and two functions @f and @g."""

PRINTED = "builtin.module {\n  func.func @f(%a: i32) -> i32 {\n    func.return %a : i32\n  }\n}\n"


@register_pass
@dataclass(frozen=True)
class Misbehave(ModulePass):
    """Does one of the things that a pass must not do, or should say."""

    name = "test-misbehave"
    how: str = "mark"
    times: int = 1
    only: str = ""
    """The function to act on; the first if it is empty, and nothing happens if there is none of that name."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [each for each in op.body.block.ops if isinstance(each, FuncOp)]
        function = next((each for each in functions if self.only in ("", each.sym_name.data)), None)
        if function is None:
            return
        inner = function.regions[0].block.first_op
        assert inner is not None
        match self.how:
            case "mark":
                for number in range(self.times):
                    function.attributes[f"mark{number}"] = UnitAttr()
            case "remark":
                remark(inner, self.name, "left alone: it is tiny")
            case "see":
                remark(inner, self.name, "sees " + " ".join(_names(op)))
            case "error":
                raise TilewrightError("the tile does not fit")
            case "fail":
                raise PassFailedException("no way\nto go on")
            case "crash":
                raise KeyError("lost")
            case "recurse":
                self.apply(ctx, op)
            case "other-warning":
                warnings.warn("not ours", UserWarning, stacklevel=1)
            case "exit":
                raise SystemExit(0)
            case "interrupt":
                function.attributes["touched"] = UnitAttr()
                raise KeyboardInterrupt
            case "rename":
                function.properties["sym_name"] = StringAttr("renamed")
            case "unprintable":
                function.attributes["x"] = cast(Any, object())
            case "erase":
                function.detach()
                function.erase()
            case "lower":
                op.body.block.add_op(FuncOp("late", ((), ())))
            case "add":
                copy = function.clone()
                copy.properties["sym_name"] = StringAttr("copy")
                op.body.block.add_op(copy)
            case "declare":
                op.body.block.insert_op_before(SymbolOp("FRESH"), function)
            case "forget":
                for each in [each for each in op.body.block.ops if isinstance(each, SymbolOp)]:
                    each.detach()
                    each.erase()
            case "break":
                function.properties["function_type"] = FunctionType.from_lists([], [])
            case "warn":
                warnings.warn("slow road taken", TilewrightWarning, stacklevel=1)
            case _:
                raise ValueError(self.how)


def _names(module: ModuleOp) -> list[str]:
    """The names of all that stands in a module."""
    names = [op.properties.get("sym_name") for op in module.body.block.ops]
    return [name.data for name in names if isinstance(name, StringAttr)]


def run(*argv: str, text: str = IDENTITY) -> tuple[int, str, str]:
    """Run the tool on `text` as standard input; return exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    return main(argv, io.StringIO(text), out, err), out.getvalue(), err.getvalue()


def one_line_of(err: str) -> str:
    """Return the diagnostic of a failed run: one line, or that line with the source and a caret."""
    lines = err.splitlines()
    assert len(lines) == 1 or (len(lines) == 3 and lines[2].strip() == "^")
    assert "Traceback" not in err
    return lines[0]
