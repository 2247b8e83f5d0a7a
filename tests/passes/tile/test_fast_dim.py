"""Along which dim of its target a gather moves through memory in the smallest steps."""

from __future__ import annotations

import pytest

from tests.passes.support import parse
from tilewright.dialects.tile.structure import KernelOp
from tilewright.passes.tile_analysis import KernelScopes, fast_dim, gathers

KERNEL = """
sym.symbol @M
sym.symbol @N
tile.kernel @k(%x: !tile.buf<[M, N], f32, LAYOUT>) grid (%g) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  tile.gather (d0, d1) %x[INDICES] to %f bounds [clip, clip] other 0.0 : f32
}
"""


@pytest.mark.parametrize(
    ("layout", "indices", "expected"),
    [
        ("global, #tile.strided<[N, 1]>", "d0, d1", 1),
        ("global, #tile.strided<[N, 1]>", "d1, d0", 0),
        ("global, #tile.strided<[1, M]>", "d0, d1", 0),
        ("global, #tile.strided<[N, 1]>", "3, 4*d0 + 2*d1", 1),
        ("global, #tile.strided<[N, 1]>", "3, 2*d0 - 4*d1", 0),
        ("global, #tile.strided<[N, 1]>", "d0, 5", 1),
        ("global", "d1, d0", 0),
    ],
)
def test_smallest_step(layout: str, indices: str, expected: int) -> None:
    module = parse(KERNEL.replace("LAYOUT", layout).replace("INDICES", indices))
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    (gather,) = gathers(kernel)
    assert fast_dim(gather, KernelScopes(kernel)) == expected
