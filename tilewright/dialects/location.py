"""Where an operation came from: between xDSL's location attributes and `SourceLocation`."""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation

from tilewright.diagnostics import SourceLocation


def source_location(location: Attribute) -> SourceLocation | None:
    """Return the first file position that a location attribute names, or None if it names none (`loc(unknown)`)."""
    if isinstance(location, FileLineColLoc):
        return SourceLocation(location.filename.data, location.line.data, location.column.data)
    if isinstance(location, NameLoc):
        return source_location(location.location)
    if isinstance(location, CallSiteLoc):
        return source_location(location.callee)
    if isinstance(location, FusedLoc):
        parts: tuple[Attribute, ...] = getattr(location.locations, "data", ())
        found = (source_location(part) for part in parts)
        return next((place for place in found if place is not None), None)
    return None


def location_of(op: Operation) -> SourceLocation | None:
    """Return where `op` was written, or the nearest operation around it that has a place, or None.

    Rewrites may drop locations and parsers add terminators that nobody wrote: the place of the enclosing operation is
    the best that can be said of those.
    """
    current: Operation | None = op
    while current is not None:
        place = source_location(current.location)
        if place is not None:
            return place
        current = current.parent_op()
    return None
