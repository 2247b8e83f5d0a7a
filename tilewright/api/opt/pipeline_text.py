"""The text of a pipeline, as `-p` takes it, and of a target, as `-t` does: names with options, nothing looked up yet.

    pipeline := element (',' element)*
    element  := name options? | anchor '(' pipeline? ')'
    options  := '{' (key ('=' value (',' value)*)?)* '}'          blanks stand between options
    value    := "quoted" | 'quoted' | anything without blanks , { } ( ) and quotes

An anchor says what the passes in it run on. `builtin.module(...)` may stand around the whole, and is meant where it
does not; in it `func.func(...)`, `host.func(...)`, `tile.kernel(...)` and `simt.kernel(...)` run passes on each such op
alone, and `any(...)` on each of all four. As the outermost, `any(...)` is the module. Nothing nests deeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.suggest import did_you_mean

MODULE = "builtin.module"
"""The anchor of passes that see the whole module."""

ANY = "any"
"""The anchor of passes that run on whatever is there."""

FUNCTIONS = ("func.func", "host.func", "tile.kernel", "simt.kernel")
"""Anchors of passes that see one function or kernel at a time."""

ANCHORS = (MODULE, *FUNCTIONS, ANY)

_NAME = re.compile(r"[A-Za-z_][\w.-]*|[0-9]+[A-Za-z_-][\w.-]*")
BARE_VALUE = re.compile(r"[^\s,{}()'\"]+")
_QUOTED_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an option as it is written; a quoted one is text even when it reads like a number."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """A name with its options: key -> values, () for a bare flag. `location` points into the pipeline's text."""

    name: str
    options: dict[str, tuple[Value, ...]]
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Nest:
    """Passes that run on each op of one kind alone: `func.func(cse,canonicalize)`; the anchor is no module."""

    anchor: str
    passes: tuple[Spec, ...]
    location: SourceLocation


def parse_pipeline(text: str, origin: str) -> list[Spec | Nest]:
    """Return the elements that run on the module, in order; `origin` stands for a file name in errors.

    Raises TilewrightError with the column. An empty text is an empty pipeline.
    """
    reader = _Reader(text, origin)
    elements = reader.elements(None)
    if not reader.at_end():
        reader.fail("expected ',' or the end of the pipeline")
    return elements


def parse_single(text: str, origin: str) -> Spec:
    """Return the one name with options that `text` is, such as `cuda{arch=sm_90a}`."""
    reader = _Reader(text, origin)
    spec = reader.spec()
    if not reader.at_end():
        reader.fail("expected the end")
    return spec


class _Reader:
    """Recursive descent over the text; `position` is always at a non-blank character or at the end."""

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin
        self.position = 0
        self._skip_blanks()

    def elements(self, holder: str | None) -> list[Spec | Nest]:
        """Parse elements up to a ')' or the end; `holder` is the anchor that they stand in, None for the outermost."""
        found: list[Spec | Nest] = []
        if self.at_end() or self._peek() == ")":
            return found
        while True:
            found.extend(self._element(holder))
            if self._peek() != ",":
                return found
            self._expect(",")

    def _element(self, holder: str | None) -> list[Spec | Nest]:
        """Parse a pass or an anchor with what it holds; a module anchor is no more than what it holds."""
        start = self.position
        spec = self.spec()
        if self._peek() != "(":
            if spec.name in ANCHORS:
                self.fail(f"expected '(' after '{spec.name}'")
            return [spec]
        anchor = spec.name
        if anchor not in ANCHORS:
            hint = did_you_mean(anchor, ANCHORS) or f"; expected one of {', '.join(ANCHORS)}"
            self.fail(f"'{anchor}' cannot hold passes{hint}", start)
        if spec.options:
            self.fail(f"'{anchor}' takes no options: they belong to the passes in it", start)
        is_module = anchor == MODULE or (anchor == ANY and holder is None)
        if is_module and holder is not None:
            self.fail(f"'{anchor}' cannot stand in '{holder}': a module is the outermost", start)
        if holder not in (None, MODULE):
            self.fail(f"'{anchor}' cannot stand in '{holder}': functions and kernels do not nest", start)
        self._expect("(")
        elements = self.elements(MODULE if is_module else anchor)
        self._expect(")")
        if is_module:
            return elements
        return [Nest(anchor, tuple(each for each in elements if isinstance(each, Spec)), spec.location)]

    def spec(self) -> Spec:
        """Parse a name and its options."""
        location = self._location(self.position)
        name = self._match(_NAME, "a name").group()
        options: dict[str, tuple[Value, ...]] = {}
        if self._peek() != "{":
            return Spec(name, options, location)
        self._expect("{")
        while self._peek() != "}":
            start = self.position
            key = self._match(_NAME, "an option or '}'").group()
            if key in options:
                self.fail(f"option '{key}' is given twice", start)
            options[key] = self._values() if self._peek() == "=" else ()
        self._expect("}")
        return Spec(name, options, location)

    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise the error that points at `at`, or at what stands next."""
        rest = self.text[self.position :].split(maxsplit=1)
        got = f", got '{rest[0][:30]}'" if rest else ", got the end"
        if at is not None or "expected" not in message:
            got = ""
        raise TilewrightError(message + got, self._location(self.position if at is None else at))

    def _values(self) -> tuple[Value, ...]:
        values: list[Value] = []
        while not values or self._peek() == ",":
            self._expect("=" if not values else ",")
            if self._peek() in ('"', "'"):
                match = self._match(_QUOTED_VALUE, "a closing quote")
                values.append(Value(_ESCAPE.sub(r"\1", match.group(1) or match.group(2) or ""), quoted=True))
            else:
                values.append(Value(self._match(BARE_VALUE, "a value").group()))
        return tuple(values)

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            self.fail(f"expected '{character}'")
        self.position += 1
        self._skip_blanks()

    def _match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self.text, self.position)
        if match is None:
            self.fail(f"expected {what}")
        self.position = match.end()
        self._skip_blanks()
        return match

    def _skip_blanks(self) -> None:
        blank = _BLANK.match(self.text, self.position)
        if blank is not None:
            self.position = blank.end()

    def _location(self, position: int) -> SourceLocation:
        line = self.text.count("\n", 0, position) + 1
        return SourceLocation(self.origin, line, position - (self.text.rfind("\n", 0, position) + 1) + 1)
