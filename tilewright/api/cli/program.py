"""What `run` and `compile` share: reading a program and choosing its entry."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import Console
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.verify import verify_module
from tilewright.lowering.host_requirements import check_statements
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.registry import all_passes
from tilewright.runtime.compile import check_signature, entry_names
from tilewright.runtime.kernel import expect_one_of


def read_module(console: Console, arguments: CliArguments) -> ModuleOp:
    """The module of the file, parsed and verified."""
    name, text = console.read_source(arguments.file)
    module = parse_module(text, name, make_context())
    verify_module(module)
    return module


def entry_of(module: ModuleOp, arguments: CliArguments) -> func.FuncOp:
    """The entry of a module of the tensor level, in which shapes are inferred."""
    entry = expect_one_of(entry_names(module), arguments.entry)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == entry)
    check_signature(function)
    check_statements(module, function)
    run_pipeline(module, make_context(), [all_passes()["infer-shapes"]()()])
    return function


def read_program(console: Console, arguments: CliArguments) -> tuple[ModuleOp, func.FuncOp]:
    """The module of the file, with shapes inferred, and its entry."""
    module = read_module(console, arguments)
    return module, entry_of(module, arguments)
