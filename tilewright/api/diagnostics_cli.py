"""How every command of Tilewright ends: a result, or diagnostics of one line each and exit code 1. Never a traceback.

`ending_in_one_line` is the one place that turns exceptions into what a person reads. Commands raise TilewrightError.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TextIO

from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.dialects.source_text import decode, one_line, render

FAILURE = 1
"""Exit code of whatever the user can mend, and of a bug."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as shells give it."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write fails with where the disk, and not the program, is at fault."""


@dataclass
class Console:
    """Where a command reads and writes, and the texts it has read, for the carets under its diagnostics.

    Streams are parameters, so that a test runs a command in its own process.
    """

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    debug: bool = False
    """Show tracebacks."""
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """File name as locations spell it -> text that the lines count in."""

    def read_source(self, path: str) -> tuple[str, str]:
        """Return (name for locations, text) of the file at `path`, or of standard input for `-`.

        Raises TilewrightError if there is no such file, or if it is no text.
        """
        name = "<stdin>" if path == "-" else path
        try:
            if path == "-":
                binary = getattr(self.stdin, "buffer", None)
                data = self.stdin.read().encode("utf-8") if binary is None else binary.read()
            else:
                data = Path(path).read_bytes()
        except OSError as error:
            raise TilewrightError(f"cannot read '{path}': {_reason(error)}") from error
        except ValueError as error:
            raise TilewrightError(f"cannot read '{one_line(path)}': {error}") from error
        self.sources[name] = decode(data, name)
        return name, self.sources[name]

    def write_result(self, text: str, path: str) -> None:
        """Write `text` to the file at `path`, or to standard output for `-`; raises TilewrightError if it cannot."""
        if path == "-":
            self.stdout.write(text)
            self.stdout.flush()
            return
        try:
            Path(path).write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise TilewrightError(f"cannot write '{one_line(path)}': {_reason(error)}") from error

    def report(self, error: BaseException) -> None:
        """Write the diagnostic for `error`, with a caret where the text is known; in debug the traceback too."""
        if self.debug:
            self.stderr.write("".join(traceback.format_exception(error)))
        self.stderr.write(render(as_diagnostic(error), self.text_for(error)) + "\n")

    def text_for(self, error: BaseException) -> str | None:
        """Return the text that the error's location counts in, if this command has read it."""
        place = error.location if isinstance(error, TilewrightError) else None
        return None if place is None else self.sources.get(place.file)


def process_console() -> Console:
    """Return the console of this process, with UTF-8 output whatever the locale says.

    A stream that the shell has closed (`>&-`) is None in Python: nothing is read from it, and what is written is lost.
    """
    sys.stdin, sys.stdout, sys.stderr = sys.stdin or StringIO(), sys.stdout or StringIO(), sys.stderr or StringIO()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    return Console(sys.stdin, sys.stdout, sys.stderr)


def as_diagnostic(error: BaseException) -> TilewrightError:
    """Return `error` as what a user reads: itself if it is a TilewrightError, else the nearest thing to say."""
    if isinstance(error, TilewrightError):
        return error
    if isinstance(error, RecursionError):
        return TilewrightError("the program is nested too deeply, or a bug recurses without end; --debug shows where")
    if isinstance(error, OSError) and error.errno in _FULL:
        return TilewrightError(f"cannot write: {_reason(error)}")
    detail = one_line(str(error))
    if isinstance(error, MemoryError):
        # NumPy says how much it was asked for; Python says nothing.
        return TilewrightError(f"out of memory: {detail}" if detail else "out of memory")
    what = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    return TilewrightError(f"internal error: {what} (a bug in Tilewright; --debug shows the traceback)")


def ending_in_one_line(console: Console, command: Callable[[], int]) -> int:
    """Run `command` and return its exit code; whatever it raises is reported on the console's standard error.

    A reader that closes our standard output, such as `head`, is no error to speak of: exit code 1 and silence.
    """

    def show(message: Warning | str, *_details: object, **_more: object) -> None:
        console.stderr.write(f"warning: {one_line(str(message))}\n")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", TilewrightWarning)
            warnings.showwarning = show
            return command()
    except BrokenPipeError:
        silence(console.stdout)
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            silence(console.stdout)
        console.report(error)
        return FAILURE


def silence(stream: TextIO) -> None:
    """Point a closed stream at nothing, so that Python's flush at exit does not complain about it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return  # an in-memory stream has no descriptor, and nothing to flush


def _reason(error: OSError | ValueError) -> str:
    """Return why a file operation failed, without the path that the message names already."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
