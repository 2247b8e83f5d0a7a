// RUN: tilewright-opt %s -p specialise-warps | filecheck %s
// RUN: tilewright-opt %s -p specialise-warps --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: remark: [specialise-warps] 1 warpgroup computes, one fills slots
// REMARK: remark: [specialise-warps] left as it is: it has block barriers, roles, or a block of another size
// REMARK: remark: [specialise-warps] left as it is: it has block barriers, roles, or a block of another size

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @base {source = "base"}

// The loop stands in both roles: with what fills slots in the producer's, which is a warpgroup more; with all else in the
// consumer's.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-SAME: threads 256 arch sm_90a
// CHECK-NEXT: %ring = tile.channel
// CHECK-NEXT: tile.roles {
// CHECK-NEXT: role consumer warpgroups [0, 1] registers 240 {
// CHECK: tile.fill %acc
// CHECK-NEXT: tile.for %k = 0 to K step 64 {
// CHECK-NEXT: %u, %v = tile.receive %ring
// CHECK-NEXT: tile.mma (d0, d1, d2) %u[d0, d2], %v[d2, d1] into %acc[d0, d1] inst wgmma
// CHECK-NEXT: tile.release %ring lag 1
// CHECK-NEXT: }
// CHECK-NEXT: tile.release %ring
// CHECK-NEXT: tile.copy %acc to %c[%m, %n] bounds [clip, clip]
// CHECK-NEXT: }
// CHECK-NEXT: role producer warpgroups [1, 2] registers 40 {
// CHECK-NEXT: %[[M:.*]] = sym.apply 64*i where i = %i
// CHECK-NEXT: %[[N:.*]] = sym.apply 64*j where j = %j
// CHECK-NEXT: tile.for %[[K:.*]] = 0 to K step 64 {
// CHECK-NEXT: %[[A:.*]], %[[B:.*]] = tile.acquire %ring
// CHECK-NEXT: tile.copy %a[%[[M]], %[[K]]] to %[[A]] bounds [clip, clip] other 0.000000e+00 : bf16 via tma
// CHECK-NEXT: tile.copy %b[%[[K]], %[[N]]] to %[[B]] bounds [clip, clip] other 0.000000e+00 : bf16 via tma
// CHECK-NEXT: tile.publish %ring
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
tile.kernel @gemm(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %ring = tile.channel : !tile.channel<4, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %s, %t = tile.acquire %ring
    %k8 = sym.apply k + 8 where k = %k
    tile.copy %a[%m, %k] to %s bounds [clip, clip] other 0.0 : bf16 via tma
    tile.copy %b[%k, %n] to %t bounds [clip, clip] other 0.0 : bf16 via tma
    tile.publish %ring
    %u, %v = tile.receive %ring
    tile.mma (d0, d1, d2) %u[d0, d2], %v[d2, d1] into %acc[d0, d1] inst wgmma
    tile.release %ring lag 1
  }
  tile.release %ring
  tile.copy %acc to %c[%m, %n] bounds [clip, clip]
}

// A barrier of the whole block would wait for the other role; of four warpgroups there are too few registers; a channel
// that the threads fill has one side.
// CHECK-LABEL: tile.kernel @barrier
// CHECK-NOT: tile.roles
tile.kernel @barrier(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %ring = tile.channel : !tile.channel<4, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %s, %t = tile.acquire %ring
    %k8 = sym.apply k + 8 where k = %k
    tile.copy %a[%m, %k] to %s bounds [clip, clip] other 0.0 : bf16 via tma
    tile.copy %b[%k, %n] to %t bounds [clip, clip] other 0.0 : bf16 via tma
    tile.publish %ring
    %u, %v = tile.receive %ring
    tile.mma (d0, d1, d2) %u[d0, d2], %v[d2, d1] into %acc[d0, d1] inst wgmma
    tile.release %ring lag 1
  }
  tile.release %ring
  tile.sync
  tile.copy %acc to %c[%m, %n] bounds [clip, clip]
}

// CHECK-LABEL: tile.kernel @large
// CHECK-NOT: tile.roles
tile.kernel @large(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 512 arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %ring = tile.channel : !tile.channel<4, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %s, %t = tile.acquire %ring
    %k8 = sym.apply k + 8 where k = %k
    tile.copy %a[%m, %k] to %s bounds [clip, clip] other 0.0 : bf16 via tma
    tile.copy %b[%k, %n] to %t bounds [clip, clip] other 0.0 : bf16 via tma
    tile.publish %ring
    %u, %v = tile.receive %ring
    tile.mma (d0, d1, d2) %u[d0, d2], %v[d2, d1] into %acc[d0, d1] inst wgmma
    tile.release %ring lag 1
  }
  tile.release %ring
  tile.copy %acc to %c[%m, %n] bounds [clip, clip]
}

// CHECK-LABEL: tile.kernel @stored
// CHECK-NOT: tile.roles
tile.kernel @stored(%c: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 arch sm_90a assumes [base mod 16 == 0] bases [base] {
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %staged = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %f = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  %s = tile.acquire %staged
  tile.copy %f to %s via stmatrix
  tile.publish %staged
  %r = tile.receive %staged
  tile.copy %r to %c[%m, %n] bounds [clip, clip] via tma
  tile.release %staged
}
