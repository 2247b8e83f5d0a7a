"""`tilewright-opt FILE -p 'pass{option=1},pass2' [-t cuda{arch=sm_90a}]`: an opt tool as MLIR users expect it.

The result goes to standard output or to `-o`; diagnostics, dumps, remarks and timing go to standard error. Exit code 0,
or 1 with one line for each thing that is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import tilewright
from tilewright.api.diagnostics_cli import FAILURE, Console, as_diagnostic, ending_in_one_line, process_console
from tilewright.api.opt.arguments import OptArguments, make_parser, parse_arguments
from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from tilewright.api.opt.driver import Driver
    from tilewright.passes.remarks import Remark

SPLIT_MARKER = "// -----"
"""A line that starts with this parts the input under --split-input-file, as in MLIR."""


def main(
    argv: Sequence[str] | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run the tool on `argv` (without the program's name) and return its exit code; what is None is the process's own.

    Tests give streams and get the whole tool without a process.
    """
    console = process_console() if stdout is None and stderr is None else Console(sys.stdin, sys.stdout, sys.stderr)
    console.stdin = stdin or console.stdin
    console.stdout = stdout or console.stdout
    console.stderr = stderr or console.stderr
    words = sys.argv[1:] if argv is None else argv
    # Set before the command line is parsed, so that its own errors show their traceback too.
    console.debug = "--debug" in words
    return ending_in_one_line(console, lambda: _run(console, words))


def split_input(text: str) -> list[str]:
    """Return the parts of `text` between split markers, each led by blank lines that keep the file's line numbers."""
    parts: list[list[str]] = [[]]
    lines_before = [0]
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(SPLIT_MARKER):
            parts.append([])
            lines_before.append(number)
        else:
            parts[-1].append(line)
    return ["\n" * before + "\n".join(part) for before, part in zip(lines_before, parts, strict=True)]


def _run(console: Console, argv: Sequence[str]) -> int:
    arguments = parse_arguments(argv)
    if (answer := _about(arguments)) is not None:
        console.write_result(answer, "-")
        return 0

    # Here, so that --help and --version load no xDSL.
    from tilewright.api.opt.catalogue import PIPELINE_ORIGIN, TARGET_ORIGIN, make_pipeline, make_target
    from tilewright.api.opt.driver import Driver
    from tilewright.api.opt.timing import Stopwatch

    console.sources[PIPELINE_ORIGIN] = arguments.passes
    console.sources[TARGET_ORIGIN] = arguments.target or ""
    stopwatch = Stopwatch()
    driver = Driver(
        arguments,
        make_pipeline(arguments.passes),
        None if arguments.target is None else make_target(arguments.target),
        stopwatch,
        console.stderr.write,
    )
    name, text = console.read_source(arguments.file)
    parts = split_input(text) if arguments.split_input_file else [text]
    results: list[str] = []
    code = 0
    for part in parts:
        result = _run_part(console, driver, part, name)
        if result is None:
            code = FAILURE
        elif result:
            results.append(result)
    if arguments.timing:
        console.stderr.write(stopwatch.report())
    # A file is written whole or not at all: half a result is worse than none.
    if arguments.output == "-" or code == 0:
        console.write_result(f"\n{SPLIT_MARKER}\n".join(results), arguments.output)
    return code


def _run_part(console: Console, driver: Driver, part: str, name: str) -> str | None:
    """Return what one part of the input becomes, "" for a part whose errors came as foretold, None for a failure."""
    from tilewright.api.opt.expected import Produced, expectations, mismatches
    from tilewright.dialects.registry import make_context

    arguments = driver.arguments
    remarks: list[Remark] = []
    produced: list[Produced] = []
    result: str | None = None
    foretold = expectations(part, name) if arguments.verify_diagnostics else []
    ctx = make_context(allow_unregistered=arguments.allow_unregistered_dialect)
    try:
        result = driver.run(part, name, ctx, remarks)
    except Exception as error:
        diagnostic = as_diagnostic(error)
        if not arguments.verify_diagnostics or not isinstance(error, TilewrightError):
            console.report(error)
        else:
            line = None if diagnostic.location is None else diagnostic.location.line
            produced.append(Produced("error", line, diagnostic.message))
    for remark in remarks:
        if arguments.verify_diagnostics:
            line = None if remark.location is None else remark.location.line
            produced.append(Produced("remark", line, remark.message))
        else:
            console.stderr.write(f"{remark}\n")
    if not arguments.verify_diagnostics:
        return result
    wrong = mismatches(foretold, produced, name)
    for mismatch in wrong:
        console.report(mismatch)
    return None if wrong or (result is None and not produced) else result or ""


def _about(arguments: OptArguments) -> str | None:
    """Return the answer to a question about the tool itself, or None if there is work to do."""
    if arguments.help:
        return make_parser().format_help()
    if arguments.version:
        return f"tilewright-opt {tilewright.__version__}\n"
    if not (arguments.list_passes or arguments.list_dialects or arguments.list_targets):
        return None
    from tilewright.api.opt.catalogue import list_dialects, list_passes, list_targets

    if arguments.list_passes:
        return list_passes()
    return list_dialects() if arguments.list_dialects else list_targets()


if __name__ == "__main__":
    sys.exit(main())
