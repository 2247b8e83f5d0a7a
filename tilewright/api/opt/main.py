"""`tilewright-opt FILE -p 'pass{option=1},pass2' [-t cuda{arch=sm_90a}]`: an opt tool as MLIR users expect it.

The result goes to standard output or to `-o`; diagnostics, dumps, remarks, statistics and timing go to standard error.
Exit code 0, or 1 with one line for each thing that is wrong; 141 when the reader of the output has gone.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import tilewright
from tilewright.api.diagnostics_cli import FAILURE, Console, ending_in_one_line, process_console, silence
from tilewright.api.opt.arguments import OptArguments, bare_pipeline, check_bare_passes, make_parser, parse_arguments
from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from tilewright.api.opt.driver import Driver

SPLIT_MARKER = "// -----"
"""A line that starts with this parts the input under --split-input-file, as in MLIR."""

BROKEN_PIPE = 141
"""Exit code when the reader of our output closes it: 128 + SIGPIPE, as shells give it for other programs."""


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

    def command() -> int:
        try:
            code = _run(console, words)
            # Here and not at exit, where Python could only complain.
            console.stdout.flush()
            console.stderr.flush()
            return code
        except BrokenPipeError:
            silence(console.stdout)
            silence(console.stderr)
            return BROKEN_PIPE

    return ending_in_one_line(console, command)


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
    load = _Loader(console)
    arguments = parse_arguments(argv, load)
    if (answer := _about(load, arguments)) is not None:
        console.write_result(answer, "-")
        return 0
    _load(load, arguments)

    # Here, so that --help and --version load no xDSL.
    from tilewright.api.opt.output import write_file
    from tilewright.passes.statistics import collecting_statistics

    driver, name, text = _prepare(console, arguments)
    parts = split_input(text) if arguments.split_input_file else [text]
    # As in MLIR a part without operations is no error: the first often holds the RUN lines alone.
    full = [not arguments.split_input_file or _holds_operations(part) for part in parts]
    if not any(full):
        parts, full = parts[:1], [True]
    results: list[str] = []
    code = 0
    with ExitStack() as stack:
        counts = stack.enter_context(collecting_statistics()) if arguments.statistics else {}
        for number, part in enumerate(parts):
            result = _run_part(console, driver, part, name, number, full=full[number])
            if result is None:
                code = FAILURE
            elif result:
                results.append(result)
    if arguments.statistics:
        from tilewright.api.opt.statistics import statistics_report

        console.stderr.write(statistics_report(counts))
    if arguments.timing:
        console.stderr.write(driver.stopwatch.report())
    joined = f"\n{SPLIT_MARKER}\n".join(results)
    if arguments.output == "-":
        console.write_result(joined, "-")
    elif code == 0:
        # A file is written whole or not at all: half a result is worse than none.
        write_file(joined, arguments.output)
    return code


def _holds_operations(part: str) -> bool:
    """Return whether there is more in a part than blank lines and comments."""
    lines = (line.strip() for line in part.split("\n"))
    return any(line and not line.startswith("//") for line in lines)


@dataclass
class _Loader:
    """Runs the files of `--load`, once; TilewrightError for one that fails."""

    console: Console
    done: bool = False

    def __call__(self, paths: Sequence[str]) -> None:
        if self.done:
            return
        self.done = True
        from tilewright.passes.registry import load_passes_from

        for path in paths:
            file = Path(path)
            if len(path) < 1024 and file.is_file():
                # For the caret under an error in it.
                self.console.sources[path] = file.read_text(encoding="utf-8", errors="replace")
            load_passes_from(file)


def _load(load: _Loader, arguments: OptArguments) -> None:
    """Run the files of `--load`; TilewrightError for one that fails, and for options that are no pass even then."""
    if not arguments.load:
        return
    load(arguments.load)
    options = [option for action in make_parser()._actions for option in action.option_strings]  # pyright: ignore[reportPrivateUsage]  # argparse has no public list
    check_bare_passes(arguments.bare_passes, options)


def _same_file(one: str, other: str) -> bool:
    """Whether two paths name one file that is there."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def _prepare(console: Console, arguments: OptArguments) -> tuple[Driver, str, str]:
    """Return the driver, and name and text of the input; TilewrightError for what is wrong before any work is done."""
    from tilewright.api.opt.catalogue import TARGET_ORIGIN, check_names, make_target
    from tilewright.api.opt.driver import Driver
    from tilewright.api.opt.pipeline import PIPELINE_ORIGIN, canonical_text, make_pipeline
    from tilewright.api.opt.timing import Stopwatch

    if arguments.crash_reproducer is not None and _same_file(arguments.crash_reproducer, arguments.file):
        raise TilewrightError(
            f"--crash-reproducer: '{arguments.crash_reproducer}' is the input, which it would replace"
        )
    stopwatch = Stopwatch()
    pipeline_text = arguments.passes or bare_pipeline(arguments.bare_passes)
    source: tuple[str, str] | None = None
    not_loaded: list[str] = []
    if arguments.run_reproducer:
        from tilewright.api.opt.reproducer import read_reproducer

        if pipeline_text:
            raise TilewrightError("expected --run-reproducer or a pipeline, got both: the file says which passes run")
        source = console.read_source(arguments.file)
        reproduction = read_reproducer(source[1], source[0])
        pipeline_text = reproduction.pipeline
        not_loaded = [file for file in reproduction.load if file not in arguments.load]
        arguments.verify_each = arguments.verify_each and reproduction.verify_each
    console.sources[PIPELINE_ORIGIN] = pipeline_text
    console.sources[TARGET_ORIGIN] = arguments.target or ""
    try:
        pipeline = make_pipeline(pipeline_text)
    except TilewrightError as error:
        if not not_loaded:
            raise
        words = shlex.join(word for file in not_loaded for word in ("--load", file))
        raise TilewrightError(f"{error.message}; the reproducer was made with {words}", error.location) from None
    target = None if arguments.target is None else make_target(arguments.target)
    check_names("--print-ir-before", arguments.print_ir_before)
    check_names("--print-ir-after", arguments.print_ir_after)
    if arguments.dump_pass_pipeline:
        console.stderr.write(canonical_text(pipeline) + "\n")
    name, text = source or console.read_source(arguments.file)
    return Driver(arguments, pipeline, target, stopwatch), name, text


def _run_part(console: Console, driver: Driver, part: str, name: str, number: int, *, full: bool) -> str | None:
    """Return what one part of the input becomes, "" for a part whose errors came as foretold, None for a failure."""
    from tilewright.api.opt.diagnostics import Diagnostics
    from tilewright.api.opt.dumps import Dumps
    from tilewright.api.opt.expected import expectations, mismatches
    from tilewright.dialects.registry import make_context

    arguments = driver.arguments
    result: str | None = "" if not full else None
    foretold = expectations(part, name) if arguments.verify_diagnostics else []
    diagnostics = Diagnostics(console, matching=arguments.verify_diagnostics)
    dumps = Dumps(arguments, console.stderr.write, number)
    if full:
        ctx = make_context(allow_unregistered=arguments.allow_unregistered_dialect)
        try:
            with diagnostics.taking_warnings():
                result = driver.run(part, name, ctx, diagnostics, dumps)
        except KeyboardInterrupt:
            diagnostics.say_hints()
            raise
        except BrokenPipeError:
            raise
        except Exception as error:
            diagnostics.error(error)
    if not arguments.verify_diagnostics:
        return result
    wrong = mismatches(foretold, diagnostics.produced, name, all_remarks=arguments.remarks)
    for mismatch in wrong:
        console.report(mismatch)
    foretold_failure = any(one.kind == "error" for one in diagnostics.produced)
    return None if wrong or (result is None and not foretold_failure) else result or ""


def _about(load: _Loader, arguments: OptArguments) -> str | None:
    """Return the answer to a question about the tool itself, or None if there is work to do."""
    if arguments.help:
        return make_parser().format_help()
    if arguments.version:
        return f"tilewright-opt {tilewright.__version__}\n"
    if arguments.list_passes is not None or arguments.help_pass:
        from tilewright.api.opt.pass_help import list_passes, list_passes_in_full, pass_help

        _load(load, arguments)
        if arguments.help_pass:
            return "\n".join(pass_help(name) for name in arguments.help_pass)
        return list_passes_in_full() if arguments.list_passes == "full" else list_passes()
    if not (arguments.list_dialects or arguments.list_targets):
        return None
    from tilewright.api.opt.catalogue import list_dialects, list_targets

    _load(load, arguments)
    return list_dialects() if arguments.list_dialects else list_targets()


if __name__ == "__main__":
    sys.exit(main())
