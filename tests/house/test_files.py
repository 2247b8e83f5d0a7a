"""The rules that a file of the project keeps: size, and where inline asm may stand."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_LINES = 600
CODE = [
    path
    for room in ("tilewright", "tests", "examples", "benchmarks")
    for suffix in ("*.py", "*.cuh", "*.hpp", "*.mlir")
    for path in (ROOT / room).rglob(suffix)
]

INLINE_ASM = re.compile(r"\b(?:asm|__asm__)\s*(?:volatile|__volatile__)?\s*\(")


def inline_asm(text: str) -> list[str]:
    """Return the strings of a Python file that hold inline asm; its comments and docstrings may speak of it."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and INLINE_ASM.search(node.value)
    ]


def test_there_is_code() -> None:
    assert len(CODE) > 20


def test_no_file_is_over_600_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in CODE}
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_inline_asm_only_in_headers() -> None:
    python_files = (ROOT / "tilewright").rglob("*.py")
    assert [str(path) for path in python_files if inline_asm(path.read_text(encoding="utf-8"))] == []


def test_inline_asm_is_found() -> None:
    assert inline_asm('"""asm volatile("x") is banned."""\nX = "asm volatile (\\"bar.sync 0;\\");"') != []
    assert inline_asm('"""asm volatile("x") is banned."""\nX = "asm is a word"') == []
