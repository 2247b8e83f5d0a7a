"""Where the diagnostics of a part of the input go: to standard error, or to be matched with what the part foretells."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.api.diagnostics_cli import Console, as_diagnostic
from tilewright.api.opt.expected import Produced
from tilewright.diagnostics import SourceLocation, TilewrightError, TilewrightWarning
from tilewright.dialects.source_text import one_line

if TYPE_CHECKING:
    from tilewright.passes.remarks import Remark


class PassBug(TilewrightError):
    """An exception that a pass should not have let out; no comment in a test can foretell it."""


@dataclass
class Diagnostics:
    """Takes errors, warnings, remarks and notes as they come."""

    console: Console
    matching: bool
    """Keep them in `produced` instead of writing them."""
    produced: list[Produced] = field(default_factory=list[Produced])
    _hints: list[str] = field(default_factory=list[str])

    def remark(self, remark: Remark) -> None:
        """Take a remark of a pass."""
        if self.matching:
            self._keep("remark", remark.location, remark.message)
        else:
            self.console.stderr.write(f"{one_line(str(remark))}\n")

    def warning(self, message: str, location: SourceLocation | None = None) -> None:
        """Take a warning."""
        if self.matching:
            self._keep("warning", location, message)
        else:
            at = "" if location is None else f"{location}: "
            self.console.stderr.write(f"{at}warning: {one_line(message)}\n")

    def error(self, error: Exception) -> None:
        """Take the error that ended the part, with the notes on it (PEP 678)."""
        if not self.matching or isinstance(error, PassBug) or not isinstance(error, TilewrightError):
            self.console.report(error)
            self._hints[:0] = _notes_of(error)
            self.say_hints()
            return
        diagnostic = as_diagnostic(error)
        self._keep("error", diagnostic.location, diagnostic.message)
        for note in _notes_of(error):
            self._keep("note", diagnostic.location, note)

    def hint_later(self, text: str) -> None:
        """Keep what is said after the error, such as where a reproducer is; no diagnostic that a test foretells."""
        self._hints.append(text)

    def say_hints(self) -> None:
        """Say what was kept."""
        for hint in self._hints:
            self.console.stderr.write(f"note: {one_line(hint)}\n")
        self._hints.clear()

    @contextmanager
    def taking_warnings(self) -> Generator[None]:
        """Take what passes warn of (TilewrightWarning) inside the `with`; other warnings go Python's own way."""

        def show(message: Warning | str, category: type[Warning], *details: object, **more: object) -> None:
            if isinstance(message, TilewrightWarning):
                self.warning(str(message), getattr(message, "location", None))
            else:
                python_way(message, category, *details, **more)  # pyright: ignore[reportArgumentType]

        with warnings.catch_warnings():
            python_way = warnings.showwarning
            warnings.simplefilter("always", TilewrightWarning)
            warnings.showwarning = show
            yield

    def _keep(self, kind: str, location: SourceLocation | None, message: str) -> None:
        self.produced.append(Produced(kind, None if location is None else location.line, message))


def _notes_of(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ())) if isinstance(error, TilewrightError) else []
