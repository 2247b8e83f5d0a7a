"""`tilewright explain-shapes`: what is known of every shape of a program, and why."""

from __future__ import annotations

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.cli.program import read_program
from tilewright.api.cli.shape_report import shape_report
from tilewright.api.diagnostics_cli import Console


def execute(console: Console, arguments: CliArguments) -> int:
    """Print the report; sizes that no call can have are an error, with the statements that exclude them."""
    module, function = read_program(console, arguments)
    console.write_result(str(shape_report(module, function)), "-")
    return 0
