// RUN: tilewright-opt %s -p block-registers | filecheck %s
// RUN: tilewright-opt %s -p block-registers{depth=4} | filecheck %s --check-prefix=DEEP
// RUN: not tilewright-opt %s -p block-registers{depth=3} 2>&1 | filecheck %s --check-prefix=ODD

// ODD: error: block-registers: expected a depth that is a power of two, got 3

sym.symbol @K

// A slice of each operand at a time, from shared memory and from global memory alike.
// CHECK-LABEL: tile.kernel @product
// CHECK: tile.for %k = 0 to K step 16 {
// CHECK: tile.copy %a[%zero, %k] to %s bounds
// CHECK: tile.for %kk = 0 to 16 step 1 unroll 16 {
// CHECK-NEXT: %ta = tile.alloc : !tile.buf<[32, 1], f32, fragment>
// CHECK: tile.copy %s[%{{.*}}, %kk] to %ta
// CHECK-NEXT: %tb = tile.alloc : !tile.buf<[1, 32], f32, fragment>
// CHECK-NEXT: %[[AT:.*]] = sym.apply k + kk where k = %k, kk = %kk
// CHECK-NEXT: tile.copy %b[%[[AT]], %zero] to %tb bounds [clip, proved] other 0.000000e+00 : f32
// CHECK-NEXT: tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
// CHECK-NOT: tile.buf<[32, 16], f32, fragment>
// DEEP-LABEL: tile.kernel @product
// DEEP: tile.for %kk = 0 to 16 step 4 unroll 4 {
// DEEP-NEXT: tile.buf<[32, 4], f32, fragment>
tile.kernel @product(%a: !tile.buf<[32, K], f32, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, 32], f32, global, #tile.strided<[32, 1]>>, %c: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %s = tile.alloc : !tile.buf<[32, 16], f32, shared>
    tile.copy %a[%zero, %k] to %s bounds [proved, clip] other 0.0 : f32
    %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
    tile.copy %s to %ta
    %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment>
    tile.copy %b[%k, %zero] to %tb bounds [clip, proved] other 0.0 : f32
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  tile.copy %acc to %c[%zero, %zero] bounds [proved, proved]
}

// An operand that something else reads too is left whole.
// CHECK-LABEL: tile.kernel @read_twice
// CHECK-NOT: unroll
// CHECK: tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
// CHECK-NOT: unroll
tile.kernel @read_twice(%a: !tile.buf<[32, 16], f32, global, #tile.strided<[16, 1]>>, %b: !tile.buf<[16, 32], f32, global, #tile.strided<[32, 1]>>, %c: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>, %d: !tile.buf<[32, 16], f32, global, #tile.strided<[16, 1]>>) grid (%i) = [1] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.fill %acc with 0.0 : f32
  %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
  tile.copy %a[%zero, %zero] to %ta bounds [proved, proved]
  %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment>
  tile.copy %b[%zero, %zero] to %tb bounds [proved, proved]
  tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  tile.copy %acc to %c[%zero, %zero] bounds [proved, proved]
  tile.copy %ta to %d[%zero, %zero] bounds [proved, proved]
}
