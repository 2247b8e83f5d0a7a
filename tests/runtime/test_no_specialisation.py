"""Nothing is learnt from a call: sizes 0, 1, equal ones and multiples of 16 leave no trace in plan, keys or results.

What a call is compiled to depends on the program and on the facts that hold of the call, never on calls before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.backends.base import aligned_empty
from tilewright.runtime.backends.sim import SimBackend
from tilewright.runtime.binding import Layout, contiguous
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.variants import CompiledEntry, VariantKey

BIAS = """
sym.symbol @M
sym.symbol @N
#mn = #sym.dims<M, N>
#n = #sym.dims<N>
func.func @main(%x : tensor<?x?xf32, #mn>, %b : tensor<?xf32, #n>) -> tensor<?x?xf32, #mn> {
  %r = lin.map ins(%x, %b : tensor<?x?xf32, #mn>, tensor<?xf32, #n>) -> tensor<?x?xf32, #mn> {
  ^bb0(%p: f32, %q: f32):
    %z = arith.addf %p, %q : f32
    lin.yield %z : f32
  }
  func.return %r : tensor<?x?xf32, #mn>
}
"""
SOFTMAX = """
sym.symbol @M
sym.symbol @N
#mn = #sym.dims<M, N>
func.func @main(%x : tensor<?x?xf32, #mn>) -> tensor<?x?xf32, #mn> {
  %y = lin.softmax %x axis 1 : tensor<?x?xf32, #mn> -> tensor<?x?xf32, #mn>
  func.return %y : tensor<?x?xf32, #mn>
}
"""
FIRST: dict[str, tuple[int, int]] = {"empty": (0, 7), "ones": (1, 1), "equal": (24, 24), "sixteens": (16, 48)}
"""Sizes that other compilers specialise on."""
LATER: tuple[tuple[int, int], ...] = ((5, 7), (1, 48), (33, 64), (48, 1), (0, 16), (24, 24), (3, 4100))


def compiled(text: str) -> CompiledEntry:
    return CompiledEntry(parse_module(text, "p.mlir", make_context()), "main", "sm_80")


def arguments(text: str, sizes: tuple[int, int]) -> list[Layout | None]:
    """Contiguous tensors at aligned addresses."""
    shapes = [sizes, sizes[1:]] if text is BIAS else [sizes]
    return [Layout(shape, contiguous(shape), 4096) for shape in shapes]


def decided(entry: CompiledEntry, text: str, calls: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """What each call does: symbols, result shapes, and the key and grid of each launch."""
    found: list[tuple[Any, ...]] = []
    for sizes in calls:
        decision = entry.plan.decide(arguments(text, sizes))
        launches = [(entry.key(entry.plan.sites[each.site]), each.grid) for each in decision.launches]
        found.append((decision.symbols, decision.results, decision.scratch, launches))
    return found


@pytest.mark.parametrize("text", [BIAS, SOFTMAX], ids=["bias", "softmax"])
def test_first_calls_in_any_order_leave_plan_and_keys_as_they_were(text: str):
    untouched = compiled(text)
    expected = decided(untouched, text, LATER)
    variants = {key for *_, launches in expected for key, _ in launches}
    assert len(variants) > 1, "the later calls tell variants apart"
    for order in permutations(FIRST.values()):
        entry = compiled(text)
        decided(entry, text, order)
        assert decided(entry, text, LATER) == expected
        assert entry.plan.source == untouched.plan.source
        assert entry.ir("host") == untouched.ir("host")
        assert list(entry.sites) == list(untouched.sites)


def run(text: str, first: Sequence[tuple[int, int]]) -> tuple[set[VariantKey], list[bytes], dict[str, str]]:
    """Keys that the later calls ask for, their results and the source of each variant, after some first calls."""
    entry = compiled(text)
    kernel = Kernel(entry, SimBackend(entry), "for the test")
    results: list[bytes] = []
    for number, sizes in enumerate((*first, *LATER)):
        # Aligned as the layouts above are: which variant serves a call is up to the addresses too.
        given = [aligned_empty(sizes, "f32"), aligned_empty(sizes[1:], "f32")][: 2 if text is BIAS else 1]
        for array in given:
            array[...] = (np.arange(array.size, dtype=np.float32) % 11 - 5).reshape(array.shape)
        result = kernel(*given)
        if number >= len(first):
            results.append(result.tobytes())
    wanted = {key for *_, launches in decided(entry, text, LATER) for key, _ in launches}
    source = {name: emit_kernel(entry.lower(site).kernel, "sm_80") for name, site in entry.sites.items()}
    return wanted, results, source


@pytest.mark.parametrize("text", [BIAS, SOFTMAX], ids=["bias", "softmax"])
def test_later_results_and_code_are_the_same_bit_for_bit(text: str):
    expected = run(text, ())
    names = list(FIRST)
    for start in range(len(names)):
        order = [FIRST[name] for name in (*names[start:], *names[:start])]
        assert run(text, order) == expected


def test_no_size_of_a_call_is_in_a_key():
    entry = compiled(BIAS)
    (launch,) = entry.plan.decide(arguments(BIAS, (1237, 5003))).launches
    key = str(entry.key(entry.plan.sites[launch.site]))
    assert "1237" not in key
    assert "5003" not in key


def test_a_size_of_1_is_served_by_the_variant_of_its_neighbours():
    """Rows that no vector divides: 1, 3 and 5 columns take the same code."""
    entry = compiled(BIAS)
    keys = {
        entry.key(entry.plan.sites[launch.site])
        for columns in (1, 3, 5)
        for launch in entry.plan.decide(arguments(BIAS, (9, columns))).launches
    }
    assert len(keys) == 1
