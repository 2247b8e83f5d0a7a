// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

// CHECK: simt.kernel @matrices
simt.kernel @matrices(%p: !simt.global<bf16>, %n: i32) threads 32 smem 4096 grid [1] params [1] {
  %t = simt.tid
  %zero = arith.constant 0 : i32
  %far = arith.extsi %n : i32 to i64
  %s = simt.shared at 0 : !simt.smem<[32, 64], bf16>
  %a = simt.regs.alloc : !simt.regs<[2, 8], bf16>
  %b = simt.regs.alloc : !simt.regs<[4], bf16>
  %c = simt.regs.alloc : !simt.regs<[2, 4], f32>
  %ta = simt.regs.alloc : !simt.regs<[4], f32>
  %tb = simt.regs.alloc : !simt.regs<[2], f32>
  // CHECK: simt.cp_async %p[%far] to %s[%t] width 8 valid %n
  // CHECK-NEXT: simt.cp_async %p[%t] to %s[%far] width 2
  // CHECK-NEXT: simt.cp_async_commit
  // CHECK-NEXT: simt.cp_async_wait pending 0
  simt.cp_async %p[%far] to %s[%t] width 8 valid %n
  simt.cp_async %p[%t] to %s[%far] width 2
  simt.cp_async_commit
  simt.cp_async_wait pending 0
  // CHECK-NEXT: simt.unroll %i < 2 {
  // CHECK-NEXT: simt.ldmatrix x4 %s[%t] into %a[%i, %zero]
  // CHECK-NEXT: simt.ldmatrix x2 trans %s[%far] into %b[%zero]
  // CHECK-NEXT: simt.mma_sync m16n8k16 %a[%i, %zero], %b[%zero] into %c[%i, %zero]
  // CHECK-NEXT: }
  simt.unroll %i < 2 {
    simt.ldmatrix x4 %s[%t] into %a[%i, %zero]
    simt.ldmatrix x2 trans %s[%far] into %b[%zero]
    simt.mma_sync m16n8k16 %a[%i, %zero], %b[%zero] into %c[%i, %zero]
  }
  // CHECK-NEXT: simt.mma_sync m16n8k8 %ta[%zero], %tb[%zero] into %c[%zero, %zero]
  simt.mma_sync m16n8k8 %ta[%zero], %tb[%zero] into %c[%zero, %zero]
}
