"""`tilewright doctor`."""

from __future__ import annotations

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import Console
from tilewright.runtime.doctor import examine, format_report


def execute(console: Console, arguments: CliArguments) -> int:
    """Print what the machine has. What is missing is no error: the simulator needs none of it."""
    console.write_result(format_report(examine()), "-")
    return 0
