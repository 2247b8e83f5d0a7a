"""Division and remainder of what may be negative: the algebra, the plan and kernels agree with Python's floor."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.regressions.support import differences, entry_of, filled, map_program, parsed
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, floordiv, mod, parse_expr
from tilewright.lowering.tile_to_simt import TileToSimtPass
from tilewright.runtime.plan_code import expressions_function
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

EXPRESSIONS = [
    "(a - 5) floordiv 3",
    "(5 - a) floordiv 3",
    "(a - b) floordiv 4",
    "(a - 7) mod 4",
    "(0 - a) mod 3",
    "(2*a - b) mod 5",
    "(a - 6) ceildiv 4",
    "((a - 9) floordiv 2) floordiv 3",
    "((4*a - 10) floordiv 2) mod 3",
    "(6*a - 4*b) floordiv 2",
    "(3*a + b - 8) floordiv 3",
    "4*((a - 3) floordiv 4) + (a - 3) mod 4",
    "((a - 8) mod 6) mod 3",
    "(a - 5) floordiv (b + 1)",
    "(a - 5) mod (b + 1)",
    "max((a - b) floordiv 2, (b - a) floordiv 3)",
]


def python_value(text: str, a: int, b: int) -> int:
    """The same expression in Python, whose // and % are floor and remainder; ceildiv is -(-x // y)."""
    text = text.replace("floordiv", "//").replace(" mod ", " % ")
    if " ceildiv " in text:
        left, _, right = text.partition(" ceildiv ")
        return -(-eval(left, {}, {"a": a, "b": b}) // int(right))
    return eval(text, {"max": max}, {"a": a, "b": b})


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_simplified_forms_keep_their_value_below_0(text: str):
    expr = parse_expr(text)
    planned = expressions_function([expr], ("a", "b"))
    for a, b in product(range(14), range(6)):
        expected = python_value(text, a, b)
        assert expr.evaluate({"a": a, "b": b}) == expected, (a, b)
        assert planned((a, b)) == (expected,), (a, b)
        assert expr.substitute({"a": a}).evaluate({"b": b}) == expected, (a, b)


BLOCKS = 12
OFFSETS = [
    "32*max((i - 5) floordiv 3 + 2, 0)",
    "32*((i - 7) mod 4)",
    "32*((i - 4) floordiv 2 + 2)",
    "32*((0 - i) mod 3)",
    "32*((4*i - 10) floordiv 8 + 2)",
]
KERNEL = """
tile.kernel @k(%x : !tile.buf<[N], f32, global, #tile.strided<[1]>>,
    %y : !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 32] threads 32 index_width WIDTH {
  %from = sym.apply OFFSET where i = %i
  %to = sym.apply 32*i where i = %i
  %t = tile.alloc : !tile.buf<[32], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.copy %x[%from] to %t bounds [clip] other 0.0 : f32 via thread width 1
  tile.copy %t to %y[%to] bounds [clip] via thread width 1
}
"""


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_kernel_divides_a_negative_index_downwards(offset: str, width: int):
    module = parsed(KERNEL.replace("OFFSET", offset).replace("WIDTH", str(width)), "N")
    TileToSimtPass().apply(None, module)  # pyright: ignore[reportArgumentType]
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    n = 32 * BLOCKS
    x, y = filled(n), filled(n)
    scalars = [p.data.evaluate({"N": n}) for p in kernel.params.data]
    report = simulate(kernel, [Buffer(x), Buffer(y)], scalars, grid=BLOCKS, level="check")
    assert report.diagnostics == []
    python = offset.replace("floordiv", "//").replace(" mod ", " % ")
    starts = [eval(python, {"max": max}, {"i": i}) for i in range(BLOCKS)]
    assert min(starts) == 0, "a start below 0 would read nothing"
    np.testing.assert_array_equal(y, np.concatenate([x[s : s + 32] for s in starts]))


@pytest.mark.parametrize(
    ("shape", "symbols", "sizes"),
    [
        ("M - 3, M", ("M",), [(0, 3), (2, 5), (9, 12)]),
        ("(M - 5) floordiv 2, M", ("M {min = 5}",), [(0, 5), (0, 6), (3, 11)]),
        ("M mod 4, M", ("M",), [(0, 8), (3, 7), (1, 1)]),
        ("max(M - 4, 0), M", ("M",), [(0, 2), (0, 4), (3, 7)]),
    ],
)
def test_sizes_that_are_differences_and_remainders(shape: str, symbols: tuple[str, ...], sizes: list[tuple[int, int]]):
    entry = entry_of(map_program(shape), *symbols)
    for size in sizes:
        assert differences(entry, [filled(*size)], "check") == []


def test_no_answer_about_a_remainder_or_quotient_is_wrong():
    """Every comparison of `(p*a - q) mod k` and `(p*a - q) floordiv k` with a constant, against all a up to 24."""
    asked = proved = 0
    a = Expr.symbol("a")
    facts = Facts()
    facts.declare("a", 0, 24)
    for p, q, k in product((-2, 1, 3), (-1, 0, 5), (1, 2, 4)):
        for expr in (mod(p * a - q, k), floordiv(p * a - q, k)):
            values = [expr.evaluate({"a": value}) for value in range(25)]
            for bound, operator in product((-13, -1, 0, 1, 3, 18), ("<=", ">=", "==", "<", ">")):
                relation = Relation(expr, operator, Expr.const(bound))
                truths = {relation.holds({"a": value}) for value in range(25)}
                answer = facts.prove(relation)
                assert answer is not Answer.PROVED or truths == {True}, (str(relation), values)
                assert answer is not Answer.DISPROVED or truths == {False}, (str(relation), values)
                asked += len(truths) == 1
                proved += answer is not Answer.UNKNOWN
    assert proved > 0.8 * asked, "answers are to be right, but also given"
