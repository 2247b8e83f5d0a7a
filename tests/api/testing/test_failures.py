"""Failure files: what is written is read back, whole; what is malformed is refused with the file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.api.testing.failures import Failure, read_failure, write_failure
from tilewright.api.testing.places import Place, parse_place
from tilewright.api.testing.program import Program
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context

TEXT = "sym.symbol @M\nfunc.func @f(%x: tensor<?xf32, #sym.dims<M>>) {\n  func.return\n}\n"
FAILURE = Failure(
    Program(TEXT, {"M": 33, "K_1": 0}, 7, "special", "tile", "sym.symbol @M\n\nsym.symbol @K\n"),
    "after x: result 0 differs\nand more",
    "vectorise{max-bytes=8},cse",
    Place("TILE", "map-threads"),
    "my passes.py",
)


def test_a_file_is_read_back(tmp_path: Path) -> None:
    path = write_failure(FAILURE, tmp_path / "deep" / "folder")
    text = path.read_text()
    again = read_failure(text, str(path))
    assert again.program.text.strip() == TEXT.strip()
    assert (again.program.sizes, again.program.seed, again.program.lane, again.program.level) == (
        {"M": 33, "K_1": 0},
        7,
        "special",
        "tile",
    )
    assert again.program.meaning == FAILURE.program.meaning
    assert (again.subject, again.place, again.load) == (FAILURE.subject, FAILURE.place, FAILURE.load)
    assert again.what == "after x: result 0 differs and more"
    # Lines of the program are those of the file, so that places in messages can be found.
    assert again.program.text.splitlines().index("sym.symbol @M") == text.splitlines().index("sym.symbol @M")
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    parse_module(text, str(path), make_context())


def test_the_commands_are_those_of_a_shell() -> None:
    run, replay = FAILURE.commands(Path("a b/x.mlir"))
    expected = "tilewright run 'a b/x.mlir' --dim M=33 --dim K_1=0 --seed 7 --lane special --backend sim --check"
    assert run == expected
    assert replay == "tilewright fuzz --load 'my passes.py' --replay 'a b/x.mlir'"


def test_the_name_follows_from_the_content() -> None:
    assert FAILURE.file_name == Failure(FAILURE.program, "else", FAILURE.subject, FAILURE.place).file_name
    assert FAILURE.file_name != Failure(FAILURE.program, "", "cse", FAILURE.place).file_name
    assert FAILURE.file_name.startswith("vectorise-max-bytes-8-cse-")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TilewrightError, match="cannot write"):
        write_failure(FAILURE, tmp_path / "file" / "folder")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("// lane: odd", "f.mlir: lane: expected ordinary or special, got 'odd'"),
        ("// level: simt", "f.mlir: level: expected tensor or tile, got 'simt'"),
        ("// sizes: M=33 N", "f.mlir: sizes: expected such as M=33, got 'N'"),
        ("// seed: -1", "f.mlir: seed: expected a number of at least 0, got '-1'"),
        ("// place: TILE after nothing", "place: expected such as 'TILE after map-threads', got 'TILE after nothing'"),
    ],
)
def test_malformed_fields_are_refused(line: str, said: str) -> None:
    with pytest.raises(TilewrightError) as raised:
        read_failure(f"// tilewright failure\n{line}\n{TEXT}", "f.mlir")
    assert raised.value.message == said


def test_a_plain_program_is_a_failure_without_fields() -> None:
    failure = read_failure(TEXT, "f.mlir")
    assert (failure.subject, failure.place, failure.program) == ("", None, Program(TEXT))


@pytest.mark.parametrize("place", [Place("TENSOR"), Place("TENSOR", "decompose"), Place("TILE", "cse")])
def test_places_are_read_back(place: Place) -> None:
    assert parse_place(str(place)) == place


def test_a_place_knows_what_runs_before_and_after() -> None:
    place = Place("TENSOR", "canonicalize")
    assert place.before == ("infer-shapes", "canonicalize")
    assert place.following(["cancel-movement"])[0] == "decompose"
    assert place.following(["my-pass"])[0] == "cancel-movement"
