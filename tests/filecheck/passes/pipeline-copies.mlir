// RUN: tilewright-opt %s -p pipeline-copies | filecheck %s
// RUN: tilewright-opt %s -p pipeline-copies{stages=1} | filecheck %s --check-prefix=ONE
// RUN: not tilewright-opt %s -p pipeline-copies{stages=17} 2>&1 | filecheck %s --check-prefix=MANY
// RUN: tilewright-opt %s -p pipeline-copies --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// MANY: error: pipeline-copies: expected 0 to 16 stages, got 17

// REMARK: remark: [pipeline-copies] 8 slots of 16384 bytes, filled by tensor maps
// REMARK: remark: [pipeline-copies] left as it is: no loop whose copies fill both operands
// REMARK: remark: [pipeline-copies] left as it is: a stride of M may be no multiple of 16 bytes
// REMARK: remark: [pipeline-copies] 5 slots of 16384 bytes, filled by tensor maps

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @base {source = "base"}

// Slots are filled by tensor maps, and let go a turn after they have been multiplied: the instructions run on.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-NEXT: %ring = tile.channel : !tile.channel<8, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
// CHECK: tile.for %k = 0 to K step 64 {
// CHECK-NEXT: %[[A:.*]], %[[B:.*]] = tile.acquire %ring
// CHECK-NEXT: tile.copy %a[%m, %k] to %[[A]] bounds [clip, clip] other 0.000000e+00 : bf16 via tma
// CHECK-NEXT: tile.copy %b[%k, %n] to %[[B]] bounds [clip, clip] other 0.000000e+00 : bf16 via tma
// CHECK-NEXT: tile.publish %ring
// CHECK-NEXT: %[[C:.*]], %[[D:.*]] = tile.receive %ring
// CHECK-NEXT: tile.mma (d0, d1, d2) %[[C]][d0, d2], %[[D]][d2, d1] into %acc[d0, d1] inst wgmma
// CHECK-NEXT: tile.release %ring lag 1
// CHECK-NEXT: }
// CHECK-NEXT: tile.release %ring
// CHECK-NEXT: tile.copy %acc to %c
// With one slot each turn waits for its own instructions.
// ONE-LABEL: tile.kernel @gemm
// ONE-NEXT: %ring = tile.channel : !tile.channel<1, {{.*}}
// ONE: inst wgmma
// ONE-NEXT: tile.release %ring{{$}}
tile.kernel @gemm(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  tile.copy %acc to %c[%m, %n] bounds [clip, clip]
}

// Operands without a loop, and a copy that no tensor map can make.
// CHECK-LABEL: tile.kernel @no_loop
// CHECK-NOT: tile.channel
tile.kernel @no_loop(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  %k = sym.apply 0
  %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
  %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
  tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
}

// CHECK-LABEL: tile.kernel @odd_stride
// CHECK-NOT: tile.channel
tile.kernel @odd_stride(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[M, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
}

// Other channels leave less room: 232448 - 2048 - 144 * 1024 bytes hold five slots.
// CHECK-LABEL: tile.kernel @less_room
// CHECK: %ring = tile.channel : !tile.channel<5,
tile.kernel @less_room(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %other = tile.channel : !tile.channel<9, !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
}
