"""Errors that a test file foretells in comments, matched as mlir-opt's `-verify-diagnostics` does.

    // expected-error@+1 {{does not dominate}}           on the next line, a message that contains the text
    %0 = arith.addi %a, %1 : i32                         // expected-error {{...}}: on this line
    // expected-error-re@below {{tile of {{[0-9]+}} bytes}}

Places: `@+N`, `@-N`, `@above`, `@below` (the nearest line that is no such comment), `@unknown` (no location).
Kinds: error, warning, remark, note. Every foretold message must come, and no other may; other remarks may, as long as
`--remarks` does not ask for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.source_text import lower_first, one_line

_COMMENT = re.compile(r"//\s*expected-|//.*\bexpected-(?:error|warning|remark|note)\b")
_DESIGNATOR = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?\s*"
    r"(?:@(?P<place>[+-][0-9]+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}\s*(?=$|//|,|expected-)"
)
_EMBEDDED_REGEX = re.compile(r"\{\{(.*?)\}\}")

MOST_DIGITS = 9
"""Digits of a line number that are read, with the sign."""


@dataclass(frozen=True, slots=True)
class Produced:
    """A diagnostic that came: its kind, and the line in the file, or None without a location."""

    kind: str
    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Expected:
    """A diagnostic that a comment foretells; `line` is None for `@unknown`; `at` is the comment's own line."""

    kind: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    at: int

    def matches(self, produced: Produced) -> bool:
        """Return whether `produced` is of this kind, on this line, with a message in which the pattern is found."""
        return (
            produced.kind == self.kind
            and produced.line == self.line
            and self.pattern.search(one_line(produced.message)) is not None
        )


def expectations(text: str, filename: str) -> list[Expected]:
    """Return what the comments in `text` foretell; TilewrightError for a comment that says `expected-` but no more."""
    lines = text.split("\n")
    found: list[Expected] = []
    for number, line in enumerate(lines, start=1):
        comment = line.find("//")
        if comment < 0 or _COMMENT.search(line, comment) is None:
            continue
        designators = list(_DESIGNATOR.finditer(line.rstrip(), comment))
        if not designators:
            raise TilewrightError(
                "expected '// expected-error@+1 {{text}}', with error, warning, remark or note",
                SourceLocation(filename, number, comment + 1),
            )
        for designator in designators:
            place = designator["place"]
            found.append(
                Expected(
                    designator["kind"],
                    _line(place, number, lines),
                    designator["text"],
                    _pattern(designator["text"], designator["re"] is not None, SourceLocation(filename, number, 1)),
                    number,
                )
            )
    return found


def mismatches(
    expected: list[Expected], produced: list[Produced], filename: str, *, all_remarks: bool
) -> list[TilewrightError]:
    """Return one error for each message that was not foretold, and one for each that did not come.

    Without `all_remarks`, remarks that were not foretold are passed over.
    """
    rest = list(expected)
    errors: list[TilewrightError] = []
    for one in produced:
        match = next((candidate for candidate in rest if candidate.matches(one)), None)
        if match is not None:
            rest.remove(match)
            continue
        if one.kind == "remark" and not all_remarks:
            continue
        place = None if one.line is None else SourceLocation(filename, one.line, 1)
        errors.append(TilewrightError(f"unexpected {one.kind}: {lower_first(one.message)}", place))
    for missing in rest:
        where = "without a location" if missing.line is None else f"at line {missing.line}"
        errors.append(
            TilewrightError(
                f"expected {missing.kind} '{missing.text}' {where}, but it did not come",
                SourceLocation(filename, missing.at, 1),
            )
        )
    return errors


def _line(place: str | None, number: int, lines: list[str]) -> int | None:
    """Return the line that a designator on line `number` speaks of."""
    if place is None:
        return number
    if place == "unknown":
        return None
    if place not in ("above", "below"):
        return number + int(place[:MOST_DIGITS])  # no file is so long
    step = -1 if place == "above" else 1
    line = number + step
    while 1 <= line <= len(lines) and lines[line - 1].lstrip().startswith("// expected-"):
        line += step
    return line


def _pattern(text: str, with_regexes: bool, location: SourceLocation) -> re.Pattern[str]:
    """Return the pattern for `text`: the text itself, or with -re, the text with regular expressions in {{ }}."""
    if not with_regexes:
        return re.compile(re.escape(text))
    pieces = _EMBEDDED_REGEX.split(text)
    try:
        return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(pieces)))
    except re.error as error:
        raise TilewrightError(f"bad regular expression in '{text}': {error}", location) from error
