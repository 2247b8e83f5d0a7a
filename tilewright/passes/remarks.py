"""Remarks: what a pass did or declined to do, and why, in one line that points into the text.

A pass calls `remark`; whoever drives passes opens `collecting_remarks`. Without a collector a remark is dropped.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.ir import Operation

from tilewright.diagnostics import SourceLocation
from tilewright.dialects.location import location_of


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark; prints as `file:line:col: remark: [pass-name] message`."""

    pass_name: str
    message: str
    location: SourceLocation | None

    def __str__(self) -> str:
        text = f"remark: [{self.pass_name}] {self.message}"
        return text if self.location is None else f"{self.location}: {text}"


_RECENT = 256
"""How many of the last remarks a new one is compared with."""

# A context variable, so that two threads or tasks that compile at once keep their remarks apart.
_collector: ContextVar[list[Remark] | None] = ContextVar("tilewright_remarks", default=None)


@contextmanager
def collecting_remarks() -> Generator[list[Remark]]:
    """Collect the remarks of the passes that run inside the `with`; collectors nest, the innermost gets the remark."""
    remarks: list[Remark] = []
    token = _collector.set(remarks)
    try:
        yield remarks
    finally:
        _collector.reset(token)


def remark(op: Operation, pass_name: str, message: str) -> None:
    """Say in one line what was done, or not done and why, at `op`.

    Patterns look at an op again when something around it changed; a remark that was made at that place is not repeated.
    """
    remarks = _collector.get()
    if remarks is None:
        return
    made = Remark(pass_name, message, location_of(op))
    if made.location is None or made not in remarks[-_RECENT:]:
        remarks.append(made)
