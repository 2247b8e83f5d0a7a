// RUN: tilewright-opt %s -p stage-results | filecheck %s
// RUN: tilewright-opt %s -p stage-results --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: remark: [stage-results] the epilogue is left whole: 96 columns are no multiple of 64
// REMARK: remark: [stage-results] 2 panels of 64 columns
// REMARK-NEXT: remark: [stage-results] stored through shared memory, by the threads: its rows are not contiguous
// REMARK: remark: [stage-results] the epilogue is left whole: it has shared buffers
// REMARK-NOT: loaded before the product
// REMARK: remark: [stage-results] 2 panels of 64 columns

sym.symbol @M {multiple_of = 8}
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @base {source = "base"}

// A panel and a half.
// CHECK-LABEL: tile.kernel @ninety_six
// CHECK-NOT: panel
// CHECK: tile.copy %acc to %c[%m, %n]
tile.kernel @ninety_six(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[N, K], bf16, global, #tile.strided<[K, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 96] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 96*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 96], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[96, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%n, %k] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d1, d2] into %acc[d0, d1] inst wgmma
  }
  tile.copy %acc to %c[%m, %n] bounds [clip, clip]
}

// A value for each row is the same for all panels, and read whole; places are computed once, in front of the panels. The
// result is contiguous along its columns, not along the rows of a panel: no tensor map stores that.
// CHECK-LABEL: tile.kernel @column_major
// CHECK: %at = sym.apply 128*j where j = %j
// CHECK: tile.for %panel = 0 to 128 step 64 unroll 2 {
// CHECK-NEXT: tile.acquire %staged
// CHECK-NOT: tile.slice %scale
// CHECK: tile.map (d0, d1) ins(%{{.*}}[d0, d1], %scale[d0]) outs(%r[d0, d1])
// CHECK: %[[TO:.*]] = sym.apply o + p where o = %at, p = %panel
// CHECK: tile.copy %{{.*}} to %c[%m, %[[TO]]] bounds [clip, clip]{{$}}
tile.kernel @column_major(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %d: !tile.buf<[M], f32, global, #tile.strided<[1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[1, M]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 128] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 128*j where j = %j
  %scale = tile.alloc : !tile.buf<[64], f32, fragment>
  tile.copy %d[%m] to %scale bounds [clip] other 0.0 : f32
  %acc = tile.alloc : !tile.buf<[64, 128], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 128], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  %at = sym.apply 128*j where j = %j
  %r = tile.alloc : !tile.buf<[64, 128], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1], %scale[d0]) outs(%r[d0, d1]) {
  ^bb0(%v: f32, %f: f32):
    %p = arith.mulf %v, %f : f32
    %w = arith.truncf %p : f32 to bf16
    tile.yield %w
  }
  tile.copy %r to %c[%m, %at] bounds [clip, clip]
}

// What goes through a buffer that was there before is no panel of columns.
// CHECK-LABEL: tile.kernel @through_shared
// CHECK-NOT: panel
// CHECK: tile.copy %acc to %s
// CHECK: tile.copy %s to %c[%m, %n]
tile.kernel @through_shared(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 128] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 128*j where j = %j
  %s = tile.alloc : !tile.buf<[64, 128], f32, shared>
  %acc = tile.alloc : !tile.buf<[64, 128], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 128], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  tile.copy %acc to %s
  tile.copy %s to %c[%m, %n] bounds [clip, clip]
}

// A bias whose place is computed in two steps after the product stays where it is.
// CHECK-LABEL: tile.kernel @far_bias
// CHECK: tile.mma
// CHECK: %far = sym.apply 128*j where j = %j
// CHECK: tile.copy %d[{{.*}}] to %row
tile.kernel @far_bias(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %d: !tile.buf<[N], bf16, global, #tile.strided<[1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 128, N ceildiv 128] threads 256 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base, base] {
  %m = sym.apply 128*i where i = %i
  %n = sym.apply 128*j where j = %j
  %acc = tile.alloc : !tile.buf<[128, 128], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 128], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  %row = tile.alloc : !tile.buf<[128], bf16, fragment>
  %far = sym.apply 128*j where j = %j
  %at = sym.apply f + 8 where f = %far
  tile.copy %d[%at] to %row bounds [clip] other 0.0 : bf16
  %r = tile.alloc : !tile.buf<[128, 128], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1], %row[d1]) outs(%r[d0, d1]) {
  ^bb0(%v: f32, %w: bf16):
    %x = arith.extf %w : bf16 to f32
    %y = arith.addf %v, %x : f32
    %z = arith.truncf %y : f32 to bf16
    tile.yield %z
  }
  tile.copy %r to %c[%m, %n] bounds [clip, clip]
}
