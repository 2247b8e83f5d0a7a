"""Reproducers: the IR before the failing pass, with that pass, in a file that runs again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.opt.support import IDENTITY, TWO, one_line_of, run
from tilewright.api.opt.reproducer import Reproduction, read_reproducer
from tilewright.diagnostics import TilewrightError
from tilewright.passes import registry


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("error", "pass 'test-misbehave': the tile does not fit"),
        ("fail", "pass 'test-misbehave': no way to go on"),
        ("crash", "pass 'test-misbehave': KeyError: 'lost' (this is a bug in the pass"),
        ("exit", "pass 'test-misbehave': SystemExit: 0 (this is a bug in the pass"),
        ("break", "'func.return': expected arguments"),
    ],
)
def test_a_failing_pass_leaves_a_reproducer_that_fails_again(how: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "re producer.mlir"
    pipeline = f"cse,test-misbehave,test-misbehave{{how={how}}},canonicalize"
    code, out, err = run("-p", pipeline, f"--crash-reproducer={file}", text=TWO)
    assert (code, out) == (1, "")
    assert message in err
    assert err.splitlines()[-1] == f"note: the reproducer is '{file}': tilewright-opt '{file}' --run-reproducer"
    text = file.read_text(encoding="utf-8")
    # What the passes before have made of it, and nothing of the failing one.
    assert "mark0" in text
    assert f'pipeline: "builtin.module(test-misbehave{{how={how} times=1 only=\\22\\22}})"' in text
    assert "verify_each: true" in text
    code, out, err = run(str(file), "--run-reproducer")
    assert (code, out) == (1, "")
    assert message in err
    # It is IR as any other.
    assert run(str(file), "--run-reproducer", "-p", "cse")[0] == 1
    assert run(str(file))[::2] == (0, "")


def test_a_pass_on_a_function_is_reproduced_on_functions(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    run(
        "-p",
        "func.func(cse,test-misbehave{how=crash only=g})",
        f"--mlir-pass-pipeline-crash-reproducer={file}",
        text=TWO,
    )
    assert 'pipeline: "builtin.module(func.func(test-misbehave{' in file.read_text(encoding="utf-8")
    assert "pass 'test-misbehave' on 'func.func' @g: KeyError" in run(str(file), "-run-reproducer")[2]


def test_no_failure_leaves_no_reproducer(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    assert run("-p", "cse", f"--crash-reproducer={file}")[::2] == (0, "")
    assert not file.exists()


def test_an_interrupted_pass_is_reproduced(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    code, _, err = run("-p", "test-misbehave{how=interrupt}", f"--crash-reproducer={file}")
    assert code == 130
    assert err.startswith("note: the reproducer is ")
    assert "touched" not in file.read_text(encoding="utf-8")


def test_verification_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    run("-p", "test-misbehave{how=crash}", "--no-verify-each", f"--crash-reproducer={file}")
    assert "verify_each: false" in file.read_text(encoding="utf-8")
    assert "--no-verify-each" in file.read_text(encoding="utf-8")


def test_the_first_of_several_failures_is_reproduced(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    text = f"{IDENTITY}// -----\n{TWO}"
    argv = ("-p", "test-misbehave{how=crash}", "--split-input-file", f"--crash-reproducer={file}")
    code, _, err = run(*argv, text=text)
    assert code == 1
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "note", "error"]
    assert "@g" not in file.read_text(encoding="utf-8")


def test_a_reproducer_that_cannot_be_written_hides_no_failure(tmp_path: Path) -> None:
    code, _, err = run("-p", "test-misbehave{how=error}", f"--crash-reproducer={tmp_path}/no/r.mlir")
    assert code == 1
    assert "the tile does not fit" in err.splitlines()[0]
    assert err.splitlines()[1].startswith("note: no reproducer: cannot write")


def test_a_failure_that_is_foretold_is_quiet(tmp_path: Path) -> None:
    file = tmp_path / "r.mlir"
    text = f"// expected-error@unknown {{{{the tile does not fit}}}}\n{IDENTITY}"
    argv = ("-p", "test-misbehave{how=error}", "--verify-diagnostics", f"--crash-reproducer={file}")
    assert run(*argv, text=text)[::2] == (0, "")
    assert file.exists()


OWN = """
from dataclasses import dataclass
from tilewright.passes import TilewrightPass, register_pass

@register_pass
@dataclass(frozen=True)
class P(TilewrightPass):
    'Fails.'
    name = "own-and-wrong"
    level = "any"
    def apply(self, ctx, op):
        raise ValueError("not today")
"""


def test_a_reproducer_says_what_is_to_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    own, file = tmp_path / "own pass.py", tmp_path / "r.mlir"
    own.write_text(OWN, encoding="utf-8")
    run("--load", str(own), "-p", "own-and-wrong", f"--crash-reproducer={file}", text=IDENTITY)
    monkeypatch.setattr(registry, "_registered", {})
    code, out, err = run(str(file), "--run-reproducer")
    assert (code, out) == (1, "")
    assert "error: unknown pass 'own-and-wrong'" in err.splitlines()[0]
    assert err.splitlines()[0].endswith(f"; the reproducer was made with --load '{own}'")
    assert "not today" in run(str(file), "--run-reproducer", "--load", str(own))[2]


# --- reading

MLIR_MADE = """func.func @f() {
  func.return
}

{-#
  external_resources: {
    other_tool: {
      "a key": "a value",
      flag: false
    },
    mlir_reproducer: {
      pipeline: "builtin.module(cse,test-misbehave{how=\\22mark\\22})",
      disable_threading: true,
      verify_each: false
    }
  }
#-}
"""


def test_a_file_of_mlir_opt_is_read() -> None:
    expected = Reproduction('builtin.module(cse,test-misbehave{how="mark"})', verify_each=False)
    assert read_reproducer(MLIR_MADE, "r.mlir") == expected
    assert "mark0" in run("--run-reproducer", text=MLIR_MADE)[1]


@pytest.mark.parametrize("text", ["", IDENTITY, f"{IDENTITY}{{-# external_resources: {{ }} #-}}"])
def test_a_file_without_reproducer_is_one_line(text: str) -> None:
    with pytest.raises(TilewrightError, match="no reproducer in the file") as caught:
        read_reproducer(text, "r.mlir")
    assert caught.value.location is not None


def test_bad_reproducers() -> None:
    assert "no reproducer" in one_line_of(run("--run-reproducer")[2])
    unknown = MLIR_MADE.replace("(cse", "(sce")
    assert "<pipeline>:1:16: error: unknown pass 'sce'" in run("--run-reproducer", text=unknown)[2]
    broken = MLIR_MADE.replace("flag: false", "flag: 1 2")
    assert "<stdin>:9:1" in one_line_of(run(text=broken)[2])


def test_the_input_is_never_replaced_by_a_reproducer(tmp_path: Path) -> None:
    source = tmp_path / "in.mlir"
    source.write_text("sym.symbol @M\n")
    code, _, err = run(str(source), f"--crash-reproducer={source}")
    assert code == 1
    assert "is the input, which it would replace" in err
    assert source.read_text() == "sym.symbol @M\n"
