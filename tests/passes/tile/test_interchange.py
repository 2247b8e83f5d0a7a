"""What interchange-loops asks of ops before it moves a loop."""

from __future__ import annotations

from tests.passes.support import parse
from tilewright.dialects.tile.compute import MapOp
from tilewright.passes.interchange_loops import overwrites

MAPS = """
tile.kernel @k() grid (%i) = [1] threads 32 index_width 32 {
  %n = sym.apply 3
  %f = tile.alloc : !tile.buf<[4], f32, fragment>
  %g = tile.alloc : !tile.buf<[4], f32, fragment>
  tile.map (d0) ins(%g[d0]) outs(%f[d0]) {
  ^bb0(%p: f32):
    tile.yield %p
  }
  tile.map (d0) ins(%f[d0]) outs(%f[d0]) {
  ^bb0(%q: f32):
    tile.yield %q
  }
  tile.map (d0) ins(%g[d0]) outs(%f[d0]) valid(d0 < %n) {
  ^bb0(%r: f32):
    tile.yield %r
  }
}
"""


def test_a_map_overwrites_what_it_writes_in_full_and_does_not_read() -> None:
    maps = [op for op in parse(MAPS).walk() if isinstance(op, MapOp)]
    assert [overwrites(op, op.outputs[0]) for op in maps] == [True, False, False]
    assert not any(overwrites(op, maps[0].inputs[0]) for op in (maps[0], maps[2]))
