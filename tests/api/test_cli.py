"""The `tilewright` command, in this process: what it prints, what it writes, and that every failure is one line."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright import __version__
from tilewright.api.cli import main
from tilewright.api.cli.sizes import choose_sizes
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context

PROGRAM = """
sym.symbol @M {min = 1, likely = [24, 9]}
sym.symbol @N {multiple_of = 4}
#mn = #sym.dims<M, N>
#n = #sym.dims<N>
func.func @main(%x : tensor<?x?xELT, #mn>, %b : tensor<?xELT, #n>) -> tensor<?x?xELT, #mn> {
  %r = lin.map ins(%x, %b : tensor<?x?xELT, #mn>, tensor<?xELT, #n>) -> tensor<?x?xELT, #mn> {
  ^bb0(%p: ELT, %q: ELT):
    %z = arith.addf %p, %q : ELT
    lin.yield %z : ELT
  }
  func.return %r : tensor<?x?xELT, #mn>
}
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def tilewright(*words: object, stdin: str = "") -> Ran:
    out, err = io.StringIO(), io.StringIO()
    code = main([str(w) for w in words], io.StringIO(stdin), out, err)
    assert "Traceback" not in err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bias.mlir"
    path.write_text(PROGRAM.replace("ELT", "f32"))
    return path


def test_run_prints_sizes_backend_shapes_and_times(program: Path):
    ran = tilewright("run", program, "--backend", "sim")
    assert ran.code == 0
    assert "dims     M = 24, N = 64\n" in ran.out, "likely first, else from 64 up"
    assert "backend  sim (sim was asked for)\n" in ran.out
    assert "result   0: [24, 64] f32\n" in ran.out
    assert "compile  " in ran.out
    assert "run      " in ran.out


@pytest.mark.parametrize("backend", ["sim", "reference"])
def test_check_passes_on_right_results(program: Path, backend: str):
    ran = tilewright("run", program, "--backend", backend, "--dim", "M=3", "--dim", "N=8", "--check")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("PASS")


def test_check_fails_on_a_wrong_result(program: Path, monkeypatch: pytest.MonkeyPatch):
    from tilewright.runtime.kernel import Kernel

    honest = Kernel.__call__

    def broken(self: Kernel, *arrays: object, **options: object) -> object:
        # The stand-in takes whatever the method that it replaces takes.
        result = honest(self, *arrays, **options)  # pyright: ignore[reportArgumentType]
        result[1, 2] += 1
        return result

    monkeypatch.setattr(Kernel, "__call__", broken)
    ran = tilewright("run", program, "--backend", "sim", "--dim", "M=3", "--dim", "N=8", "--check")
    assert ran.code == 1
    line = ran.out.splitlines()[-1]
    assert line.startswith("FAIL     result 0: 1 of 24 elements")
    assert "worst at [1, 2]: expected" in line


def test_inputs_give_sizes_and_outputs_are_written(program: Path, tmp_path: Path):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "b.npy", np.array([1, 2, 3, 4], np.float32))
    folder = tmp_path / "results"
    ran = tilewright(
        "run", program, "--backend", "sim", "--input", tmp_path / "x.npy", "--input", tmp_path / "b.npy",
        "--output", folder,
    )  # fmt: skip
    assert ran.code == 0
    assert "dims     M = 3, N = 4\n" in ran.out
    np.testing.assert_array_equal(np.load(folder / "out0.npy"), x + np.array([1, 2, 3, 4], np.float32))


def test_bf16_goes_in_and_out_as_two_opaque_bytes(tmp_path: Path):
    (tmp_path / "p.mlir").write_text(PROGRAM.replace("ELT", "bf16"))
    x = np.arange(8).reshape(2, 4).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", x.view("V2"))
    words = ("run", tmp_path / "p.mlir", "--backend", "sim", "--input", tmp_path / "x.npy", "--output", tmp_path)
    ran = tilewright(*words)
    assert ran.code == 0
    found = np.load(tmp_path / "out0.npy")
    assert found.dtype.str == "|V2"
    assert found.shape == (2, 4)


def test_a_seed_makes_the_same_inputs_again(program: Path, tmp_path: Path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert tilewright("run", program, "--backend", "sim", "--seed", seed, "--output", tmp_path / name).code == 0
    a, b, c = (np.load(tmp_path / name / "out0.npy") for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_program_may_come_from_standard_input():
    ran = tilewright("run", "-", "--backend", "reference", stdin=PROGRAM.replace("ELT", "f32"))
    assert ran.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dim", "M=0"], "--dim M=0: expected at least 1"),
        (["--dim", "N=6"], "--dim N=6: expected a multiple of 4"),
        (["--dim", "Q=6"], "--dim: expected one of M, N, got Q"),
        (["--dim", "M"], "--dim: expected SYMBOL=SIZE such as M=100, got 'M'"),
        (["--dim", "M=-3"], "--dim: expected SYMBOL=SIZE"),
        (["--dim", "M=3", "--dim", "M=4"], "--dim: M is given twice"),
        (["--dim", "M=999999999999"], "too large to be made up"),
        (["--backend", "gpu"], "invalid choice: 'gpu'"),
        (["--arch", "sm_1"], "arch: expected sm_<number>"),
        (["--entry", "nope"], "entry: expected one of main, got 'nope'"),
        (["--input", "nope.npy"], "--input nope.npy: cannot be read"),
        (["--seed", "-1"], "--seed: expected a number of at least 0, got -1"),
        (["--input", __file__], "expected a .npy file with one array of numbers"),
        (["--output", "/dev/null/x", "--backend", "reference"], "--output /dev/null/x"),
    ],
)
def test_every_failure_is_one_line(program: Path, words: list[str], message: str):
    ran = tilewright("run", program, *words)
    assert ran.code == 1
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_inputs_that_disagree_with_dims_say_so(program: Path, tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros((3, 4), np.float32))
    ran = tilewright("run", program, "--dim", "M=5", "--input", tmp_path / "x.npy")
    assert (ran.code, ran.err) == (1, "error: M = 5 from --dim, 3 from --input 0 dim 0\n")


def test_a_fault_in_the_program_points_into_it(tmp_path: Path):
    (tmp_path / "bad.mlir").write_text("func.func @f() {\n  func.return %x : f32\n}\n")
    ran = tilewright("run", tmp_path / "bad.mlir")
    assert ran.code == 1
    assert "bad.mlir:2:15: error" in ran.err


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("%x : memref<4xf32>", "argument 0 of @main: expected a tensor or number of f32, f16, bf16"),
        ("%x : tensor<4xf64>", "got tensor<4xf64"),
    ],
)
def test_arguments_that_no_array_can_be(signature: str, message: str):
    ran = tilewright("run", "-", stdin=f"func.func @main({signature}) {{ func.return }}")
    assert ran.code == 1
    assert message in ran.err
    assert "<stdin>:1:1: error: " in ran.err


def test_help_and_version_and_no_command(capsys: pytest.CaptureFixture[str]):
    assert tilewright("--help").code == 0
    assert "tilewright run softmax.mlir" in capsys.readouterr().out
    assert tilewright("--version").out.startswith("tilewright 0.")
    assert "COMMAND" in tilewright().out
    assert tilewright("fly").code == 1


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "tilewright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tilewright {__version__}\n"


def test_compile_writes_a_folder_whose_manifest_holds(program: Path, tmp_path: Path):
    folder = tmp_path / "made"
    ran = tilewright("compile", program, "--arch", "sm_90a", "-o", folder, "--source-only")
    assert (ran.code, ran.err) == (0, "")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["entry"], manifest["arch"]) == ("main", "sm_90a")
    written = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert set(manifest["sha256"]) == written
    for name, digest in manifest["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    plan = parse_module((folder / "plan.mlir").read_text(), "plan.mlir", make_context())
    assert "host.dispatch" in str(plan)
    for kernel in manifest["kernels"]:
        assert kernel["symbol"] in (folder / kernel["source"]).read_text()


@pytest.mark.parametrize("name", ["../../out", "/out", "a\\0Ab", "x" * 10_000, "..", "a b"])
def test_compile_keeps_to_its_folder_whatever_the_name(name: str, tmp_path: Path):
    source = tmp_path / "in" / "hostile.mlir"
    source.parent.mkdir()
    source.write_text(PROGRAM.replace("ELT", "f32").replace("@main", f'@"{name}"'))
    folder = tmp_path / "deep" / "er" / "made"
    ran = tilewright("compile", source, "--arch", "sm_80", "-o", folder, "--source-only")
    assert (ran.code, ran.err) == (0, "")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {path.name for path in folder.iterdir()} == {*manifest["sha256"], "manifest.json"}
    assert all(path.is_dir() or path == source or path.parent == folder for path in tmp_path.rglob("*"))
    assert all(file.isascii() and file.isprintable() and " " not in file for file in manifest["sha256"])


@pytest.mark.nvrtc
def test_compile_writes_cubins(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    assert tilewright("compile", program, "--arch", "sm_80", "-o", tmp_path / "made").code == 0
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    for kernel in manifest["kernels"]:
        assert (tmp_path / "made" / kernel["cubin"]).read_bytes()[:4] == b"\x7fELF"
        assert kernel["registers"] > 0
    assert f"entries  {len(manifest['kernels'])}\n" in tilewright("cache", "stats").out
    assert tilewright("cache", "verify").out == f"0 damaged, {len(manifest['kernels'])} good\n"
    assert f"removed {len(manifest['kernels'])} entries" in tilewright("cache", "clear").out


def test_doctor_reports(capsys: pytest.CaptureFixture[str]):
    ran = tilewright("doctor")
    assert ran.code == 0
    assert {"python", "xdsl", "numpy"} <= set(ran.out.split())


def chosen(declarations: str, shape: str, **given: int) -> dict[str, int]:
    rank = shape.count(",") + 1
    type_ = f"tensor<{'?x' * rank}f32, #sym.dims<{shape}>>"
    text = f"{declarations}\nfunc.func @main(%x : {type_}) -> {type_} {{ func.return %x : {type_} }}"
    module = parse_module(text, "sizes.mlir", make_context())
    # Picked by name: the checker does not know that it is a func.FuncOp.
    return choose_sizes(module, next(op for op in module.ops if op.name == "func.func"), given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("declarations", "shape", "given", "expected"),
    [
        ("sym.symbol @A", "A", {}, {"A": 64}),
        ("sym.symbol @A {max = 50}", "A", {}, {"A": 50}),
        ("sym.symbol @A {max = 50, multiple_of = 8}", "A", {}, {"A": 48}),
        ("sym.symbol @A {min = 100, multiple_of = 8}", "A", {}, {"A": 104}),
        ("sym.symbol @A {max = 5, likely = [900, 3]}", "A", {}, {"A": 3}),
        ("sym.symbol @A\nsym.symbol @B\nsym.require A == 2*B", "A, B", {}, {"A": 64, "B": 32}),
        ("sym.symbol @A\nsym.symbol @B\nsym.require A == 2*B", "A, B", {"B": 5}, {"A": 10, "B": 5}),
        ("sym.symbol @A\nsym.symbol @B\nsym.symbol @C\nsym.require A*B == C", "A, B, C", {"C": 128}, None),
        ("sym.symbol @A\nsym.symbol @B\nsym.require A - B >= 7", "A, B", {"A": 20}, None),
        ("sym.symbol @A\nsym.require A mod 48 == 0", "A", {}, {"A": 96}),
    ],
)
def test_sizes_satisfy_the_program(
    declarations: str, shape: str, given: dict[str, int], expected: dict[str, int] | None
):
    found = chosen(declarations, shape, **given)
    if expected is not None:
        assert found == expected
    elif "C" in found:
        assert found["A"] * found["B"] == found["C"] == 128
    else:
        assert found["A"] == 20
        assert found["B"] <= 13


def test_sizes_that_cannot_be_found_say_what_was_asked():
    with pytest.raises(TilewrightError, match="the program requires A >= B, got A = 1, B = 2"):
        chosen("sym.symbol @A\nsym.symbol @B\nsym.require A >= B", "A, B", A=1, B=2)
    with pytest.raises(TilewrightError, match="found no sizes that satisfy A > B, B > A"):
        chosen("sym.symbol @A\nsym.symbol @B\nsym.require A > B\nsym.require B > A", "A, B")
