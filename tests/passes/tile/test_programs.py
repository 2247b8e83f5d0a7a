"""Every program, in every variant, with every access checked: no fault, and results within the reference's bound."""

from __future__ import annotations

import pytest

from tests.passes.tile.programs import CASES, take
from tests.passes.tile.support import Lowering
from tilewright.api import frontend as tw

M, N = tw.symbols("M N")


@pytest.mark.parametrize("name", CASES)
def test_every_variant(name: str) -> None:
    case = CASES[name]
    lowering = Lowering(case.build())
    ran: set[str] = set()
    for number, sizes in enumerate(case.sizes):
        # Aligned arrays take the vectorised variant where sizes allow it, views with odd strides the general one.
        ran |= lowering.assert_right(sizes).variants
        ran |= lowering.assert_right(sizes, strided=True).variants
        if number % 3 == 2:
            ran |= lowering.assert_right(sizes, "general64").variants
        if all(n % 16 == 0 for n in sizes.values()) and any(s.variant == "vector64" for s in lowering.plan.sites):
            ran |= lowering.assert_right(sizes, "vector64").variants
    offered = {site.variant for site in lowering.plan.sites}
    assert offered - ran <= {"vector64", "vector32"}, f"{offered - ran} never ran"


def test_rows_beyond_the_capacity_are_walked() -> None:
    lowering = Lowering(tw.softmax(take(M, N)))
    assert lowering.assert_right({"M": 2, "N": 4096}).kernels == ["main_0_on_chip"]
    assert lowering.assert_right({"M": 2, "N": 4099}).kernels == ["main_0_looping"]


def test_large_products_take_large_tiles() -> None:
    lowering = Lowering(tw.matmul(take(M, 3), take(3, N)))
    call = lowering.assert_right({"M": 1024, "N": 512})
    assert call.kernels == ["main_0_large"]
    assert lowering.assert_right({"M": 1023, "N": 512}).kernels == ["main_0_small"]


@pytest.mark.parametrize("tiles", [(1, 1, 1), (64, 2, 8), (8, 128, 4), (128, 128, 2)])
def test_given_tile_sizes(tiles: tuple[int, ...]) -> None:
    lowering = Lowering(CASES["matmul_bias_relu"].build(), tile_sizes=tiles)
    for sizes in ({"M": 9, "N": 21, "K": 5}, {"M": 16, "N": 16, "K": 16}):
        lowering.assert_right(sizes)
