// RUN: tilewright-opt %s -p make-persistent | filecheck %s
// RUN: tilewright-opt %s -p make-persistent{group=3} | filecheck %s --check-prefix=THREE
// RUN: not tilewright-opt %s -p make-persistent{group=0} 2>&1 | filecheck %s --check-prefix=NONE
// RUN: tilewright-opt %s -p make-persistent --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// NONE: error: make-persistent: expected groups of at least one row, got 0

// REMARK: remark: [make-persistent] blocks take tiles in turn, 8 rows of tiles at a time
// REMARK: remark: [make-persistent] blocks take tiles in turn, 8 rows of tiles at a time
// REMARK: remark: [make-persistent] left as it is: its grid has no rows and columns
// REMARK: remark: [make-persistent] blocks take tiles in turn, 8 rows of tiles at a time
// REMARK-NOT: remark

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @base {source = "base"}

// The grid has one dim, of all tiles; block b takes the tiles b, b + blocks, ...; channels stay outside, and what was
// stored last is waited for once, at the end.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-SAME: grid (%block) = [(M ceildiv 64)*(N ceildiv 64)] threads 128 arch sm_90a persistent
// CHECK-NEXT: %staged = tile.channel
// CHECK-NEXT: %blocks = tile.block_count
// CHECK-NEXT: tile.for %tile = b to (M ceildiv 64)*(N ceildiv 64) step n where b = %block, n = %blocks {
// CHECK-NEXT: %i, %j = tile.raster %tile in [M ceildiv 64, N ceildiv 64] group 8
// CHECK-NEXT: %m = sym.apply 64*i where i = %i
// CHECK-NEXT: %n = sym.apply 64*j where j = %j
// CHECK: tile.mma
// CHECK: tile.copy %acc to %c[%m, %n]
// CHECK: tile.release %staged
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tile.release %staged
// CHECK-NEXT: }
// THREE-LABEL: tile.kernel @gemm
// THREE: tile.raster %tile in [M ceildiv 64, N ceildiv 64] group 3
tile.kernel @gemm(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %staged = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
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
  tile.for %p = 0 to 64 step 64 unroll 1 {
    %s = tile.acquire %staged
    tile.publish %staged
    %r = tile.receive %staged
    tile.release %staged
  }
  tile.release %staged
}

// A batch dim is what is left when the tiles of one plane have been counted.
// CHECK-LABEL: tile.kernel @batched
// CHECK-SAME: grid (%block) = [3*(M ceildiv 64)*(N ceildiv 64)] threads
// CHECK: tile.for %tile = b to 3*(M ceildiv 64)*(N ceildiv 64) step n
// CHECK-NEXT: %g = sym.apply t floordiv ((M ceildiv 64)*(N ceildiv 64)) where t = %tile
// CHECK-NEXT: %[[REST:.*]] = sym.apply {{.*}} where t = %tile
// CHECK-NEXT: %i, %j = tile.raster %[[REST]] in [M ceildiv 64, N ceildiv 64] group 8
// CHECK: tile.copy %a3[%g, %m, %k] to %sa
tile.kernel @batched(%a3: !tile.buf<[3, M, K], bf16, global, #tile.strided<[M*K, K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%g, %i, %j) = [3, M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[1, 64, 64], bf16, shared, #tile.swizzled<128, 2>>
    tile.copy %a3[%g, %m, %k] to %sa bounds [proved, clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d3, d0, d1, d2) %sa[d3, d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
}

// No rows and columns; the multiply-adds of threads; a kernel that is persistent.
// CHECK-LABEL: tile.kernel @line
// CHECK-SAME: grid (%i) = [M ceildiv 64] threads
tile.kernel @line(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i) = [M ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %j = sym.apply 0
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

// CHECK-LABEL: tile.kernel @threads
// CHECK-SAME: grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads
tile.kernel @threads(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
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
}

// CHECK-LABEL: tile.kernel @twice
// CHECK-SAME: grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a persistent
tile.kernel @twice(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a persistent assumes [base mod 16 == 0] bases [base, base, base] {
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

// Of two batch dims the first counts planes of all of the second's.
// CHECK-LABEL: tile.kernel @batches
// CHECK-SAME: grid (%block) = [15*(M ceildiv 64)*(N ceildiv 64)] threads
// CHECK: tile.for %tile = b to 15*(M ceildiv 64)*(N ceildiv 64) step n
// CHECK-NEXT: %f = sym.apply t floordiv (5*(M ceildiv 64)*(N ceildiv 64)) where t = %tile
// CHECK-NEXT: %[[PLANES:.*]] = sym.apply {{.*}} where t = %tile
// CHECK-NEXT: %g = sym.apply t floordiv ((M ceildiv 64)*(N ceildiv 64)) where t = %[[PLANES]]
// CHECK-NEXT: %[[REST:.*]] = sym.apply {{.*}} where t = %[[PLANES]]
// CHECK-NEXT: %i, %j = tile.raster %[[REST]] in [M ceildiv 64, N ceildiv 64] group 8
tile.kernel @batches(%a4: !tile.buf<[3, 5, M, K], bf16, global, #tile.strided<[5*M*K, M*K, K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>) grid (%f, %g, %i, %j) = [3, 5, M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %sa = tile.alloc : !tile.buf<[1, 1, 64, 64], bf16, shared, #tile.swizzled<128, 3>>
    tile.copy %a4[%f, %g, %m, %k] to %sa bounds [proved, proved, clip, clip] other 0.0 : bf16
    %sb = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d3, d4, d0, d1, d2) %sa[d3, d4, d0, d2], %sb[d2, d1] into %acc[d0, d1] inst wgmma
  }
}
