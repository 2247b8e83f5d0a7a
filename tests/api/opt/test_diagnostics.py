"""Remarks, warnings and notes: shown as they come, or matched with what the file foretells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tests.api.opt.support import IDENTITY, one_line_of, run
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.registry import register_pass

WARN, REMARK = "test-misbehave{how=warn}", "test-misbehave{how=remark}"
REMARKED = "{{left alone: it is tiny}}"


@register_pass
@dataclass(frozen=True)
class Explains(TilewrightPass):
    """Raises an error with a note on it."""

    name: ClassVar[str] = "test-explain"
    level: ClassVar[str] = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        error = error_at(next(iter(op.body.block.ops)), "it cannot be")
        error.add_note("since it was never so")
        raise error


def test_remarks_come_before_the_error_of_the_same_run() -> None:
    code, _, err = run("-p", f"{REMARK},test-misbehave{{how=error}}", "--remarks")
    assert code == 1
    assert [line.split(": ")[-1] for line in err.splitlines()] == ["it is tiny", "the tile does not fit"]


def test_dumps_and_remarks_come_in_the_order_of_the_passes() -> None:
    err = run("-p", f"{REMARK},cse", "--remarks", "--print-ir-after-all")[2]
    assert err.index("remark:") < err.index("After test-misbehave") < err.index("After cse")


def test_notes_on_an_error_are_lines_of_their_own() -> None:
    code, _, err = run("-p", "test-explain")
    assert code == 1
    assert err.splitlines()[0] == "<stdin>:1:1: error: it cannot be"
    assert err.splitlines()[-1] == "note: since it was never so"


@pytest.mark.parametrize(
    ("pipeline", "comments"),
    [
        (WARN, ["expected-warning@unknown {{slow road}}"]),
        (f"{WARN},{WARN}", ["expected-warning@unknown {{slow}}", "expected-warning@unknown {{road taken}}"]),
        (REMARK, [f"expected-remark@+2 {REMARKED}"]),
        (REMARK, ["expected-remark-re@+2 {{left {{a|b}}lone}}"]),
        (f"{REMARK},{WARN}", ["expected-warning@unknown {{slow}}", f"expected-remark@+2 {REMARKED}"]),
        ("test-explain", ["expected-error@below {{it cannot be}}", "expected-note@below {{never so}}"]),
        (
            f"{REMARK},test-explain",
            [f"expected-remark@+4 {REMARKED}", "expected-error@+2 {{be}}", "expected-note@+1 {{so}}"],
        ),
    ],
)
def test_what_is_foretold_and_comes_is_quiet(pipeline: str, comments: list[str]) -> None:
    text = "".join(f"// {comment}\n" for comment in comments) + IDENTITY
    for split in ((), ("--split-input-file",)):
        assert run("-p", pipeline, "--remarks", "--verify-diagnostics", *split, text=text)[::2] == (0, "")
    parts = f"{text}// -----\n{text}"
    argv = ("-p", pipeline, "--remarks", "--verify-diagnostics")
    assert run(*argv, "--split-input-file", text=parts)[::2] == (0, "")


@pytest.mark.parametrize(
    ("pipeline", "comment", "message"),
    [
        (WARN, "", "error: unexpected warning: slow road taken"),
        (WARN, "// expected-warning {{slow}}", "expected warning 'slow' at line 1, but it did not come"),
        (WARN, "// expected-error@unknown {{slow}}", "expected error 'slow' without a location, but it did not come"),
        (REMARK, "", "<stdin>:3:1: error: unexpected remark: left alone"),
        (REMARK, "// expected-remark {{tiny}}", "expected remark 'tiny' at line 1"),
        ("test-explain", "// expected-error@below {{it cannot}}", "unexpected note: since it was never so"),
        ("cse", "// expected-note {{x}}", "expected note 'x' at line 1, but it did not come"),
    ],
)
def test_what_is_not_foretold_or_does_not_come_is_an_error(pipeline: str, comment: str, message: str) -> None:
    code, _, err = run("-p", pipeline, "--remarks", "--verify-diagnostics", text=f"{comment}\n{IDENTITY}")
    assert code == 1
    assert message in err


@pytest.mark.parametrize("pipeline", [REMARK, "cse"])
def test_remarks_that_are_foretold_must_come_though_nobody_asks_for_all(pipeline: str) -> None:
    """A remark that nobody foretold and nobody asked for is no fault: see the case with --remarks above."""
    foretold = f"// expected-remark@+2 {REMARKED}\n{IDENTITY}"
    code, _, err = run("-p", pipeline, "--verify-diagnostics", text=foretold)
    assert (code, err.count("expected remark")) == ((0, 0) if pipeline == REMARK else (1, 1))
    assert run("-p", pipeline, "--verify-diagnostics")[::2] == (0, "")


def test_blank_parts_may_foretell_nothing() -> None:
    text = f"// RUN: x\n// -----\n// expected-error {{{{x}}}}\n// -----\n{IDENTITY}"
    code, out, err = run("--verify-diagnostics", "--split-input-file", text=text)
    assert code == 1
    assert one_line_of(err).startswith("<stdin>:3:1: error: expected error 'x' at line 3")
    assert "// -----" not in out


def test_warnings_of_other_kinds_cannot_be_foretold() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        argv = ("-p", "test-misbehave{how=other-warning}", "--verify-diagnostics")
        assert run(*argv)[::2] == (0, "warning: not ours\n")
