// RUN: tilewright-opt %s -p choose-mma,map-threads,pipeline-copies | filecheck %s
// RUN: tilewright-opt %s -p choose-mma,pipeline-copies | filecheck %s --check-prefix=OPEN

sym.symbol @K

// Places that only the copies of the loop use go with them.
// CHECK-LABEL: tile.kernel @places
// CHECK: tile.for %k = 0 to min(K floordiv 32, 3) step 1 {
// CHECK-NEXT: tile.acquire %ring
// CHECK-NEXT: %at = sym.apply 32*k where k = %k
// CHECK-NEXT: tile.copy %a[%zero, %at] to %t_a bounds [clip, clip] other 0.000000e+00 : bf16 dist
// CHECK-NEXT: tile.copy %b[%at, %zero] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8
// CHECK: tile.for %k_1 = 0 to K floordiv 32 step 1 {
// CHECK-NEXT: tile.receive %ring
// CHECK-NEXT: tile.for %k_2
// CHECK-NEXT: tile.acquire %ring
// CHECK-NEXT: %at_1 = sym.apply 32*k where k = %k_2
// CHECK-NEXT: tile.copy
// CHECK-NEXT: tile.copy
// CHECK-NEXT: tile.publish %ring
// CHECK-NEXT: }
// CHECK-NEXT: tile.mma
// CHECK-NEXT: tile.release %ring
// CHECK-NEXT: }

// While it is open which thread copies what, so is how wide.
// OPEN-LABEL: tile.kernel @places
// OPEN: tile.acquire %ring
// OPEN: tile.copy %b[%at, %zero] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16{{$}}
tile.kernel @places(%a: !tile.buf<[64, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] arch sm_80 bases [0, 0] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K floordiv 32 step 1 {
    %at = sym.apply 32*k where k = %k
    %t_a = tile.alloc : !tile.buf<[64, 32], bf16, fragment>
    tile.copy %a[%zero, %at] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[32, 64], bf16, fragment>
    tile.copy %b[%at, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}
