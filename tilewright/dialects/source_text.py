"""IR text before it is parsed: decoding, limits, positions, and the caret under a diagnostic.

Text from strangers is data. What the parser could only answer with a traceback (nesting without end, integers of
thousands of digits, bytes that are no UTF-8) is refused here, in one line that says where.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from tilewright.diagnostics import SourceLocation, TilewrightError

MAX_NESTING = 100
"""Brackets that may stand inside one another. Stock xDSL dies of recursion at 150 nested regions or attributes."""

MAX_DIGITS = 1000
"""Digits of an integer literal. Python itself refuses to convert more than 4300."""

MAX_INTEGER_WIDTH = 1 << 24
"""Bits of an integer type: MLIR's own limit."""

MAX_MESSAGE = 600
"""Characters of a message; a wrong operand's type may print a whole shape algebra."""

MAX_SOURCE_LINE = 160
"""Characters of a source line that are shown above the caret."""

_BYTE_ORDER_MARK = "\ufeff"
_OPENERS = {")": "(", "]": "[", "}": "{"}
_COMMENT_OR_SPACE = re.compile(r"(?://[^\n]*|\s+)*")
_BAD_STRING = r"a string is not closed on its line, or holds an escape other than \n, \t, \\, \" and two hex digits"
_LIMITED = re.compile(
    r"""
      //[^\n]*                                  # comments and strings hold no brackets
    | "(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9a-fA-F]{2}))*"
    | (?P<quote>")                              # no string of MLIR's: xDSL's own pattern takes 2^n steps to find out
    | (?P<long>0x[0-9a-fA-F]{LIMIT,}|[0-9]{LIMIT,})
    | (?<![\w$.%@#!^])[su]?i(?P<width>[0-9]{8,})\b
    | (?P<open>[(\[{]|(?<=[\w.$])<(?!=))        # `<` opens a type only right after a name: `S < W` is a comparison
    | (?P<close>[)\]}])
    | ->|>=
    | (?P<angle>>)
    | (?P<newline>\n)
    """.replace("LIMIT", str(MAX_DIGITS + 1)),
    re.VERBOSE,
)


@dataclass(frozen=True)
class LineTable:
    """Finds line and column of an offset in O(log lines), where counting newlines each time would be quadratic."""

    text: str
    _starts: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(match.end() for match in re.finditer("\n", self.text))
        object.__setattr__(self, "_starts", starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Return 1-based (line, column) of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def location(self, filename: str, offset: int) -> SourceLocation:
        """Return where `offset` is, as a diagnostic names it."""
        line, column = self.position(offset)
        return SourceLocation(filename, line, column)


def decode(data: bytes, filename: str) -> str:
    """Return the text of a file, without a byte order mark; TilewrightError at the first byte that is no UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TilewrightError("the file is UTF-16, expected UTF-8", SourceLocation(filename, 1, 1))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        where = LineTable(before).location(filename, len(before))
        message = f"byte 0x{data[error.start]:02x} is not UTF-8: expected a text file in UTF-8"
        raise TilewrightError(message, where) from error
    return text.removeprefix(_BYTE_ORDER_MARK)


def check_limits(text: str, filename: str) -> None:
    """Raise TilewrightError if `text` is empty, holds a NUL, nests too deeply or spells an integer without end."""
    lines = LineTable(text)

    def refuse(message: str, offset: int) -> TilewrightError:
        return TilewrightError(message, lines.location(filename, offset))

    if (nul := text.find("\0")) >= 0:
        raise refuse("the text holds a NUL byte: expected IR text, got a binary file?", nul)
    blank = _COMMENT_OR_SPACE.match(text)
    if blank is not None and blank.end() == len(text):
        what = "only comments" if text.strip() else "nothing"
        raise refuse(f"the input holds {what}: expected operations, such as 'func.func @f() {{ ... }}'", 0)

    opened: list[str] = []
    for match in _LIMITED.finditer(text):
        kind = match.lastgroup
        if kind == "open":
            opened.append(match.group())
            if len(opened) > MAX_NESTING:
                raise refuse(f"brackets are nested more than {MAX_NESTING} deep", match.start())
        elif kind == "close":
            _close(opened, _OPENERS[match.group()])
        elif kind == "angle":
            if opened and opened[-1] == "<":
                opened.pop()
        elif kind == "newline":
            # A comparison such as `A<B` leaves a `<` that nothing closes; types seldom run over lines.
            while opened and opened[-1] == "<":
                opened.pop()
        elif kind == "quote":
            raise refuse(_BAD_STRING, match.start())
        elif kind == "long":
            digits = len(match.group())
            raise refuse(f"an integer of {digits} digits: expected at most {MAX_DIGITS}", match.start())
        elif kind == "width" and int(match.group("width")[:20]) > MAX_INTEGER_WIDTH:
            message = f"integer type of more than {MAX_INTEGER_WIDTH} bits: '{match.group()[:40]}'"
            raise refuse(message, match.start())


def _close(opened: list[str], opener: str) -> None:
    """Drop the brackets up to and with the last `opener`; a closer without opener is the parser's to report."""
    if opener in opened:
        while opened.pop() != opener:
            pass


def one_line(message: str) -> str:
    """Return `message` as one printable line: runs of blanks become one, control characters are escaped, length is cut.

    Messages quote names from the text, which may hold newlines or terminal escapes.
    """
    joined = " ".join(message.split())
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in joined)
    return printable if len(printable) <= MAX_MESSAGE else printable[: MAX_MESSAGE - 4] + " ..."


def lower_first(message: str) -> str:
    """Return `message` as it reads after `error: `: no capital on the first word, no full stop or `!` at the end."""
    message = message.rstrip("!.") if not message.endswith("...") else message
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def render(error: TilewrightError, text: str | None = None) -> str:
    """Return the diagnostic: `file:line:col: error: message`, the source line, and a caret below the column.

    `text` is the whole text that the location counts in; without it, or when the line is not in it, the first line
    comes alone. No newline at the end.
    """
    head = one_line(str(error))
    where = error.location
    if where is None or text is None:
        return head
    lines = text.split("\n")
    if not 1 <= where.line <= len(lines):
        return head
    source = lines[where.line - 1].rstrip("\r")
    column = min(max(where.column, 1), len(source) + 1)
    # A generated file may be one line of megabytes: show a window with the column in it.
    first = max(0, column - 1 - MAX_SOURCE_LINE // 2) if len(source) > MAX_SOURCE_LINE else 0
    shown = source[first : first + MAX_SOURCE_LINE]
    shown = "".join(c if c.isprintable() or c == "\t" else "?" for c in shown)
    # Tabs stay tabs, so that the caret stands below its column whatever the tab width.
    padding = "".join("\t" if c == "\t" else " " for c in shown[: column - 1 - first])
    return f"{head}\n{shown}\n{padding}^" if shown.strip() else head
