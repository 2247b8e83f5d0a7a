// RUN: tilewright-opt %s -p choose-mma,map-threads,coalesce,vectorise,pipeline-copies | filecheck %s
// RUN: tilewright-opt %s -p choose-mma,map-threads,coalesce,vectorise,pipeline-copies --remarks 2>&1 | filecheck %s --check-prefix=WHY
// RUN: tilewright-opt %s -p 'choose-mma,map-threads,coalesce,vectorise,pipeline-copies{stages=1}' | filecheck %s --check-prefix=ONE

// Three of four slots are filled before the loop, and in each turn the one after those. What is aligned is copied
// asynchronously, also where a row may end inside an access; what is not, by loads and stores into the same slots.
// WHY: remark: [pipeline-copies] 4 slots of 8192 bytes, filled 3 turns ahead by asynchronous copies and loads and stores
// ONE-NOT: tile.channel
// ONE: tile.mma {{.*}} inst mma.sync

sym.symbol @M
sym.symbol @N
sym.symbol @K
sym.symbol @a_s0 {source = "stride"}
sym.symbol @b_s0 {source = "stride"}
sym.symbol @a_base {source = "base"}
sym.symbol @b_base {source = "base"}

// CHECK: %ring = tile.channel : !tile.channel<4, !tile.buf<[64, 32], bf16, shared, #tile.swizzled<64, 1>>, !tile.buf<[32, 64], bf16, shared, #tile.swizzled<128, 1>>>
// CHECK: tile.for %k = 0 to min(K, 96) step 32 {
// CHECK-NEXT: %t_a, %t_b = tile.acquire %ring
// CHECK-NEXT: tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8
// CHECK-NEXT: tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16 width 8 store_width 8 unaligned dist
// CHECK-NEXT: tile.publish %ring
// CHECK: tile.for %k_1 = 0 to K step 32 {
// CHECK-NEXT: %t_a_1, %t_b_1 = tile.receive %ring
// CHECK-NEXT: tile.for %k_2 = k + 96 to min(K, k + 128) step 32 where k = %k_1 {
// CHECK-NEXT: %t_a_2, %t_b_2 = tile.acquire %ring
// CHECK-NEXT: tile.copy %a[%zero, %k_2] to %t_a_2 bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8
// CHECK-NEXT: tile.copy %b[%k_2, %zero] to %t_b_2
// CHECK-NEXT: tile.publish %ring
// CHECK-NEXT: }
// CHECK-NEXT: tile.mma (d0, d1, d2) %t_a_1[d0, d2], %t_b_1[d2, d1] into %acc[d0, d1] inst mma.sync
// CHECK-NEXT: tile.release %ring
tile.kernel @k(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, 1]>>) grid (%i) = [1] arch sm_80 assumes [a_s0 mod 8 == 0, a_base mod 16 == 0] bases [a_base, b_base] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 32 {
    %t_a = tile.alloc : !tile.buf<[64, 32], bf16, fragment>
    tile.copy %a[%zero, %k] to %t_a bounds [clip, clip] other 0.0 : bf16
    %t_b = tile.alloc : !tile.buf<[32, 64], bf16, fragment>
    tile.copy %b[%k, %zero] to %t_b bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %acc[d0, d1]
  }
}
