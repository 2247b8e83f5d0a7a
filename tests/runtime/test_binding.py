"""Symbols from sizes: what is solved, what is checked, what is refused, and what the messages say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, f32
from xdsl.ir import Block, Region

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import parse_expr, symbolic_tensor
from tilewright.runtime.binding import Environment, Layout, Solve, contiguous, normalised, size_steps, solve_sizes


def entry(*shapes: str) -> func.FuncOp:
    """A function with one f32 argument for each shape, such as "M, 2*N"."""
    types = [symbolic_tensor(f32, [parse_expr(e) for e in shape.split(",")]) for shape in shapes]
    return func.FuncOp("main", FunctionType.from_lists(types, []), Region(Block(arg_types=types)))


def solve(shapes: list[str], sizes: list[tuple[int, ...]]) -> dict[str, int]:
    layouts = {n: Layout(shape, contiguous(shape), 0) for n, shape in enumerate(sizes)}
    environment = Environment()
    solve_sizes(size_steps(entry(*shapes)), layouts, environment)
    return environment.values


@pytest.mark.parametrize(
    ("shapes", "sizes", "expected"),
    [
        (["M, N"], [(3, 5)], {"M": 3, "N": 5}),
        (["2*S + 1"], [(9,)], {"S": 4}),
        (["M + 3, M*N"], [(5, 8)], {"M": 2, "N": 4}),
        (["B*S", "B"], [(12,), (3,)], {"B": 3, "S": 4}),
        (["N - W", "W"], [(7,), (2,)], {"N": 9, "W": 2}),
        (["10 - S"], [(4,)], {"S": 6}),
        (["N ceildiv 16", "N"], [(2,), (17,)], {"N": 17}),
        (["M*M, M"], [(16, 4)], {"M": 4}),
        (["M, 512"], [(0, 512)], {"M": 0}),
    ],
)
def test_sizes_are_solved(shapes: list[str], sizes: list[tuple[int, ...]], expected: dict[str, int]):
    assert solve(shapes, sizes) == expected


@pytest.mark.parametrize(
    ("shapes", "sizes", "message"),
    [
        (["3, M", "M"], [(3, 128), (96,)], "M = 128 from argument 0 dim 1, 96 from argument 1 dim 0"),
        (["M, 512"], [(1, 256)], "argument 0 dim 1: expected 512, got 256"),
        (["2*M"], [(5,)], "argument 0 dim 0: expected 2*M for a whole M, got 5"),
        (["M", "2*M"], [(4,), (9,)], "argument 1 dim 0: expected 2*M = 8 (M = 4 from argument 0 dim 0), got 9"),
        (["B", "B*S"], [(0,), (0,)], "argument 1 dim 0: B*S does not determine S (B = 0 from argument 0 dim 0), got 0"),
    ],
)
def test_sizes_that_do_not_fit(shapes: list[str], sizes: list[tuple[int, ...]], message: str):
    with pytest.raises(TilewrightError) as error:
        solve(shapes, sizes)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("shapes", "symbols"), [(["A*B"], "A, B"), (["N floordiv 2"], "N"), (["N*N - M", "M"], "N"), (["M*M"], "M")]
)
def test_what_no_size_determines_is_an_error_when_the_entry_is_compiled(shapes: list[str], symbols: str):
    with pytest.raises(TilewrightError, match=rf"no argument size determines {symbols}:"):
        size_steps(entry(*shapes))


def test_the_error_names_each_dim_that_holds_an_undetermined_symbol():
    with pytest.raises(TilewrightError) as error:
        size_steps(entry("M, N floordiv 2", "M*(N mod 3)"))
    assert error.value.message == (
        "@main: no argument size determines N: expected a size that is linear in it and known otherwise, "
        "got N floordiv 2 in argument 0 dim 1, M*(N mod 3) in argument 1 dim 0"
    )


def test_values_say_how_they_follow_from_the_sizes():
    shapes, sizes = ["B", "2*S + 1", "B*T"], [(3,), (9,), (12,)]
    layouts = {n: Layout(shape, contiguous(shape), 0) for n, shape in enumerate(sizes)}
    environment = Environment()
    solve_sizes(size_steps(entry(*shapes)), layouts, environment)
    assert environment.describe(["B", "S", "T"]) == (
        "B = 3 from argument 0 dim 0, S = 4 from argument 1 dim 0 (2*S + 1 = 9), "
        "T = 4 from argument 2 dim 0 (B*T = 12 with B = 3)"
    )


def test_bare_symbols_come_before_equations():
    steps = [s for s in size_steps(entry("2*M", "M")) if isinstance(s, Solve)]
    assert [(s.argument, s.symbol) for s in steps] == [(1, "M")]


@given(m=st.integers(0, 50), n=st.integers(0, 50), k=st.integers(1, 9), c=st.integers(0, 9))
def test_solving_inverts_evaluation(m: int, n: int, k: int, c: int):
    shapes = [f"{k}*M + {c}", "N + M, M + 7"]
    sizes = [(k * m + c,), (n + m, m + 7)]
    assert solve(shapes, sizes) == {"M": m, "N": n}


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((3, 4), (9, -2), (9, -2)),
        ((1, 4), (77, 1), (4, 1)),
        ((3, 1), (9, 5), (9, 1)),
        ((1, 1, 5), (0, 0, 2), (10, 10, 2)),
        ((3, 0, 4), (5, 6, 7), (0, 4, 1)),
        ((1, 3), (0, 0), (0, 0)),
        ((), (), ()),
    ],
)
def test_strides_that_address_nothing_are_as_contiguity_has_them(
    shape: tuple[int, ...], strides: tuple[int, ...], expected: tuple[int, ...]
):
    assert normalised(shape, strides) == expected


@given(st.lists(st.integers(0, 5), max_size=4).map(tuple))
def test_contiguous_strides_are_their_own_normal_form(shape: tuple[int, ...]):
    assert normalised(shape, contiguous(shape)) == contiguous(shape)
