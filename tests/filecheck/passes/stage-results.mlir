// RUN: tilewright-opt %s -p stage-results | filecheck %s
// RUN: tilewright-opt %s -p stage-results{columns=32} | filecheck %s --check-prefix=NARROW
// RUN: not tilewright-opt %s -p stage-results{columns=12} 2>&1 | filecheck %s --check-prefix=ODD
// RUN: tilewright-opt %s -p stage-results --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// ODD: error: stage-results: expected columns to be a power of two from 8, got 12

// REMARK: remark: [stage-results] loaded before the product, whose steps hide how long it takes
// REMARK: remark: [stage-results] 2 panels of 64 columns
// REMARK: remark: [stage-results] stored through shared memory, by tensor maps
// REMARK: remark: [stage-results] stored through shared memory, by the threads: a stride of S may be no multiple of 16 bytes
// REMARK: remark: [stage-results] stored through shared memory, by the threads: a row of S may be no multiple of 16 bytes
// REMARK: remark: [stage-results] stored from registers: no panel of 128 bytes of 16-bit elements
// REMARK: remark: [stage-results] 2 panels of 64 columns
// REMARK: remark: [stage-results] the epilogue is left whole: it has shared buffers
// REMARK: remark: [stage-results] the epilogue is left whole: it has a map with limits

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @S
sym.symbol @base {source = "base"}

// The bias is loaded before the product, whose steps hide how long it takes (with 128 accumulators a thread there are no
// registers for it: docs/design/ir/tile_gemm_hopper_1_chosen.mlir). The rest goes a panel at a time, on registers of one
// panel; the result leaves through a slot, of which the second is written while the first is being stored.
// CHECK-LABEL: tile.kernel @bias
// CHECK-NEXT: %staged = tile.channel : !tile.channel<2, !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>>
// CHECK: %row = tile.alloc : !tile.buf<[128], bf16, fragment>
// CHECK-NEXT: tile.copy %d[%n] to %row bounds [clip] other 0.000000e+00 : bf16
// CHECK-NEXT: tile.for %k
// CHECK: tile.mma
// CHECK: tile.for %panel = 0 to 128 step 64 unroll 2 {
// CHECK-NEXT: %[[SLOT:.*]] = tile.acquire %staged
// CHECK-NEXT: %r = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
// CHECK-NEXT: %[[ZERO:.*]] = sym.apply 0
// CHECK-NEXT: %[[PART:.*]] = tile.slice %acc[%[[ZERO]], %panel] : !tile.buf<[128, 64], f32, fragment>
// CHECK-NEXT: %[[ZERO:.*]] = sym.apply 0
// CHECK-NEXT: %[[BIAS:.*]] = tile.slice %row[%panel] : !tile.buf<[64], bf16, fragment>
// CHECK-NEXT: tile.map (d0, d1) ins(%[[PART]][d0, d1], %[[BIAS]][d1]) outs(%r[d0, d1]) {
// CHECK: %[[TO:.*]] = sym.apply o + p where o = %n, p = %panel
// CHECK-NEXT: tile.copy %r to %[[SLOT]] via stmatrix
// CHECK-NEXT: tile.publish %staged
// CHECK-NEXT: %[[FULL:.*]] = tile.receive %staged
// CHECK-NEXT: tile.copy %[[FULL]] to %c[%m, %[[TO]]] bounds [clip, clip] via tma
// CHECK-NEXT: tile.release %staged lag 1
// CHECK-NEXT: }
// CHECK-NEXT: tile.release %staged
// NARROW-LABEL: tile.kernel @bias
// NARROW: tile.for %panel = 0 to 128 step 32 unroll 4 {
// NARROW: tile.slice {{.*}} : !tile.buf<[128, 32], f32, fragment>
tile.kernel @bias(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %d: !tile.buf<[N], bf16, global, #tile.strided<[1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 128, N ceildiv 128] threads 256 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base, base] {
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
  tile.copy %d[%n] to %row bounds [clip] other 0.0 : bf16
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

// Rows that tensor maps cannot store leave through a slot all the same, by the threads; a single slot, since a loop of one
// turn is unrolled.
// CHECK-LABEL: tile.kernel @odd_stride
// CHECK-NEXT: %staged = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
// CHECK: tile.copy %r to %{{.*}} via stmatrix
// CHECK: tile.copy %{{.*}} to %c[%m, %{{.*}}] bounds [clip, clip]{{$}}
// CHECK-NEXT: tile.release %staged
tile.kernel @odd_stride(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[S, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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
  %r = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1]) outs(%r[d0, d1]) {
  ^bb0(%v: f32):
    %w = arith.truncf %v : f32 to bf16
    tile.yield %w
  }
  tile.copy %r to %c[%m, %n] bounds [clip, clip]
}

// A tensor map cuts a row at 16 bytes.
// CHECK-LABEL: tile.kernel @odd_row
// CHECK: tile.copy %{{.*}} to %c[%m, %{{.*}}] bounds [clip, clip]{{$}}
tile.kernel @odd_row(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, S], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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
  %r = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1]) outs(%r[d0, d1]) {
  ^bb0(%v: f32):
    %w = arith.truncf %v : f32 to bf16
    tile.yield %w
  }
  tile.copy %r to %c[%m, %n] bounds [clip, clip]
}

// Results of 32 bits are stored from registers.
// CHECK-LABEL: tile.kernel @wide
// CHECK-NOT: tile.channel
// CHECK: %[[PART:.*]] = tile.slice %acc[%{{.*}}, %panel] : !tile.buf<[64, 64], f32, fragment>
// CHECK-NEXT: %[[AT:.*]] = sym.apply o + p where o = %n, p = %panel
// CHECK-NEXT: tile.copy %[[PART]] to %c[%m, %[[AT]]] bounds [clip, clip]
tile.kernel @wide(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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

// What is left of rows is combined panel by panel, in a fragment that stands before the loop and is stored after it; what
// is left of columns is done with each panel. Limits along the columns count from the panel on.
// CHECK-LABEL: tile.kernel @reduced
// CHECK: %n1 = sym.apply N - n where n = %n
// CHECK-NEXT: %m1 = sym.apply M - m where m = %m
// CHECK-NEXT: %r = tile.alloc : !tile.buf<[1, 64], f32, fragment>
// CHECK-NEXT: tile.fill %r with 0.000000e+00 : f32
// CHECK-NEXT: tile.for %panel = 0 to 128 step 64 unroll 2 {
// CHECK: %[[PART:.*]] = tile.slice %acc[%{{.*}}, %panel] : !tile.buf<[64, 64], f32, fragment>
// CHECK-NEXT: %[[LEFT:.*]] = sym.apply n - p where n = %n1, p = %panel
// CHECK-NEXT: tile.reduce sum (d0, d1) %[[PART]][d0, d1] into %r[0, d0] valid(d1 < %[[LEFT]])
// CHECK-NEXT: %s = tile.alloc : !tile.buf<[1, 64], f32, fragment>
// CHECK-NEXT: tile.fill %s with 0xff800000 : f32
// CHECK-NEXT: tile.reduce max (d0, d1) %[[PART]][d0, d1] into %s[0, d1] valid(d0 < %m1)
// CHECK-NEXT: %[[AT:.*]] = sym.apply o + p where o = %n, p = %panel
// CHECK-NEXT: tile.copy %s to %d[%i, %[[AT]]] bounds [clip, clip]
// CHECK-NEXT: }
// CHECK-NEXT: tile.copy %r to %c[%j, %m] bounds [clip, clip]
// CHECK-NEXT: }
tile.kernel @reduced(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[N ceildiv 128, M], f32, global, #tile.strided<[M, 1]>>, %d: !tile.buf<[M ceildiv 64, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 128] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 128*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 128], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 128], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  %n1 = sym.apply N - n where n = %n
  %m1 = sym.apply M - m where m = %m
  %r = tile.alloc : !tile.buf<[1, 64], f32, fragment>
  tile.fill %r with 0.0 : f32
  tile.reduce sum (d0, d1) %acc[d0, d1] into %r[0, d0] valid(d1 < %n1)
  %s = tile.alloc : !tile.buf<[1, 128], f32, fragment>
  tile.fill %s with 0xff800000 : f32
  tile.reduce max (d0, d1) %acc[d0, d1] into %s[0, d1] valid(d0 < %m1)
  tile.copy %r to %c[%j, %m] bounds [clip, clip]
  tile.copy %s to %d[%i, %n] bounds [clip, clip]
}

// What has shared buffers or maps with limits is left whole.
tile.kernel @through_shared(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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
  %s = tile.alloc : !tile.buf<[64, 64], f32, shared>
  tile.copy %acc to %s
}

tile.kernel @limited(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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
  %r = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1]) outs(%r[d0, d1]) valid(d1 < %n) {
  ^bb0(%v: f32):
    %w = arith.truncf %v : f32 to bf16
    tile.yield %w
  }
  tile.copy %r to %c[%m, %n] bounds [clip, clip]
}

// The multiply-adds of threads stay as they are.
// CHECK-LABEL: tile.kernel @threads
// CHECK-NOT: tile.slice
tile.kernel @threads(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %sa[d0, d2], %sb[d2, d1] into %acc[d0, d1]
  }
  %r = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  tile.map (d0, d1) ins(%acc[d0, d1]) outs(%r[d0, d1]) {
  ^bb0(%v: f32):
    %w = arith.truncf %v : f32 to bf16
    tile.yield %w
  }
  tile.copy %r to %c[%m, %n] bounds [clip, clip]
}
