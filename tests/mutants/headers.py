"""A C++ header as operators see it: its code that this machine can run, with all else blanked out.

Blanked: comments, strings, preprocessor lines, template heads, and what only a GPU's compiler reads (the first branch
of `#ifdef __CUDACC__`) or only other machines do: there no test on a CPU could tell a fault from its absence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tests.mutants.source import text_lines

_WORDS: Final = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\btemplate\s*<[^\n]*|\bstatic_assert[^\n]*', re.DOTALL
)
_NOT_HERE: Final = ("__CUDACC__", "TW_CPU_UCONTEXT", "__aarch64__")


@dataclass
class Header:
    """The text of a header."""

    text: str

    @cached_property
    def code(self) -> str:
        """The text with blanks, character for character, where nothing is to be changed."""
        blanked = _WORDS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), self.text)
        lines: list[str] = []
        elsewhere: list[bool] = []
        for line in text_lines(blanked):
            stripped = line.strip()
            if stripped.startswith("#if"):
                positive = not stripped.startswith(("#ifndef", "#if !"))
                elsewhere.append(positive and any(word in stripped for word in _NOT_HERE))
            elif stripped.startswith(("#else", "#elif")) and elsewhere:
                elsewhere[-1] = False
            elif stripped.startswith("#endif") and elsewhere:
                elsewhere.pop()
            keep = not any(elsewhere) and not stripped.startswith("#")
            lines.append(line if keep else re.sub(r"[^\n]", " ", line))
        return "".join(lines)

    def found(self, pattern: str) -> Iterator[re.Match[str]]:
        """Where a pattern matches the code."""
        yield from re.finditer(pattern, self.code)

    def line_of(self, offset: int) -> int:
        """The number of the line of a character, from 1."""
        return self.text.count("\n", 0, offset) + 1

    def scope_of(self, offset: int) -> str:
        """The name of the function or struct that begins last before a character, by its look."""
        heads = re.finditer(r"^[A-Za-z#][^;\n]*?\b(\w+)\s*(?:\([^;\n]*)?\{", self.text[:offset], re.MULTILINE)
        return next((m[1] for m in reversed(list(heads))), "")
