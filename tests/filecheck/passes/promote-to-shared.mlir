// RUN: tilewright-opt %s -p promote-to-shared | filecheck %s
// RUN: tilewright-opt %s -p promote-to-shared,promote-to-shared | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @K

// Both operands of a product go through shared memory; the bias, which each thread reads for itself, does not.
// CHECK-LABEL: tile.kernel @product
// CHECK: tile.for %k = 0 to K step 16 {
// CHECK-NEXT: %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
// CHECK-NEXT: %s_ta = tile.alloc : !tile.buf<[32, 16], f32, shared>
// CHECK-NEXT: tile.copy %a[%m0, %k] to %s_ta bounds [clip, proved] other 0.000000e+00 : f32
// CHECK-NEXT: tile.copy %s_ta to %ta
// CHECK: tile.copy %b[%k, %n0] to %s_tb bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: tile.copy %s_tb to %tb
// CHECK-NEXT: tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
// CHECK: tile.copy %bias[%n0] to %tbias bounds [clip] other 0.000000e+00 : f32
tile.kernel @product(%a: !tile.buf<[M, K], f32, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], f32, global, #tile.strided<[N, 1]>>, %bias: !tile.buf<[N], f32, global, #tile.strided<[1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
    tile.copy %a[%m0, %k] to %ta bounds [clip, proved] other 0.0 : f32
    %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment>
    tile.copy %b[%k, %n0] to %tb bounds [clip, clip] other 0.0 : f32
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  %tbias = tile.alloc : !tile.buf<[32], f32, fragment>
  tile.copy %bias[%n0] to %tbias bounds [clip] other 0.0 : f32
  tile.map (d0, d1) ins(%acc[d0, d1], %tbias[d1]) outs(%acc[d0, d1]) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tile.yield %z
  }
  tile.copy %acc to %c[%m0, %n0] bounds [clip, clip]
}

// Read along rows, written along columns: staged. The other input lies as the result does: read directly.
// CHECK-LABEL: tile.kernel @plus_transpose
// CHECK: tile.copy %x[%m0, %n0] to %t bounds
// CHECK: %s_u = tile.alloc : !tile.buf<[32, 32], f32, shared>
// CHECK-NEXT: tile.copy %x[%n0, %m0] to %s_u bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: tile.copy %s_u to %u
// CHECK-NOT: shared
tile.kernel @plus_transpose(%x: !tile.buf<[M, M], f32, global, #tile.strided<[M, 1]>>, %y: !tile.buf<[M, M], f32, global, #tile.strided<[M, 1]>>) grid (%i, %j) = [M ceildiv 32, M ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %t = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  %u = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %x[%n0, %m0] to %u bounds [clip, clip] other 0.0 : f32
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.map (d0, d1) ins(%t[d0, d1], %u[d1, d0]) outs(%f[d0, d1]) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s
  }
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}

// The same text, but the stride says that the tensor lies in memory as the result does: nothing to turn.
// CHECK-LABEL: tile.kernel @transposed_view
// CHECK-NOT: shared
tile.kernel @transposed_view(%x: !tile.buf<[N, M], f32, global, #tile.strided<[1, N]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %u = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %x[%n0, %m0] to %u bounds [clip, clip] other 0.0 : f32
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.map (d0, d1) ins(%u[d1, d0]) outs(%f[d0, d1]) {
  ^bb0(%p: f32):
    tile.yield %p
  }
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}

// An operand that is computed along the sum goes through shared memory behind what computes it; what that reads goes
// straight into registers.
// CHECK-LABEL: tile.kernel @computed
// CHECK: tile.copy %a[%m0, %k] to %ta bounds
// CHECK: tile.map (d0, d1) ins(%ta[d0, d1]) outs(%e[d0, d1]) valid(d1 < %n) {
// CHECK: tile.copy %b[%k, %n0] to %s_tb bounds
// CHECK: %s_e = tile.alloc : !tile.buf<[32, 16], f32, shared>
// CHECK-NEXT: tile.copy %e to %s_e
// CHECK-NEXT: %[[READ:.*]] = tile.alloc : !tile.buf<[32, 16], f32, fragment>
// CHECK-NEXT: tile.copy %s_e to %[[READ]]
// CHECK-NEXT: tile.mma (d0, d1, d2) %[[READ]][d0, d2], %tb[d2, d1] into %acc[d0, d1]
// CHECK-NOT: tile.copy %s_
tile.kernel @computed(%a: !tile.buf<[M, K], f32, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], f32, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %n = sym.apply K - k where k = %k
    %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
    tile.copy %a[%m0, %k] to %ta bounds [clip, clip] other 0.0 : f32
    %e = tile.alloc : !tile.buf<[32, 16], f32, fragment>
    tile.fill %e with 0.0 : f32
    tile.map (d0, d1) ins(%ta[d0, d1]) outs(%e[d0, d1]) valid(d1 < %n) {
    ^bb0(%x: f32):
      %z = math.exp %x : f32
      tile.yield %z
    }
    %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment>
    tile.copy %b[%k, %n0] to %tb bounds [clip, clip] other 0.0 : f32
    tile.mma (d0, d1, d2) %e[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  tile.copy %acc to %c[%m0, %n0] bounds [clip, clip]
}
