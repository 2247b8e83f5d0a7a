// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N

// CHECK: simt.kernel @pair({{.*}}) threads 128 smem 65536 grid [2*M] cluster 2 persistent maps
simt.kernel @pair(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [2*M] cluster 2 persistent maps [#simt.tensor_map<0, dims [M, N], strides [N, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[2, 64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 40960 : !simt.mbar<2>
  // CHECK: %rank = simt.cluster_rank
  // CHECK-NEXT: simt.cluster_barrier
  // CHECK-NEXT: simt.elect warp {
  // CHECK-NEXT: simt.mbar.arrive %bar[%zero] at %rank
  // CHECK-NEXT: simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero] multicast [0, 1]
  %rank = simt.cluster_rank
  simt.cluster_barrier
  simt.elect warp {
    simt.mbar.arrive %bar[%zero] at %rank
    simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero] multicast [0, 1]
  }
}
