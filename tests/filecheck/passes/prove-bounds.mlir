// RUN: tilewright-opt %s -p prove-bounds | filecheck %s
// RUN: tilewright-opt %s -p prove-bounds,verify-facts | filecheck %s

sym.symbol @M {min = 1}
sym.symbol @N {multiple_of = 128}
sym.symbol @K

// A grid coordinate is inside; a tile that divides the size is; a tile of a size that nothing is known of is not.
// CHECK-LABEL: tile.kernel @copies
// CHECK: tile.copy %x[%i, %n0] to %t bounds [proved, proved] other 0.000000e+00 : f32
// CHECK: tile.copy %z[%i, %k0] to %u bounds [proved, clip] other 0.000000e+00 : f32
tile.kernel @copies(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %z: !tile.buf<[M, K], f32, global, #tile.strided<[K, 1]>>) grid (%i, %j, %l) = [M, N ceildiv 128, K ceildiv 64] {
  %n0 = sym.apply 128*i where i = %j
  %k0 = sym.apply 64*i where i = %l
  %t = tile.alloc : !tile.buf<[1, 128], f32, fragment>
  tile.copy %x[%i, %n0] to %t bounds [clip, clip] other 0.0 : f32
  %u = tile.alloc : !tile.buf<[1, 64], f32, fragment>
  tile.copy %z[%i, %k0] to %u bounds [clip, clip] other 0.0 : f32
}

// What the variant assumes counts; the range of a loop variable does inside its loop.
// CHECK-LABEL: tile.kernel @loops
// CHECK: tile.copy %z[%k, %k64] to %u bounds [proved, proved]
// CHECK: tile.map (d0, d1) ins(%u[d0, d1]) outs(%u[d0, d1]) {
// CHECK: tile.reduce sum (d0, d1) %u[d0, d1] into %r[d0] valid(d1 < %some)
// CHECK: tile.copy %z[%zero, %zero] to %u bounds [clip, proved]
tile.kernel @loops(%z: !tile.buf<[K, 64], f32, global, #tile.strided<[64, 1]>>) grid (%i) = [1] assumes [K mod 8 == 0] {
  %zero = sym.apply 0
  %u = tile.alloc : !tile.buf<[8, 64], f32, fragment>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  tile.for %k = 0 to K step 8 {
    %k64 = sym.apply 0
    tile.copy %z[%k, %k64] to %u bounds [clip, clip] other 0.0 : f32
    %all = sym.apply K - k where k = %k
    %row = sym.apply 64
    %some = sym.apply 63
    tile.map (d0, d1) ins(%u[d0, d1]) outs(%u[d0, d1]) valid(d0 < %all, d1 < %row) {
    ^bb0(%p: f32):
      tile.yield %p
    }
    tile.reduce sum (d0, d1) %u[d0, d1] into %r[d0] valid(d0 < %all, d1 < %some)
  }
  tile.copy %z[%zero, %zero] to %u bounds [clip, clip] other 0.0 : f32
}
