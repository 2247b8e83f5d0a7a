// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{an mbarrier lies at a multiple of 8 bytes, got 4}}
  %b = simt.mbar at 4 : !simt.mbar<1>
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected at least one barrier, got 0}}
  %b = simt.mbar at 0 : !simt.mbar<0>
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{expected 1 to 2^20 - 1 arrivals, got 0}}
  simt.mbar.init %bar arrivals 0
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{expected 1 to 2^20 - 1 arrivals, got 1048576}}
  simt.mbar.init %bar arrivals 1048576
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{expected 0 to 2^20 - 1 bytes, got 1048576}}
  simt.mbar.expect %bar[%zero] bytes 1048576
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a fence of}}
  "simt.fence"() <{kind = "all"}> : () -> ()
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a barrier from 1 to 15, got 0}}
  simt.named_barrier 0 threads 128
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a barrier from 1 to 15, got 16}}
  simt.named_barrier 16 threads 128
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a multiple of 32 threads from 32 to 1024, got 48}}
  simt.named_barrier 1 threads 48
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a name, two bounds and a register count for each region}}
  "simt.roles"() <{names = ["a"], bounds = [#builtin.int<0>], registers = [#builtin.int<0>]}> ({
  ^bb0:
  }) : () -> ()
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{role b: warpgroup 0 has a role already}}
  simt.roles { role a warpgroups [0, 1] {} role b warpgroups [0, 1] {} }
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected scope}}
  "simt.elect"() <{scope = "grid"}> ({
  ^bb0:
  }) : () -> ()
}

// -----

simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{expected 2 coordinates, got 1}}
  simt.tma.load %t[%zero] to %s[%zero] signal %bar[%zero]
}

// -----

simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  // expected-error@+1 {{expected 2 coordinates, got 3}}
  simt.tma.store %s[%zero] to %t[%zero, %zero, %zero]
}

// -----

simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], f32, swizzle 128>
  %bar = simt.mbar at 0 : !simt.mbar<2>
  // expected-error@+1 {{the map moves bf16, the array holds f32}}
  simt.tma.load %t[%zero, %zero] to %s[%zero] signal %bar[%zero]
}

// -----

simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[8, 64], bf16, swizzle 128>
  // expected-error@+1 {{a box of 4096 elements exceeds an array of 512}}
  simt.tma.store %s[%zero] to %t[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected 0 to 7 pending groups, got 8}}
  simt.bulk.wait 8
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected 0 to 7 pending groups, got 8}}
  simt.wgmma.wait 8
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %b = simt.shared at 8192 : !simt.smem<[64, 64], f16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected operands of one type of bf16, f16, f32, got bf16 and f16}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %b[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], i32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected operands of one type of bf16, f16, f32, got i32 and i32}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected a shape such as m64n256k16}}
  simt.wgmma m32n8k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected shape m64n<8 to 256 in steps of 8>k16, got m64n128k8}}
  simt.wgmma m64n128k8 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected shape m64n<8 to 256 in steps of 8>k16, got m64n12k16}}
  simt.wgmma m64n12k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected shape m64n<8 to 256 in steps of 8>k16, got m64n264k16}}
  simt.wgmma m64n264k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected each operand to be contiguous along k or mn, got k,n}}
  "simt.wgmma"(%s, %zero, %s, %zero, %acc, %zero, %zero) <{shape = "m64n128k16", majors = "k,n", lhs_lbo = 16 : i64, lhs_sbo = 1024 : i64, rhs_lbo = 16 : i64, rhs_sbo = 1024 : i64}> : (!simt.smem<[64, 64], bf16, swizzle 128>, i32, !simt.smem<[64, 64], bf16, swizzle 128>, i32, !simt.regs<[2, 32], f32>, i32, i32) -> ()
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{f32 operands are contiguous along k}}
  simt.wgmma m64n128k8 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected a swizzled shared array, got}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{byte offsets are multiples of 16 below 2^18, got 8}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 8 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{byte offsets are multiples of 16 below 2^18, got 262144}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 262144 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 16], f32>
  // expected-error@+1 {{expected f32 accumulators with rows of 32, got}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], bf16>
  // expected-error@+1 {{expected f32 accumulators with rows of 32, got}}
  simt.wgmma m64n128k16 %s[%zero] k lbo 16 sbo 1024, %s[%zero] mn lbo 8192 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %r = simt.regs.alloc : !simt.regs<[8], f32>
  // expected-error@+1 {{expected bf16 or f16 on both sides, got f32 and bf16}}
  simt.stmatrix %r[%zero] to %s[%zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %r = simt.regs.alloc : !simt.regs<[8], f16>
  // expected-error@+1 {{expected bf16 or f16 on both sides, got f16 and bf16}}
  simt.stmatrix %r[%zero] to %s[%zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %r = simt.regs.alloc : !simt.regs<[4], bf16>
  // expected-error@+1 {{expected rows of at least 8 registers, got}}
  simt.stmatrix %r[%zero] to %s[%zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %s = simt.shared at 0 : !simt.smem<[64, 64], bf16, swizzle 128>
  %r = simt.regs.alloc : !simt.regs<[], bf16>
  // expected-error@+1 {{expected rows of at least 8 registers, got}}
  simt.stmatrix %r to %s[%zero]
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{expected a swizzle of 32, 64 or 128 bytes, got 16}}
  %s = simt.shared at 0 : !simt.smem<[64], bf16, swizzle 16>
}

// -----

// expected-error@+1 {{expected a box of 1 to 5 dims of 1 to 256 elements, got [512]}}
simt.kernel @k(%t: !simt.tmap<[512], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{expected a box of 1 to 5 dims of 1 to 256 elements, got []}}
simt.kernel @k(%t: !simt.tmap<[], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{expected a stride a dim, got 1 for 2}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{expected a swizzle of 0, 32, 64 or 128 bytes, got 16}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 16>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{expected an entry of maps for each of 1 tensor map arguments}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{a tensor map of bf16 needs a pointer to it, got}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<1, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{a tensor map of bf16 needs a pointer to it, got}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64, 64], strides [64, 1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

// expected-error@+1 {{expected 2 dims in}}
simt.kernel @k(%t: !simt.tmap<[64, 64], bf16>, %p: !simt.global<bf16>) threads 128 smem 65536 grid [1] params [] maps [#simt.tensor_map<0, dims [64], strides [1], swizzle 128>] {
  %zero = arith.constant 0 : i32
}

// -----

simt.kernel @k() threads 32 smem 4096 grid [1] {
  // expected-error@+1 {{role a: expected warpgroups [first, past last] within [0, 8], got [0, 1000000000000]}}
  simt.roles {
    role a warpgroups [0, 1000000000000] {
      simt.fence async
    }
  }
}

// -----

simt.kernel @k() threads 32 smem 4096 grid [1] {
  // expected-error@+1 {{bytes -8 to 24 do not lie in 4096 bytes of shared memory}}
  %m = simt.mbar at -8 : !simt.mbar<4>
}

// -----

simt.kernel @k() threads 32 smem 4096 grid [1] {
  // expected-error@+1 {{bytes 4000 to 12192 do not lie in 4096 bytes of shared memory}}
  %s = simt.shared at 4000 : !simt.smem<[64, 64], bf16>
}

// -----

simt.kernel @k() threads 32 smem 4096 grid [1] {
  // expected-error@+1 {{sizes of a shared array must be at least 1, got [-4, 64]}}
  %s = simt.shared at 0 : !simt.smem<[-4, 64], bf16>
}

// -----

// expected-error@+1 {{expected a role's name to be a word of letters, digits and _, got 'a b'}}
"tile.roles"() <{names = ["a b"], bounds = [#builtin.int<0>, #builtin.int<1>], registers = [#builtin.int<0>]}> ({
^bb0:
}) : () -> ()

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], bf16>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected f32 operands, got bf16 and f32}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f16, swizzle 64>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected f32 operands, got f32 and f16}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected shape m64n<8 to 256 in steps of 8>k8, got m64n128k16}}
  simt.wgmma.regs m64n128k16 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected shape m64n<8 to 256 in steps of 8>k8, got m64n12k8}}
  simt.wgmma.regs m64n12k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected a shape such as m64n256k8}}
  simt.wgmma.regs m32n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected a swizzled shared array, got}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{byte offsets are multiples of 16 below 2^18, got 8}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 8 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[2], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 32], f32>
  // expected-error@+1 {{expected 4 registers of A, got}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 128 smem 65536 grid [1] params [] {
  %zero = arith.constant 0 : i32
  %a = simt.regs.alloc : !simt.regs<[4], f32>
  %b = simt.shared at 0 : !simt.smem<[128, 32], f32, swizzle 128>
  %acc = simt.regs.alloc : !simt.regs<[2, 16], f32>
  // expected-error@+1 {{expected 64 f32 accumulators, got}}
  simt.wgmma.regs m64n128k8 %a[%zero], %b[%zero] k lbo 16 sbo 1024 into %acc[%zero, %zero]
}
