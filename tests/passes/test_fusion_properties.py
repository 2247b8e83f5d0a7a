"""Fusion keeps what programs mean: random `lin` programs at their sizes, run before and after."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from tests.passes.support import ops_named, parse, preserves, preserves_program
from tilewright.testing import Program, lin_programs

PIPELINE = ["infer-shapes", "canonicalize", "decompose", "cse", "fuse-elementwise", "fuse-groups", "verify-dims"]


@given(lin_programs(max_ops=5))
def test_the_whole_pipeline_keeps_results(program: Program) -> None:
    after = preserves_program(PIPELINE, program)
    for op in ops_named(after, "lin.generic"):
        parent = op.parent_op()
        assert parent is not None
        assert parent.name == "lin.group"


@given(lin_programs(max_ops=5))
def test_fusion_leaves_nothing_to_fuse(program: Program) -> None:
    """A second run of each fusion changes nothing."""
    once = preserves_program(["infer-shapes", "decompose", "fuse-elementwise"], program)
    twice = preserves(["fuse-elementwise"], once, program.sizes)
    assert once.is_structurally_equivalent(twice)


@given(st.sampled_from(["f32", "bf16"]), st.integers(0, 2))
def test_a_softmax_of_three_dims_is_one_group(element: str, axis: int) -> None:
    kind = f"tensor<?x?x?x{element}, #sym.dims<M, N, K>>"
    text = (
        "sym.symbol @M\nsym.symbol @N\nsym.symbol @K\n"
        f"func.func @f(%x: {kind}) -> {kind} {{\n  %y = lin.softmax %x axis {axis} : {kind} -> {kind}\n"
        f"  func.return %y : {kind}\n}}\n"
    )
    module = preserves(PIPELINE, parse(text), {"M": 3, "N": 4, "K": 5})
    assert len(ops_named(module, "lin.group")) == 1
