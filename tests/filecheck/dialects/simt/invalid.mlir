// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{pointers must come before scalars}}
simt.kernel @k(%n: i32, %p: !simt.global<f32>) threads 32 smem 0 grid [1] {

}

// -----

// expected-error@+1 {{expected one scalar argument for each of 1 params, got 0}}
simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] params [4] {

}

// -----

// expected-error@+1 {{scalar arguments for params are i32 or i64, got f32}}
simt.kernel @k(%n: f32) threads 32 smem 0 grid [1] params [4] {

}

// -----

// expected-error@+1 {{scalar arguments are integers or floats, got index}}
simt.kernel @k(%n: index) threads 32 smem 0 grid [1] {

}

// -----

// expected-error@+1 {{threads must be a multiple of 32 from 32 to 1024, got 48}}
simt.kernel @k() threads 48 smem 0 grid [1] {

}

// -----

// expected-error@+1 {{threads must be a multiple of 32 from 32 to 1024, got 2048}}
simt.kernel @k() threads 2048 smem 0 grid [1] {

}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected dim to be one of x, y, z, got w}}
  %b = simt.block_id w
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected dim x, y or z, got w}}
  %b = "simt.block_id"() <{dim = "w"}> : () -> i32
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected a trip count of at least 1, got 0}}
  simt.unroll %i < 0 {
  }
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected one i32 loop variable}}
  "simt.unroll"() <{count = 4 : i64}> ({
  ^bb0(%i: i64):
  }) : () -> ()
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{register array sizes must be at least 1, got [4, 0]}}
  %r = simt.regs.alloc : !simt.regs<[4, 0], f32>
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected a !simt.regs type, got f32}}
  %r = simt.regs.alloc : f32 simt.barrier
}

// -----

simt.kernel @k() threads 32 smem 0 grid [1] {
  // expected-error@+1 {{expected a !simt.smem type, got f32}}
  %r = simt.shared at 0 : f32 simt.barrier
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected 1 register indices, got 2}}
  %v = simt.regs.load %r[%z, %z]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %t = simt.tid
  // expected-error@+1 {{a register index must be a constant or made of simt.unroll variables}}
  %v = simt.regs.load %r[%t]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %t = simt.tid
  %v = arith.constant 0.0 : f32
  // expected-error@+1 {{a register index must be a constant or made of simt.unroll variables}}
  simt.regs.store %v to %r[%t]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected a register array, got i32}}
  %v = simt.regs.load %z[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected result type f32, got f16}}
  %v = "simt.regs.load"(%r, %z) : (!simt.regs<[4], f32>, i32) -> f16
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected a value of type f32, got i32}}
  simt.regs.store %z to %r[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{memory holds f16, registers hold f32}}
  simt.load %p[%z] into %r[%z] width 1
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  %v = arith.constant 0.0 : f32
  // expected-error@+1 {{the element index is i32 or i64, got f32}}
  simt.load %p[%v] into %r[%z] width 1
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{width must be one of (1, 2, 4, 8, 16), got 3}}
  simt.load %p[%z] into %r[%z] width 3
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{width 8 exceeds the last register dim of}}
  simt.load %p[%z] into %r[%z] width 8
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected a register array after `into`, got i32}}
  simt.load %p[%z] into %z[%z] width 1 simt.barrier
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{width must be one of (1, 2, 4, 8, 16), got 5}}
  simt.store %r[%z] to %p[%z] width 5
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{memory holds f16, registers hold f32}}
  simt.store %r[%z] to %p[%z] width 1
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected a lane count from 0 to 31, got 32}}
  %w = simt.shuffle xor %z, 32
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected mode to be one of xor, down, index, got up}}
  %w = simt.shuffle up %z, 1
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected mode xor, down, index, got up}}
  %w = "simt.shuffle"(%z) <{mode = "up", amount = 1 : i64}> : (i32) -> i32
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected result type i32, got f32}}
  %w = "simt.shuffle"(%z) <{mode = "xor", amount = 1 : i64}> : (i32) -> f32
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %r = simt.regs.alloc : !simt.regs<[6], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{ldmatrix: expected a last register dim of at least 8, got !simt.regs<[6], f16>}}
  simt.ldmatrix x4 %s[%z] into %r[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[16], f32>
  %r = simt.regs.alloc : !simt.regs<[6], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected elements of 16 bits for trans, got f32}}
  simt.ldmatrix x4 trans %s[%z] into %r[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %r = simt.regs.alloc : !simt.regs<[6], bf16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{memory holds f16, registers hold bf16}}
  simt.ldmatrix x1 %s[%z] into %r[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %r = simt.regs.alloc : !simt.regs<[6], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected the number of matrices to be one of x1, x2, x4, got x3}}
  simt.ldmatrix x3 %s[%z] into %r[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %r = simt.regs.alloc : !simt.regs<[6], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected 1, 2 or 4 matrices, got 3}}
  "simt.ldmatrix"(%s, %z, %r, %z) <{count = 3 : i64}> : (!simt.smem<[32], f16>, i32, !simt.regs<[6], f16>, i32) -> ()
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %a = simt.regs.alloc : !simt.regs<[8], f64>
  %c = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{m16n8k16: expected elements of type f16, bf16, got f64}}
  simt.mma_sync m16n8k16 %a[%z], %a[%z] into %c[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %a = simt.regs.alloc : !simt.regs<[8], i16>
  %c = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{m16n8k8: expected elements of type f16, bf16, f32 (as tf32), got i16}}
  simt.mma_sync m16n8k8 %a[%z], %a[%z] into %c[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %a = simt.regs.alloc : !simt.regs<[8], f16>
  %b = simt.regs.alloc : !simt.regs<[8], bf16>
  %c = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{A holds f16, B holds bf16}}
  simt.mma_sync m16n8k16 %a[%z], %b[%z] into %c[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %a = simt.regs.alloc : !simt.regs<[8], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected C of type f32, got f16}}
  simt.mma_sync m16n8k16 %a[%z], %a[%z] into %a[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %a = simt.regs.alloc : !simt.regs<[4], f16>
  %c = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{A: expected a last register dim of at least 8, got !simt.regs<[4], f16>}}
  simt.mma_sync m16n8k16 %a[%z], %a[%z] into %c[%z]
}

// -----

simt.kernel @k(%p: !simt.global<f16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected a copy of 4, 8 or 16 bytes, got 1 elements of f16}}
  simt.cp_async %p[%z] to %s[%z] width 1
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[32], f16>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{global memory holds bf16, shared memory f16}}
  simt.cp_async %p[%z] to %s[%z] width 2
}

// -----

simt.kernel @k(%p: !simt.global<bf16>) threads 32 smem 64 grid [1] {
  // expected-error@+1 {{expected at least 0 pending groups, got -1}}
  simt.cp_async_wait pending -1
}

// -----

simt.kernel @k(%p: !simt.global<f32>, %n: i64) threads 32 smem 0 grid [1] params [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{expected what lies around as i32, got i32 and i64}}
  simt.load %p[%z] into %r[%z] width 4 unaligned %z, %n else 0.0 : f32
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[8], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{an unaligned access takes 4, 8, 16 bytes, got 32}}
  simt.load %p[%z] into %r[%z] width 8 unaligned %z, %z else 0.0 : f32
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{an unaligned access says how much lies before its first element and from it on}}
  "simt.load"(%p, %z, %r, %z, %z) <{width = 4 : i64, other = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0>}> : (!simt.global<f32>, i32, !simt.regs<[4], f32>, i32, i32) -> ()
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 64 grid [1] {
  %s = simt.shared at 0 : !simt.smem<[16], f32>
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 0 : i32
  // expected-error@+1 {{an unaligned store is one to global memory, got !simt.smem<[16], f32>}}
  simt.store %r[%z] to %s[%z] width 4 unaligned %z, %z
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %z = arith.constant 0 : i32
  // expected-error@+1 {{width must be one of (1, 2, 4, 8, 16), got 3}}
  %n = simt.misaligned %p[%z] width 3
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %c = arith.constant 1 : i32
  // expected-error@+1 {{width 4 at register 1 leaves dim 0 of !simt.regs<[4], f32>}}
  simt.load %p[%c] into %r[%c] width 4
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[2, 8], f32>
  %c = arith.constant 2 : i32
  // expected-error@+1 {{register 2 is not in dim 0 of !simt.regs<[2, 8], f32>}}
  simt.store %r[%c, %c] to %p[%c] width 4
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %c = arith.constant -1 : i32
  // expected-error@+1 {{register -1 is not in dim 0 of !simt.regs<[4], f32>}}
  simt.load %p[%c] into %r[%c] width 1
}

// -----

simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [1] {
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %c = arith.constant 0 : i32
  %m = arith.constant true
  // expected-error@+1 {{expected a constant of type f32 after else, got 1 : i32}}
  simt.load %p[%c] into %r[%c] width 4 if %m else 1 : i32
}
