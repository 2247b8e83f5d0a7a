"""What interchange-loops asks of ops before it moves a loop."""

from __future__ import annotations

from tests.passes.support import parse
from tilewright.dialects.tile.compute import MapOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.passes.interchange_loops import combines, overwrites

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


WRITERS = """
tile.kernel @k(%x: !tile.buf<[4], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 index_width 32 {
  %a = tile.alloc : !tile.buf<[4], f32, fragment>
  %b = tile.alloc : !tile.buf<[4], f32, fragment>
  tile.fill %a with 0.0 : f32
  tile.copy %x to %a bounds [proved]
  %m = tile.alloc : !tile.buf<[4, 8], f32, fragment>
  tile.reduce sum (d0, d1) %m[d0, d1] into %a[d0]
  tile.map (d0) ins(%b[d0], %a[d0]) outs(%a[d0]) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %q, %p : f32
    tile.yield %s
  }
  tile.map (d0) ins(%b[d0]) outs(%a[d0]) {
  ^bb0(%p: f32):
    %s = arith.addf %p, %p : f32
    tile.yield %s
  }
  tile.map (d0) ins(%a[d0], %a[d0]) outs(%a[d0]) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s
  }
}
"""


def test_who_adds_to_what_is_there_and_who_overwrites_it() -> None:
    """The last map doubles a value: it reads it twice, and twice is no sum of turns."""
    classes = (FillOp, CopyOp, ReduceOp, MapOp)
    writers = [op for op in parse(WRITERS).walk() if isinstance(op, classes)]
    buffer = writers[0].operands[0]
    assert [combines(op, buffer) for op in writers] == [False, False, True, True, False, False]
    assert [overwrites(op, buffer) for op in writers] == [True, True, False, False, True, False]
