"""The one exception type that ends as a one-line diagnostic, and how such a line is written.

Every layer raises `TilewrightError` (or a subclass) for whatever a user can cause; the command line turns it into
`file:line:col: error: message` on standard error and exit code 1, in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a text: file name as the user gave it, 1-based line and column."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TilewrightError(Exception):
    """Something the user can mend. `message` is one line: what is wrong, what was expected, what was got."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        if self.location is None:
            return f"error: {self.message}"
        return f"{self.location}: error: {self.message}"


class TilewrightWarning(UserWarning):
    """Something that works, but not as well as it could, or that was mended on the way; one line, like an error."""
