// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N
sym.symbol @x_s1 {source = "stride"}

// Pointers, values of the launch, then what the host binds to params.
// CHECK: simt.kernel @kernel(%x: !simt.global<f32>, %y: !simt.global<bf16>, %v: f32, %m: i32, %n: i64) threads 128 smem 4368 grid [M ceildiv 32] params [M, M*N + 1] assumes [x_s1 == 1] attributes {note = "all"} {
simt.kernel @kernel(%x: !simt.global<f32>, %y: !simt.global<bf16>, %v: f32, %m: i32, %n: i64) threads 128 smem 4368 grid [M ceildiv 32] params [M, M*N + 1] assumes [x_s1 == 1] attributes {note = "all"} {
  // CHECK-NEXT: %t = simt.tid
  // CHECK-NEXT: %b = simt.block_id x
  // CHECK-NEXT: simt.block_id z
  %t = simt.tid
  %b = simt.block_id x
  %bz = simt.block_id z
  // CHECK-NEXT: %s = simt.shared at 16 : !simt.smem<[64, 17], f32>
  // CHECK-NEXT: %r = simt.regs.alloc : !simt.regs<[2, 4], f32>
  // CHECK-NEXT: %one = simt.regs.alloc : !simt.regs<[], f32>
  %s = simt.shared at 16 : !simt.smem<[64, 17], f32>
  %r = simt.regs.alloc : !simt.regs<[2, 4], f32>
  %one = simt.regs.alloc : !simt.regs<[], f32>
  %zero = arith.constant 0 : i32
  %mask = arith.cmpi slt, %t, %m : i32
  // CHECK: simt.unroll %i < 2 {
  // CHECK-NEXT: simt.load %x[%n] into %r[%i, %zero] width 4 if %mask else 1.000000e+00 : f32
  // CHECK-NEXT: simt.load %x[%t] into %r[%i, %zero] width 4 unaligned %t, %m if %mask else 1.000000e+00 : f32
  // CHECK-NEXT: simt.load %x[%t] into %r[%i, %zero] width 2 unaligned %t, %m else 1.000000e+00 : f32
  // CHECK-NEXT: simt.load %s[%t] into %r[%i, %zero] width 1
  // CHECK-NEXT: simt.store %r[%i, %zero] to %x[%n] width 4 if %mask
  // CHECK-NEXT: %beyond = simt.misaligned %x[%n] width 4
  // CHECK-NEXT: simt.store %r[%i, %zero] to %x[%t] width 4 unaligned %t, %m if %mask
  // CHECK-NEXT: simt.store %r[%i, %zero] to %s[%t] width 2
  // CHECK-NEXT: %w = simt.regs.load %r[%i, %zero]
  // CHECK-NEXT: simt.regs.store %w to %one
  // CHECK-NEXT: %u = simt.regs.load %one
  // CHECK-NEXT: }
  simt.unroll %i < 2 {
    simt.load %x[%n] into %r[%i, %zero] width 4 if %mask else 1.0 : f32
    simt.load %x[%t] into %r[%i, %zero] width 4 unaligned %t, %m if %mask else 1.0 : f32
    simt.load %x[%t] into %r[%i, %zero] width 2 unaligned %t, %m else 1.0 : f32
    simt.load %s[%t] into %r[%i, %zero] width 1
    simt.store %r[%i, %zero] to %x[%n] width 4 if %mask
    %beyond = simt.misaligned %x[%n] width 4
    simt.store %r[%i, %zero] to %x[%t] width 4 unaligned %t, %m if %mask
    simt.store %r[%i, %zero] to %s[%t] width 2
    %w = simt.regs.load %r[%i, %zero]
    simt.regs.store %w to %one
    %u = simt.regs.load %one
  }
  // A register index may be arithmetic on constants and unroll variables.
  // CHECK: simt.unroll %j < 2 {
  // CHECK: simt.regs.store %v to %r[%last, %zero]
  simt.unroll %j < 2 {
    %c1 = arith.constant 1 : i32
    %last = arith.subi %c1, %j : i32
    simt.regs.store %v to %r[%last, %zero]
  }
  // CHECK: simt.barrier
  // CHECK-NEXT: %a = simt.shuffle xor %v, 16
  // CHECK-NEXT: simt.shuffle down %a, 1
  // CHECK-NEXT: simt.shuffle index %t, 0
  simt.barrier
  %a = simt.shuffle xor %v, 16
  %d = simt.shuffle down %a, 1
  %e = simt.shuffle index %t, 0
}

// CHECK-LABEL: simt.kernel @empty() threads 32 smem 0 grid [1] {
simt.kernel @empty() threads 32 smem 0 grid [1] {
}

// CHECK-LABEL: simt.kernel @turns() threads 32 smem 0 grid [1] {
// CHECK-NEXT: simt.unroll %i < 4 {
simt.kernel @turns() threads 32 smem 0 grid [1] {
  simt.unroll %i < 4 {
  }
}
