"""The `tilewright` command: parses the command line and hands over to one command's file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TextIO

import tilewright
from tilewright.api.cli.arguments import CliArguments, make_parser
from tilewright.api.diagnostics_cli import Console, ending_in_one_line, process_console

_COMMANDS: dict[str, str] = {
    "run": "tilewright.api.cli.run",
    "compile": "tilewright.api.cli.compile",
    "explain-shapes": "tilewright.api.cli.explain_shapes",
    "fuzz": "tilewright.api.cli.fuzz",
    "bench": "tilewright.api.cli.bench",
    "doctor": "tilewright.api.cli.doctor",
    "cache": "tilewright.api.cli.cache",
}
"""Command -> module whose `execute(console, arguments)` does it and returns the exit code; imported when it is used."""


def main(
    argv: Sequence[str] | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run the tool on `argv` (without the program's name) and return its exit code; None is the process's own."""
    console = process_console() if stdout is None and stderr is None else Console(sys.stdin, sys.stdout, sys.stderr)
    console.stdin = stdin or console.stdin
    console.stdout = stdout or console.stdout
    console.stderr = stderr or console.stderr
    words = sys.argv[1:] if argv is None else argv
    console.debug = "--debug" in words
    return ending_in_one_line(console, lambda: _run(console, words))


def _run(console: Console, words: Sequence[str]) -> int:
    parser = make_parser()
    try:
        arguments = parser.parse_args(list(words), namespace=CliArguments())
    except SystemExit as leaving:  # --help has printed its text
        return int(leaving.code or 0)
    if arguments.version:
        console.write_result(f"tilewright {tilewright.__version__}\n", "-")
        return 0
    if arguments.command is None:
        console.write_result(parser.format_help(), "-")
        return 0
    execute: Callable[[Console, CliArguments], int] = import_module(_COMMANDS[arguments.command]).execute
    return execute(console, arguments)
