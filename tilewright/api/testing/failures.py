"""Failure files: a program that failed as a small .mlir file, with all that is needed to run exactly it again.

    // tilewright failure
    // what: after my-pass, in the reference: result 0 at [32]: expected 1.5 within 1e-06, got 0.0 (1 of 33 ...)
    // subject: my-pass
    // place: TENSOR after decompose
    // level: tensor
    // sizes: M=33
    // seed: 7
    // lane: ordinary
    // run: tilewright run FILE --dim M=33 --seed 7 --backend sim --check
    // replay: tilewright fuzz --replay FILE

A tile program is followed by what it means, as lines that begin with `//|`. All these lines are comments to every
parser of IR; `read_failure` reads them back. Fields that are missing have the defaults
of `Program`; a file without a subject is tried on every one (`tests/corpus`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilewright.api.testing.places import Place, parse_place
from tilewright.api.testing.program import Program
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import one_line

DEFAULT_FOLDER = Path(".tilewright/failures")
TITLE = "// tilewright failure"
_FIELD = re.compile(r"// ([a-z]+): ?(.*)")

MOST_DIGITS = 40
"""Digits of a number in a header, at most."""


@dataclass(frozen=True)
class Failure:
    """A program at which a subject failed, and what was seen."""

    program: Program
    what: str = ""
    subject: str = ""
    """As `-p` takes it, or the name of a comparison of executors; empty in a corpus file that is tried on all."""
    place: Place | None = None
    load: str = ""
    """The file that defines the passes, where no registry knows them."""

    def commands(self, path: Path) -> tuple[str, str]:
        """The shell commands that run the program, and that put the subject to the same test again."""
        program, file = self.program, shlex.quote(str(path))
        dims = "".join(f" --dim {name}={size}" for name, size in program.sizes.items())
        lane = " --lane special" if program.lane == "special" else ""
        load = f" --load {shlex.quote(self.load)}" if self.load else ""
        return (
            f"tilewright run {file}{dims} --seed {program.seed}{lane} --backend sim --check",
            f"tilewright fuzz{load} --replay {file}",
        )

    def text(self, path: Path) -> str:
        """The text of the file at `path`."""
        run, replay = self.commands(path)
        program = self.program
        fields = {
            "what": one_line(self.what),
            "subject": self.subject,
            "place": "" if self.place is None else str(self.place),
            "load": self.load,
            "level": program.level,
            "sizes": " ".join(f"{name}={size}" for name, size in program.sizes.items()),
            "seed": str(program.seed),
            "lane": program.lane,
            "run": run,
            "replay": replay,
        }
        lines = [TITLE, *(f"// {name}: {value}" for name, value in fields.items() if value)]
        lines += [f"//| {line}".rstrip() for line in program.meaning.splitlines()]
        return "\n".join(lines) + "\n" + program.text.rstrip("\n") + "\n"

    @property
    def file_name(self) -> str:
        """`<passes>-<hash>.mlir`: the same for the same program and subject."""
        program = self.program
        content = repr((self.subject, str(self.place), program.text, sorted(program.sizes.items()), program.seed))
        digest = hashlib.sha256(f"{content}{program.lane}".encode()).hexdigest()[:10]
        stem = re.sub(r"[^a-z0-9]+", "-", self.subject.lower()).strip("-")[:60] or "program"
        return f"{stem}-{digest}.mlir"


def write_failure(failure: Failure, folder: Path) -> Path:
    """Write the file into `folder`, whole or not at all; returns its path. TilewrightError if that cannot be done."""
    path = folder / failure.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, scratch = tempfile.mkstemp(dir=folder, prefix=f".{failure.file_name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(failure.text(path))
            os.replace(scratch, path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TilewrightError(f"cannot write '{path}': {error.strerror or error}") from None
    return path


def read_failure(text: str, name: str) -> Failure:
    """The failure that a file states; `name` is its path, for errors. TilewrightError for a field that is malformed."""
    fields: dict[str, str] = {}
    meaning: list[str] = []
    lines = text.splitlines(keepends=True)
    count = 0
    for line in lines:
        if not line.startswith("//"):
            break
        count += 1
        if line.startswith("//|"):
            meaning.append(line.rstrip("\n")[3:].removeprefix(" ") + "\n")
            continue
        match = _FIELD.fullmatch(line.rstrip())
        if match is not None:
            fields[match[1]] = match[2]
    lane, level = fields.get("lane", "ordinary"), fields.get("level", "tensor")
    if lane != "ordinary" and lane != "special":
        raise TilewrightError(f"{name}: lane: expected ordinary or special, got '{lane}'")
    if level != "tensor" and level != "tile":
        raise TilewrightError(f"{name}: level: expected tensor or tile, got '{level}'")
    sizes: dict[str, int] = {}
    for word in fields.get("sizes", "").split():
        symbol, equals, size = word.partition("=")
        if not equals or not size.isdecimal() or len(size) > MOST_DIGITS:
            raise TilewrightError(f"{name}: sizes: expected such as M=33, got '{word[:40]}'")
        sizes[symbol] = int(size)
    seed = fields.get("seed", "0")
    if not seed.isdecimal() or len(seed) > MOST_DIGITS:
        raise TilewrightError(f"{name}: seed: expected a number of at least 0, got '{seed[:40]}'")
    # What comes after the header; blank lines keep the places of errors in the file.
    program = Program("\n" * count + "".join(lines[count:]), sizes, int(seed), lane, level, "".join(meaning))
    place = parse_place(fields["place"]) if "place" in fields else None
    return Failure(program, fields.get("what", ""), fields.get("subject", ""), place, fields.get("load", ""))
