// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}

// A kernel with all it can say: buffers, scalars, a grid, decisions, assumptions, base addresses.
// CHECK: tile.kernel @kernel(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N + 1], f32, global>, %v: f32, %n: index) grid (%i, %j) = [M ceildiv 8, N] threads 64 mapped index_width 32 assumes [x_s1 == 1, x_base mod 16 == 0] bases [x_base, 0, 0, 0] attributes {note = "all"} {
// CHECK-NEXT: %m0 = sym.apply 8*i where i = %i
tile.kernel @kernel(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N + 1], f32, global>, %v: f32, %n: index) grid (%i, %j) = [M ceildiv 8, N] threads 64 mapped index_width 32 assumes [x_s1 == 1, x_base mod 16 == 0] bases [x_base, 0, 0, 0] attributes {note = "all"} {
  %m0 = sym.apply 8*i where i = %i
  // CHECK: %s = tile.alloc at 64 : !tile.buf<[8, 4], f32, shared, #tile.strided<[5, 1]>>
  // CHECK-NEXT: %t = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // CHECK-NEXT: %f = tile.alloc : !tile.buf<[8, 4], f32, fragment, #tile.distributed<threads [8, 2] strides [2, 1] vector [1, 2]>>
  // CHECK-NEXT: %r = tile.alloc : !tile.buf<[8], f32, fragment>
  // CHECK-NEXT: %g = tile.alloc : !tile.buf<[4, 8], f32, fragment>
  // CHECK-NEXT: %z = tile.alloc : !tile.buf<[], f32, fragment>
  %s = tile.alloc at 64 : !tile.buf<[8, 4], f32, shared, #tile.strided<[5, 1]>>
  %t = tile.alloc : !tile.buf<[8, 4], f32, shared>
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment, #tile.distributed<threads [8, 2] strides [2, 1] vector [1, 2]>>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  %g = tile.alloc : !tile.buf<[4, 8], f32, fragment>
  %z = tile.alloc : !tile.buf<[], f32, fragment>
  // CHECK-NEXT: tile.copy %x[%m0, %j] to %f bounds [proved, clip] other 0.000000e+00 : f32
  // CHECK-NEXT: tile.copy %x[%m0, %j] to %s bounds [clip, clip] other 0.000000e+00 : f32 via thread width 4 along 0 store_width 1 dist #tile.distributed<threads [2, 4] strides [4, 1] vector [4, 1]>
  // CHECK-NEXT: tile.copy %x[%m0, %j] to %s bounds [clip, clip] other 0.000000e+00 : f32 via thread width 4 along 0 store_width 1 unaligned dist #tile.distributed<threads [2, 4] strides [4, 1] vector [4, 1]>
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: tile.copy %s to %f via thread width 2
  // CHECK-NEXT: tile.copy %f to %s
  // CHECK-NEXT: tile.copy %f to %x[%m0, %j] bounds [clip, clip] attributes {cache = "streaming"}
  tile.copy %x[%m0, %j] to %f bounds [proved, clip] other 0.0 : f32
  tile.copy %x[%m0, %j] to %s bounds [clip, clip] other 0.0 : f32 via thread width 4 along 0 store_width 1 dist #tile.distributed<threads [2, 4] strides [4, 1] vector [4, 1]>
  tile.copy %x[%m0, %j] to %s bounds [clip, clip] other 0.0 : f32 via thread width 4 along 0 store_width 1 unaligned dist #tile.distributed<threads [2, 4] strides [4, 1] vector [4, 1]>
  tile.sync
  tile.copy %s to %f via thread width 2
  tile.copy %f to %s
  tile.copy %f to %x[%m0, %j] bounds [clip, clip] attributes {cache = "streaming"}
  // CHECK-NEXT: tile.fill %f with 0xff800000 : f32
  tile.fill %f with 0xff800000 : f32
  // Any names for iteration dims are read; a scalar goes in without brackets; 0 is a broadcast dim.
  // CHECK-NEXT: %b = tile.alloc : !tile.buf<[1, 4], f32, fragment>
  // CHECK-NEXT: tile.map (d0, d1) ins(%f[d0, d1], %b[0, d1], %v) outs(%f[d0, d1], %g[d1, d0]) valid(d1 < %n, d0 < %m0) {
  // CHECK-NEXT: ^bb0(%p: f32, %q: f32, %w: f32):
  // CHECK-NEXT:   %sum = arith.addf %p, %q : f32
  // CHECK-NEXT:   tile.yield %sum, %w
  // CHECK-NEXT: }
  %b = tile.alloc : !tile.buf<[1, 4], f32, fragment>
  tile.map (row, column) ins(%f[row, column], %b[0, column], %v) outs(%f[row, column], %g[column, row]) valid(column < %n, row < %m0) {
  ^bb0(%p: f32, %q: f32, %w: f32):
    %sum = arith.addf %p, %q : f32
    tile.yield %sum, %w
  }
  // CHECK-NEXT: tile.reduce max (d0, d1) %f[d0, d1] into %r[d0] valid(d1 < %n) scratch %t
  // CHECK-NEXT: tile.reduce prod (d0) %r[d0] into %z
  tile.reduce max (d0, d1) %f[d0, d1] into %r[d0] valid(d1 < %n) scratch %t
  tile.reduce prod (d0) %r[d0] into %z
}

// CHECK-LABEL: tile.kernel @loops() grid (%i) = [1] {
// CHECK-NEXT: tile.for %k = 0 to N step 16 unroll 4 {
// CHECK-NEXT: tile.for %l = a to M + 2*a step M where a = %k attributes {pipelined} {
// CHECK-NEXT: %0 = sym.apply k + l where k = %k, l = %l
// CHECK-NEXT: }
tile.kernel @loops() grid (%i) = [1] {
  tile.for %k = 0 to N step 16 unroll 4 {
    tile.for %l = a to M + 2*a step M where a = %k attributes {pipelined} {
      %0 = sym.apply k + l where k = %k, l = %l
    }
  }
  // CHECK: tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %c[d0, d1] inst fma
  // CHECK: tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %c[d0, d1]{{$}}
  // CHECK: tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %c[d0, d1] precision tf32 inst fma
  %a = tile.alloc : !tile.buf<[8, 4], bf16, fragment>
  %b = tile.alloc : !tile.buf<[4, 16], bf16, fragment>
  %c = tile.alloc : !tile.buf<[8, 16], f32, fragment>
  tile.mma (i, j, k) %a[i, k], %b[k, j] into %c[i, j] inst fma
  tile.mma (i, j, k) %a[i, k], %b[k, j] into %c[i, j]
  tile.mma (i, j, k) %a[i, k], %b[k, j] into %c[i, j] precision tf32 inst fma
}

// Rank 0, and an empty grid of dims.
// CHECK-LABEL: tile.kernel @point(%x: !tile.buf<[], i1, global, #tile.strided<[]>>) grid () = [] {
// CHECK: tile.copy %x to %f
// CHECK: tile.map () ins(%f) outs(%f) {
tile.kernel @point(%x: !tile.buf<[], i1, global, #tile.strided<[]>>) grid () = [] {
  %f = tile.alloc : !tile.buf<[], i1, fragment>
  tile.copy %x to %f
  tile.map () ins(%f) outs(%f) {
  ^bb0(%p: i1):
    tile.yield %p
  }
}

// CHECK-LABEL: tile.kernel @empty(
// CHECK: tile.for %k = 0 to 4 step 1 {
tile.kernel @empty(%x: !tile.buf<[], i1, global>) grid () = [] {
  tile.for %k = 0 to 4 step 1 {
  }
}
// CHECK-LABEL: tile.kernel @nothing() grid () = [] {
tile.kernel @nothing() grid () = [] {
}
