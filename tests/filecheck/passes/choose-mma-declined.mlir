// RUN: tilewright-opt %s -p choose-mma --remarks 2>&1 | filecheck %s
// RUN: tilewright-opt %s -p choose-mma | filecheck %s --check-prefix=SAME

// What is left for the multiply-adds of threads, and why.
// SAME-NOT: inst wgmma

// CHECK: remark: [choose-mma] multiply-adds of threads: the kernel is for sm_75
// CHECK: remark: [choose-mma] multiply-adds of threads: the kernel is for any
// CHECK: remark: [choose-mma] multiply-adds of threads: the kernel has 2 products
// CHECK: remark: [choose-mma] multiply-adds of threads: it stands in no loop
// CHECK: remark: [choose-mma] multiply-adds of threads: operands of bf16 and f16
// CHECK: remark: [choose-mma] multiply-adds of threads: operands of f32 and f32
// CHECK: remark: [choose-mma] multiply-adds of threads: accumulators of bf16
// CHECK: remark: [choose-mma] multiply-adds of threads: not one row, one column and one summed dim
// CHECK: remark: [choose-mma] multiply-adds of threads: a tile of 32 x 64 x 64
// CHECK: remark: [choose-mma] multiply-adds of threads: a tile of 64 x 320 x 64
// CHECK: remark: [choose-mma] multiply-adds of threads: 192 rows do not divide among 2 warpgroups of 64
// CHECK: remark: [choose-mma] multiply-adds of threads: a tile of 64 x 64 x 8
// CHECK: remark: [choose-mma] multiply-adds of threads: the left operand is not filled by one copy of its own
// CHECK: remark: [choose-mma] multiply-adds of threads: the right operand: no dim of stride 1 for certain
// CHECK: remark: [choose-mma] multiply-adds of threads: the left operand: 32 elements along the contiguous dim are no multiple of 128 bytes
// CHECK: remark: [choose-mma] multiply-adds of threads: the right operand: a tile of [512, 64] exceeds a tensor map's box
// CHECK: remark: [choose-mma] multiply-adds of threads: the left operand: a stride of K + 1 may be no multiple of 16 bytes
// CHECK: remark: [choose-mma] multiply-adds of threads: the right operand: the address may be no multiple of 16 bytes
// CHECK: remark: [choose-mma] multiply-adds of threads: its author mapped the kernel to threads

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @a_base {source = "base"}
sym.symbol @b_base {source = "base"}

tile.kernel @another_arch(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_75 assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
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

tile.kernel @any_arch(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
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

tile.kernel @two_products(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @no_loop(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  %k = sym.apply 0
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
}

tile.kernel @two_types(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], f16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], f16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : f16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @wide_operands(%a: !tile.buf<[M, K], f32, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], f32, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], f32, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : f32
    %t_b = tile.alloc : !tile.buf<[64, 64], f32, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : f32
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @narrow_sums(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
  tile.fill %acc with 0.0 : bf16
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @no_columns(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1) %t_a[d0, d1], %t_b[d1, d1] into %acc[d0, d1]
  }
}

tile.kernel @few_rows(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[32, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[32, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @odd_columns(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 320], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 320], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @three_instructions_for_two(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[192, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[192, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @shallow(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 8 {
    %t_a = tile.alloc : !tile.buf<[64, 8], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[8, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @read_twice(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
    tile.copy %t_a to %a[%zero, %k] bounds [clip, clip]
  }
}

tile.kernel @unknown_stride(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 2]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
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

tile.kernel @narrow_panel(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[128, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 32 {
    %t_a = tile.alloc : !tile.buf<[128, 32], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[32, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @deep(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.for %k = 0 to K step 512 {
    %t_a = tile.alloc : !tile.buf<[64, 512], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[512, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}

tile.kernel @odd_stride(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K + 1, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
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

tile.kernel @unaligned(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] arch sm_90a assumes [a_base mod 16 == 0] bases [a_base, b_base] {
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

tile.kernel @mapped(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] threads 128 mapped arch sm_90a assumes [a_base mod 16 == 0, b_base mod 16 == 0] bases [a_base, b_base] {
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
