"""Inputs made of a seed, and what equality means when they are special."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func

from tests.api.testing.draws import drawn
from tilewright.api.testing.execute import context
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.verify import verify_module
from tilewright.runtime.inputs import picked_rows
from tilewright.runtime.reference import ReferenceValue, compare, run_reference
from tilewright.testing import differs, lin_programs, make_inputs, zero_signs

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).parents[3]
ALL = """
sym.symbol @M
func.func @f(%a: tensor<?xf32, #sym.dims<M>>, %b: tensor<?xf16, #sym.dims<M>>, %c: tensor<?xbf16, #sym.dims<M>>,
             %d: tensor<?xi32, #sym.dims<M>>, %e: tensor<?xi1, #sym.dims<M>>, %n: index, %s: f32, %k: i32) {
  func.return
}
"""


def function_of(text: str) -> func.FuncOp:
    module = parse_module(text, "p.mlir", context())
    verify_module(module)
    return next(op for op in module.ops if isinstance(op, func.FuncOp))


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def test_the_same_seed_gives_the_same_arrays_in_another_process() -> None:
    script = (
        "from tests.api.testing.test_strategies_values import *\n"
        "print(*(a.tobytes().hex() for a in make_inputs(function_of(ALL), {'M': 9}, 5, 'special')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    here = [a.tobytes().hex() for a in make_inputs(function_of(ALL), {"M": 9}, 5, "special")]
    assert done.stdout.split() == here
    assert here != [a.tobytes().hex() for a in make_inputs(function_of(ALL), {"M": 9}, 6, "special")]


def test_an_argument_does_not_depend_on_those_before_it() -> None:
    function = function_of(ALL)
    for first in range(8):
        rest = make_inputs(function, {"M": 9}, 5, first=first)
        for got, expected in zip(rest, make_inputs(function, {"M": 9}, 5)[first:], strict=True):
            np.testing.assert_array_equal(got, expected)


def test_dtypes_shapes_and_alignment() -> None:
    made = make_inputs(function_of(ALL), {"M": 9}, 0)
    names = ["float32", "float16", "bfloat16", "int32", "bool", "int64", "float32", "int32"]
    assert [a.dtype.name for a in made] == names
    assert [a.shape for a in made] == [(9,)] * 5 + [()] * 3
    assert all(a.ctypes.data % 256 == 0 for a in made[:5])


def test_the_ordinary_lane_is_tame() -> None:
    a, b, c, d, e, n, s, k = make_inputs(function_of(ALL), {"M": 2000}, 0)
    for floats in (a, b, c):
        assert np.all(np.abs(wide(floats)) < 3)
        # Ties: half of the elements are among 17 values.
        assert sum(times for _, times in Counter(floats.tolist()).most_common(17)) > 900
        assert len(set(floats.tolist())) > 100
    assert set(d.tolist()) == set(range(-8, 9))
    assert 800 < e.sum() < 1200
    assert 1 <= n <= 4
    assert abs(s) < 3
    assert abs(k) <= 8


def test_the_special_lane_has_every_special_value_of_each_type() -> None:
    """Over many seeds; an array has few kinds, lest all become NaN."""
    function = function_of(ALL)
    seen: dict[str, Counter[str]] = {name: Counter() for name in ("float32", "float16", "bfloat16", "int32")}
    limits = {
        "float32": (2.0**-126, 2.0**-149, float(np.finfo(np.float32).max)),
        "float16": (2.0**-14, 2.0**-24, 65504.0),
    }
    limits["bfloat16"] = (2.0**-126, 2.0**-133, float.fromhex("0x1.fep127"))
    ordinary = 0
    for seed in range(60):
        for array in make_inputs(function, {"M": 64}, seed, "special")[:4]:
            values, kinds = wide(array), seen[array.dtype.name]
            if array.dtype.name == "int32":
                kinds.update(least=int((values == -(2**31)).any()), greatest=int((values == 2**31 - 1).any()))
                continue
            normal, subnormal, largest = limits[array.dtype.name]
            ordinary += np.isfinite(values).sum() > 32
            kinds.update(
                nan=int(np.isnan(values).any()),
                positive=int((values == np.inf).any()),
                negative=int((values == -np.inf).any()),
                zero=int(((values == 0) & np.signbit(values)).any()),
                subnormal=int((np.abs(values) == subnormal).any()),
                normal=int((np.abs(values) == normal).any()),
                largest=int((np.abs(values) == largest).any()),
            )
    assert ordinary > 120
    for name, kinds in seen.items():
        assert all(kinds.values()), (name, kinds)
        assert all(times < 50 for times in kinds.values()), (name, kinds)


GATHERED = """
sym.symbol @M
sym.symbol @N
func.func @f(%t: !T, %i: !I, %j: !I, %k: !I) -> (!Y, !Y) {
  %b = lin.reshape %i : !I -> tensor<?x1xi32, #sym.dims<N, 1>>
  %c = lin.reshape %b : tensor<?x1xi32, #sym.dims<N, 1>> -> !I
  %y = lin.gather %t, %c : !T, !I -> !Y
  %z = lin.generic (a, b) ins(%j[a] as v0 : !I, %y at [v0, b] else 0.0 : f32 : !Y) out[a, b] : !Y {
  ^bb0(%p: i32, %q: f32):
    lin.yield %q : f32
  }
  func.return %y, %z : !Y, !Y
}
"""
for _name, _dims in {
    "!T": "?x?xf32, #sym.dims<M, N>",
    "!Y": "?x?xf32, #sym.dims<N, N>",
    "!I": "?xi32, #sym.dims<N>",
}.items():
    GATHERED = GATHERED.replace(_name, f"tensor<{_dims}>")


@pytest.mark.parametrize(("lane", "least", "most"), [("ordinary", 0.85, 0.97), ("special", 0.6, 0.8)])
def test_ids_lie_in_their_tables_mostly(lane: str, least: float, most: float) -> None:
    function = function_of(GATHERED)
    sizes = {"M": 7, "N": 1000}
    assert picked_rows(function, sizes) == {1: 7, 2: 1000}
    _, i, j, k = make_inputs(function, sizes, 3, lane)  # pyright: ignore[reportArgumentType]
    for ids, rows in ((i, 7), (j, 1000)):
        inside = (ids >= 0) & (ids < rows)
        assert least < inside.mean() < most
        assert (ids == -1).any()
        assert (ids == rows).any()
    assert set(range(7)) <= set(i.tolist())
    # No table is read at %k.
    assert (k < 0).any()
    assert ((i == 2**31 - 1).any(), (i == -(2**31)).any()) == (lane == "special", lane == "special")


def test_ids_of_an_empty_table() -> None:
    _, i, _, _ = make_inputs(function_of(GATHERED), {"M": 0, "N": 1000}, 0)
    assert (i == 0).any()
    assert (i == -1).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed: expected a number of at least 0, got -1"),
        ({"lane": "odd"}, "lane: expected one of ordinary, special, got 'odd'"),
        ({"sizes": {"M": 1 << 40}}, "argument 'a' of shape .* too large to be made up"),
    ],
)
def test_what_cannot_be_made_is_refused(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"sizes": {"M": 3}, "seed": 0, "lane": "ordinary"} | change
    with pytest.raises(TilewrightError, match=message):
        make_inputs(function_of(ALL), **options)


def exactly(*values: float) -> ReferenceValue:
    array = np.array(values)
    return ReferenceValue(array, array.astype(np.float32), np.zeros(len(values)))


def test_equality_of_special_values() -> None:
    want = exactly(np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-149)
    same = np.array([-np.nan, np.inf, -np.inf, -0.0, 0.0, 2.0**-149], np.float32)
    assert differs(same, want).tolist() == [False] * 6
    assert differs(same, want, zero_signs=True).tolist() == [False, False, False, True, True, False]
    other = np.array([0.0, -np.inf, np.nan, np.nan, 2.0**-149, 0.0], np.float32)
    assert differs(other, want).tolist() == [True] * 6


@given(st.integers(0, 2**32 - 1))
def test_equality_is_that_of_compare(seed: int) -> None:
    """Where the signs of zeros do not matter."""
    rng = np.random.default_rng(seed)
    pool = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.5])
    value, got = rng.choice(pool, 12), rng.choice(pool, 12).astype(np.float32)
    want = ReferenceValue(value, value.astype(np.float32), rng.choice([0.0, 0.75, np.inf], 12))
    mismatch = compare(got, want)
    assert np.count_nonzero(differs(got, want)) == (0 if mismatch is None else mismatch.count)


SIGNS = """
sym.symbol @M
func.func @f(%x: tensor<?x?xf32, #sym.dims<M, M>>) -> (!R) {
  OP
  func.return %y : !R
}
"""
MATRIX = "tensor<?x?xf32, #sym.dims<M, M>>"


def mapped(line: str) -> str:
    return f"%y = lin.map ins(%x : !R) -> !R {{\n^bb0(%p: f32):\n  {line}\n  lin.yield %r : f32\n}}"


@pytest.mark.parametrize(
    ("op", "promised"),
    [
        ("%y = lin.transpose %x perm [1, 0] : !R -> !R", True),
        ("%y = lin.clamp %x low -1.0 high 0.0 : !R -> !R", True),
        (mapped("%r = arith.negf %p : f32"), True),
        (mapped("%r = arith.maximumf %p, %p : f32"), True),
        (mapped("%r = arith.addf %p, %p : f32"), False),
        (mapped("%r = arith.mulf %p, %p : f32"), False),
        ("%y = lin.softmax %x axis 0 : !R -> !R", False),
        ("%y = lin.matmul %x, %x : !R, !R -> !R", False),
    ],
)
def test_which_zeros_have_a_promised_sign(op: str, promised: bool) -> None:
    assert zero_signs(function_of(SIGNS.replace("OP", op).replace("!R", MATRIX))) == (promised,)


def test_the_reference_keeps_promised_signs() -> None:
    """-x of 0.0 is -0.0, and stays that when it is moved."""
    text = SIGNS.replace("OP", mapped("%r = arith.negf %p : f32")).replace("!R", MATRIX)
    module = parse_module(text, "p.mlir", context())
    x = np.array([[0.0, -0.0], [1.0, 0.0]], np.float32)
    (value,) = run_reference(module, "f", [x], {"M": 2})
    assert np.signbit(value.rounded).tolist() == [[True, False], [True, True]]


def test_promised_zeros_occur_in_random_programs() -> None:
    """In the special lane, results of which the sign of a zero is checked."""
    negative = 0
    for program in drawn(lin_programs(lane="special", max_ops=4), 60, seed=2):
        function = function_of(program.text)
        module = function.parent_op()
        inputs = make_inputs(function, program.sizes, program.seed, program.lane)
        results = run_reference(module, "f", inputs, program.sizes)  # pyright: ignore[reportArgumentType]
        for value, promised in zip(results, zero_signs(function), strict=True):
            if promised and value.rounded.dtype.kind not in "biu":
                zeros = (value.value == 0) & (value.bound == 0)
                negative += int(np.count_nonzero(zeros & np.signbit(value.value)))
    assert negative > 20
