// RUN: tilewright-opt %s -p choose-mma | filecheck %s
// RUN: tilewright-opt %s -p choose-mma --remarks 2>&1 | filecheck %s --check-prefix=WHY

// On sm_80 warps multiply: operands become swizzled shared buffers, along the dim along which memory is contiguous for
// certain, else along their last.
// WHY: remark: [choose-mma] matrix instructions of 2 x 2 warps, operands in shared memory
// WHY: remark: [choose-mma] matrix instructions of 2 x 4 warps, operands in shared memory
// WHY: remark: [choose-mma] multiply-adds of threads: a tile of 64 x 8 x 16
// WHY: remark: [choose-mma] multiply-adds of threads: the left operand has 256 elements, no multiple of 1024 bytes

sym.symbol @M
sym.symbol @N
sym.symbol @K
sym.symbol @a_s0 {source = "stride"}
sym.symbol @a_s1 {source = "stride"}
sym.symbol @b_s0 {source = "stride"}
sym.symbol @b_s1 {source = "stride"}

// CHECK-LABEL: tile.kernel @anywhere
// CHECK-SAME: threads 128 arch sm_80
// CHECK: %t_a = tile.alloc : !tile.buf<[128, 32], bf16, shared, #tile.swizzled<64, 1>>
// CHECK: %t_b = tile.alloc : !tile.buf<[32, 128], bf16, shared, #tile.swizzled<128, 1>>
// CHECK: tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1] inst mma.sync
tile.kernel @anywhere(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, a_s1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, b_s1]>>) grid (%i) = [1] arch sm_80 {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 128], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 32 {
    %t_a = tile.alloc : !tile.buf<[128, 32], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[32, 128], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

// CHECK-LABEL: tile.kernel @columns_first
// CHECK-SAME: threads 256 arch sm_86
// CHECK: %t_a = tile.alloc : !tile.buf<[16, 256], f16, shared, #tile.swizzled<32, 0>>
// CHECK: %t_b = tile.alloc : !tile.buf<[16, 128], f16, shared, #tile.swizzled<128, 1>>
// CHECK: tile.mma (d0, d1, d2) %t_b[d2, d0], %t_a[d2, d1] into %acc[d0, d1] inst mma.sync
tile.kernel @columns_first(%a: !tile.buf<[K, N], f16, global, #tile.strided<[1, a_s1]>>, %b: !tile.buf<[K, M], f16, global, #tile.strided<[b_s0, 1]>>) grid (%i) = [1] arch sm_86 {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 256], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %t_a = tile.alloc : !tile.buf<[16, 256], f16, fragment>
    tile.copy %a[%k, %zero] to %t_a bounds [clip, clip] other 0.0 : f16
    %t_b = tile.alloc : !tile.buf<[16, 128], f16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : f16
    tile.mma (d0, d1, d2) %t_a[d2, d1], %t_b[d2, d0] into %acc[d0, d1]
  }
}

// CHECK-LABEL: tile.kernel @few_columns
// CHECK-NOT: inst
tile.kernel @few_columns(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, 1]>>) grid (%i) = [1] arch sm_80 {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 8], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %t_a = tile.alloc : !tile.buf<[64, 16], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[16, 8], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @half_a_pattern(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, 1]>>) grid (%i) = [1] arch sm_80 {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[16, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    %t_a = tile.alloc : !tile.buf<[16, 16], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[16, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}
