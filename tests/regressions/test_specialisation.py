"""No call, size or value gets code of its own: not 0, 1, equal sizes, the first call, or a new length."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tilewright as tw
from tests.regressions import programs
from tests.regressions.support import (
    Array,
    aligned,
    chosen,
    differences,
    entry_of,
    filled,
    fresh_entry,
    map_program,
    variants_of,
)
from tilewright.diagnostics import TilewrightError
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.variants import CompiledEntry

SUMS = "\n".join(
    [
        "func.func @main(" + ", ".join(f"%x{n} : {programs.tensor(f'S{n}', '8')}" for n in range(4)) + ") -> (",
        ", ".join([programs.tensor("8")] * 4) + ") {",
        *(
            f"  %y{n} = lin.reduce sum %x{n} axes [0] : {programs.tensor(f'S{n}', '8')} -> {programs.tensor('8')}"
            for n in range(4)
        ),
        "  func.return " + ", ".join(f"%y{n}" for n in range(4)) + " : " + ", ".join([programs.tensor("8")] * 4),
        "}",
    ]
)
"""Four tensors of unrelated lengths, each summed along its length."""
UNUSED = f"""func.func @main(%x : {programs.tensor("N")}, %u : {programs.tensor("P", "Q")}) -> {programs.tensor("N")} {{
  %r = lin.map ins(%x : {programs.tensor("N")}) -> {programs.tensor("N")} {{
  ^bb0(%p: f32):
    lin.yield %p : f32
  }}
  func.return %r : {programs.tensor("N")}
}}
"""
SQUARE_OR_NOT = programs.matmul()
MNK = ("M", "N", "K")


def sources(entry: CompiledEntry) -> dict[str, set[str]]:
    """The sources of what has been lowered, by kernel."""
    found: dict[str, set[str]] = {}
    for site in entry.sites.values():
        if entry.is_lowered(site):
            found.setdefault(site.kernel, set()).add(emit_kernel(entry.lower(site).kernel, "sm_80"))
    return found


def test_one_of_many_inputs_is_sometimes_0_or_1():
    """All 81 combinations of 0, 1 and 5 take the variants that the first one took."""
    entry = fresh_entry(SUMS, "S0", "S1", "S2", "S3")
    first = variants_of(entry, *[filled(5, 8)] * 4)
    for lengths in product((0, 1, 5), repeat=4):
        arrays = [filled(length, 8, seed=n) for n, length in enumerate(lengths)]
        assert variants_of(entry, *arrays) == first
        if lengths in ((0, 1, 5, 1), (1, 0, 0, 5), (0, 0, 0, 0), (1, 1, 1, 1)):
            assert differences(entry, arrays, "check") == []
    assert entry.pipeline_runs == 1
    assert all(len(each) == 1 for each in sources(entry).values())


def test_a_tensor_that_nobody_reads_decides_nothing():
    entry = entry_of(UNUSED, "N", "P", "Q")
    assert "P" not in str(entry.plan.func.body.block.last_op)
    expected = chosen(entry, aligned(64), aligned(3, 5))
    for size in ((0, 0), (1, 1), (1, 7), (64, 64), (1 << 20, 1 << 20)):
        assert chosen(entry, aligned(64), aligned(*size)) == expected


@pytest.mark.parametrize("first", [(1, 8, 8), (8, 1, 8), (8, 8, 1), (1, 1, 1), (8, 8, 8), (0, 0, 0)])
def test_the_first_call_pins_nothing(first: tuple[int, int, int]):
    """Batches of 1, equal sizes and empty ones first; others after."""
    entry = fresh_entry(SQUARE_OR_NOT, *MNK)
    for m, n, k in (first, (3, 5, 7), (33, 1, 2)):
        assert differences(entry, [filled(m, k, seed=1), filled(k, n, seed=2)]) == []
    assert entry.pipeline_runs == 1
    assert all(len(each) <= 2 for each in sources(entry).values())


def test_unrelated_sizes_that_are_equal_stay_apart():
    """M == N == K in the first call is a fact of that call; where the program has one size it is a fact of all."""
    M, N = tw.symbols("M N")
    apart = tw.compile(tw.placeholder((M, 1)) + tw.placeholder((1, N)), target="sim")
    one = tw.compile(tw.placeholder((M, 1)) + tw.placeholder((1, M)), target="sim")
    for m, n in ((4, 4), (4, 5), (1, 4)):
        a, b = np.arange(m, dtype=np.float32)[:, None], np.arange(n, dtype=np.float32)[None]
        np.testing.assert_array_equal(apart(a, b), a + b)
        if m != n:
            with pytest.raises(TilewrightError, match=f"M = {m} from argument 0 dim 0, {n} from argument 1 dim 1"):
                one(a, b)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_number_by_value_may_be_1(dtype: str):
    """The same variant and source for 0, 1, -1 and 16 as for any other value."""
    (N,) = tw.symbols("N")
    kernel = tw.compile(tw.placeholder((N,), dtype) * tw.placeholder((), dtype), target="sim")
    x = np.arange(-5, 6, dtype=dtype)
    seen: set[tuple[str, ...]] = set()
    for value in (3, 1, 0, -1, 16):
        np.testing.assert_array_equal(kernel(x, value), x * np.dtype(dtype).type(value))
        seen.add(tuple(each["name"] for each in kernel.stats()["kernels"] if each["compiled"]))
    assert len(seen) == 1
    assert kernel.stats()["pipeline_runs"] == 1


def test_a_new_length_compiles_nothing():
    """Lengths 0 to 300: whether 4 divides them is all that tells their kernels apart."""
    entry = fresh_entry(map_program("N"), "N")
    assert {variants_of(entry, filled(n))[0] for n in range(1, 300)} == {"main_0/vector32", "main_0/general32"}
    for length in (3, 4):
        assert differences(entry, [filled(length)]) == []
    lowered = {name for name, site in entry.sites.items() if entry.is_lowered(site)}
    for length in (0, 1, 2, 100, 101, 255, 256, 257, 2048, 5000):
        assert differences(entry, [filled(length)]) == []
    assert {name for name, site in entry.sites.items() if entry.is_lowered(site)} == lowered


def test_a_size_that_is_derived_from_others_makes_no_variant():
    """2*S + 1 is odd in each call: no vectors, one source."""
    entry = fresh_entry(map_program("2*S + 1"), "S")
    for s in (0, 1, 2, 15, 16, 1024):
        assert differences(entry, [filled(2 * s + 1)]) == []
    assert {len(each) for each in sources(entry).values()} == {1}


@pytest.mark.parametrize("static", list(product((False, True), repeat=3)), ids=str)
def test_some_dims_static_and_others_not(static: tuple[bool, bool, bool]):
    """[20, 12] times [12, 36] with each size written as a number or as a symbol, and other sizes for the symbols."""
    names = [str(size) if fixed else name for fixed, name, size in zip(static, MNK, (20, 36, 12), strict=True)]
    entry = entry_of(programs.matmul(*names), *(name for name in names if name.isalpha()))
    for free in ((20, 36, 12), (7, 33, 5)):
        m, n, k = (s if fixed else f for fixed, s, f in zip(static, (20, 36, 12), free, strict=True))
        assert differences(entry, [filled(m, k, seed=1), filled(k, n, seed=2)], "check") == []


def test_programs_of_different_static_extents_share_no_code_and_take_no_other_extent():
    """An extent that is in the code is in what the code is found by: its text."""
    entries = {n: fresh_entry(map_program(f"M, {n}"), "M") for n in (60, 64, 100)}
    found: set[str] = set()
    for n, entry in entries.items():
        assert differences(entry, [filled(5, n)], "check") == []
        found |= set().union(*sources(entry).values())
        for other in entries.keys() - {n}:
            with pytest.raises(TilewrightError, match=f"argument 0 dim 1: expected {n}, got {other}"):
                chosen(entry, aligned(5, other))
    assert len(found) == len(entries)


def halves(x: Array) -> tuple[Array, Array]:
    middle = x.shape[0] // 2
    return x[:middle], x[middle:]


def test_halves_of_a_batch_run_the_kernel_of_the_whole():
    """Chunks of every length, as views."""
    entry = fresh_entry(map_program("B, 8"), "B")
    for batch in (1, 2, 3, 8, 9):
        for part in halves(filled(batch, 8)):
            assert differences(entry, [part], "check") == []
    assert {len(each) for each in sources(entry).values()} == {1}
