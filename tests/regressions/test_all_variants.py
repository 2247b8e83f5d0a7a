"""Every variant that may serve a call gives the right result: 64-bit ones too, which only huge calls choose."""

from __future__ import annotations

import pytest

from tests.regressions import programs
from tests.regressions.support import Array, differences, entry_of, filled, map_program, within

MN = ("M", "N")
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "map": (map_program("M, N", 2, "%z = arith.addf %p0, %p1 : f32\n    lin.yield %z : f32"), MN),
    "transpose": (programs.transpose(), MN),
    "softmax": (programs.softmax(), MN),
    "sum": (programs.reduce("sum"), MN),
    "product": (programs.matmul(), ("M", "N", "K")),
}


def arrays_for(name: str, m: int, n: int) -> list[Array]:
    if name == "product":
        return [filled(m, 20, seed=1), filled(20, n, seed=2)]
    return [filled(m, n, seed=s) for s in range(2 if name == "map" else 1)]


def variants(name: str) -> set[str]:
    text, symbols = PROGRAMS[name]
    return {site.variant.rpartition("/")[2] for site in entry_of(text, *symbols).sites.values()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_aligned_tensors_all_variants_are_right(name: str):
    text, symbols = PROGRAMS[name]
    found = variants(name)
    assert found == {"vector32", "general32", "vector64", "general64"}
    for variant in sorted(found):
        for m, n in ((36, 44), (4, 4), (8, 260)):
            assert differences(entry_of(text, *symbols), arrays_for(name, m, n), "check", variant) == [], (
                variant,
                m,
                n,
            )


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_other_tensors_the_general_variants_are_right(name: str):
    text, symbols = PROGRAMS[name]
    for variant in ("general32", "general64"):
        for layout, m, n in (("odd offset", 33, 35), ("transposed and gapped", 5, 7), ("columns backwards", 2, 131)):
            first, *others = arrays_for(name, m, n)
            arrays = [within(first, layout), *others]
            assert differences(entry_of(text, *symbols), arrays, "check", variant) == [], (variant, layout)


def test_a_vector_variant_on_tensors_that_it_does_not_fit_is_reported():
    """What the tests above would not see without the check of alignment."""
    text, symbols = PROGRAMS["map"]
    arrays = [within(each, "odd offset") for each in arrays_for("map", 33, 36)]
    found = differences(entry_of(text, *symbols), arrays, "check", "vector32")
    assert any("misaligned" in each for each in found)
