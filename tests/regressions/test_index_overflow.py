"""Products of indices and strides beyond 2^31: the plan chooses 64 bits by address, and 32 bits are seen to be wrong.

The launches are of their real size, on virtual memory, in their first, middle and last block.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.support import aligned, chosen, entry_of, map_program, sampled, scrambled
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.binding import Layout

HUGE = 3 << 30
"""Elements of the copies: 12 GiB of f32."""
MATMUL = """
func.func @main(%a : tensor<?x?xf32, #sym.dims<M, K>>, %b : tensor<?x?xf32, #sym.dims<K, N>>)
    -> tensor<?x?xf32, #sym.dims<M, N>> {
  %c = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>>
      -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %c : tensor<?x?xf32, #sym.dims<M, N>>
}
"""
SUM = """
func.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?xf32, #sym.dims<M>> {
  %y = lin.reduce sum %x axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  func.return %y : tensor<?xf32, #sym.dims<M>>
}
"""


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [("N", (HUGE,)), ("M, N", (3 << 15, 1 << 15)), ("M, N", ((3 << 15) + 1, (1 << 15) + 3))],
    ids=["one dim", "two dims", "odd sizes"],
)
def test_a_copy_of_twelve_gigabytes_takes_64_bits_and_is_right(shape: str, sizes: tuple[int, ...]):
    entry = entry_of(map_program(shape), *shape.split(", "))
    trial = sampled(entry, [sizes], scrambled)
    assert trial.site.index_width == 64
    assert trial.report.diagnostics == []
    total = int(np.prod(sizes, dtype=object))
    positions = np.array(sorted(trial.stored), np.int64)
    assert positions[0] == 0
    assert positions[-1] == total - 1
    assert (positions > 1 << 31).any()
    got = np.array([trial.stored[p] for p in positions.tolist()])
    np.testing.assert_array_equal(got, scrambled(positions))


@pytest.mark.parametrize("variant", ["general32", "vector32"])
def test_32_bits_forced_on_the_same_size_are_reported(variant: str):
    """The check can fail: the same launch, in the variant that the plan refuses."""
    entry = entry_of(map_program("M, N"), "M", "N")
    trial = sampled(entry, [(3 << 15, 1 << 15)], scrambled, variant)
    assert trial.site.index_width == 32
    assert {fault.kind for fault in trial.report.diagnostics} == {"index-wrap", "out-of-bounds"}
    places = [fault.message.rpartition(" ")[2] for fault in trial.report.of_kind("index-wrap")]
    assert sorted(places) == ["simt.load", "simt.store"]
    assert max(trial.stored) < 1 << 31, "the end of the tensor was not reached"


def test_an_address_that_wraps_to_another_element_is_reported_and_wrong():
    """5 * 2^30 elements: the last block's addresses wrap to those of block 2^30, which no bound can tell."""
    entry = entry_of(map_program("M, N"), "M", "N")
    trial = sampled(entry, [(5 << 15, 1 << 15)], scrambled, "general32")
    assert {fault.kind for fault in trial.report.diagnostics} >= {"index-wrap"}
    assert max(trial.stored) < 1 << 31
    assert any(1 << 29 < position < 1 << 30 for position in trial.stored)
    assert sampled(entry, [(5 << 15, 1 << 15)], scrambled).report.diagnostics == []


def test_a_size_beyond_32_bits_is_refused_as_a_32_bit_parameter():
    entry = entry_of(map_program("N"), "N")
    with pytest.raises(TilewrightError, match=rf"expected scalar \d to fit in 32 bits, got {HUGE}"):
        sampled(entry, [(HUGE,)], scrambled, "general32")


def test_32_bits_end_within_a_tile_of_where_they_stop_to_reach():
    """Rows of 2^16 in tiles of 16: 2^15 rows have 2^31 elements, and none beyond it is addressed in 32 bits."""
    entry = entry_of(map_program("M, N"), "M", "N")
    widths = {m: chosen(entry, aligned(m, 1 << 16))[0].index_width for m in range((1 << 15) - 18, (1 << 15) + 2)}
    last = max(m for m, width in widths.items() if width == 32)
    assert [m for m, width in widths.items() if width == 32] == list(range(min(widths), last + 1))
    assert last <= 1 << 15
    for m in (last, last + 1):
        trial = sampled(entry, [(m, 1 << 16)], scrambled)
        assert trial.report.diagnostics == []
        assert max(trial.stored) == m * (1 << 16) - 1


def test_few_elements_far_apart_take_64_bits_and_many_in_one_place_32():
    """Neither the number of elements nor the largest stride decides."""
    entry = entry_of(SUM, "M", "N")
    (far,) = chosen(entry, Layout((4, 8), (1 << 30, 1), 1 << 20))
    (near,) = chosen(entry, Layout((1 << 17, 1 << 17), (0, 1), 1 << 20))
    (one_row,) = chosen(entry, Layout((1, 8), (1 << 40, 1), 1 << 20))
    assert [far.index_width, near.index_width, one_row.index_width] == [64, 32, 32]


def test_a_stride_beyond_32_bits_reaches_the_64_bit_variant_whole():
    """As a parameter of the kernel it must not be cut."""
    entry = entry_of(SUM, "M", "N")
    decision = entry.plan.decide([Layout((4, 8), (1 << 33, 1), 1 << 20)])
    site = entry.plan.sites[decision.launches[0].site]
    assert 1 << 33 in entry.lower(site).scalars(decision.symbols)


def test_each_operand_of_a_product_decides_not_the_result():
    """A [M, K] times [K, N] with a result of 64 elements, and one operand beyond 2^31."""
    entry = entry_of(MATMUL, "M", "N", "K")
    wide = 1 << 29
    assert {site.index_width for site in chosen(entry, aligned(8, wide), aligned(wide, 8))} == {64}
    assert {site.index_width for site in chosen(entry, aligned(8, 1 << 20), aligned(1 << 20, 8))} == {32}


@pytest.mark.parametrize(("beyond", "width"), [(8000, 64), (18000, 32)])
def test_parts_of_a_sum_end_beyond_it(beyond: int, width: int):
    """264 parts are rounded up to whole steps of 64: the last ends up to 16,896 after the sum, in 32 bits or not."""
    entry = entry_of(MATMUL, "M", "N", "K")
    summed = (1 << 31) - beyond
    row_for_all, column = Layout((8, summed), (0, 1), 1 << 20), Layout((summed, 1), (1, 1), 1 << 20)
    sites = chosen(entry, row_for_all, column)
    assert [site.kernel.removeprefix("main_0_") for site in sites] == ["split32x32_parts", "split32x32_sum"]
    assert sites[0].index_width == width


def test_sizes_that_only_multiply_beyond_32_bits():
    """B*T*H*K > 2^31 with every factor small."""
    entry = entry_of(map_program("B, T, H, K"), "B", "T", "H", "K")
    (below,) = chosen(entry, aligned(4, 8191, 32, 128))
    (above,) = chosen(entry, aligned(128, 8192, 32, 128))
    assert [below.index_width, above.index_width] == [32, 64]
    trial = sampled(entry, [(128, 8192, 32, 128)], scrambled)
    assert trial.report.diagnostics == []
    positions = np.array(sorted(trial.stored), np.int64)
    assert positions[-1] == 128 * 8192 * 32 * 128 - 1
    np.testing.assert_array_equal([trial.stored[p] for p in positions.tolist()], scrambled(positions))


@pytest.mark.parametrize(
    ("size", "variants"),
    [
        ((1 << 31) - (1 << 12), {"main_0/vector32", "main_0/general32"}),
        (1 << 31, {"main_0/vector64", "main_0/general64"}),
        (3 << 30, {"main_0/vector64", "main_0/general64"}),
        (3 << 40, {"main_0/vector64", "main_0/general64"}),
    ],
)
def test_static_extents_around_2_to_the_31_compile_in_the_width_that_reaches(size: int, variants: set[str]):
    """An extent of over 2^31 does not wrap, one below is no reason to stop, and no variant is kept for nothing."""
    entry = entry_of(map_program(str(size)))
    assert set(entry.sites) <= variants | {name.replace("32", "64") for name in variants}
    trial = sampled(entry, [(size,)], scrambled)
    assert f"main_0/{trial.site.variant}" in variants
    assert trial.report.diagnostics == []
    positions = np.array(sorted(trial.stored), np.int64)
    assert positions[-1] == size - 1
    np.testing.assert_array_equal([trial.stored[p] for p in positions.tolist()], scrambled(positions))


def test_static_rows_whose_product_with_the_index_is_beyond_32_bits():
    """Each number fits in 32 bits: rows of 2^20 + 1 elements, 2^12 of them."""
    entry = entry_of(map_program(f"M, {(1 << 20) + 1}"), "M")
    trial = sampled(entry, [(1 << 12, (1 << 20) + 1)], scrambled)
    assert trial.site.index_width == 64
    assert trial.report.diagnostics == []
    assert max(trial.stored) == (1 << 12) * ((1 << 20) + 1) - 1
    assert sampled(entry, [(1 << 10, (1 << 20) + 1)], scrambled).site.index_width == 32
