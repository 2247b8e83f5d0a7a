"""Failure files and corpora run again: exactly the program, against the subject that the file names, or against all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.api.testing.check import CheckFailed, check, fits
from tilewright.api.testing.execute import arguments_of, entry_of, parse
from tilewright.api.testing.failures import Failure, read_failure
from tilewright.api.testing.places import Place
from tilewright.api.testing.subject import REFERENCE_SIM, Subject, subject_of
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import decode
from tilewright.dialects.sym import SymbolOp


def load_failure(path: Path) -> Failure:
    """Read a failure file; TilewrightError where that cannot be done."""
    try:
        return read_failure(decode(path.read_bytes(), str(path)), str(path))
    except OSError as error:
        raise TilewrightError(f"cannot read '{path}': {error.strerror or error}") from None


def corpus_files(folder: Path) -> list[Path]:
    """The .mlir files of a folder and all below it, in order. TilewrightError if there is no such folder."""
    if not folder.is_dir():
        raise TilewrightError(f"--corpus: there is no folder {folder}")
    try:
        return sorted(folder.rglob("*.mlir"))
    except OSError as error:
        raise TilewrightError(f"--corpus: cannot list {folder}: {error.strerror or error}") from None


def expect_complete(failure: Failure, path: Path) -> None:
    """Raise TilewrightError, with the file's name, where it is no program that can be called: no fault of any pass."""
    program = failure.program
    module = parse(program, str(path))
    try:
        entry_of(module)
        arguments_of(program, module)
    except TilewrightError as error:
        symbols = [op.sym_name.data for op in module.ops if isinstance(op, SymbolOp) and op.source is None]
        missing = [name for name in symbols if name not in program.sizes]
        if not missing:
            raise TilewrightError(f"{path}: {error.message}") from None
        example = " ".join(f"{name}=33" for name in symbols)
        raise TilewrightError(
            f"{path}: no size of {', '.join(missing)}: expected a line such as '// sizes: {example}' at the top"
        ) from None


def replay(failure: Failure, subject: Subject | None = None) -> str | None:
    """Run the program of a failure again; what went wrong, or None. See `run_again`."""
    return run_again(failure, subject)[0]


def run_again(failure: Failure, subject: Subject | None = None) -> tuple[str | None, bool]:
    """Run the program of a failure again; what went wrong, or None, and whether the subject changed the program.

    By default it meets the subject that the file names, at the place it names, else the whole pipeline; a `subject`
    of the caller's is tried at each of its places that the program can be taken to. TilewrightError for passes that
    are not known (see `--load`).
    """
    if subject is None:
        subject = subject_of(failure.subject or REFERENCE_SIM)
        places: Sequence[Place | None] = [failure.place] if failure.place is not None else subject.places or [None]
    else:
        places = subject.places or [None]
    changed = False
    for place in places:
        if not fits(place, failure.program):
            continue
        try:
            changed = check(subject, place, failure.program) or changed
        except CheckFailed as error:
            return str(error) if place is None else f"{error} (with {subject.name} in {place})", True
    return None, changed
