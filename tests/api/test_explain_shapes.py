"""`tilewright explain-shapes`: the whole text for one program, written by hand; refusals; other requirements."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.api.cli import main

X, W = "tensor<?x?xf32, #sym.dims<M, 2*S>>", "tensor<?x?xf32, #sym.dims<K, N>>"
Y, B = "tensor<?x?xf32, #sym.dims<M, N>>", "tensor<?xf32, #sym.dims<N>>"
PROGRAM = f"""sym.symbol @M {{min = 1, max = 64, likely = [8, 16]}}
sym.symbol @S
sym.symbol @K {{multiple_of = 8}}
sym.symbol @N
sym.require K == 2*S
sym.require S >= 16
sym.require N + S >= 10
func.func @main(%x: {X}, %w: {W}, %b: {B}) -> {Y} {{
  %p = lin.matmul %x, %w : {X}, {W} -> {Y}
  %y = lin.map ins(%p, %b : {Y}, {B}) -> {Y} {{
  ^bb0(%u: f32, %v: f32):
    %s = arith.addf %u, %v : f32
    lin.yield %s : f32
  }}
  func.return %y : {Y}
}}
"""

REPORT = """\
entry @main (<stdin>:8:1)

value  shape     type  place
%x     [M, 2*S]  f32   argument 0, <stdin>:8:1
%w     [K, N]    f32   argument 1, <stdin>:8:1
%b     [N]       f32   argument 2, <stdin>:8:1
%p     [M, N]    f32   <stdin>:9:3
%y     [M, N]    f32   result 0, <stdin>:10:3

symbol  declared       likely  bound by        known
M       min 1, max 64  8, 16   %x dim 0        1..64
S       -              -       %x dim 1 = 2*S  >= 16, multiple of 4
K       multiple_of 8  -       %w dim 0        >= 32, multiple of 8
N       -              -       %w dim 1        >= 0

requirement           place                    verdict  because
%b dim 0 == N         argument 2               guard    checked at each call
M >= 1                sym.symbol <stdin>:1:1   guard    checked at each call
M <= 64               sym.symbol <stdin>:1:1   guard    checked at each call
S >= 0                sym.symbol <stdin>:2:1   proved   2*S >= 0 (argument 0 dim 1)
K >= 0                sym.symbol <stdin>:3:1   proved   K >= 0 (argument 1 dim 0)
N >= 0                sym.symbol <stdin>:4:1   proved   N >= 0 (argument 1 dim 1)
S >= 16               sym.require <stdin>:6:1  guard    checked at each call
K mod 8 == 0          sym.symbol <stdin>:3:1   guard    checked at each call
K == 2*S              sym.require <stdin>:5:1  guard    checked at each call
N + S >= 10           sym.require <stdin>:7:1  proved   N >= 0 (argument 1 dim 1) and S >= 16 (<stdin>:6:1)
M >= 0                lin.matmul <stdin>:9:3   proved   M >= 0 (argument 0 dim 0)
%x dim 1 == %w dim 0  lin.matmul <stdin>:9:3   proved   K == 2*S (<stdin>:5:1)
%p dim 1 == %b dim 0  lin.map <stdin>:10:3     proved   both are N
"""


def explain(text: str, *words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["explain-shapes", "-", *words], io.StringIO(text), out, err)
    return code, out.getvalue(), err.getvalue()


def row(text: str, start: str) -> list[str]:
    """The cells of the one row that starts with a text."""
    (line,) = [line for line in explain(text)[1].splitlines() if line.startswith(f"{start}  ")]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_whole_report_of_a_small_program():
    assert explain(PROGRAM) == (0, REPORT, "")


def test_the_report_is_the_same_every_time():
    assert explain(PROGRAM) == explain(PROGRAM)


def test_sizes_that_no_call_can_have_name_both_statements_and_the_value_they_force():
    text = """sym.symbol @S0
sym.symbol @S1 {min = 1}
sym.require S0 == S1
sym.require S0 == 2*S1
func.func @main(%x: T) -> T {
  func.return %x : T
}
""".replace("T", "tensor<?x?xf32, #sym.dims<S0, S1>>")
    code, out, err = explain(text)
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == (
        "<stdin>:4:1: error: no call of @main is possible: S1 == 0 follows from S0 == S1 (<stdin>:3:1) and "
        "S0 == 2*S1 (<stdin>:4:1), but S1 >= 1 (<stdin>:2:1)"
    )


def test_a_size_that_never_fits_its_op_is_an_error_at_it():
    code, _, err = explain(PROGRAM.replace("sym.require K == 2*S\n", ""))
    assert code == 1
    assert err.startswith("<stdin>:8:3: error: ")
    assert "2*S" in err.splitlines()[0]


def test_casts_and_results_of_several_names_and_scalars():
    m, n = "tensor<?xf32, #sym.dims<M>>", "tensor<?xf32, #sym.dims<N>>"
    text = f"""sym.symbol @M
sym.symbol @N
func.func @main(%x: {m}, %y: {n}, %k: i32) -> ({n}, {n}) {{
  %0 = sym.cast %x : {m} to {n}
  %1 = lin.map ins(%0, %y : {n}, {n}) -> {n} {{
  ^bb0(%u: f32, %v: f32):
    %s = arith.mulf %u, %v : f32
    lin.yield %s : f32
  }}
  func.return %1, %1 : {n}, {n}
}}
"""
    assert row(text, "M == N") == ["M == N", "sym.cast <stdin>:4:3", "guard", "checked at each call"]
    assert row(text, "%0 dim 0 == %y dim 0") == ["%0 dim 0 == %y dim 0", "lin.map <stdin>:5:3", "proved", "both are N"]
    assert row(text, "%k") == ["%k", "scalar", "i32", "argument 2, <stdin>:3:1"]
    assert row(text, "%1") == ["%1", "[N]", "f32", "result 0, result 1, <stdin>:5:3"]


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("sym.symbol @A\nsym.require A mod 8 == 3", ">= 3, 3 mod 8"),
        ("sym.symbol @A\nsym.require A == 12", "== 12"),
        ("sym.symbol @A {max = 100}\nsym.require A mod 6 == 0\nsym.require A mod 4 == 0", "0..96, multiple of 12"),
    ],
)
def test_what_is_known_of_a_symbol(lines: str, known: str):
    type_ = "tensor<?xf32, #sym.dims<A>>"
    text = f"{lines}\nfunc.func @main(%x: {type_}) -> {type_} {{\n  func.return %x : {type_}\n}}\n"
    assert row(text, "A")[-1] == known


def test_the_examples_are_explained(request: pytest.FixtureRequest):
    for path in sorted((Path(request.config.rootpath) / "examples").glob("*.mlir")):
        out = io.StringIO()
        assert main(["explain-shapes", str(path)], None, out, io.StringIO()) == 0
        assert "\nsymbol " in out.getvalue()


def test_what_a_convolution_needs_of_its_image_is_in_the_report():
    h, w = tw.symbols("H W")
    module = tw.build_module(tw.conv2d(tw.placeholder((1, 1, h, w)), tw.placeholder((1, 1, 3, 3))))
    status, out, err = explain(str(module))
    assert (status, err) == (0, "")
    assert any(line.split()[:3] == ["H", ">=", "3"] and "guard" in line for line in out.splitlines())
