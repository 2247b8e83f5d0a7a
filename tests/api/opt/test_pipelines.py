"""Pipelines with anchors: what a pass sees, what becomes of it, and the pipeline as text."""

from __future__ import annotations

import pytest

from tests.api.opt.support import TWO, one_line_of, run
from tilewright.api.opt.pipeline import canonical_text, make_pipeline, passes_of
from tilewright.passes.registry import all_passes

SEES = "test-misbehave{how=see}"


def remarks(pipeline: str, text: str = TWO) -> list[str]:
    code, _, err = run("-p", pipeline, "--remarks", text=text)
    assert code == 0
    return [line.split("] ")[1] for line in err.splitlines()]


@pytest.mark.parametrize("anchors", ["{}", "any({})", "builtin.module({})", " builtin.module( {} ) "])
def test_a_pass_on_the_module_sees_all(anchors: str) -> None:
    assert remarks(anchors.format(SEES)) == ["sees N f g"]


@pytest.mark.parametrize("anchors", ["func.func({})", "builtin.module(func.func({}))", "builtin.module(any({}))"])
def test_a_pass_on_functions_sees_each_alone_with_the_sizes(anchors: str) -> None:
    assert remarks(anchors.format(SEES)) == ["sees N f", "sees N g"]


def test_a_function_goes_through_all_passes_of_an_anchor_before_the_next() -> None:
    pipeline = f"func.func({SEES},test-misbehave{{how=remark only=g}},{SEES})"
    assert remarks(pipeline) == ["sees N f", "sees N f", "sees N g", "left alone: it is tiny", "sees N g"]


@pytest.mark.parametrize("anchor", ["tile.kernel", "host.func", "simt.kernel"])
def test_an_anchor_that_nothing_fits_runs_nothing(anchor: str) -> None:
    assert remarks(f"{anchor}({SEES}),{SEES}") == ["sees N f g"]


@pytest.mark.parametrize("name", ["f", "g"])
def test_results_are_put_back_in_order(name: str) -> None:
    _, out, err = run("-p", f"func.func(test-misbehave{{only={name}}})", text=TWO)
    assert err == ""
    heads = [line for line in out.splitlines() if "func.func" in line]
    assert ["@f" in heads[0], "@g" in heads[1]] == [True, True]
    assert ["mark0" in head for head in heads] == [name == "f", name == "g"]


def test_what_a_pass_does_to_the_sizes_beside_a_function_is_dropped() -> None:
    assert "sym.symbol @N" in run("-p", "func.func(test-misbehave{how=forget})", text=TWO)[1]
    assert "sym.symbol @N" not in run("-p", "test-misbehave{how=forget}", text=TWO)[1]


def test_a_broken_sibling_is_not_seen() -> None:
    pipeline = "func.func(test-misbehave{how=break only=f},test-misbehave{how=remark only=g})"
    code, out, err = run("-p", pipeline, "--remarks", "--no-verify-each", text=TWO)
    assert (code, out) == (1, "")
    # @g is run on although @f is broken; the whole is verified at the end.
    assert "remark: [test-misbehave] left alone" in err
    assert "error: 'func.return': expected arguments" in err


def test_a_function_that_a_pass_breaks_is_named() -> None:
    code, _, err = run("-p", "func.func(test-misbehave{how=break only=g})", text=TWO)
    assert code == 1
    assert one_line_of(err).endswith("(after pass 'test-misbehave' on 'func.func' @g)")
    assert one_line_of(err).startswith("<stdin>:6:3: error: ")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("erase", "expected one 'func.func' as before, got nothing: run the pass on the module"),
        ("add", "expected one 'func.func' as before, got 'func.func', 'func.func': run the pass on the module"),
        ("rename", "it would rename @g to @renamed: run the pass on the module"),
        ("declare", "it would add 'sym.symbol' to the module: run the pass on the module"),
    ],
)
def test_a_pass_that_must_see_the_module_says_so(how: str, message: str) -> None:
    code, _, err = run("-p", f"func.func(test-misbehave{{how={how} only=g}})", text=TWO)
    assert code == 1
    assert message in one_line_of(err)
    assert run("-p", f"test-misbehave{{how={how} only=g}}", text=TWO)[0] == 0


# --- the pipeline as text


def test_the_pipeline_is_dumped_with_all_options_on_standard_error() -> None:
    pipeline = "builtin.module(func.func(cse),any(test-misbehave{only='a b'}))"
    _, out, err = run("-p", pipeline, "--dump-pass-pipeline", text=TWO)
    assert err == 'builtin.module(func.func(cse),any(test-misbehave{how=mark times=1 only="a b"}))\n'
    assert out == run(text=TWO)[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cse",
        "func.func(infer-shapes,cse),tile.kernel(),any(canonicalize)",
        "lin-to-tile,lin-to-tile{tile-sizes=8,16},allocate-shared",
        "verify-level{level=tile stage=scheduled}",
        r"test-misbehave{how='\"\\ {}'},test-misbehave{how=true only='1'}",
    ],
)
def test_the_dumped_pipeline_is_the_pipeline(text: str) -> None:
    steps = make_pipeline(text)
    dumped = canonical_text(steps)
    again = make_pipeline(dumped)
    assert canonical_text(again) == dumped
    assert [step.module_pass for step in passes_of(again)] == [step.module_pass for step in passes_of(steps)]


def test_every_pass_can_be_written_and_read() -> None:
    needs = {"verify-level": "verify-level{level=tile}"}
    text = ",".join(needs.get(name, name) for name in all_passes())
    dumped = canonical_text(make_pipeline(text))
    assert canonical_text(make_pipeline(dumped)) == dumped


# --- passes as options


def test_passes_as_options_are_a_pipeline_in_order() -> None:
    argv = ("-cse", "--test-misbehave=times=2", "-", "--canonicalize", "--dump-pass-pipeline")
    _, out, err = run(*argv, text=TWO)
    assert err == 'builtin.module(cse,test-misbehave{how=mark times=2 only=""},canonicalize)\n'
    assert "mark1" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--cse", "-p", "cse"), "expected -p or passes as options, got both: -p and '--cse'"),
        (("-p", "cse", "--pass-pipeline=cse"), "option '--pass-pipeline' is given twice"),
        (("-o", "a", "-ob"), "option '-o' is given twice"),
        (("--crash-reproducer=",), "option '--crash-reproducer' needs a value"),
        (("--print-ir-tree-dir", ""), "option '--print-ir-tree-dir' needs a value"),
        (("--canonicalise",), "unknown option '--canonicalise'; did you mean '--canonicalize'?"),
        (("-split-input-fil",), "unknown option '-split-input-fil'"),
        (("--verify-each=maybe",), "option '--verify-each' takes true or false, got 'maybe'"),
        (("--print-ir-after=cse,cee",), "--print-ir-after: unknown pass 'cee'; did you mean 'cse'?"),
        (("--print-ir-before", "nope"), "--print-ir-before: unknown pass 'nope'"),
    ],
)
def test_bad_words(argv: tuple[str, ...], message: str) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (1, "")
    assert one_line_of(err).startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("mlir", "ours"),
    [
        (("-mlir-print-op-generic",), ("--print-op-generic",)),
        (("--mlir-print-debuginfo",), ("--print-debuginfo",)),
        (("-pass-pipeline=builtin.module(cse)", "-mlir-disable-threading"), ("-p", "cse")),
        (("-pass-pipeline", "builtin.module(cse)", "--mlir-print-ir-after-all"), ("-p", "cse", "--print-ir-after-all")),
        (("--cse", "--mlir-print-ir-after=cse"), ("-pcse", "--print-ir-after", "cse")),
        (("-verify-each=0", "--cse"), ("--no-verify-each", "-p", "cse")),
        (("-verify-each=1", "--print-op-generic=false"), ()),
        (("--mlir-pass-statistics", "--canonicalize"), ("-p", "canonicalize", "--statistics")),
        (("-show-dialects",), ("--list-dialects",)),
        (("-tile-to-simt",), ("-p", "tile-to-simt")),
    ],
)
def test_the_words_of_mlir_opt(mlir: tuple[str, ...], ours: tuple[str, ...]) -> None:
    assert run(*mlir, text=TWO) == run(*ours, text=TWO)
