"""`tilewright run` on tile kernels with their plan: backends, sizes, and the comparison with the stated meaning."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from tilewright.api.cli import main

FILE = Path(__file__).parents[2] / "corpus" / "planted" / "wrong-identity.mlir"


def run(path: Path, *words: str) -> tuple[int, str]:
    """Exit code, and all that was printed."""
    out = StringIO()
    code = main(["run", str(path), *words], stdin=StringIO(), stdout=out, stderr=out)
    return code, out.getvalue()


@pytest.mark.parametrize("backend", ["sim", "reference", pytest.param("cpu", marks=pytest.mark.cxx)])
@pytest.mark.parametrize("lane", ["ordinary", "special"])
def test_a_kernel_means_what_the_file_states(backend: str, lane: str) -> None:
    dims = ["--dim", "M=3", "--dim", "N=5"]
    code, out = run(FILE, *dims, "--seed", "4", "--lane", lane, "--backend", backend, "--check")
    assert code == 0, out
    assert "dims     M = 3, N = 5\n" in out
    assert "result   0: [3] float32\n" in out
    assert out.endswith("PASS     within the bounds of the program that the file states\n")


@pytest.mark.parametrize("backend", ["sim", "reference"])
def test_a_kernel_that_means_something_else_fails(backend: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mlir"
    text = FILE.read_text()
    assert "[clip, clip] other 0.0 : f32" in text
    wrong.write_text(text.replace("[clip, clip] other 0.0 : f32", "[clip, clip] other 1.0 : f32"))
    code, out = run(wrong, "--dim", "M=1", "--dim", "N=1", "--backend", backend, "--check")
    assert code == 1
    assert "result 0 at [0]: expected " in out


def test_without_a_meaning_the_interpreter_judges(tmp_path: Path) -> None:
    plain = tmp_path / "plain.mlir"
    plain.write_text("".join(line for line in FILE.read_text().splitlines(True) if not line.startswith("//")))
    code, out = run(plain, "--dim", "M=3", "--dim", "N=5", "--backend", "sim", "--check")
    assert code == 0, out
    assert out.endswith("PASS     within the bounds of what the tile interpreter computes\n")
    code, out = run(plain, "--dim", "M=3", "--backend", "sim")
    assert (code, out) == (1, "error: expected a size for N: give --dim N=SIZE\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "cuda"], "error: --backend: expected sim, cpu or reference for tile kernels, got cuda"),
        (["--bisect-shapes"], "error: --bisect-shapes: expected a program of the tensor level"),
        (["--input", "x.npy"], "error: --input: expected a program of the tensor level"),
    ],
)
def test_what_tile_kernels_cannot_do_is_refused(words: list[str], said: str) -> None:
    code, out = run(FILE, *words)
    assert code == 1
    assert out.startswith(said)
