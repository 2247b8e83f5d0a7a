"""host-plan: guards, variants and grids, looked at in the IR; and that a variant is only chosen where it is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import DispatchOp, FuncOp, GuardOp, LaunchOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import Expr, parse_relation
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import buffer_type
from tilewright.dialects.verify import verify_module
from tilewright.lowering.host_plan import HostPlanPass, contiguous
from tilewright.lowering.instantiate import instantiate
from tilewright.lowering.instantiate_variants import InstantiateVariantsPass
from tilewright.runtime.binding import Layout
from tilewright.runtime.plan import HostPlan

SYMBOLS = """
sym.symbol @M {min = 1}
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}
"""

COPY = """
tile.kernel @k(%x : !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>,
               %y : !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>)
    grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*j where j = %j
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %x[%m0, %n0] to %f bounds [clip, clip] other 0.0 : f32
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}
"""

HOST = """
host.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>) {
  host.bind %x strides [x_s0, x_s1] base x_base
  %y = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
  host.launch @k(%x, %y)
}
"""


def planned(text: str, max_variants: int = 4) -> ModuleOp:
    context = make_context()
    module = parse_module(text, "plan.mlir", context)
    verify_module(module)
    HostPlanPass(max_variants).apply(context, module)
    verify_module(module)
    return module


def guards(module: ModuleOp) -> list[str]:
    return [str(op.relation.data) for op in module.walk() if isinstance(op, GuardOp)]


def case_names(module: ModuleOp) -> list[str]:
    return [name for op in module.walk() if isinstance(op, DispatchOp) for name, _, _ in op.arms]


def launches(module: ModuleOp) -> list[LaunchOp]:
    return [op for op in module.walk() if isinstance(op, LaunchOp)]


def plan_of(module: ModuleOp) -> HostPlan:
    return HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))


def test_declared_bounds_and_requirements_become_guards_in_order():
    symbols = SYMBOLS.replace("@N", "@N {max = 4096, multiple_of = 8}") + "sym.require M + N >= 10\n"
    module = planned(symbols + COPY + HOST)
    assert guards(module)[:4] == ["M >= 1", "N <= 4096", "N mod 8 == 0", "M + N >= 10"]
    messages = [op.message.data for op in module.walk() if isinstance(op, GuardOp)]
    assert messages[1:3] == ["N: expected at most 4096", "N: expected a multiple of 8"]
    assert "plan.mlir:7:1" in messages[3]


def test_what_follows_from_shapes_and_earlier_guards_is_not_guarded():
    module = planned(SYMBOLS + "sym.require N >= 0\nsym.require 2*M >= 2\n" + COPY + HOST)
    assert "N >= 0" not in guards(module)
    assert "2*M >= 2" not in guards(module)


def test_a_requirement_on_a_symbol_that_nothing_binds_is_an_error_at_it():
    with pytest.raises(TilewrightError, match=r"plan.mlir:\d+:1: .*no argument binds Q"):
        planned(SYMBOLS + "sym.symbol @Q\nsym.require N >= Q\n" + COPY + HOST)


def test_requirements_of_other_entries_are_left_to_them():
    module = planned(SYMBOLS + "sym.symbol @Q\nsym.require Q >= 3\n" + COPY + HOST)
    assert "Q >= 3" not in guards(module)


def test_contradictory_declarations_say_which():
    with pytest.raises(TilewrightError, match=r"no call of @main is possible: .*N"):
        planned(SYMBOLS + "sym.require N >= 5\nsym.require N <= 3\n" + COPY + HOST)


def test_claims_of_the_kernels_types_are_guarded():
    """The kernel says that y is contiguous; the caller's output need not be."""
    assert {"y_s0 == N", "y_s1 == 1"} <= set(guards(planned(SYMBOLS + COPY + HOST)))


def test_a_claim_that_several_cases_make_is_guarded_once():
    made = guards(planned(SYMBOLS + COPY + NESTED, max_variants=1))
    assert [made.count(claim) for claim in ("y_s0 == N", "y_s1 == 1")] == [1, 1]


CHOSEN = HOST.replace(
    "  host.launch @k(%x, %y)\n",
    """
  %c = host.dispatch -> tensor<?x?xf32, #sym.dims<M, N>> {
    case "given" when [N >= 8] {
      host.yield %x
    }
    case "copied" {
      %s = host.alloc : tensor<?x?xf32, #sym.dims<M, N>>
      host.launch @k(%x, %s)
      host.yield %s
    }
  }
  host.launch @k(%c, %y)
""",
)


def test_a_chosen_tensor_without_names_for_its_strides_counts_as_contiguous():
    """The kernel, which was made for the strides of x, is launched only where these are so too."""
    assert {"N == x_s0", "1 == x_s1"} <= set(guards(planned(SYMBOLS + COPY + CHOSEN)))


def test_four_variants_best_first_the_last_for_everything():
    module = planned(SYMBOLS + COPY + HOST)
    assert case_names(module) == ["vector32", "general32", "vector64", "general64"]
    (dispatch,) = [op for op in module.walk() if isinstance(op, DispatchOp)]
    assert [p for _, p, _ in dispatch.arms][-1] == ()
    for (_, predicates, _), launch in zip(dispatch.arms, launches(module), strict=True):
        asked = {str(p) for p in predicates if "2147483647" not in str(p)}
        assert asked == {str(r.data) for r in launch.assumes}, "all else is that 32-bit indices are wide enough"
    assert [op.index_width.value.data for op in launches(module) if op.index_width] == [32, 32, 64, 64]


def predicates(module: ModuleOp, name: str) -> list[str]:
    (found,) = [p for op in module.walk() if isinstance(op, DispatchOp) for n, p, _ in op.arms if n == name]
    return [str(relation) for relation in found]


def test_predicates_are_asked_cheapest_first_and_a_stride_that_is_asked_to_be_1_is_1_in_the_bounds():
    asked = predicates(planned(SYMBOLS + COPY + HOST), "vector32")
    expected = [
        "x_s1 == 1",
        "x_s0 mod 4 == 0",
        "N mod 4 == 0",
        "x_base mod 16 == 0",
        "y_base mod 16 == 0",
        # (M + 32) rows of N elements, N counted as 1 where it is 0, and N + 32 columns.
        "(M + 32)*max(N, 1) + N + 32 <= 2147483647",
        "(M + 32)*max(-x_s0, 1, x_s0) + N + 32 <= 2147483647",
    ]
    assert [parse_relation(text) for text in asked] == [parse_relation(text) for text in expected]


ROW = """
sym.symbol @N {max = 1024, multiple_of = 4}
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x : !tile.buf<[N], f32, global, #tile.strided<[x_s0]>>,
               %y : !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 128] {
  %n0 = sym.apply 128*i where i = %i
  %f = tile.alloc : !tile.buf<[128], f32, fragment>
  tile.copy %x[%n0] to %f bounds [clip] other 0.0 : f32
  tile.copy %f to %y[%n0] bounds [clip]
}
host.func @main(%x : tensor<?xf32, #sym.dims<N>>) -> (tensor<?xf32, #sym.dims<N>>) {
  host.bind %x strides [x_s0] base x_base
  %y = host.output 0 : tensor<?xf32, #sym.dims<N>>
  host.launch @k(%x, %y)
}
"""


def test_a_predicate_that_earlier_ones_imply_is_not_asked():
    """1024 elements in a row are in reach of 32 bits; with any other stride they might not be."""
    module = planned(ROW)
    assert predicates(module, "vector32") == ["x_s0 == 1", "x_base mod 16 == 0", "y_base mod 16 == 0"]
    (bound,) = predicates(module, "general32")
    assert parse_relation(bound) == parse_relation("N*max(x_s0, -x_s0, 1) + 128*max(x_s0, -x_s0, 1) <= 2147483647")


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (1, ["general64"]),
        (2, ["vector32", "general64"]),
        (3, ["vector32", "general32", "general64"]),
        (9, ["vector32", "general32", "vector64", "general64"]),
    ],
)
def test_fewer_variants_keep_the_general_one(most: int, names: list[str]):
    assert case_names(planned(SYMBOLS + COPY + HOST, most)) == names


def test_a_proved_index_width_leaves_no_choice():
    symbols = SYMBOLS.replace("{min = 1}", "{min = 1, max = 1000}").replace("@N", "@N {max = 1000}")
    symbols = symbols.replace("@x_s0 {source", "@x_s0 {min = 0, max = 1000, source")
    symbols = symbols.replace("@x_s1 {source", "@x_s1 {min = 0, max = 1000, source")
    module = planned(symbols + COPY + HOST)
    assert case_names(module) == ["vector32", "general32"]
    assert not any("ceildiv" in guard for guard in guards(module)), "the grid is proved to fit"


def test_a_bound_that_is_never_kept_leaves_64_bits_alone():
    """y is contiguous: 2^16 rows of 2^16 elements at the least."""
    symbols = SYMBOLS.replace("{min = 1}", "{min = 65536}").replace("@N", "@N {min = 65536}")
    assert case_names(planned(symbols + COPY + HOST)) == ["vector64", "general64"]


def test_a_size_that_no_vector_divides_is_moved_one_by_one():
    text = (SYMBOLS + COPY + HOST).replace("N>", "7>").replace("N]", "7]").replace("?x?x", "?x7x").replace("[N,", "[7,")
    text = text.replace("N ceildiv 32", "1")
    assert not any("vector" in name for name in case_names(planned(text)))


def test_grid_is_the_product_and_is_guarded():
    module = planned(SYMBOLS + COPY + HOST)
    assert {str(op.grid.data) for op in launches(module) if op.grid} == {"(M ceildiv 32)*(N ceildiv 32)"}
    assert "(M ceildiv 32)*(N ceildiv 32) <= 2147483647" in guards(module)


NESTED = HOST.replace(
    "  host.launch @k(%x, %y)\n",
    """
  host.dispatch {
    case "a" when [N <= 64] {
      host.dispatch {
        case "b" when [M <= 64] {
          host.launch @k(%x, %y)
        }
        case "c" {
          host.launch @k(%x, %y)
        }
      }
    }
    case "d" {
      host.launch @k(%x, %y)
    }
  }
""",
)


def test_nested_dispatches_become_one_over_schedule_times_variant():
    module = planned(SYMBOLS + COPY + NESTED, max_variants=1)
    (dispatch,) = [op for op in module.walk() if isinstance(op, DispatchOp)]
    found = [(name, [str(p) for p in predicates]) for name, predicates, _ in dispatch.arms]
    assert found == [
        ("a/b/general64", ["N <= 64", "M <= 64"]),
        ("a/c/general64", ["N <= 64"]),
        ("d/general64", []),
    ]
    names = [str(op.attributes["variant"]) for op in launches(module)]
    assert len(set(names)) == 3, "one kernel under three sets of facts is three variants"


def test_a_schedule_that_cannot_apply_goes_and_one_that_always_does_ends_the_list():
    symbols = SYMBOLS.replace("@N", "@N {max = 64}")
    assert [n.split("/")[0] for n in case_names(planned(symbols + COPY + NESTED, 1))] == ["a", "a"]
    symbols = SYMBOLS.replace("@N", "@N {min = 65}")
    assert [n.split("/")[0] for n in case_names(planned(symbols + COPY + NESTED, 1))] == ["d"]


def test_a_complete_plan_is_left_alone():
    module = planned(SYMBOLS + COPY + HOST)
    before = str(module)
    HostPlanPass().apply(make_context(), module)
    assert str(module) == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@k(%x, %y)\n}", "@other(%x, %y)\n}", "there is no such tile.kernel"),
        ("host.launch @k(%x, %y)", "host.launch @k(%x)", "expected 2 arguments, got 1"),
        ("tensor<?x?xf32, #sym.dims<M, N>>\n", "tensor<?xf32, #sym.dims<M>>\n", "expected 2 dims, got 1"),
    ],
)
def test_launches_that_do_not_fit_their_kernel(old: str, new: str, message: str):
    text = SYMBOLS + COPY + HOST.replace(old, new)
    with pytest.raises(TilewrightError, match=message):
        planned(text)


def test_a_kernel_must_say_where_its_elements_lie():
    text = SYMBOLS + COPY.replace("global, #tile.strided<[N, 1]>>", "global>") + HOST
    with pytest.raises(TilewrightError, match="argument 1 of @k: expected a layout with strides"):
        planned(text)


UNBOUND = HOST.replace("  host.bind %x strides [x_s0, x_s1] base x_base\n", "")


def test_strides_that_no_argument_gives_are_no_claim_that_a_guard_can_check():
    message = "stride of dim 0 of argument 0 of @k: expected x_s0, got x_1_s0, and nothing binds x_s0"
    with pytest.raises(TilewrightError, match=message):
        planned(SYMBOLS + COPY + UNBOUND)


def test_names_of_strides_that_are_taken_get_a_number():
    taken = 'sym.symbol @y_s1 {source = "stride"}\nsym.symbol @y_1_base {source = "base"}\n'
    module = planned(SYMBOLS + taken + COPY + HOST)
    assert {"y_2_s0 == N", "y_2_s1 == 1"} <= set(guards(module))


def test_a_plan_has_one_variant_at_least():
    with pytest.raises(TilewrightError, match="host-plan: max_variants expected at least 1, got 0"):
        planned(SYMBOLS + COPY + HOST, 0)


def test_instantiate_puts_facts_on_the_kernel_and_constants_into_its_strides():
    module = planned(SYMBOLS + COPY + HOST)
    made = instantiate(module, launches(module)[0])
    verify_module(made)
    (kernel,) = [op for op in made.ops if isinstance(op, KernelOp)]
    assert kernel.sym_name.data == "k_vector32"
    assert kernel.index_width is not None
    assert kernel.index_width.value.data == 32
    assert kernel.assumes == launches(module)[0].assumes
    assert kernel.bases == ("x_base", "y_base")
    strides = [buffer_type(a).strides for a in kernel.arguments]
    assert strides[0] is not None
    assert [str(s) for s in strides[0]] == ["x_s0", "1"], "x_s1 == 1 is assumed"
    general = instantiate(module, launches(module)[3])
    assert "strided<[x_s0, x_s1]>" in str(general)


def test_instantiate_variants_makes_all_or_the_one_asked_for():
    module = planned(SYMBOLS + COPY + HOST)
    InstantiateVariantsPass("k/general32").apply(make_context(), module)
    assert [op.sym_name.data for op in module.ops if isinstance(op, KernelOp)] == ["k_general32"]
    module = planned(SYMBOLS + COPY + HOST)
    InstantiateVariantsPass().apply(make_context(), module)
    verify_module(module)
    assert len([op for op in module.ops if isinstance(op, KernelOp)]) == 4
    with pytest.raises(TilewrightError, match=r"expected one of k/vector32, .*got 'k/x'"):
        InstantiateVariantsPass("k/x").apply(make_context(), planned(SYMBOLS + COPY + HOST))


def test_instantiate_wants_a_complete_launch():
    module = parse_module(SYMBOLS + COPY + HOST, "plan.mlir", make_context())
    with pytest.raises(TilewrightError, match="no index_width"):
        instantiate(module, launches(module)[0])


def test_instantiate_wants_the_kernel_that_is_launched():
    module = planned(SYMBOLS + COPY + HOST)
    for kernel in [op for op in module.ops if isinstance(op, KernelOp)]:
        module.body.block.erase_op(kernel)
    with pytest.raises(TilewrightError, match=r"launch of @k: there is no such tile\.kernel in the module"):
        instantiate(module, launches(module)[0])


PLAN = plan_of(planned(SYMBOLS + COPY + HOST))
SIZES = st.one_of(st.integers(1, 70), st.integers(2**15, 2**17))
STRIDES = st.one_of(st.sampled_from([0, 1, 4, -1]), st.integers(-9, 9), st.integers(-(2**17), 2**17))


@given(m=SIZES, n=SIZES, s0=STRIDES, s1=STRIDES, base=st.integers(0, 64))
def test_a_variant_is_chosen_only_where_its_facts_hold(m: int, n: int, s0: int, s1: int, base: int):
    """Against the definition: every element offset of a tile rounded up fits i32; every 16 bytes are aligned."""
    decision = PLAN.run([Layout((m, n), (s0, s1), 4 * base)], None)
    (launch,) = decision.launches
    site = PLAN.sites[launch.site]
    assert launch.grid == -(-m // 32) * -(-n // 32)
    rounded_m, rounded_n = -(-m // 32) * 32, -(-n // 32) * 32
    real0, real1 = s0 if m > 1 else 1, s1 if n > 1 else 1  # a dim of size 1 is walked by nothing
    if site.index_width == 32:
        farthest = (rounded_m - 1) * abs(real0) + (rounded_n - 1) * abs(real1)
        assert farthest <= 2**31 - 1
        assert (rounded_m - 1) * n + rounded_n - 1 <= 2**31 - 1
    if "vector" in site.variant:
        assert n == 1 or s1 == 1
        assert n % 4 == 0
        assert m == 1 or s0 % 4 == 0
        assert 4 * base % 16 == 0


def test_strides_of_a_contiguous_tensor() -> None:
    """The last dim is the fastest, whatever the sizes."""
    sizes = [Expr.symbol("M"), Expr.const(3), Expr.symbol("N"), Expr.const(5)]
    assert [str(s) for s in contiguous(sizes)] == ["15*N", "5*N", "5", "1"]
    assert contiguous([]) == ()


LATE = """
sym.symbol @s0 {source = "stride"}
sym.symbol @b0 {source = "base"}
sym.symbol @half {min = 2, source = "host"}
REQUIRES
tile.kernel @k(%x : !tile.buf<[K], f32, global, #tile.strided<[1]>>) grid (%i) = [K] {
  %f = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %f with 1.0 : f32
  tile.copy %f to %x[%i] bounds [clip]
}
host.func @main(%a : tensor<?xf32, #sym.dims<K>>) -> (tensor<?xf32, #sym.dims<K>>) {
  %y = host.output 0 : tensor<?xf32, #sym.dims<K>>
  OPS
  host.launch @k(%y)
}
"""


def late(ops: str, requires: str = "", source: str = "host") -> ModuleOp:
    text = LATE.replace("OPS", ops).replace("REQUIRES", requires).replace('source = "host"', f'source = "{source}"')
    return planned("sym.symbol @K\n" + text)


@pytest.mark.parametrize(
    ("ops", "requires", "size", "message"),
    [
        ("host.bind %a strides [s0] base b0", "sym.require s0 == 1", 4, r"s0 == 1: .*got s0 = 2"),
        ("host.let half = K", "sym.require half >= 3", 2, r"half >= 3: .*got half = 2"),
        ("host.let half = K", "sym.require half == 2*K\nsym.require half >= 3", 4, r"half == 2\*K: "),
        ("host.let half = K", "", 1, r"half: expected at least 2, got half = 1"),
    ],
)
def test_a_requirement_is_guarded_once_its_symbols_have_values(ops: str, requires: str, size: int, message: str):
    plan = plan_of(late(ops, requires))
    for decide in (plan.run, plan.interpret):
        with pytest.raises(TilewrightError, match=message):
            decide([Layout((size,), (2,) if "s0" in requires else (1,), 0)], None)


def test_a_requirement_on_a_symbol_that_comes_late_may_hold():
    for ops, requires in (
        ("host.bind %a strides [s0] base b0", "sym.require s0 == 1\nsym.require K >= 2"),
        ("host.let half = K", "sym.require half >= 3"),
    ):
        assert plan_of(late(ops, requires)).run([Layout((4,), (1,), 0)], None).launches


@pytest.mark.parametrize(
    ("ops", "line", "message"),
    [
        ("host.let half = s0\n host.bind %a strides [s0] base b0", 14, "s0 is used before host.bind"),
        ('host.guard half >= 1 else "x"\n host.let half = K', 14, "half is used before host.let"),
        ("%q = host.alloc : tensor<?xf32, #sym.dims<half>>\n host.let half = K", 14, "half is used before host.let"),
        (
            'host.dispatch { case "a" when [half >= 5] { } case "b" { } }\n host.let half = K',
            14,
            "half is used before host.let",
        ),
    ],
)
def test_a_symbol_has_a_value_before_it_is_used(ops: str, line: int, message: str):
    with pytest.raises(TilewrightError, match=f"@main: {message} gives it a value") as error:
        plan_of(late(ops))
    assert error.value.location is not None
    assert error.value.location.line == line


def test_a_symbol_that_the_plan_computes_is_declared_so():
    with pytest.raises(TilewrightError, match='half: expected a symbol of source "host", but it has the source "arg"'):
        late("host.let half = K", source="arg")


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ("host.let half = 1000000000*1000000000*K", "half: expected a value of 64 bits, got one of 66 from host.let"),
        ("host.let half = 0 - 1000000000*1000000000*K", "half: expected a value of 64 bits, got one of 66"),
        (
            "host.let half = " + "*".join(["K"] * 64) + "\n  host.let twice = " + "*".join(["half"] * 64),
            "half: expected a value of 64 bits, got one of 385",
        ),
    ],
)
def test_a_value_that_the_plan_computes_has_64_bits(ops: str, message: str):
    module = planned(LATE.replace("OPS", ops).replace("REQUIRES", 'sym.symbol @K\nsym.symbol @twice {source = "host"}'))
    plan = plan_of(module)
    for decide in (plan.run, plan.interpret):
        with pytest.raises(TilewrightError, match=message):
            decide([Layout((64,), (1,), 0)], None)


@pytest.mark.parametrize(
    ("given", "formal", "message"),
    [
        ("tensor<?xf16, #sym.dims<K>>", "!tile.buf<[K], f32", r"expected !tile.buf<\[K\], f32, .* got tensor<\?xf16"),
        ("tensor<?xi32, #sym.dims<K>>", "!tile.buf<[K], f32", r"expected !tile.buf<\[K\], f32, .* got tensor<\?xi32"),
    ],
)
def test_a_launch_passes_the_elements_that_the_kernel_takes(given: str, formal: str, message: str):
    assert formal in LATE
    with pytest.raises(TilewrightError, match=f"argument 0 of @k: {message}"):
        late(f"%q = host.alloc : {given}\n  host.launch @k(%q)")


def test_a_stride_that_a_predicate_fixes_is_a_number_in_those_after_it() -> None:
    asked = predicates(planned(SYMBOLS + COPY + HOST), "vector32")
    assert "x_s1 == 1" in asked
    assert any("x_s0" in each and "2147483647" in each for each in asked), asked
    assert [each for each in asked if "x_s1" in each] == ["x_s1 == 1"]


def test_what_one_schedule_asks_is_no_fact_for_the_next() -> None:
    """With rows of up to 64 elements 32 bits are enough; of any others the case that walks them has to ask."""
    text = SYMBOLS.replace("{min = 1}", "{max = 1000}") + COPY.replace("x_s0, x_s1", "N, 1").replace("x_s0", "N") + HOST
    text = text.replace("  host.launch @k(%x, %y)\n", """  host.dispatch {
    case "short" when [N <= 64] { host.launch @k(%x, %y) assumes [N <= 64] }
    case "long" { host.launch @k(%x, %y) }
  }
""")  # fmt: skip
    module = planned(text)
    assert predicates(module, "short/general32") == ["N <= 64"]
    assert any("2147483647" in each for each in predicates(module, "long/general32"))
