"""Every mutant of the project: what the operators find, the sample of it that is run, and the faults written by hand.

A site is known by its file, operator, function, statement and change, and a number where all of these are the same. So
its rank, a hash of that and the committed seed, stays when lines move or other files change. Each operator draws the
sites of least rank, at most `MOST_A_FILE` from one file, until its quota is full; what it cannot fill is filled from
the sites of all operators. An edit therefore changes the sample only by the sites that it makes or takes away.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutants.handwritten import HANDWRITTEN, Handwritten
from tests.mutants.headers import Header
from tests.mutants.operators import Edit, Operator
from tests.mutants.source import Source, text_lines
from tests.mutants.table import OPERATORS
from tests.mutants.trees import PACKAGE, ROOMS, ROOT

SEED: Final = "tilewright-1"
SAMPLE: Final = 120
MOST_A_FILE: Final = 2
"""Sites that one operator draws from one file."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. `lines` are those of the statement that is changed, `names` what that statement defines
    where it runs at import."""

    name: str
    operator: str
    file: str
    """Below `tilewright/`."""
    text: str = field(repr=False)
    """The file as it was when the mutant was made: it may change while others run."""
    start: int
    end: int
    new: str
    line: int
    lines: range
    in_function: bool
    names: tuple[str, ...] = ()
    why: str = ""

    def changed(self) -> str:
        """The text of the file with the fault in it."""
        return self.text[: self.start] + self.new + self.text[self.end :]

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = text_lines(self.text), text_lines(self.changed())
        name = f"{PACKAGE}/{self.file}"
        return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=2))

    def key(self) -> str:
        """A hash of what is changed into what, without line numbers: results are kept under it."""
        changed = [line for line in text_lines(self.diff()) if line[:1] in "+-"]
        return hashlib.sha256("".join([self.name, *changed]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Site:
    """A mutant before it is known to be needed: what its rank is made from."""

    operator: Operator
    file: str
    edit: Edit
    identity: str

    @property
    def rank(self) -> str:
        """Its place in the order in which sites are drawn."""
        return hashlib.sha256(f"{SEED}\0{self.identity}".encode()).hexdigest()


def read(root: Path, file: str) -> str:
    """The text of a file of the package."""
    return (root / PACKAGE / file).read_text(encoding="utf-8")


def source_files(root: Path = ROOT) -> list[str]:
    """The files that are mutated, below `tilewright/`."""
    kinds = (".py", ".cuh", ".hpp")
    package = root / PACKAGE
    found = [p for room in ROOMS for p in (package / room).rglob("*") if p.suffix in kinds]
    return sorted(str(p.relative_to(package)) for p in found)


@cache
def _python(text: str) -> Source:
    return Source(text)


def sites(file: str, text: str) -> Iterator[Site]:
    """Every site of one file, those of one operator after the other."""
    seen: Counter[str] = Counter()
    for operator in OPERATORS:
        if file.endswith(".py"):
            source = _python(text)
            edits = operator.sites(source)
        else:
            header = Header(text)
            edits = operator.header_sites(header)
        for edit in edits:
            if edit.place is not None:
                scope, statement = edit.place.scope, source.head(edit.place)
            else:
                begin, end = text.rfind("\n", 0, edit.start) + 1, text.find("\n", edit.start)
                scope, statement = header.scope_of(edit.start), text[begin:end]
            old = text[edit.start : edit.end]
            parts = (file, operator.name, scope, " ".join(statement.split()), old, edit.new)
            plain = "\0".join(parts)
            yield Site(operator, file, edit, f"{plain}\0{seen[plain]}")
            seen[plain] += 1


def to_mutant(site: Site, text: str) -> Mutant | None:
    """The mutant of a site, or None where the change is none, or no program."""
    edit = site.edit
    line = text.count("\n", 0, edit.start) + 1
    lines, in_function, names = range(line, line + 1), True, ()
    if edit.place is not None:
        source = _python(text)
        statement = edit.place.statement
        lines, in_function = source.lines_of(statement), edit.place.in_function
        around = next((n for n in edit.place.parents if isinstance(n, ast.Lambda)), None)
        if around is not None:  # of a table of functions only the one that is changed
            lines = range(around.lineno, (around.end_lineno or around.lineno) + 1)
        names = () if in_function else defined(source, edit)
    short = hashlib.sha256(site.identity.encode()).hexdigest()[:7]
    name = f"{site.operator.name}-{short}"
    change = edit.start, edit.end, edit.new
    made = Mutant(name, site.operator.name, site.file, text, *change, line, lines, in_function, names)
    return made if _is_change(made) else None


def defined(source: Source, edit: Edit) -> tuple[str, ...]:
    """The names that the outermost statement around an edit defines when the module is imported."""
    assert edit.place is not None
    outermost = next(n for n in reversed((edit.place.node, *edit.place.parents)) if isinstance(n, ast.stmt))
    if isinstance(outermost, ast.FunctionDef | ast.ClassDef):
        return (outermost.name,)
    return tuple(n.id for n in ast.walk(outermost) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _is_change(mutant: Mutant) -> bool:
    blank = str.maketrans("", "", " \n()")
    if mutant.new.translate(blank) == mutant.text[mutant.start : mutant.end].translate(blank):
        return False
    if mutant.file.endswith(".py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                compile(mutant.changed(), mutant.file, "exec")
        except (SyntaxError, ValueError):
            return False
    return True


def all_sites(root: Path = ROOT) -> dict[str, list[Site]]:
    """Every site of the project by operator, in order of rank."""
    found: dict[str, list[Site]] = {operator.name: [] for operator in OPERATORS}
    for file in source_files(root):
        for site in sites(file, read(root, file)):
            found[site.operator.name].append(site)
    return {name: sorted(group, key=lambda s: s.rank) for name, group in found.items()}


def sample(root: Path = ROOT, size: int = SAMPLE) -> list[Mutant]:
    """The mutants that are run, by operator in the order of the table, then by file and line."""
    texts = {file: read(root, file) for file in source_files(root)}
    by_operator = all_sites(root)
    chosen: dict[str, Mutant] = {}
    taken: Counter[tuple[str, str]] = Counter()

    def draw(candidates: Iterable[Site], wanted: int) -> None:
        for site in candidates:
            if wanted <= 0:
                return
            if taken[site.operator.name, site.file] >= MOST_A_FILE:
                continue
            mutant = to_mutant(site, texts[site.file])
            if mutant is None or any(_same_change(mutant, other) for other in chosen.values()):
                continue
            chosen[mutant.name] = mutant
            taken[site.operator.name, site.file] += 1
            wanted -= 1

    for operator in OPERATORS:
        draw(by_operator[operator.name], operator.quota)
    rest = sorted((s for group in by_operator.values() for s in group), key=lambda s: s.rank)
    draw((s for s in rest if to_name(s) not in chosen), size - len(chosen))
    order = {operator.name: n for n, operator in enumerate(OPERATORS)}
    return sorted(chosen.values(), key=lambda m: (order[m.operator], m.file, m.start))


def to_name(site: Site) -> str:
    """The name that the mutant of a site has."""
    return f"{site.operator.name}-{hashlib.sha256(site.identity.encode()).hexdigest()[:7]}"


def _same_change(a: Mutant, b: Mutant) -> bool:
    """Whether two operators make the same program."""
    return a.file == b.file and (a.start, a.end, a.new) == (b.start, b.end, b.new)


def handwritten(root: Path = ROOT, faults: Sequence[Handwritten] = HANDWRITTEN) -> list[Mutant]:
    """The faults written by hand; ValueError names each whose text is not in its file, or not once."""
    made: list[Mutant] = []
    lost: list[str] = []
    for fault in faults:
        text = read(root, fault.file)
        if text.count(fault.old) != 1:
            lost.append(f"{fault.name}: its text stands {text.count(fault.old)} times in {fault.file}")
            continue
        start = text.index(fault.old)
        # Of the piece that is replaced only what differs, so that the right lines count as changed.
        same = next((n for n, (a, b) in enumerate(zip(fault.old, fault.new, strict=False)) if a != b), len(fault.new))
        line = text.count("\n", 0, start + same) + 1
        lines, in_function, names = range(line, line + 1), True, ()
        if fault.file.endswith(".py"):
            lines, in_function, names = _around(_python(text), line)
        made.append(
            Mutant(
                fault.name,
                "by hand",
                fault.file,
                text,
                start,
                start + len(fault.old),
                fault.new,
                line,
                lines,
                in_function,
                names,
                fault.why,
            )
        )
    if lost:
        raise ValueError("faults written by hand that no longer fit:\n  " + "\n  ".join(lost))
    return made


def _around(source: Source, line: int) -> tuple[range, bool, tuple[str, ...]]:
    """The innermost statement whose lines hold `line`: its lines, whether it runs in a function, what it defines."""
    holding = [p for p in source.places if isinstance(p.node, ast.stmt) and line in source.lines_of(p.node)]
    if not holding:
        return range(line, line + 1), True, ()
    inner = max(holding, key=lambda p: len(p.parents))
    assert isinstance(inner.node, ast.stmt)
    names = () if inner.in_function else defined(source, Edit(0, 0, "", inner))
    return source.lines_of(inner.node), inner.in_function, names


def all_mutants(root: Path = ROOT) -> list[Mutant]:
    """The sample, and behind it the faults written by hand."""
    return [*sample(root), *handwritten(root)]
