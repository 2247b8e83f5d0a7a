// RUN: tilewright-opt %s -p choose-mma | filecheck %s

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @a_base {source = "base"}
sym.symbol @b_base {source = "base"}

// Operands that one copy each fills become swizzled shared buffers, contiguous along the dim along which memory is: here
// the summed one on the left, the columns on the right. Two warpgroups for 128 rows.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-SAME: threads 256 arch sm_90a
// CHECK: %t_a = tile.alloc : !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>
// CHECK-NEXT: tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.000000e+00 : bf16
// CHECK-NEXT: %t_b = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
// CHECK-NEXT: tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16
// CHECK-NEXT: tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1] inst wgmma
tile.kernel @gemm(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

// A left operand that is contiguous along the rows, in f16, with a batch dim of size 1; the accumulators hold the columns
// first, so the operands change places.
// CHECK-LABEL: tile.kernel @turned
// CHECK-SAME: threads 128 arch sm_90a
// CHECK: %t_a = tile.alloc : !tile.buf<[1, 64, 64], f16, shared, #tile.swizzled<128, 2>>
// CHECK: %t_b = tile.alloc : !tile.buf<[64, 64], f16, shared, #tile.swizzled<128, 1>>
// CHECK: tile.mma (d0, d1, d2, d3) %t_b[d3, d2], %t_a[d0, d3, d1] into %acc[d0, d2, d1] inst wgmma
tile.kernel @turned(%a: !tile.buf<[8, K, N], f16, global, #tile.strided<[K*N, N, 1]>>, %b: !tile.buf<[K, N], f16, global, #tile.strided<[N, 1]>>) grid (%i) = [8] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[1, 64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[1, 64, 64], f16, fragment>
    tile.copy %a[%i, %k, %zero] to %t_a bounds [proved, clip, clip] other 0.0 : f16
    %t_b = tile.alloc : !tile.buf<[64, 64], f16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : f16
    tile.mma (d0, d1, d2, d3) %t_a[d0, d3, d1], %t_b[d3, d2] into %acc[d0, d2, d1]
  }
}
