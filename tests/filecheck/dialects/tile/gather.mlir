// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP
// RUN: tilewright-opt %s -p prove-bounds | filecheck --check-prefix=PROVED %s
// RUN: tilewright-opt %s -p prove-bounds,verify-facts
// RUN: tilewright-opt %s -p promote-to-shared | filecheck --check-prefix=STAGED %s

sym.symbol @M
sym.symbol @N
sym.symbol @d0

// Any names are read; the letters that are written give way to symbols of the module.
// CHECK-LABEL: tile.kernel @all
// CHECK: tile.gather (dd0, dd1) %x[dd0 + o0 + v0, -d0 + 2*dd1] to %f with v0 = %i[dd0] where o0 = %m0 valid(dd1 < %n) bounds [trusted, clip] other 0.000000e+00 : f32
// CHECK: tile.gather (d0, d1) %x[d0, d1] to %s bounds [clip, clip] dist #tile.distributed<threads [8, 4] strides [4, 1] vector [1, 1]> attributes {note}
// CHECK: %at = tile.index 1 : index
tile.kernel @all(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%g) = [M ceildiv 8] {
  %m0 = sym.apply 8*i where i = %g
  %n = sym.apply N
  %i = tile.alloc : !tile.buf<[8], i32, fragment>
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  tile.gather (r, c) %x[base + row + r, 2*c - d0] to %f with row = %i[r] where base = %m0 valid(c < %n) bounds [trusted, clip] other 0.0 : f32
  tile.gather (r, c) %x[r, c] to %s bounds [clip, clip] dist #tile.distributed<threads [8, 4] strides [4, 1] vector [1, 1]> attributes {note}
  tile.map (r, c) ins(%f[r, c]) outs(%f[r, c]) {
  ^bb0(%p: f32):
    %at = tile.index 1 : index
    tile.yield %p
  }
}

// A grid of whole tiles and the range of a tile's coordinates prove what they can; the other side of a shift stays.
// PROVED-LABEL: tile.kernel @shifted
// PROVED: tile.gather (d0, d1) %x[d0 + o0, d1 - 1] to %f where o0 = %m0 bounds [proved, clip] other
// PROVED: tile.gather (d0, d1) %x[d0, d1] to %f valid(d0 < %k) bounds [proved, proved] other
// PROVED: tile.gather (d0, d1) %x[d0, d1] to %f bounds [proved, proved] other
tile.kernel @shifted(%x: !tile.buf<[8*M, 64], f32, global, #tile.strided<[64, 1]>>) grid (%g) = [M] {
  %m0 = sym.apply 8*i where i = %g
  %k = sym.apply M
  %all = sym.apply M + 8
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  tile.gather (d0, d1) %x[o0 + d0, d1 - 1] to %f where o0 = %m0 bounds [clip, clip] other 0.0 : f32
  tile.gather (d0, d1) %x[d0, d1] to %f valid(d0 < %k) bounds [clip, clip] other 0.0 : f32
  tile.gather (d0, d1) %x[d0, d1] to %f valid(d0 < %all) bounds [clip, clip] other 0.0 : f32
}

// What is multiplied is gathered once for all threads; what other fragments say stays in registers.
// STAGED-LABEL: tile.kernel @product
// STAGED: %s_a = tile.alloc : !tile.buf<[8, 4], f32, shared>
// STAGED-NEXT: tile.gather (d0, d1) %x[d0 + o0, 2*d1] to %s_a where o0 = %m0 bounds [clip, clip] other 0.000000e+00 : f32
// STAGED-NEXT: tile.copy %s_a to %a
// STAGED: tile.gather (d0, d1) %x[v0, d1] to %b with v0 = %i[d0] bounds
tile.kernel @product(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%g) = [M ceildiv 8] {
  %m0 = sym.apply 8*i where i = %g
  %a = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %b = tile.alloc : !tile.buf<[4, 16], f32, fragment>
  %c = tile.alloc : !tile.buf<[8, 16], f32, fragment>
  %i = tile.alloc : !tile.buf<[4], i32, fragment>
  tile.gather (d0, d1) %x[o0 + d0, 2*d1] to %a where o0 = %m0 bounds [clip, clip] other 0.0 : f32
  tile.gather (d0, d1) %x[v0, d1] to %b with v0 = %i[d0] bounds [trusted, clip] other 0.0 : f32
  tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %c[d0, d1]
}
