"""`assert_pass_preserves` finds planted faults, as small programs in files that run again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from tests.api.testing import planted
from tilewright.api.testing.lin_programs import lin_programs
from tilewright.api.testing.places import POINTS, Place
from tilewright.api.testing.replay import load_failure, replay
from tilewright.api.testing.strategies import with_a_repetition
from tilewright.api.testing.subject import subject_of
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.passes.core import TilewrightPass
from tilewright.passes.rewriting import apply_patterns
from tilewright.testing import NeverChanged, NotPreserved, Program, assert_pass_preserves

PLANTED: dict[type[ModulePass], tuple[str | None, str]] = {
    planted.SwapSubtractionPass: (None, "in the reference: result"),
    planted.ForgetPaddingPass: ("decompose", "in the reference: result"),
    planted.ProveEverythingPass: (None, "is said to be proved, but this does not follow"),
    planted.WrongIdentityPass: ("map-threads", "in the tile interpreter: result"),
    planted.WidenEverythingPass: ("coalesce", "accesses of 2 elements are not proved"),
    planted.DropBarriersPass: ("remove-barriers", "race"),
    planted.OneTooFarPass: (None, "out-of-bounds"),
}
"""Pass with a fault -> after which pass it is tried (None: where it would be by itself), and what is said of it."""


@pytest.mark.parametrize("cls", PLANTED, ids=lambda cls: cls.name)
def test_a_planted_fault_is_found_and_small(cls: type[ModulePass], tmp_path: Path) -> None:
    after, said = PLANTED[cls]
    started = time.process_time()
    with pytest.raises(NotPreserved) as raised:
        assert_pass_preserves(cls, after=after, examples=200, failures=tmp_path)
    assert time.process_time() - started < 60
    failure, path = raised.value.failure, raised.value.path
    print(raised.value)
    assert said in failure.what
    assert count_ops(failure.program) <= 3
    assert all(size <= 33 for size in failure.program.sizes.values())
    # The message has all that a person needs, and the file all that the tool needs.
    message = str(raised.value)
    assert failure.program.text.strip() in message
    assert f"the pipeline without {failure.subject} gives the right results" in message
    assert path is not None
    assert str(path) in message
    again = load_failure(path)
    assert again.program.text.strip() == failure.program.text.strip()
    assert (again.program.sizes, again.program.seed, again.place) == (
        failure.program.sizes,
        failure.program.seed,
        failure.place,
    )
    assert said in (replay(again, subject_of(cls, after)) or "")


def count_ops(program: Program) -> int:
    """Ops of the function, or of the kernels with what is inside of them."""
    module = parse_module(program.text, "program.mlir", make_context())
    (function,) = (op for op in module.ops if op.name in ("func.func", "host.func"))
    return len(function.regions[0].block.ops) - 1


def test_the_same_seed_finds_the_same_program(tmp_path: Path) -> None:
    found: list[Program] = []
    for _ in range(2):
        with pytest.raises(NotPreserved) as raised:
            assert_pass_preserves(planted.ProveEverythingPass, examples=20, seed=5, failures=tmp_path)
        found.append(raised.value.failure.program)
    assert found[0] == found[1]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_pass_that_never_fires_is_no_success() -> None:
    with pytest.raises(NeverChanged) as raised:
        assert_pass_preserves(planted.NothingPass, examples=4)
    assert "nothing changed none of 4 programs" in str(raised.value)
    assert assert_pass_preserves(planted.NothingPass, examples=4, allow_unchanged=True).changed == 0


def test_to_erase_dead_ops_is_to_change_nothing() -> None:
    """A pass whose patterns match nothing must not count as tested because its driver tidies up."""
    x = "tensor<?xf32, #sym.dims<M>>"
    op = f"lin.softmax %x axis 0 : {x} -> {x}"
    text = f"sym.symbol @M func.func @main(%x: {x}) -> {x} {{ %dead = {op} %y = {op} func.return %y : {x} }}"
    program = st.just(Program(text, {"M": 5}))

    @dataclass(frozen=True)
    class TidyPass(TilewrightPass):
        """Erases dead ops, and has no pattern."""

        name = "tidy"
        level = "tensor"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            erased.append(apply_patterns(op, (), erase_dead=True))

    erased: list[bool] = []
    with pytest.raises(NeverChanged, match=r"tidy changed none of 3 programs .* dead ops aside"):
        assert_pass_preserves(TidyPass, programs=program, examples=3)
    assert any(erased)
    assert assert_pass_preserves("decompose", programs=program, examples=3).changed


def test_a_result_is_computed_twice_for_passes_that_see_that() -> None:
    x = "tensor<?xf32, #sym.dims<M>>"
    head, op = f"sym.symbol @M func.func @f(%x: {x}) -> {x}", f"lin.softmax %x axis 0 : {x} -> {x}"
    twice = with_a_repetition(Program(f"{head} {{ %y = {op} func.return %y : {x} }}", {"M": 5}, 7))
    assert (twice.sizes, twice.seed, twice.text.count("lin.softmax")) == ({"M": 5}, 7, 2)
    assert assert_pass_preserves("cse", programs=st.just(twice), examples=2).changed
    none = Program(f"{head} {{ func.return %x : {x} }}")
    assert with_a_repetition(none) == none


def test_a_right_pass_says_how_often_it_fired() -> None:
    coverage = assert_pass_preserves("decompose", examples=5)
    assert coverage.programs == 5
    assert 1 <= coverage.changed <= 5
    assert str(coverage) == f"changed {coverage.changed} of 5 programs"


def test_several_passes_run_as_one_step() -> None:
    assert subject_of("decompose,fuse-elementwise").places == (Place("TENSOR", "cancel-movement"),)
    assert assert_pass_preserves(["decompose", "fuse-elementwise"], examples=4).changed


@pytest.mark.parametrize("where", ["tensor", "tile", "simt", "any"])
def test_a_pass_that_is_in_no_pipeline_meets_every_point_of_its_level(where: str) -> None:
    @dataclass(frozen=True)
    class MarkOpsPass(TilewrightPass):
        """Puts an attribute that means nothing on ops of all levels."""

        name = "mark-ops"
        level = where

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for inner in op.walk():
                if inner.name in ("lin.map", "lin.generic", "tile.alloc", "simt.kernel"):
                    inner.attributes["marked"] = UnitAttr()

    places = subject_of(MarkOpsPass).places
    assert len(places) == len(POINTS[where])
    assert assert_pass_preserves(MarkOpsPass, examples=10).changed >= 5


def test_programs_of_the_caller() -> None:
    only = lin_programs(max_ops=1, ops=["softmax"], dtypes=["f32"], lane="ordinary")
    assert assert_pass_preserves("decompose", programs=only, examples=5).changed == 5


@pytest.mark.parametrize(
    ("what", "after", "said"),
    [
        ("decompse", None, "unknown pass 'decompse'; did you mean 'decompose'?"),
        ([], None, "expected at least one pass to test, got none"),
        ("decompose", "fuse-grups", "after: there is no pass fuse-grups in the pipelines; did you mean 'fuse-groups'?"),
    ],
)
def test_what_cannot_be_tested_is_refused(what: str | list[str], after: str | None, said: str) -> None:
    with pytest.raises(TilewrightError) as raised:
        assert_pass_preserves(what, after=after)
    assert raised.value.message == said
