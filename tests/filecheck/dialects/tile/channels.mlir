// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N

// Channels before and after shared memory is allocated, slots on both sides, roles, tiles in turn, parts of fragments.
// CHECK: tile.kernel @kernel(%x: !tile.buf<[M, N], bf16, global>) grid (%b) = [(M ceildiv 64)*(N ceildiv 64)] threads 256 arch sm_90a persistent {
tile.kernel @kernel(%x: !tile.buf<[M, N], bf16, global>) grid (%b) = [(M ceildiv 64)*(N ceildiv 64)] threads 256 arch sm_90a persistent {
  // CHECK-NEXT: %zero = sym.apply 0
  // CHECK-NEXT: %ring = tile.channel at [0, 16384] barriers 20480 : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[16, 64], bf16, shared, #tile.swizzled<32, 0>>>
  // CHECK-NEXT: %open = tile.channel : !tile.channel<16, !tile.buf<[8], f32, shared>>
  %zero = sym.apply 0
  %ring = tile.channel at [0, 16384] barriers 20480 : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[16, 64], bf16, shared, #tile.swizzled<32, 0>>>
  %open = tile.channel : !tile.channel<16, !tile.buf<[8], f32, shared>>
  // CHECK-NEXT: %f = tile.alloc : !tile.buf<[64, 64], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  // CHECK-NEXT: %p = tile.slice %f[%zero, %zero] : !tile.buf<[64, 32], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 4]>>
  %f = tile.alloc : !tile.buf<[64, 64], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  %p = tile.slice %f[%zero, %zero] : !tile.buf<[64, 32], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 4]>>
  // CHECK-NEXT: tile.roles {
  // CHECK-NEXT: role consumer warpgroups [0, 1] registers 240 {
  // CHECK-NEXT: %s, %t = tile.receive %ring
  // CHECK-NEXT: tile.release %ring lag 1
  // CHECK-NEXT: tile.release %ring
  // CHECK-NEXT: }
  // CHECK-NEXT: role producer warpgroups [1, 2] {
  // CHECK-NEXT: %n = tile.block_count
  // CHECK-NEXT: %i, %j = tile.raster %b in [M ceildiv 64, N ceildiv 64] group 8
  // CHECK-NEXT: %u, %v = tile.acquire %ring
  // CHECK-NEXT: tile.copy %x[%i, %j] to %u bounds [clip, clip] other 0.000000e+00 : bf16 via tma
  // CHECK-NEXT: tile.copy %f to %u via stmatrix
  // CHECK-NEXT: tile.publish %ring
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  tile.roles {
    role consumer warpgroups [0, 1] registers 240 {
      %s, %t = tile.receive %ring
      tile.release %ring lag 1
      tile.release %ring
    }
    role producer warpgroups [1, 2] {
      %n = tile.block_count
      %i, %j = tile.raster %b in [M ceildiv 64, N ceildiv 64] group 8
      %u, %v = tile.acquire %ring
      tile.copy %x[%i, %j] to %u bounds [clip, clip] other 0.0 : bf16 via tma
      tile.copy %f to %u via stmatrix
      tile.publish %ring
    }
  }
}
