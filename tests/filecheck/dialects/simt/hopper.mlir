// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N

// Tensor maps come first among the arguments, with how the host makes them after the parameters.
// CHECK: simt.kernel @hopper(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 384 smem 65536 grid [1] persistent maps [#simt.tensor_map<0, dims [M, N], strides [N, 1], swizzle 128>] {
simt.kernel @hopper(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 384 smem 65536 grid [1] persistent maps [#simt.tensor_map<0, dims [M, N], strides [N, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  // CHECK: %s = simt.shared at 0 : !simt.smem<[2, 64, 64], bf16, swizzle 128>
  // CHECK-NEXT: %bar = simt.mbar at 40960 : !simt.mbar<2>
  %s = simt.shared at 0 : !simt.smem<[2, 64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 40960 : !simt.mbar<2>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  %out = simt.regs.alloc : !simt.regs<[2, 8], bf16>
  %w = simt.shared at 16384 : !simt.smem<[128, 32], f32, swizzle 128>
  %turned = simt.regs.alloc : !simt.regs<[32, 2], f32>
  %left = simt.regs.alloc : !simt.regs<[4, 4], f32>
  // CHECK: simt.elect block {
  // CHECK-NEXT: simt.mbar.init %bar arrivals 8
  // CHECK-NEXT: simt.fence mbarrier_init
  // CHECK-NEXT: }
  simt.elect block {
    simt.mbar.init %bar arrivals 8
    simt.fence mbarrier_init
  }
  // CHECK-NEXT: simt.roles {
  // CHECK-NEXT: role consumer warpgroups [0, 1] registers 240 {
  // CHECK-NEXT: simt.mbar.wait %bar[%zero] parity %zero
  // CHECK-NEXT: simt.wgmma.fence
  // CHECK-NEXT: simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
  // CHECK-NEXT: simt.wgmma.regs m64n128k8 %left[%zero, %zero], %w[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
  // CHECK-NEXT: simt.wgmma.regs m64n128k8 %left[%zero, %zero], %w[%zero] k lbo 16 sbo 1024 into %turned[%zero, %zero] turned
  // CHECK-NEXT: simt.wgmma.commit
  // CHECK-NEXT: simt.wgmma.wait 1
  // CHECK-NEXT: simt.wgmma.wait 0 of %acc
  // CHECK-NEXT: simt.elect warp {
  // CHECK-NEXT: simt.mbar.arrive %bar[%zero]
  // CHECK-NEXT: }
  // CHECK-NEXT: simt.stmatrix %out[%zero, %zero] to %s[%zero]
  // CHECK-NEXT: simt.stmatrix %out[%zero, %zero] to %s[%zero] trans
  // CHECK-NEXT: simt.fence async
  // CHECK-NEXT: simt.named_barrier 1 threads 128
  // CHECK-NEXT: }
  // CHECK-NEXT: role producer warpgroups [1, 2] {
  // CHECK-NEXT: simt.mbar.expect %bar[%zero] bytes 8192
  // CHECK-NEXT: simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero]
  // CHECK-NEXT: simt.tma.store %s[%zero] to %t[%zero, %zero]
  // CHECK-NEXT: simt.bulk.commit
  // CHECK-NEXT: simt.bulk.wait 1 read
  // CHECK-NEXT: simt.bulk.wait 0
  // CHECK-NEXT: }
  // CHECK-NEXT: role idle warpgroups [2, 3] {
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  simt.roles {
    role consumer warpgroups [0, 1] registers 240 {
      simt.mbar.wait %bar[%zero] parity %zero
      simt.wgmma.fence
      simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
      simt.wgmma.regs m64n128k8 %left[%zero, %zero], %w[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
      simt.wgmma.regs m64n128k8 %left[%zero, %zero], %w[%zero] k lbo 16 sbo 1024 into %turned[%zero, %zero] turned
      simt.wgmma.commit
      simt.wgmma.wait 1
      simt.wgmma.wait 0 of %acc
      simt.elect warp {
        simt.mbar.arrive %bar[%zero]
      }
      simt.stmatrix %out[%zero, %zero] to %s[%zero]
      simt.stmatrix %out[%zero, %zero] to %s[%zero] trans
      simt.fence async
      simt.named_barrier 1 threads 128
    }
    role producer warpgroups [1, 2] {
      simt.mbar.expect %bar[%zero] bytes 8192
      simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero]
      simt.tma.store %s[%zero] to %t[%zero, %zero]
      simt.bulk.commit
      simt.bulk.wait 1 read
      simt.bulk.wait 0
    }
    role idle warpgroups [2, 3] {}
  }
}
