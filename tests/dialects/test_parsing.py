"""Text in, module or one located line out: what a stranger's file may hold, and what is said about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.parsing import MAX_DENSE_ELEMENTS, parse_module, render
from tilewright.dialects.registry import all_dialects, make_context
from tilewright.dialects.source_text import MAX_DIGITS, MAX_MESSAGE, MAX_NESTING, LineTable, decode, one_line
from tilewright.dialects.suggest import did_you_mean
from tilewright.dialects.verify import verify_module

IDENTITY = "func.func @f(%a: i32) -> i32 {\n  func.return %a : i32\n}\n"


def refusal(text: str) -> TilewrightError:
    """Return the error that `text` ends in, from the parser or the verifier; it must be one printable line."""
    with pytest.raises(TilewrightError) as caught:
        verify_module(parse_module(text, "in.mlir", make_context()))
    assert str(caught.value).isprintable()
    return caught.value


def place(error: TilewrightError) -> tuple[int, int]:
    assert error.location is not None
    assert error.location.file == "in.mlir"
    return error.location.line, error.location.column


# --- locations


def test_every_operation_knows_its_place() -> None:
    module = parse_module(
        "func.func @f(%a: i32) -> i32 {\n"
        "  %0 = arith.addi %a, %a : i32\n"
        '    %1 = "arith.muli"(%0, %a) : (i32, i32) -> i32\n'
        "  func.return %1 : i32\n}",
        "in.mlir",
        make_context(),
    )
    places = {op.name: location_of(op) for op in module.walk()}
    assert places == {
        "builtin.module": SourceLocation("in.mlir", 1, 1),
        "func.func": SourceLocation("in.mlir", 1, 1),
        "arith.addi": SourceLocation("in.mlir", 2, 3),
        "arith.muli": SourceLocation("in.mlir", 3, 5),
        "func.return": SourceLocation("in.mlir", 4, 3),
    }


def test_a_written_location_wins() -> None:
    module = parse_module('%c = arith.constant 1 : i32 loc("model.py":7:9)', "in.mlir", make_context())
    (constant,) = module.body.block.ops
    assert location_of(constant) == SourceLocation("model.py", 7, 9)


def test_an_operation_without_a_place_takes_the_one_around_it() -> None:
    from xdsl.dialects.builtin import UNKNOWN_LOC

    module = parse_module(IDENTITY, "in.mlir", make_context())
    function = next(iter(module.body.block.ops))
    returned = function.regions[0].block.last_op
    assert returned is not None
    returned.location = UNKNOWN_LOC
    assert location_of(returned) == SourceLocation("in.mlir", 1, 1)


@given(st.text(alphabet="ab\n", max_size=60), st.data())
def test_line_table_counts_as_splitting_does(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert LineTable(text).position(offset) == (len(before), len(before[-1]) + 1)


# --- what is wrong with a text


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the input holds nothing"),
        (" \n\t\n", 1, 1, "the input holds nothing"),
        ("// a comment\n", 1, 1, "the input holds only comments"),
        ("func.func @f() {\n  func.return\n}\n\0", 4, 1, "NUL byte"),
        ("%0 = arith.addi %a, %a : i32", 1, 17, "value %a is used but not defined"),
        (
            "func.func @f(%a: i32) {\n  %0 = arith.addi %a,\n    %b : i32\n  func.return\n}",
            3,
            5,
            "value %b is used but",
        ),
        ("%0 = arith.adi %a, %a : i32", 1, 6, "unknown operation 'arith.adi'; did you mean 'arith.addi'?"),
        ('%0 = "arit.addi"() : () -> i32', 1, 7, "there is no dialect 'arit'; did you mean 'arith'?"),
        ("func.func @f(%a: !builtn.x) {\n}", 1, 19, "there is no dialect 'builtn'; did you mean 'builtin'?"),
        ("func.func @f() {\n", 2, 1, "expected an operation, a block or '}'"),
        ("func.return\n}", 2, 1, "expected an operation, got '}'"),
        ('"func.func"() ({\n', 2, 1, "expected"),
        ('%0 = "arith.constant"() <{value = "abc', 1, 35, "a string is not closed"),
        ('"test.op"() {a = "%s\\q"} : () -> ()' % ("x" * 5000), 1, 18, "holds an escape other than"),
        ("func.func @f(%a: i32) {\n  %a = arith.constant 1 : i32\n  func.return\n}", 2, 3, "already defined"),
        ("%0 = arith.constant 1 : i99999999999", 1, 25, "integer type of more than 16777216 bits"),
        ("%0 = arith.constant 300 : i8", 1, 1, "300"),
        ("%0 = arith.constant dense<[1, 2]> : tensor<3xi32>", 1, 50, "shape mismatch"),
        ("func.func private @f(tensor<2x9223372036854775808xf32>)", 1, 31, "expected at most 9223372036854775807"),
        ("%", 1, 1, "expected suffix identifier after %"),
        ("^bb0:\n", 1, 1, "expected an operation, got '^bb0:'"),
        ("\u00b2", 1, 1, "expected an operation"),
    ],
)
def test_refused_text(text: str, line: int, column: int, message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert place(error) == (line, column)


def test_a_dense_literal_of_any_size_does_not_eat_the_memory() -> None:
    error = refusal("%0 = arith.constant dense<0.0> : tensor<100000x100000xf32>")
    assert f"dense literal of 10000000000 elements: expected at most {MAX_DENSE_ELEMENTS}" in error.message


def test_long_integers_are_refused_where_they_stand() -> None:
    assert parse_module(f"%0 = arith.constant {'0' * MAX_DIGITS} : i32", "in.mlir", make_context())
    for literal in ("1" * (MAX_DIGITS + 1), "0x" + "f" * (MAX_DIGITS + 1)):
        error = refusal(f"%0 = arith.constant {literal} : i32")
        assert place(error) == (1, 21)
        assert "digits" in error.message


def nested(levels: int) -> str:
    """Return a function with `levels` brackets open at once, of regions."""
    depth = levels - 1
    return "func.func @f(%c: i1) {\n" + "scf.if %c {\n" * depth + "}\n" * depth + "func.return\n}"


def test_deep_regions_parse_verify_and_print_up_to_the_limit() -> None:
    module = parse_module(nested(MAX_NESTING), "in.mlir", make_context())
    verify_module(module)
    assert str(module).count("scf.if") == MAX_NESTING - 1


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 150, 10_000])
def test_deeper_regions_are_refused(levels: int) -> None:
    error = refusal(nested(levels))
    assert f"nested more than {MAX_NESTING} deep" in error.message
    assert place(error) == (MAX_NESTING + 1, 11)


@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [("tuple<", "i32", ">"), ("tuple<\n", "i32", ">")],
)
@pytest.mark.parametrize("levels", [400, 20_000])
def test_deep_types_are_refused(opening: str, inner: str, closing: str, levels: int) -> None:
    error = refusal(f"func.func private @f({opening * levels}{inner}{closing * levels})")
    assert "nested" in error.message


def test_deep_attributes_are_refused() -> None:
    error = refusal(f'"builtin.module"() ({{}}) {{a = {"[" * 400}{"]" * 400}}} : () -> ()')
    assert "nested" in error.message


def test_a_misspelt_bound_of_a_symbol_is_refused() -> None:
    error = refusal("sym.symbol @N\nsym.symbol @M {mim = 1}")
    assert place(error) == (2, 15)
    assert error.message == "symbol 'M' has no 'mim'; did you mean 'min'?"
    assert "likely expected sizes of at least 0, got [-1]" in refusal("sym.symbol @M {likely = [-1]}").message
    verify_module(parse_module("sym.symbol @M {min = 1, other.note = 2}", "in.mlir", make_context()))


@pytest.mark.parametrize(("body", "lines"), [("tuple<!a{0}, !a{0}>", 200), ("tuple<!a{0}>", 5000)])
def test_aliases_that_stand_for_too_much_are_refused(body: str, lines: int) -> None:
    text = "!a0 = i32\n" + "".join(f"!a{n + 1} = {body.format(n)}\n" for n in range(lines))
    error = refusal(text + f"func.func private @f(!a{lines})")
    assert "is too large: expected at most" in error.message
    line, column = place(error)
    assert 10 < line < 120
    assert column == 1


def test_aliases_of_common_size_are_taken_however_many() -> None:
    text = "".join(f"!a{n} = tensor<{n}x4xf32>\n" for n in range(300))
    verify_module(parse_module(text + "func.func private @f(!a0, !a299, !a299)", "in.mlir", make_context()))


def test_comparisons_are_no_brackets() -> None:
    """`A<B` opens nothing, however often it is written; neither do brackets in strings and comments."""
    lines = ["// " + "(" * 500, *(f'"test.op"() {{a = "{"[" * 50} S<W and B<C"}} : () -> ()' for _ in range(150))]
    module = parse_module("\n".join(lines), "in.mlir", make_context(allow_unregistered=True))
    assert len(list(module.body.block.ops)) == 150


def test_names_in_messages_stay_on_one_line() -> None:
    error = refusal('"a\\0Ab\\1B[31m"() : () -> ()')
    assert "\n" not in str(error)
    assert "\x1b" not in render(error, '"a\\0Ab\\1B[31m"() : () -> ()')


def test_an_unregistered_dialect_is_accepted_on_request_only() -> None:
    text = '"other.op"() : () -> ()'
    assert "there is no dialect 'other'" in refusal(text).message
    assert parse_module(text, "in.mlir", make_context(allow_unregistered=True))


def assert_module_or_line(text: str) -> None:
    """Parse and verify `text`: it may only fail with an error of one line whose place is in the text."""
    error: TilewrightError | None = None
    try:
        verify_module(parse_module(text, "in.mlir", make_context()))
    except TilewrightError as caught:
        error = caught
    if error is not None:
        line, column = place(error)
        assert str(error).isprintable()
        assert column <= len(text.split("\n")[line - 1]) + 1
        assert render(error, text).startswith("in.mlir:")


@given(st.text(alphabet='%@#!^abf0159x.,:;=-<>(){}[]"\\/ \n\t?*', max_size=80))
def test_any_text_ends_in_a_module_or_a_located_line(text: str) -> None:
    assert_module_or_line(text)


@given(st.data())
def test_a_mutilated_program_ends_in_a_module_or_a_located_line(data: st.DataObject) -> None:
    """Cut, doubled and swapped pieces of a real program reach deeper into the parser than noise does."""
    program = (
        "func.func @f(%a: tensor<4x?xf32>, %n: index) -> (f32, i32) attributes {k = [1, 2.0, @g]} {\n"
        "  %c = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\n"
        "  %r:2 = scf.if %b -> (f32, i32) {\n    scf.yield %x, %y : f32, i32\n  } else {\n"
        "    scf.yield %x, %y : f32, i32\n  }\n"
        "  func.return %r#0, %r#1 : f32, i32\n}\n"
    )
    start = data.draw(st.integers(0, len(program)))
    end = data.draw(st.integers(start, len(program)))
    patch = data.draw(st.sampled_from(["", program[start:end] * 2, "<", "}", '"', "%r#9", "-1", "#", "!x.y"]))
    text = program[:start] + patch + program[end:]
    assert_module_or_line(text)


# --- bytes


def test_byte_order_mark_and_windows_lines_are_fine() -> None:
    text = decode(b"\xef\xbb\xbf" + IDENTITY.replace("\n", "\r\n").encode(), "in.mlir")
    module = parse_module(text, "in.mlir", make_context())
    assert location_of(next(iter(module.body.block.ops))) == SourceLocation("in.mlir", 1, 1)
    assert parse_module("\ufeff" + IDENTITY, "in.mlir", make_context())


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        (b"func.func @f()\n// caf\xe9", 2, 7, "byte 0xe9 is not UTF-8"),
        ("func".encode("utf-16"), 1, 1, "UTF-16"),
        (b"\x7fELF\x02\x01\x01\xff", 1, 8, "not UTF-8"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, line: int, column: int, message: str) -> None:
    with pytest.raises(TilewrightError, match=message) as caught:
        decode(data, "in.mlir")
    assert place(caught.value) == (line, column)


# --- the caret


def test_render_points_below_the_column() -> None:
    error = TilewrightError("wrong", SourceLocation("a.mlir", 2, 4))
    assert render(error, "first\n\t  x y\n") == "a.mlir:2:4: error: wrong\n\t  x y\n\t  ^"
    assert render(error) == "a.mlir:2:4: error: wrong"
    assert render(error, "only one line") == "a.mlir:2:4: error: wrong"
    assert render(TilewrightError("wrong"), "text") == "error: wrong"


def test_render_shows_a_window_of_a_long_line() -> None:
    text = "x" * 5000 + "Y" + "x" * 5000
    _, shown, caret = render(TilewrightError("wrong", SourceLocation("a.mlir", 1, 5001)), text).split("\n")
    assert len(shown) <= 200
    assert shown[caret.index("^")] == "Y"


def test_one_line() -> None:
    assert one_line("a\n  b\x1b[0m") == "a b\\x1b[0m"
    assert len(one_line("x" * 10_000)) == MAX_MESSAGE


# --- near misses


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("canonicalise", ["cse", "canonicalize"], "; did you mean 'canonicalize'?"),
        ("CSE", ["cse", "dce"], "; did you mean 'cse'?"),
        ("zzz", ["cse", "canonicalize"], ""),
        ("x", [], ""),
    ],
)
def test_did_you_mean(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint


# --- registry


def test_every_dialect_loads_under_its_name() -> None:
    for name, factory in all_dialects().items():
        assert factory().name == name


def test_a_context_loads_nothing_but_builtin() -> None:
    context = make_context()
    assert [dialect.name for dialect in context.loaded_dialects] == ["builtin"]
    assert set(context.registered_dialect_names) == set(all_dialects())
