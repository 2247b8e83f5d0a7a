"""The pass of docs/guides/writing-a-pass.md: its arithmetic, its .mlir test, and results before and after."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from examples.passes.add_negated import AddNegatedPass
from examples.passes.exact_reciprocals import ExactReciprocalsPass, exact_reciprocal
from tests.filecheck.test_filecheck import run_lines, run_pipe
from tilewright.passes import (
    Rewriter,
    TilewrightPass,
    all_passes,
    apply_patterns,
    load_passes_from,
    pattern,
    registry,
)
from tilewright.testing import NotPreserved, Program, assert_pass_preserves

HOME = Path(__file__).parents[2] / "examples" / "passes"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass is registered inside a test alone: other tests list what there is."""
    monkeypatch.setattr(registry, "_registered", {ExactReciprocalsPass.name: ExactReciprocalsPass})


@pytest.mark.parametrize("command", run_lines((HOME / "exact_reciprocals.mlir").read_text(encoding="utf-8")))
def test_the_mlir_test_passes(command: str, tmp_path: Path) -> None:
    run_pipe(command.replace("%S", str(HOME)), HOME / "exact_reciprocals.mlir", tmp_path / "t")


def test_the_file_loads_by_its_path_beside_the_import() -> None:
    assert load_passes_from(HOME / "exact_reciprocals.py") == ["exact-reciprocals"]
    assert all_passes()["exact-reciprocals"]().__module__.startswith("tilewright_loaded_exact_reciprocals_")


@pytest.mark.parametrize(
    ("divisor", "dtype", "expected"),
    [
        (4.0, "f32", 0.25),
        (-0.5, "f32", -2.0),
        (1.0, "f16", 1.0),
        (3.0, "f64", None),
        (0.0, "f32", None),
        (float("inf"), "f32", None),
        (float("nan"), "f32", None),
        # 2**127 has the reciprocal 2**-127, a subnormal f32; 2**-127 is subnormal itself, its reciprocal is normal.
        (2.0**126, "f32", 2.0**-126),
        (2.0**127, "f32", None),
        (2.0**-127, "f32", 2.0**127),
        (2.0**-128, "f32", None),
        (2.0**14, "f16", 2.0**-14),
        (2.0**15, "f16", None),
        (2.0**1023, "f64", None),
    ],
)
def test_the_reciprocal_is_given_where_it_is_exact(divisor: float, dtype: str, expected: float | None) -> None:
    assert exact_reciprocal(divisor, dtype) == expected


@given(bits=st.integers(0, 2**32 - 1), exponent=st.integers(-149, 127))
def test_both_forms_have_the_same_bits(bits: int, exponent: int) -> None:
    """For every f32 and every power of two that the pass takes; NaN stays NaN."""
    divisor = 2.0**exponent
    reciprocal = exact_reciprocal(divisor, "f32")
    if reciprocal is None:
        return
    x = np.array(struct.unpack("<f", struct.pack("<I", bits))[0], np.float32)
    with np.errstate(all="ignore"):
        quotient, product = x / np.float32(divisor), x * np.float32(reciprocal)
    assert (np.isnan(quotient) and np.isnan(product)) or quotient.tobytes() == product.tobytes()


# [preserves]
@st.composite
def divided_programs(draw: st.DrawFn) -> Program:
    """A vector divided by powers of two and by other numbers, for each element type."""
    dtype = draw(st.sampled_from(["f16", "f32"]))
    divisors = draw(st.lists(st.sampled_from([0.125, 0.3, 2.0, -16.0, 3.0, 1024.0]), min_size=1, max_size=3))
    vector = f"tensor<?x{dtype}, #sym.dims<N>>"
    lines, value = [], "%p"
    for i, divisor in enumerate(divisors):
        lines += [f"%c{i} = arith.constant {divisor} : {dtype}", f"%q{i} = arith.divf {value}, %c{i} : {dtype}"]
        value = f"%q{i}"
    body = "\n    ".join([*lines, f"lin.yield {value} : {dtype}"])
    text = f"""sym.symbol @N
func.func @f(%x: {vector}) -> {vector} {{
  %y = lin.map ins(%x : {vector}) -> {vector} {{
  ^bb0(%p: {dtype}):
    {body}
  }}
  func.return %y : {vector}
}}
"""
    sizes = {"N": draw(st.sampled_from([0, 1, 5, 130]))}
    return Program(text, sizes, seed=draw(st.integers(0, 99)), lane="special", level="tensor")


def test_results_stay() -> None:
    coverage = assert_pass_preserves(ExactReciprocalsPass(), programs=divided_programs(), examples=8)
    assert coverage.changed > 0


# [/preserves]


def test_the_pass_of_the_readme_keeps_results() -> None:
    subtract = """sym.symbol @N
func.func @f(%x: tensor<?xf32, #sym.dims<N>>, %y: tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  %z = lin.map ins(%x, %y : tensor<?xf32, #sym.dims<N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.subf %p, %q : f32
    lin.yield %r : f32
  }
  func.return %z : tensor<?xf32, #sym.dims<N>>
}
"""
    programs = st.builds(Program, st.just(subtract), st.just({"N": 37}), st.integers(0, 9), st.just("special"))
    assert assert_pass_preserves(AddNegatedPass(), programs=programs, examples=3).changed > 0


def test_a_wrong_pass_is_found(tmp_path: Path) -> None:
    """The same pass with a mistake: it multiplies by the divisor itself."""

    @dataclass(frozen=True)
    class WrongPass(TilewrightPass):
        """Multiplies where it should divide."""

        name = "wrong-reciprocals"
        level = "any"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            @pattern(arith.DivfOp)
            def multiply(op: arith.DivfOp, rewriter: Rewriter) -> None:
                rewriter.replace(op, arith.MulfOp(op.lhs, op.rhs))

            apply_patterns(op, [multiply])

    with pytest.raises(NotPreserved, match="wrong-reciprocals"):
        assert_pass_preserves(WrongPass(), programs=divided_programs(), examples=20, failures=tmp_path)
