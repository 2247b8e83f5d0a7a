"""Operands that are read along one dim twice: a diagonal has as many elements as its dim, however large a square is."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, SSAValue

from tests.regressions.support import differences, entry_of, filled, fresh_entry
from tilewright.dialects.tile.structure import AllocOp
from tilewright.dialects.tile.types import buffer_type
from tilewright.passes.tile_analysis import kernels_of

SQUARE, VECTOR = "tensor<?x?xf32, #sym.dims<M, M>>", "tensor<?xf32, #sym.dims<M>>"
STACK = "tensor<?x?x?xf32, #sym.dims<N, M, M>>"
ROWS = "tensor<?x?xf32, #sym.dims<M, N>>"


def generic(names: str, reads: list[str], out: str, result: str, body: str, combine: str = "") -> str:
    """A generic over f32 whose body computes %s from %p, %q, one for each read."""
    scalars = ", ".join(f"%{letter}: f32" for letter, _ in zip("pq", reads, strict=False))
    head = f"lin.generic ({names}) ins({', '.join(reads)}) out[{out}] {combine} : {result}"
    return f"{head} {{\n  ^bb0({scalars}):\n    {body}\n    lin.yield %s : f32\n  }}"


SAME, MINUS = "%s = arith.negf %p : f32", "%s = arith.subf %p, %q : f32"
TIMES = "%s = arith.mulf %p, %q : f32"
ONE = "tensor<f32>"
EACH = "tensor<?xf32, #sym.dims<N>>"
CASES = {
    "alone": ([SQUARE], VECTOR, generic("i", [f"%x0[i, i] : {SQUARE}"], "i", VECTOR, SAME)),
    "beside-its-square": (
        [SQUARE],
        SQUARE,
        generic("i, j", [f"%x0[i, j] : {SQUARE}", f"%x0[i, i] : {SQUARE}"], "i, j", SQUARE, MINUS),
    ),
    "of-each-matrix": ([STACK], ROWS, generic("i, j", [f"%x0[j, i, i] : {STACK}"], "i, j", ROWS, SAME)),
    "trace": ([SQUARE], ONE, generic("i", [f"%x0[i, i] : {SQUARE}"], "", ONE, SAME, "combine sum")),
    "greatest-of-each-matrix": (
        [STACK],
        EACH,
        generic("i, j", [f"%x0[i, j, j] : {STACK}"], "i", EACH, SAME, "combine max"),
    ),
    "times-a-matrix": (
        [STACK, ROWS],
        ROWS,
        generic("i, j, k", [f"%x0[k, i, i] : {STACK}", f"%x1[i, j] : {ROWS}"], "i, j", ROWS, TIMES, "combine sum"),
    ),
    "summed-with-a-matrix": (
        [SQUARE, ROWS],
        EACH,
        generic("j, k", [f"%x0[k, k] : {SQUARE}", f"%x1[k, j] : {ROWS}"], "j", EACH, TIMES, "combine sum"),
    ),
}
"""Types of the arguments, of the result, and the op."""
SHAPES = {SQUARE: "MM", STACK: "NMM", ROWS: "MN"}


def program(case: str) -> str:
    """The program of a case."""
    arguments, result, op = CASES[case]
    signature = ", ".join(f"%x{n} : {type_}" for n, type_ in enumerate(arguments))
    return f"func.func @main({signature}) -> {result} {{\n  %r = {op}\n  func.return %r : {result}\n}}\n"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("m", "n"), [(0, 2), (1, 1), (7, 3), (33, 65)])
def test_values(case: str, m: int, n: int) -> None:
    shapes = [[{"M": m, "N": n}[letter] for letter in SHAPES[type_]] for type_ in CASES[case][0]]
    arrays = [filled(*shape, seed=number) for number, shape in enumerate(shapes)]
    assert differences(entry_of(program(case), "M", "N"), arrays, "check") == []


@pytest.mark.parametrize("case", CASES)
def test_tiles_are_no_squares_of_what_is_on_the_diagonal(case: str) -> None:
    """A block's largest buffer: 2048 elements of a map, 128 x 128 accumulators, a row of 4096."""
    module, _ = fresh_entry(program(case), "M", "N").planned
    counts = [buffer_type(v).count for k in kernels_of(module) for op in k.walk() for v in buffers(op)]
    assert max(counts) <= 4 * 4096


def buffers(op: Operation) -> list[SSAValue]:
    """What an op allocates."""
    return list(op.results) if isinstance(op, AllocOp) else []


def test_of_a_value_made_before() -> None:
    """The kernel of the diagonal reads what other blocks wrote, or the value is computed anew; never half of it."""
    double = generic("i, j", [f"%x[i, j] : {SQUARE}"], "i, j", SQUARE, SAME)
    diagonal = generic("i", [f"%y[i, i] : {SQUARE}"], "i", VECTOR, SAME)
    text = f"""func.func @main(%x : {SQUARE}) -> ({VECTOR}, {SQUARE}) {{
  %y = {double}
  %z = {diagonal}
  func.return %z, %y : {VECTOR}, {SQUARE}
}}
"""
    for m in (1, 5, 130):
        assert differences(entry_of(text, "M"), [filled(m, m)], "check") == []
