"""What the code relies on is checked in every call, by every backend, before anything is written."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tilewright as tw
from tests.regressions.support import aligned, chosen, differences, entry_of, filled, fresh_entry, map_program, parsed
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp, GuardOp
from tilewright.dialects.sym import parse_relation
from tilewright.lowering.host_requirements import check_statements
from tilewright.runtime.binding import Layout
from tilewright.runtime.compile import compile_module


@pytest.mark.parametrize("target", ["sim", "reference"])
@pytest.mark.parametrize(
    ("declared", "good", "bad", "asked"),
    [
        ("{multiple_of = 4}", 8, 6, "N: expected a multiple of 4"),
        ("{min = 5}", 5, 4, "N: expected at least 5"),
        ("{max = 128}", 128, 129, "N: expected at most 128"),
    ],
)
def test_a_declared_fact_is_checked_in_each_call(target: str, declared: str, good: int, bad: int, asked: str):
    """Code that is made for multiples of 4 never runs on others, whatever ran before."""
    kernel = compile_module(parsed(map_program("N"), f"N {declared}"), target)
    for _ in range(2):
        np.testing.assert_array_equal(kernel(np.ones(good, np.float32)), np.ones(good))
        out = np.full(bad, 7, np.float32)
        with pytest.raises(TilewrightError) as caught:
            kernel(np.ones(bad, np.float32), out=out)
        message = str(caught.value)
        assert asked.rpartition("expected ")[2] in message
        assert str(bad) in message
        assert "\n" not in message
        np.testing.assert_array_equal(out, np.full(bad, 7))


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_a_required_relation_is_checked_in_each_call(target: str):
    text = map_program("M, N").replace("{\n", "{\n  sym.require M mod 3 == N mod 2\n", 1)
    kernel = compile_module(parsed(text, "M", "N"), target)
    for m, n in product(range(5), range(5)):
        if m % 3 == n % 2:
            assert kernel(np.ones((m, n), np.float32)).shape == (m, n)
            continue
        with pytest.raises(TilewrightError, match=r"M mod 3 == N mod 2"):
            kernel(np.ones((m, n), np.float32))


def test_every_fact_of_a_variant_holds_in_the_calls_that_choose_it():
    """Over sizes, strides and addresses around what vectors and 32 bits need."""
    entry = entry_of(map_program("M, N"), "M", "N")
    counts: dict[str, int] = {}
    for m, n, s0, s1, base in product((1, 3, 4), (4, 6, 8), (-8, 0, 6, 8, 1 << 29), (1, 2, -1), (4096, 4100, 4104)):
        decision = entry.plan.decide([Layout((m, n), (s0, s1), base)])
        site = entry.plan.sites[decision.launches[0].site]
        values = dict(zip(entry.plan.symbols, decision.symbols, strict=True)) | {"x0_base": base}
        broken = [str(fact) for fact in site.assumes if not fact.holds(values)]
        assert broken == [], (m, n, s0, s1, base)
        counts[site.variant] = counts.get(site.variant, 0) + 1
    assert counts.keys() == {"vector32", "general32", "vector64", "general64"}


def test_a_program_with_its_facts_dropped_shows_it():
    """The same call with and without the guard: the test above is able to fail."""
    with_fact = fresh_entry(map_program("M, N"), "M", "N {multiple_of = 4}")
    assert [op for op in with_fact.plan.func.walk() if isinstance(op, GuardOp)]
    site = with_fact.sites["main_0/vector32"]
    assert not parse_relation("N mod 4 == 0").holds({"N": 6})
    assert site.index_width == 32
    with pytest.raises(TilewrightError, match="N: expected a multiple of 4"):
        chosen(with_fact, aligned(3, 6))


def test_guards_stand_before_every_launch_in_the_plan():
    entry = entry_of(map_program("M, N"), "M", "N {multiple_of = 4, max = 4096}")
    (function,) = [op for op in entry.planned[0].ops if isinstance(op, FuncOp)]
    names = [op.name for op in function.body.block.ops]
    assert names.count("host.guard") == 2
    last_guard = max(at for at, name in enumerate(names) if name == "host.guard")
    assert last_guard < names.index("host.dispatch")


@pytest.mark.parametrize(
    ("declared", "required", "names"),
    [
        (("N {min = 3}",), "N <= 2", ("N >= 3", "N <= 2")),
        (("N {multiple_of = 8}",), "N mod 4 == 2", ("N mod 8 == 0", "N mod 4 == 2")),
        (("N",), "2*N == 7", ("2*N == 7",)),
        (("N",), "N < 0", ("N",)),
        (("N",), "N*N == 2*N - 2", ()),
    ],
)
def test_contradictions_are_reported_when_compiled_or_no_call_passes(
    declared: tuple[str, ...], required: str, names: tuple[str, ...]
):
    """Those that the algebra sees name what clashes; a square that no whole number has is for the checks of calls."""
    text = map_program("N").replace("{\n", f"{{\n  sym.require {required}\n", 1)
    module = parsed(text, *declared)
    if names:
        with pytest.raises(TilewrightError) as caught:
            compile_module(module, "sim")
        message = str(caught.value)
        assert "no call of @main is possible" in message
        assert "\n" not in message
        assert all(name in message for name in names), message
        return
    kernel = compile_module(module, "sim")
    for n in range(12):
        with pytest.raises(TilewrightError, match="required by the program"):
            kernel(np.ones(n, np.float32))


def test_a_size_that_is_said_to_be_constant_stays_a_symbol_with_a_check():
    """`N == 4` is checked; it does not turn the dim into a constant behind the caller's back."""
    text = map_program("N").replace("{\n", "{\n  sym.require N == 4\n", 1)
    module = parsed(text, "N")
    check_statements(module, next(op for op in module.ops if op.name == "func.func"))
    entry = fresh_entry(text, "N")
    assert "tensor<?xf32, #sym.dims<N>>" in entry.ir("tensor")
    assert differences(entry, [filled(4)], "check") == []
    with pytest.raises(TilewrightError, match=r"N == 4: required by the program.*got N = 5 from argument 0 dim 0"):
        chosen(entry, aligned(5))


def test_a_remembered_shape_is_refused_again():
    """The memo in front of the plan keeps no refused call."""
    entry = fresh_entry(map_program("N"), "N {min = 5}")
    for _ in range(3):
        with pytest.raises(TilewrightError, match="N: expected at least 5, got N = 3"):
            chosen(entry, aligned(3))
        assert chosen(entry, aligned(8))


def test_a_check_that_involves_a_large_product_does_not_wrap():
    """M*N <= 2^31 - 1 with M = N = 2^32, whose product is 0 in 64 bits."""
    text = map_program("M, N").replace("{\n", "{\n  sym.require M*N <= 2147483647\n", 1)
    entry = fresh_entry(text, "M", "N")
    with pytest.raises(TilewrightError, match=rf"M\*N = {1 << 64}"):
        chosen(entry, aligned(1 << 32, 1 << 32))
    assert tw.TilewrightError is TilewrightError
