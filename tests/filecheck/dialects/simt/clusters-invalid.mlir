// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected clusters of 2, 4, 8 blocks, got 3}}
simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [3] cluster 3 params [] {
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  // expected-error@+1 {{expected a kernel with clusters of several blocks}}
  %rank = simt.cluster_rank
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  // expected-error@+1 {{expected a kernel with clusters of several blocks}}
  simt.cluster_barrier
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{expected a kernel with clusters of several blocks}}
  simt.mbar.arrive %bar[%zero] at %zero
}

// -----

sym.symbol @M
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [2] cluster 2 maps [#simt.tensor_map<0, dims [M, M], strides [M, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 40960 : !simt.mbar<2>
  // expected-error@+1 {{expected blocks 0 to 1 of the cluster, got 2}}
  simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero] multicast [0, 2]
}

// -----

sym.symbol @M
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [2] cluster 2 maps [#simt.tensor_map<0, dims [M, M], strides [M, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 40960 : !simt.mbar<2>
  // expected-error@+1 {{expected ascending blocks of the cluster, at least one, got [1, 0]}}
  simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero] multicast [1, 0]
}

// -----

sym.symbol @M
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [2] maps [#simt.tensor_map<0, dims [M, M], strides [M, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 40960 : !simt.mbar<2>
  // expected-error@+1 {{expected a kernel with clusters of several blocks}}
  simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero] multicast [0]
}
