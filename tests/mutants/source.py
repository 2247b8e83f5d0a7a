"""A Python file as operators see it: nodes with the piece of text that each is, without what is only words or types.

Passed over: docstrings, annotations, decorators, imports, type aliases, `__all__`, blocks for type checkers, asserts,
what is raised, texts of remarks and errors, and names that are only hints (`name_hint`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

WORDS: Final = frozenset({"remark", "error_at", "TilewrightError", "cast", "TypeVar", "field"})
"""Functions whose arguments are texts or types."""
HINTS: Final = frozenset({"name_hint", "location"})
"""Attributes that change no meaning when they are assigned."""
COMPOUND: Final = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.While,
    ast.With,
    ast.Try,
    ast.Match,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and what is around it, from the inside out."""

    node: ast.AST
    parents: tuple[ast.AST, ...]

    @property
    def parent(self) -> ast.AST:
        """The node right around."""
        return self.parents[0]

    @property
    def statement(self) -> ast.stmt:
        """The innermost statement that holds the node, or is it."""
        return next(n for n in (self.node, *self.parents) if isinstance(n, ast.stmt))

    @property
    def scope(self) -> str:
        """Dotted names of the classes and functions around, from the outside in."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return ".".join(n.name for n in reversed(self.parents) if isinstance(n, kinds))

    @property
    def in_function(self) -> bool:
        """Whether the node runs when a function is called, not when the module is imported."""
        inner: ast.AST = self.node
        for outer in self.parents:
            if isinstance(outer, ast.Lambda) and inner is outer.body:
                return True
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and inner in outer.body:
                return True
            inner = outer
        return False


@dataclass
class Source:
    """The text of a Python file with its tree; positions are character offsets."""

    text: str
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        start = 0
        for line in text_lines(self.text):
            found.append((start, line))
            start += len(line)
        return found

    def offset(self, line: int, column: int) -> int:
        """The character offset of a line (from 1) and a column in UTF-8 bytes, as `ast` counts."""
        start, text = self._lines[line - 1]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.withitem) -> tuple[int, int]:
        """Where the text of a node begins and ends."""
        at = node.context_expr if isinstance(node, ast.withitem) else node
        assert at.end_lineno is not None
        assert at.end_col_offset is not None
        return self.offset(at.lineno, at.col_offset), self.offset(at.end_lineno, at.end_col_offset)

    def words(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def lines_of(self, statement: ast.stmt) -> range:
        """The lines of a statement, of a compound one those of its head."""
        assert statement.end_lineno is not None
        end = statement.end_lineno
        if isinstance(statement, COMPOUND):
            inner = statement.cases[0].pattern if isinstance(statement, ast.Match) else statement.body[0]
            end = max(statement.lineno, inner.lineno - 1)
        return range(statement.lineno, end + 1)

    def head(self, place: Place) -> str:
        """The lines of the statement around a node, of a compound statement those of its head; empty for the module."""
        if not place.parents:
            return ""
        lines = self.lines_of(place.statement)
        return "".join(text for _, text in self._lines[lines.start - 1 : lines.stop - 1])

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every node that an operator may look at, in the order of the text."""
        return tuple(_walk(self.tree, ()))


def _walk(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[Place]:
    if _is_prose(node, parents):
        return
    yield Place(node, parents)
    if isinstance(node, ast.JoinedStr):
        return  # before Python 3.12 what is inside has no place of its own
    around = (node, *parents)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _walk(child, around)


def _is_prose(node: ast.AST, parents: tuple[ast.AST, ...]) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Raise():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Call(func=function) if called(function) in WORDS:
            return True
        case ast.If(test=test) if called(test) == "TYPE_CHECKING":
            return True
        case ast.Assign(targets=[target]) if called(target) in HINTS | {"__all__", "__slots__", "name", "level"}:
            return True
        case ast.AnnAssign(annotation=annotation, value=value):
            return value is None or "TypeAlias" in ast.dump(annotation) or "ClassVar" in ast.dump(annotation)
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.BinOp(op=ast.BitOr()):
            return not parents or (isinstance(parents[0], ast.Call) and called(parents[0].func) == "isinstance")
        case _:
            return False


def text_lines(text: str) -> list[str]:
    """The lines of a text with their ends, as `ast` counts them: `str.splitlines` also splits at form feeds."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def called(node: ast.AST) -> str:
    """The last name of what is called or read: `f` for `f`, `a.f` and `a.b.f`; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
