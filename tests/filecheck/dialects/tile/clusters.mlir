// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M {min = 0}
sym.symbol @N {min = 0}

// CHECK: tile.kernel @wanted(%a: {{.*}}) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] cluster [2, 1] threads 128 {
tile.kernel @wanted(%a: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] cluster [2, 1] threads 128 {
}

// CHECK: tile.kernel @formed(%a: {{.*}}) grid (%i, %r) = [M ceildiv 128, 2] cluster [1, 2] {
// CHECK: tile.copy %a[%i, %i] to %{{.*}} bounds [clip, clip] via tma multicast
tile.kernel @formed(%a: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %r) = [M ceildiv 128, 2] cluster [1, 2] {
  %ring = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ring
  tile.copy %a[%i, %i] to %s bounds [clip, clip] via tma multicast
  tile.publish %ring
}
