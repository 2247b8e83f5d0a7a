"""The table of operators: each imitates one kind of fault that compilers have, and is put in at every place it fits.

An operator is a class with `name`, a docstring that says what fault it stands for, `quota` (how many of its sites are
drawn) and `sites(source)`, which gives edits of one piece of text each; some have `header_sites(header)` for C++ too.
This file has what they share; the operators are in three files by theme, and `table.py` lists them.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import ClassVar, Final

from tests.mutants.headers import Header
from tests.mutants.source import Place, Source
from tests.mutants.trees import PACKAGE, ROOT


@dataclass(frozen=True, slots=True)
class Edit:
    """In the text from `start` to `end`, `new`; `place` is the node that is meant, None in a header."""

    start: int
    end: int
    new: str
    place: Place | None = None


class Operator(ABC):
    """A kind of fault. Subclasses say in their docstring what real fault it stands for."""

    name: ClassVar[str]
    quota: ClassVar[int]

    @abstractmethod
    def sites(self, source: Source) -> Iterator[Edit]:
        """Every place in a Python file where the fault can be made."""

    def header_sites(self, header: Header) -> Iterator[Edit]:
        """The same in a C++ header; nowhere unless the operator says otherwise."""
        yield from ()

    @classmethod
    def summary(cls) -> str:
        """What fault it stands for, in one line."""
        return (cls.__doc__ or "").partition("\n")[0]


SYMMETRIC: Final = frozenset(
    {"isinstance", "issubclass", "zip", "min", "max", "print", "getattr", "setattr", "hasattr", "equal_dims", "join"}
    | {"add_int", "mul_int", "minimum", "maximum", "both", "range", "partial", "files", "field", "smin", "smax"}
)
"""Calls of two arguments whose order is of no interest, or cannot be wrong unnoticed."""


@cache
def alike() -> frozenset[str]:
    """Functions and methods of the package whose first two parameters are of one type, and ops of `arith` that take two
    operands: a mix-up that no type checker finds."""
    found = {"DivUIOp", "RemUIOp", "DivSIOp", "RemSIOp", "FloorDivSIOp", "CeilDivSIOp", "SubiOp", "SubfOp", "ShLIOp"}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8")).body
        for node in chain(module, *(c.body for c in module if isinstance(c, ast.ClassDef))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                first, *rest = [a for a in node.args.args if a.arg not in ("self", "cls")] or [None]
                types = [a.annotation for a in (first, *rest[:1]) if a is not None and a.annotation is not None]
                if len(types) == 2 and ast.dump(types[0]) == ast.dump(types[1]):
                    found.add(node.name)
    return frozenset(found)


def twins(*pairs: tuple[str, str]) -> dict[str, str]:
    """Words that are taken for each other, both ways."""
    return {**dict(pairs), **{b: a for a, b in pairs}}


def replaced(source: Source, place: Place, new: str) -> Edit:
    """The node's text becomes `new`."""
    assert isinstance(place.node, ast.expr | ast.stmt | ast.keyword)
    return Edit(*source.span(place.node), new, place)


def between(source: Source, place: Place, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Edit]:
    """The sign `old` between two operands becomes `new`."""
    start, end = source.span(left)[1], source.span(right)[0]
    found = list(re.finditer(re.escape(old), source.text[start:end]))
    if len(found) == 1:
        yield Edit(start + found[0].start(), start + found[0].end(), new, place)


def guarded(text: str) -> str:
    """An expression that may stand anywhere."""
    return text if re.fullmatch(r"[\w.]+(\([\w., ]*\))?", text) else f"({text})"
