"""The opt tool as a person uses it: what it prints, where, and with which exit code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tests.api.opt.support import IDENTITY, PRINTED, one_line_of, run
from tilewright.api.opt.main import split_input

# --- results


def test_no_passes_prints_the_module() -> None:
    assert run() == (0, PRINTED, "")


def test_generic_form_and_back() -> None:
    code, generic, _ = run("--print-op-generic")
    assert code == 0
    assert '"func.return"(%a)' in generic
    assert run(text=generic) == (0, PRINTED, "")


def test_debug_info_is_printed_on_request() -> None:
    assert 'loc("<stdin>":2:3)' in run("--print-debuginfo")[1]


def test_files_in_and_out(tmp_path: Path) -> None:
    source, result = tmp_path / "in put.mlir", tmp_path / "out.mlir"
    source.write_text(IDENTITY, encoding="utf-8")
    assert run(str(source), "-o", str(result)) == (0, "", "")
    assert result.read_text(encoding="utf-8") == PRINTED
    # Onto the input itself: it is read before it is written.
    assert run(str(source), "-o", str(source))[0] == 0
    assert source.read_text(encoding="utf-8") == PRINTED


def test_a_failed_run_writes_no_file(tmp_path: Path) -> None:
    result = tmp_path / "out.mlir"
    assert run("-p", "test-misbehave{how=error}", "-o", str(result))[0] == 1
    assert not result.exists()


# --- pipelines


@pytest.mark.parametrize(
    "pipeline",
    [
        "test-misbehave{times=2}",
        "builtin.module(test-misbehave{times=2})",
        "builtin.module(func.func(test-misbehave{ how=mark  times=2 }), any( ))",
        " test-misbehave , test-misbehave{how='mark' times=2}",
    ],
)
def test_pipelines(pipeline: str) -> None:
    code, out, err = run("-p", pipeline)
    assert (code, err) == (0, "")
    assert "mark0" in out
    assert "mark1" in out


@pytest.mark.parametrize(
    ("pipeline", "column", "message"),
    [
        ("cse,canonicalise", 5, "unknown pass 'canonicalise'; did you mean 'canonicalize'?"),
        ("zzzz", 1, "unknown pass 'zzzz' (see --list-passes)"),
        ("test-misbehave{tims=2}", 1, "pass 'test-misbehave' has no option 'tims'; did you mean 'times'?"),
        ("test-misbehave{times=two}", 1, "option 'times' of pass 'test-misbehave': expected int, got 'two'"),
        ("test-misbehave{times=1,2}", 1, "takes one value, got 2: expected int"),
        ("test-misbehave{times}", 1, "needs a value: expected int"),
        ("test-misbehave{times=1 times=2}", 24, "option 'times' is given twice"),
        ("cse{", 5, "expected an option or '}', got the end"),
        ("cse,", 5, "expected a name, got the end"),
        ("cse cse", 5, "expected ',' or the end of the pipeline, got 'cse'"),
        ("builtin.modul(cse)", 1, "'builtin.modul' cannot hold passes; did you mean 'builtin.module'?"),
        ("builtin.module(cse", 19, "expected ')', got the end"),
        ("builtin.module", 15, "expected '(' after 'builtin.module', got the end"),
        ("builtin.module(" * 200, 16, "'builtin.module' cannot stand in 'builtin.module': a module is the outermost"),
        ("func.func(cse,builtin.module(cse))", 15, "'builtin.module' cannot stand in 'func.func'"),
        ("builtin.module(func.func(any(cse)))", 26, "'any' cannot stand in 'func.func': functions and kernels do not"),
        ("any(any(func.func(cse)))", 9, "'func.func' cannot stand in 'any'"),
        ("func.func{x=1}(cse)", 1, "'func.func' takes no options"),
        ("func.func(cse,lin-to-tile)", 15, "pass 'lin-to-tile' cannot run on 'func.func': it runs on 'builtin.module'"),
        ("tile.kernel(tile-to-simt)", 13, "pass 'tile-to-simt' cannot run on 'tile.kernel'"),
        ("builtin.module(any(host-plan))", 20, "pass 'host-plan' cannot run on 'any'"),
        ("cse{x='abc}", 7, "expected a closing quote"),
    ],
)
def test_bad_pipelines_point_at_the_place(pipeline: str, column: int, message: str) -> None:
    code, out, err = run("-p", pipeline)
    assert (code, out) == (1, "")
    assert one_line_of(err).startswith(f"<pipeline>:1:{column}: error: ")
    assert message in err


# --- what is shown on the way


def test_dumps_go_to_standard_error() -> None:
    code, out, err = run("-p", "test-misbehave,cse", "--print-ir-after-all", "--print-ir-before-all")
    assert code == 0
    assert out.count("builtin.module") == 1
    banners = [line for line in err.splitlines() if line.startswith("// -----//")]
    assert banners == [
        f"// -----// IR Dump {when} {name} //----- //"
        for name in ("test-misbehave", "cse")
        for when in ("Before", "After")
    ]
    assert "mark0" not in err[: err.index("After test-misbehave")]
    assert "mark0" in err[err.index("After test-misbehave") :]


def test_the_dump_of_a_failed_pass_says_so() -> None:
    assert (
        "// -----// IR Dump After test-misbehave Failed"
        in run("-p", "test-misbehave{how=error}", "--print-ir-after-all")[2]
    )


def test_remarks_on_request_only() -> None:
    assert run("-p", "test-misbehave{how=remark}")[2] == ""
    code, _, err = run("-p", "test-misbehave{how=remark}", "--remarks")
    assert code == 0
    assert err == "<stdin>:2:3: remark: [test-misbehave] left alone: it is tiny\n"


def test_warnings_are_one_line() -> None:
    assert run("-p", "test-misbehave{how=warn}")[::2] == (0, "warning: slow road taken\n")


def test_timing_adds_up() -> None:
    code, _, err = run("-p", "cse", "--timing")
    assert code == 0
    rows = {line.split("%")[1].strip(): float(line.split()[0]) for line in err.splitlines()[1:]}
    assert list(rows) == ["parse", "verify", "cse", "print", "rest", "total"]
    assert sum(rows.values()) - rows["total"] == pytest.approx(rows["total"], abs=0.05)


def test_version_help_and_lists() -> None:
    assert run("--version") == (0, f"tilewright-opt {tilewright.__version__}\n", "")
    assert "--split-input-file" in run("--help")[1]
    passes, dialects = run("--list-passes")[1], run("--list-dialects")[1]
    assert any(line.startswith("cse ") for line in passes.splitlines())
    assert [line.split()[0] for line in dialects.splitlines()][:5] == ["sym", "lin", "tile", "simt", "host"]


# --- what goes wrong


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("error", "error: pass 'test-misbehave': the tile does not fit"),
        ("fail", "error: pass 'test-misbehave': no way to go on"),
        (
            "crash",
            "error: pass 'test-misbehave': KeyError: 'lost' (this is a bug in the pass; --debug shows the traceback, "
            "--crash-reproducer=FILE writes the input of the pass)",
        ),
    ],
)
def test_failing_passes(how: str, message: str) -> None:
    code, out, err = run("-p", f"test-misbehave{{how={how}}}")
    assert (code, out, err) == (1, "", message + "\n")


def test_a_pass_that_breaks_the_module_is_named_and_located() -> None:
    code, _, err = run("-p", "test-misbehave{how=break},cse")
    assert code == 1
    line = one_line_of(err)
    assert line.startswith("<stdin>:2:3: error: 'func.return': expected arguments")
    assert line.endswith("(after pass 'test-misbehave')")


@pytest.mark.parametrize("more", [(), ("--print-ir-after-all",), ("--print-op-generic",)])
def test_what_cannot_be_printed_is_one_line(more: tuple[str, ...]) -> None:
    code, out, err = run("-p", "test-misbehave{how=unprintable}", *more)
    assert (code, out) == (1, "")
    assert one_line_of(err).startswith("error: 'builtin.module' cannot be printed: AttributeError")


@pytest.mark.parametrize("terms", [100, 1000])
def test_a_long_sum_in_a_map_is_printed_or_one_line(terms: int) -> None:
    text = f"func.func @f() attributes {{m = affine_map<(i) -> ({' + '.join(['i'] * terms)})>}} {{ func.return }}"
    code, out, err = run(text=text)
    if terms == 100:
        assert (code, out.count("+"), err) == (0, terms - 1, "")
    else:
        message = "error: 'builtin.module' holds what is too long or nested too deeply to be printed\n"
        assert (code, out, err) == (1, "", message)


def test_without_verify_each_only_the_end_is_verified() -> None:
    code, _, err = run("-p", "test-misbehave{how=break},test-misbehave", "--no-verify-each")
    assert code == 1
    assert one_line_of(err).endswith("(after pass 'test-misbehave')")


def test_debug_shows_the_traceback() -> None:
    code, _, err = run("-p", "test-misbehave{how=crash}", "--debug")
    assert code == 1
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("error: pass 'test-misbehave': KeyError")


def test_a_fault_in_the_text_has_a_caret() -> None:
    code, out, err = run(text="func.func @f() {\n  %0 = arith.addi %x, %x : i32\n  func.return\n}")
    assert (code, out) == (1, "")
    assert err == (
        "<stdin>:2:19: error: value %x is used but not defined\n  %0 = arith.addi %x, %x : i32\n                  ^\n"
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--splt-input-file"], "unknown option '--splt-input-file'; did you mean '--split-input-file'?"),
        (["a.mlir", "b.mlir"], "one file is expected, got 'a.mlir' and 'b.mlir'"),
        (["-p"], "expected one argument"),
        (["/no/such/file.mlir"], "cannot read '/no/such/file.mlir': No such file or directory"),
        (["/"], "cannot read '/': Is a directory"),
        (["a\0b"], "cannot read 'a\\x00b'"),
        (["-o", "/no/such/folder/x"], "cannot write '/no/such/folder/x': No such file or directory"),
        (["-t", "{}"], "expected a name"),
    ],
)
def test_bad_command_lines(argv: list[str], message: str) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (1, "")
    assert message in one_line_of(err)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_bytes(b"func.func @f\n \xff")
    assert one_line_of(run(str(path))[2]) == f"{path}:2:2: error: byte 0xff is not UTF-8: expected a text file in UTF-8"


# --- many inputs in one file


def test_split_parts_keep_their_line_numbers() -> None:
    assert split_input("a\n// -----\nb\n// ----- more\nc") == ["a", "\n\nb", "\n\n\n\nc"]


def test_each_part_is_run_and_a_bad_one_stops_none() -> None:
    text = f"{IDENTITY}// -----\n%0 = arith.addi %x, %x : i32\n// -----\n{IDENTITY.replace('@f', '@g')}"
    code, out, err = run("--split-input-file", text=text)
    assert code == 1
    assert out == f"{PRINTED}\n// -----\n{PRINTED.replace('@f', '@g')}"
    assert one_line_of(err).startswith("<stdin>:5:17: error: value %x")


# --- errors foretold


FAULTY = "%0 = arith.addi %x, %x : i32"


@pytest.mark.parametrize(
    "text",
    [
        f"// expected-error@+1 {{{{value %x is used}}}}\n{FAULTY}",
        f"{FAULTY} // expected-error {{{{not defined}}}}",
        f"{FAULTY}\n// expected-error@-1 {{{{value %x}}}}",
        f"{FAULTY}\n// expected-error@above {{{{value %x}}}}",
        f"// expected-error@below {{{{value %x}}}}\n{FAULTY}",
        f"// expected-error-re@+1 {{{{value %{{{{[a-z]+}}}} is}}}}\n{FAULTY}",
        f"{IDENTITY}// -----\n{FAULTY} // expected-error {{{{value}}}}",
        IDENTITY,
    ],
)
def test_foretold_errors(text: str) -> None:
    code, _, err = run("--verify-diagnostics", "--split-input-file", text=text)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FAULTY, "<stdin>:1:1: error: unexpected error: value %x is used but not defined"),
        (f"// expected-error@+1 {{{{other}}}}\n{FAULTY}", "unexpected error: value %x"),
        (f"// expected-error@+1 {{{{other}}}}\n{FAULTY}", "<stdin>:1:1: error: expected error 'other' at line 2"),
        (f"// expected-error {{{{value %x}}}}\n{FAULTY}", "at line 1, but it did not come"),
        (f"// expected-error@+1 {{{{never}}}}\n{IDENTITY}", "expected error 'never' at line 2, but it did not come"),
        (f"// expected-error@unknown {{{{value %x}}}}\n{FAULTY}", "without a location, but it did not come"),
        (f"// expected-error-re@+1 {{{{{{{{(}}}}}}}}\n{FAULTY}", "bad regular expression"),
        (f"// expected-error@+1 value\n{FAULTY}", "<stdin>:1:1: error: expected '// expected-error@+1 {{text}}'"),
        (f"// expected-error@+1 {{{{value}}}}\n// expected-error@+1 {{{{value}}}}\n{FAULTY}", "did not come"),
    ],
)
def test_errors_that_were_not_foretold_or_did_not_come(text: str, message: str) -> None:
    code, _, err = run("--verify-diagnostics", text=text)
    assert code == 1
    assert message in err
    assert "Traceback" not in err


def test_errors_of_passes_can_be_foretold() -> None:
    foretold = "// expected-error@unknown {{the tile does not fit}}\n" + IDENTITY
    assert run("-p", "test-misbehave{how=error}", "--verify-diagnostics", text=foretold)[0] == 0
    remarked = "// expected-remark@+2 {{it is tiny}}\n" + IDENTITY
    assert run("-p", "test-misbehave{how=remark}", "--verify-diagnostics", text=remarked)[0] == 0


@pytest.mark.parametrize(
    ("depth", "message"),
    [(0, r"RecursionError: maximum .*\(this is a bug in the pass; .*\)"), (60, "the program is nested too deeply")],
)
def test_a_recursion_without_end_is_the_programs_fault_only_where_that_is_deep(depth: int, message: str) -> None:
    inside = "scf.if %c { " * depth + "}" * depth
    text = f"func.func @f(%c: i1) {{ {inside} func.return }}"
    code, _, err = run("-p", "test-misbehave{how=recurse}", text=text)
    assert code == 1
    assert re.fullmatch(f"error: pass 'test-misbehave': {message}", one_line_of(err))


def test_a_bug_cannot_be_foretold() -> None:
    text = "// expected-error@unknown {{internal error}}\n" + IDENTITY
    assert run("-p", "test-misbehave{how=crash}", "--verify-diagnostics", text=text)[0] == 1


# --- as a process


def process(*argv: str, stdin: bytes = IDENTITY.encode(), **more: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tilewright.api.opt.main", *argv]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **more)


def test_a_process_in_an_ascii_locale() -> None:
    text = 'func.func @f() attributes {note = "caf\u00e9"} {\n  func.return\n}'.encode()
    done = process(stdin=text, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    # xDSL prints what is not ASCII as the bytes' hexadecimal escapes, or as it is: both are the same string.
    assert "caf\u00e9".encode() in done.stdout or b"caf\\C3\\A9" in done.stdout


def test_a_closed_pipe_is_quiet() -> None:
    script = f"{shlex.quote(sys.executable)} -m tilewright.api.opt.main | true"
    body = "".join(f"  %{n} = arith.constant {n} : i32\n" for n in range(4000))
    text = f"func.func @f() {{\n{body}  func.return\n}}"
    done = subprocess.run(["sh", "-c", script], input=text.encode(), capture_output=True, check=False)
    assert done.stderr == b""


def shell(line: str) -> tuple[int, str, str]:
    """Run the tool as `$OPT` in a shell; (exit code, output, errors)."""
    environment = dict(os.environ, OPT=f"{sys.executable} -m tilewright.api.opt.main")
    ran = subprocess.run(["bash", "-c", line], input=IDENTITY, capture_output=True, text=True, env=environment)
    return ran.returncode, ran.stdout, ran.stderr


def test_streams_that_the_shell_has_closed_are_no_bug() -> None:
    assert shell("$OPT >&-") == (0, "", "")
    assert shell("$OPT -p nothing 2>&-") == (1, "", "")
    code, out, err = shell("$OPT <&-")
    assert (code, out) == (1, "")
    assert err.startswith("<stdin>:1:1: error: the input holds nothing")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_no_bug() -> None:
    assert shell("$OPT > /dev/full") == (1, "", "error: cannot write: No space left on device\n")
