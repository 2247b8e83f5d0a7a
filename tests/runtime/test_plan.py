"""The compiled plan: agrees with the interpreter on any call, explains refusals, remembers shapes, trusts no text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import Expr, floordiv, mod, parse_expr, smin
from tilewright.runtime.binding import Layout, contiguous
from tilewright.runtime.plan import MEMO_ENTRIES, Decision, HostPlan, PlannedLaunch
from tilewright.runtime.plan_code import expr_code, expressions_function

TEXT = """
sym.symbol @M
sym.symbol @N
host.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>, %n : i32, %b : tensor<?x7xf32, #sym.dims<2*N + 1, 7>>)
    -> (tensor<?xf32, #sym.dims<M>>, tensor<?x?xf32, #sym.dims<N, M>>) {
  host.bind %x strides [x_s0, x_s1] base x_base
  host.guard M >= 2 else "M: expected at least 2"
  host.guard M mod (N - 3) <= 5 else "M mod (N - 3): expected at most 5"
  %o = host.output 0 : tensor<?xf32, #sym.dims<M>>
  %p = host.output 1 : tensor<?x?xf32, #sym.dims<N, M>>
  host.bind %p strides [p_s0, p_s1] base p_base
  host.dispatch {
    case "fast" when [x_s1 == 1, x_base mod 16 == 0, p_base mod 8 == 0, N <= 6] {
      %t = host.alloc : tensor<?xf32, #sym.dims<N + 1>>
      host.launch @first(%x, %n, %t) grid [N ceildiv 4] index_width 32 assumes [x_s1 == 1]
      host.launch @second(%t, %p) grid [M - 2] index_width 32
    }
    case "general" {
      host.guard N <= 8 else "N: expected at most 8"
      host.launch @first(%x, %n, %o) grid [max(M - N, 0)] index_width 64
    }
  }
}
"""


def plan_of(text: str) -> HostPlan:
    module = parse_module(text, "plan.mlir", make_context())
    return HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))


PLAN = plan_of(TEXT)


def tensor(shape: tuple[int, ...], strides: tuple[int, ...] | None = None, pointer: int = 0) -> Layout:
    return Layout(shape, contiguous(shape) if strides is None else strides, pointer)


def call(m: int, n: int, pointer: int = 0) -> list[Layout | None]:
    return [tensor((m, n), pointer=pointer), None, tensor((2 * n + 1, 7))]


def outcome(
    run: Callable[..., Decision], arguments: Sequence[Layout | None], results: Sequence[Layout] | None
) -> Decision | str:
    try:
        return run(arguments, results)
    except TilewrightError as error:
        return error.message


def test_the_first_case_that_holds_runs_with_its_scratch():
    found = PLAN.run(call(5, 6), None)
    assert found.results == ((5,), (6, 5))
    assert found.scratch == ((7,),)
    assert found.launches == [PlannedLaunch(0, 2), PlannedLaunch(1, 3)]
    assert [PLAN.sites[launch.site].kernel for launch in found.launches] == ["first", "second"]
    assert dict(zip(PLAN.symbols, found.symbols, strict=True)) == {
        "M": 5, "N": 6, "x_s0": 6, "x_s1": 1, "x_base": 0, "p_s0": 5, "p_s1": 1, "p_base": 0,
    }  # fmt: skip


def test_another_case_for_another_alignment_and_none_of_its_neighbours_scratch():
    found = PLAN.run(call(9, 6, pointer=4), None)
    assert found.launches == [PlannedLaunch(2, 3)]
    assert found.scratch == (None,)


def test_an_empty_grid_launches_nothing():
    assert PLAN.run(call(6, 6, pointer=4), None).launches == []
    assert PLAN.run(call(2, 4), None).launches == [PlannedLaunch(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "results", "message"),
    [
        (call(1, 4), None, "M: expected at least 2, got M = 1 from argument 0 dim 0"),
        (
            call(12, 9),
            None,
            "N: expected at most 8, got N = 9 from argument 0 dim 1",
        ),
        (call(4, 3), None, "division by zero: the divisor N - 3 is 0"),
        (
            [tensor((4, 4)), None, tensor((8, 7))],
            None,
            "argument 2 dim 0: expected 2*N + 1 = 9 (N = 4 from argument 0 dim 1), got 8",
        ),
        ([tensor((4, 4)), None, tensor((9, 6))], None, "argument 2 dim 1: expected 7, got 6"),
        (
            [tensor((4, 4)), None, tensor((9, 7), (8, 1))],
            None,
            "argument 2: expected a contiguous tensor, got shape (9, 7) with strides (8, 1)",
        ),
        ([tensor((4, 4)), None], None, "@main: expected 3 arguments, got 2"),
        ([tensor((4,)), None, tensor((9, 7))], None, "argument 0 ('x'): expected 2 dims, got 1"),
        ([None, None, tensor((9, 7))], None, "argument 0 ('x'): expected a tensor"),
        (call(4, 4), [tensor((4,))], "@main: expected 2 results, got 1"),
        (
            call(4, 5),
            [tensor((4,)), tensor((4, 5))],
            "result 1: expected shape (5, 4) (M = 4 from argument 0 dim 0, N = 5 from argument 0 dim 1), got (4, 5)",
        ),
        (
            call(4, 5),
            [tensor((4,), (2,)), tensor((5, 4))],
            "result 0: expected a contiguous tensor, got shape (4,) with strides (2,)",
        ),
    ],
)  # fmt: skip
def test_refusals_say_why(arguments: list[Layout | None], results: list[Layout] | None, message: str):
    with pytest.raises(TilewrightError) as error:
        PLAN.run(arguments, results)
    assert error.value.message == message


GUARDED = """
sym.symbol @B
sym.symbol @S
sym.symbol @T
host.func @main(%x : tensor<?x?xf32, #sym.dims<B, 2*S + 1>>, %y : tensor<?xf32, #sym.dims<B*T>>) -> () {
  host.guard S mod 4 == 0 else "S: expected a multiple of 4"
  host.guard T >= S - B else "T >= -B + S: required by the program (p.mlir:9:3)"
  host.guard min(S, T) <= 8 else "min(S, T) <= 8: required by the program (p.mlir:10:3)"
}
"""


@pytest.mark.parametrize(
    ("x", "y", "line"),
    [
        (
            (3, 13), 12,
            "S: expected a multiple of 4, got S mod 4 = 2 with S = 6 from argument 0 dim 1 (2*S + 1 = 13)",
        ),
        (
            (3, 17), 12,
            "T >= -B + S: required by the program (p.mlir:9:3), got -B + S = 5 with B = 3 from argument 0 dim 0, "
            "S = 8 from argument 0 dim 1 (2*S + 1 = 17), T = 4 from argument 1 dim 0 (B*T = 12 with B = 3)",
        ),
        (
            (2, 25), 20,
            "min(S, T) <= 8: required by the program (p.mlir:10:3), got min(S, T) = 10 with "
            "S = 12 from argument 0 dim 1 (2*S + 1 = 25), T = 10 from argument 1 dim 0 (B*T = 20 with B = 2)",
        ),
        ((3, 12), 12, "argument 0 dim 1: expected 2*S + 1 for a whole S, got 12"),
        (
            (3, 17), 13,
            "argument 1 dim 0: expected B*T for a whole T (B = 3 from argument 0 dim 0), got 13",
        ),
    ],
)  # fmt: skip
def test_a_failing_guard_names_expression_value_and_where_each_symbol_came_from(x: tuple[int, int], y: int, line: str):
    with pytest.raises(TilewrightError) as error:
        plan_of(GUARDED).run([tensor(x), tensor((y,))], None)
    assert str(error.value) == f"error: {line}"


SIZE = st.integers(0, 12)
LAYOUT = st.tuples(SIZE, SIZE, st.sampled_from([None, (0, 0), (1, 12), (-3, 2)]), st.sampled_from([0, 4, 8, 16, 40]))


@given(x=LAYOUT, b=st.one_of(st.none(), SIZE), seven=st.sampled_from([7, 7, 7, 6]), out=st.one_of(st.none(), LAYOUT))
def test_the_compiled_plan_agrees_with_its_interpretation(
    x: tuple[int, int, tuple[int, int] | None, int],
    b: int | None,
    seven: int,
    out: tuple[int, int, tuple[int, int] | None, int] | None,
):
    m, n, strides, pointer = x
    arguments = [tensor((m, n), strides, pointer), None, tensor((2 * n + 1 if b is None else b, seven))]
    results = None
    if out is not None:
        shape = (n, m) if out[0] % 2 else (out[0], out[1])
        results = [tensor((m,)), tensor(shape, out[2], out[3])]
    assert outcome(PLAN.run, arguments, results) == outcome(PLAN.interpret, arguments, results)


def test_a_remembered_shape_is_decided_once_for_each_alignment_class():
    plan = plan_of(TEXT)
    assert plan.alignment == 16
    first = plan.decide(call(5, 6))
    assert plan.decide(call(5, 6)) is first
    assert plan.decide(call(5, 6, pointer=16 * 1000)) is first
    assert plan.decide(call(5, 6, pointer=8)) is not first
    results = [tensor((5,)), tensor((6, 5))]
    assert plan.decide(call(5, 6), results) is not first
    assert plan.memo_hits == 2


def test_the_memo_is_bounded_and_the_least_used_goes():
    plan = plan_of(TEXT)
    kept = plan.decide(call(5, 6))
    for m in range(7, 7 + MEMO_ENTRIES - 1):
        plan.decide([tensor((m, 8), (m, 0)), None, tensor((17, 7))])
    assert plan.decide(call(5, 6)) is kept
    for m in range(7 + MEMO_ENTRIES, 7 + 2 * MEMO_ENTRIES):
        plan.decide([tensor((m, 8), (m, 0)), None, tensor((17, 7))])
    assert plan.decide(call(5, 6)) is not kept


def test_no_name_of_the_ir_reaches_the_generated_code():
    text = TEXT.replace("M", "__import__").replace("x_s1", "lambda").replace('"fast"', '"\\22\\0Aimport os"')
    plan = plan_of(text)
    for word in ("__import__", "lambda", "import os", "main", "first", "%x"):
        assert word not in plan.source
    assert plan.run(call(5, 6), None).launches == PLAN.run(call(5, 6), None).launches


def test_a_message_of_the_ir_is_data():
    plan = plan_of(TEXT.replace("M: expected at least 2", "{arguments} %s \\22 + 1"))
    with pytest.raises(TilewrightError) as error:
        plan.run(call(1, 4), None)
    assert error.value.message.startswith('{arguments} %s " + 1, got M = 1')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid [M - 2]", "grid [Q]", r"no argument size determines Q, which the grid of @second needs"),
        ("N <= 6]", "Q <= 6]", r"no argument size determines Q, which the case fast needs"),
        ("#sym.dims<N + 1>", "#sym.dims<N + Q>", r"determines Q, which a scratch tensor needs"),
        ("p_base mod 8 == 0", "p_base <= 8", r"a base address may occur as `base mod c` only"),
        (" grid [N ceildiv 4] index_width 32", "", r"it has no grid or index_width"),
        ("host.output 1", "host.output 2", r"expected host.output for results 0 to 1, got \[0, 2\]"),
    ],
)
def test_plans_that_could_not_run_are_refused_when_compiled(old: str, new: str, message: str):
    with pytest.raises(TilewrightError, match=message):
        plan_of("sym.symbol @Q\n" + TEXT.replace(old, new))


SYMBOL_NAMES = ("M", "N", "K")
EXPRESSION = st.recursive(
    st.one_of(st.sampled_from(SYMBOL_NAMES).map(Expr.symbol), st.integers(-5, 5).map(Expr.const)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 6)).map(lambda p: mod(p[0], p[1])),
        st.tuples(inner, st.integers(1, 6)).map(lambda p: floordiv(p[0], p[1])),
        st.tuples(inner, st.sampled_from(SYMBOL_NAMES)).map(lambda p: mod(p[0], Expr.symbol(p[1]))),
        st.tuples(inner, inner).map(lambda p: smin(p[0], p[1])),
    ),
    max_leaves=6,
)


@given(expr=EXPRESSION, values=st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(-9, -1)))
def test_generated_python_means_the_expression(expr: Expr, values: tuple[int, int, int]):
    expected = expr.evaluate(dict(zip(SYMBOL_NAMES, values, strict=True)))
    assert expressions_function([expr], SYMBOL_NAMES)(values) == (expected,)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("M", "m"),
        ("M - N", "(m - n)"),
        ("M mod 8", "(m % 8)"),
        ("3*(M mod 8) + N", "(3*(m % 8) + n)"),
        ("(M + N) mod 8", "((m + n) % 8)"),
        ("M mod N", "(m % n)"),
        ("M ceildiv 16", "((m + 15)//16)"),
        ("0", "0"),
        ("-3", "(-3)"),
    ],
)
def test_generated_python_takes_one_operation_for_one(text: str, code: str):
    assert expr_code(parse_expr(text), {"M": "m", "N": "n"}) == code


def test_packed_scalars_are_the_expressions_values():
    exprs = [parse_expr(e) for e in ("M ceildiv 16", "M*N - 3", "min(M, N)", "7", "M mod N")]
    assert expressions_function(exprs, ("M", "N"))((33, 5)) == (3, 162, 5, 7, 3)
    assert expressions_function([], ("M", "N"))((33, 5)) == ()


CHOICE = """
sym.symbol @M
sym.symbol @N
host.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>) {
  host.bind %x strides [x_s0, x_s1] base x_base
  %o = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
  %y = host.dispatch -> tensor<?x?xf32, #sym.dims<M, N>> {
    case "as it is" when [x_s1 == 1, x_s0 mod 4 == 0, x_base mod 16 == 0] {
      host.yield %x
    }
    case "padded" {
      %t = host.alloc pitch 4 : tensor<?x?xf32, #sym.dims<M, N>>
      host.launch @copy(%x, %t) grid [M] index_width 32
      host.yield %t
    }
  }
  host.bind %y strides [y_s0, y_s1] base y_base
  %z = host.dispatch -> tensor<?x?xf32, #sym.dims<M, N>> {
    case "few" when [M <= 2] {
      host.yield %o
    }
    case "many" {
      host.yield %y
    }
  }
  host.bind %z strides [z_s0, z_s1] base z_base
  host.launch @double(%y, %z, %o) grid [M] index_width 32
}
"""


@given(st.integers(0, 5), st.integers(0, 9), st.sampled_from([0, 4, 16, 64]), st.integers(0, 3))
def test_a_dispatch_gives_a_tensor(m: int, n: int, pointer: int, gap: int):
    plan = plan_of(CHOICE)
    given_ = [tensor((m, n), (n + gap, 1), pointer)]
    found = plan.run(given_, None)
    assert found == plan.interpret(given_, None)
    symbols = dict(zip(plan.symbols, found.symbols, strict=True))
    # Arguments, results and scratch in a row: %x, %o, %t.
    as_it_is = symbols["x_s0"] % 4 == 0 and pointer % 16 == 0
    used = 0 if as_it_is else 2
    assert found.chosen == (used, 1 if m <= 2 else used)
    padded = -(-n // 4) * 4
    assert found.scratch == ((None if as_it_is else (m, padded)),)
    assert symbols["y_s0"] == (symbols["x_s0"] if as_it_is else padded)
    assert (symbols["y_base"], symbols["z_s1"]) == (symbols["x_base"] if as_it_is else 0, 1)
    names = [plan.sites[launch.site].kernel for launch in found.launches]
    assert names == ([] if m == 0 else ["double"] if as_it_is else ["copy", "double"])
    assert [plan.place(slot) for slot in plan.sites[-1].tensors] == [3, 4, 1]
