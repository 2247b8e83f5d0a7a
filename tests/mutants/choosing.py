"""Which tests a mutant gets, and in which order: those that run the changed lines first, the specific before the broad.

1. Tests that run a line of the changed statement. For a statement that runs at import: tests that run a line which
   reads one of the names that it defines.
2. The other tests that reach the file.

Within each, test files take turns, and in a file its functions, so that one with hundreds of parameters does not crowd
out the rest. First comes what runs little of the compiler, times what it costs; parameters come in an order that is
shuffled once and for all. The list ends where its processor time under coverage would exceed the budget; half of that
goes to the tests that see most of the file, which are mostly the long ones and would else never come.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Final

from tests.mutants.mapping import HEADER_READERS, CoverageMap, KnownTest
from tests.mutants.mutants import Mutant, read, source_files
from tests.mutants.trees import ROOT

BUDGET: Final = 30.0
"""Seconds of tests in a list; with starting and collecting it stays below the 40 s that a mutant gets."""


def bits_of(lines: Iterable[int]) -> int:
    """Lines as a set of bits."""
    found = 0
    for line in lines:
        found |= 1 << line
    return found


def readers(names: Sequence[str], root: Path = ROOT) -> dict[str, int]:
    """The lines of each file that read one of these names, as bits."""
    wanted, found = set(names), dict[str, int]()
    for file in source_files(root):
        if file.endswith(".py"):
            for node in ast.walk(ast.parse(read(root, file))):
                name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                if name in wanted and isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found[file] = found.get(file, 0) | 1 << node.lineno
    return found


def reaching(mutant: Mutant, known: CoverageMap, root: Path = ROOT) -> tuple[list[KnownTest], list[KnownTest]]:
    """Tests that run what is changed, and the others that reach the file."""
    tests = known.tests.values()
    if not mutant.file.endswith(".py"):
        # Whoever compiles C++ for this machine reaches all headers.
        compiling = [t for t in tests if any(t.lines.get(reader) for reader in HEADER_READERS)]
        return compiling, []
    if mutant.in_function:
        where = {mutant.file: bits_of(mutant.lines)}
    else:
        where = readers(mutant.names, root)
    close = [t for t in tests if any(t.lines.get(file, 0) & bits for file, bits in where.items())]
    names = {t.name for t in close}
    far = [t for t in tests if mutant.file in t.lines and t.name not in names]
    return close, far


def in_turns(tests: Sequence[KnownTest]) -> list[KnownTest]:
    """The tests in the order in which they are run."""
    functions: dict[str, list[KnownTest]] = defaultdict(list)
    for test in tests:
        functions[test.name.partition("[")[0]].append(test)
    files: dict[str, list[list[KnownTest]]] = defaultdict(list)
    for name in sorted(functions, key=lambda name: (_price(functions[name]), name)):
        files[name.partition("::")[0]].append(sorted(functions[name], key=_shuffled))
    return _turns([_turns(queues) for queues in files.values()])


def _price(tests: Sequence[KnownTest]) -> float:
    """How late tests come: lines of the compiler that they run, times what they cost."""
    return median(t.breadth for t in tests) * median(t.seconds + 0.01 for t in tests)


def _shuffled(test: KnownTest) -> str:
    return hashlib.sha256(test.name.encode()).hexdigest()


def _turns(queues: Sequence[Sequence[KnownTest]]) -> list[KnownTest]:
    """The first of each, then the second of each, and so on."""
    return [t for turn in zip_longest(*queues) for t in turn if t is not None]


def chosen_tests(mutant: Mutant, known: CoverageMap, root: Path = ROOT, budget: float = BUDGET) -> list[KnownTest]:
    """The tests that a mutant gets, in order; empty where none reaches its file."""
    close, far = reaching(mutant, known, root)
    quick = [*in_turns(close), *in_turns(far)]
    found: dict[str, KnownTest] = {}
    left = budget

    def take(tests: Iterable[KnownTest], until: float) -> None:
        nonlocal left
        for test in tests:
            if test.name not in found and test.seconds <= left - until:
                found[test.name] = test
                left -= test.seconds

    take(quick, budget / 2)
    take([*thorough(mutant, close), *thorough(mutant, far)], 0)
    take(quick, 0)
    return list(found.values())


def thorough(mutant: Mutant, tests: Iterable[KnownTest]) -> list[KnownTest]:
    """Of each test function the run that sees most of the mutant's file (of the rooms, for a header), best first."""

    def seen(test: KnownTest) -> tuple[int, float, str]:
        bits = test.lines.get(mutant.file, 0)
        return -(bits.bit_count() if mutant.file.endswith(".py") else test.breadth), test.seconds, test.name

    best: dict[str, KnownTest] = {}
    for test in sorted(tests, key=seen):
        best.setdefault(test.name.partition("[")[0], test)
    return list(best.values())
