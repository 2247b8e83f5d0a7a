"""A pass that improves a kernel may be left out: the results stay right, without faults."""

from __future__ import annotations

import pytest

from tests.passes.tile.programs import CASES
from tests.passes.tile.support import Lowering, without
from tilewright.lowering import pipelines

IMPROVING = (
    "interchange-loops",
    "promote-to-shared",
    "block-registers",
    "coalesce",
    "vectorise",
    "pad-shared",
    "prove-bounds",
    "remove-barriers",
)
SIZES = {
    "matmul_bias_relu": ({"M": 33, "N": 37, "K": 19}, {"M": 16, "N": 48, "K": 32}),
    "einsum_two_summed": ({"M": 17, "N": 5, "K": 19, "B": 3},),
    "softmax": ({"M": 3, "N": 67}, {"M": 2, "N": 64}),
    "transpose": ({"M": 33, "N": 37}, {"M": 64, "N": 32}),
    "plus_transpose": ({"M": 35},),
    "sum_0": ({"M": 33, "N": 37}, {"M": 64, "N": 32}),
    "max_01": ({"M": 3, "N": 67},),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("left_out", [*IMPROVING, "all"])
def test_without_a_tile_pass(name: str, left_out: str) -> None:
    tile = without(*(IMPROVING if left_out == "all" else (left_out,)))
    lowering = Lowering(CASES[name].build(), tile=tile)
    for sizes in SIZES[name]:
        lowering.assert_right(sizes)
        lowering.assert_right(sizes, strided=True)


@pytest.mark.parametrize("name", [*SIZES, "layer_norm"])
@pytest.mark.parametrize("left_out", ["fuse-elementwise", "fuse-groups"])
def test_without_fusion(name: str, left_out: str) -> None:
    lowering = Lowering(CASES[name].build(), tensor=tuple(n for n in pipelines.TENSOR if n != left_out))
    for sizes in SIZES.get(name, ({"M": 5, "N": 37},)):
        lowering.assert_right(sizes)
