// RUN: tilewright-opt %s -p make-persistent,pipeline-copies,share-copies,specialise-warps | filecheck %s

sym.symbol @M {min = 0}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
!A = !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>
!B = !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>
!C = !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>
!SA = !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
!SB = !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
!F = !tile.buf<[64, 64], f32, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>

// Tiles that are neighbours along the rows need the same columns of B. Clusters take tiles of clusters in turn, and each
// block its own one of them.
// CHECK: tile.kernel @rows({{.*}}) grid (%block) = [2*(M ceildiv 128)*(N ceildiv 64)] cluster [2] threads 256
// CHECK: role consumer
// CHECK-NEXT: %rank = sym.apply b mod 2 where b = %block
// CHECK-NEXT: %blocks = tile.block_count
// CHECK-NEXT: tile.for %tile = b floordiv 2 to (M ceildiv 128)*(N ceildiv 64) step n floordiv 2 where b = %block, n = %blocks {
// CHECK-NEXT: %i, %j = tile.raster %tile in [M ceildiv 128, N ceildiv 64] group 8
// CHECK-NEXT: %i_1 = sym.apply 2*c + r where c = %i, r = %rank
// CHECK: role producer
// CHECK: tile.copy %a[{{.*}}] to {{.*}} via tma{{$}}
// CHECK-NEXT: tile.copy %b[{{.*}}] to {{.*}} via tma multicast
tile.kernel @rows(%a: !A, %b: !B, %c: !C) grid (%i, %j, %rank) = [M ceildiv 128, N ceildiv 64, 2] cluster [1, 1, 2] threads 128 index_width 32 arch sm_90a assumes [K mod 8 == 0, N mod 8 == 0] bases [0, 0, 0] {
  %i_1 = sym.apply 2*c + r where c = %i, r = %rank
  %m0 = sym.apply 64*i where i = %i_1
  %n0 = sym.apply 64*j where j = %j
  %acc = tile.alloc : !F
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %ta = tile.alloc : !SA
    tile.copy %a[%m0, %k] to %ta bounds [clip, clip] other 0.0 : bf16
    %tb = tile.alloc : !SB
    tile.copy %b[%k, %n0] to %tb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  tile.copy %acc to %c[%m0, %n0] bounds [clip, clip] via thread width 2
}

// Without clusters there is nobody to share with.
// CHECK: tile.kernel @alone
// CHECK-NOT: multicast
tile.kernel @alone(%a: !A, %b: !B, %c: !C) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 128 index_width 32 arch sm_90a assumes [K mod 8 == 0, N mod 8 == 0] bases [0, 0, 0] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 64*j where j = %j
  %acc = tile.alloc : !F
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %ta = tile.alloc : !SA
    tile.copy %a[%m0, %k] to %ta bounds [clip, clip] other 0.0 : bf16
    %tb = tile.alloc : !SB
    tile.copy %b[%k, %n0] to %tb bounds [clip, clip] other 0.0 : bf16
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1] inst wgmma
  }
  tile.copy %acc to %c[%m0, %n0] bounds [clip, clip] via thread width 2
}
