// One warp a block: C (16 x 8, f32) = A (16 x 16) B (16 x 8), all row-major. A and B go through shared memory; ldmatrix
// brings their fragments to registers, B transposed since it has n, not k, along its rows.
simt.kernel @warp_matmul(%a : !simt.global<bf16>, %b : !simt.global<bf16>, %c : !simt.global<f32>) threads 32 smem 768 grid [1] {
  %t = simt.tid
  %block = simt.block_id x
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %sa = simt.shared at 0 : !simt.smem<[16, 16], bf16>
  %sb = simt.shared at 512 : !simt.smem<[16, 8], bf16>
  // Each thread brings 8 elements of A and 4 of B.
  %ra = simt.regs.alloc : !simt.regs<[8], bf16>
  %rb = simt.regs.alloc : !simt.regs<[4], bf16>
  %at = arith.muli %t, %c8 : i32
  %bt = arith.muli %t, %c4 : i32
  %a_block = arith.muli %block, %c256 : i32
  %b_block = arith.muli %block, %c128 : i32
  %a_from = arith.addi %a_block, %at : i32
  %b_from = arith.addi %b_block, %bt : i32
  simt.load %a[%a_from] into %ra[%c0] width 8
  simt.load %b[%b_from] into %rb[%c0] width 4
  simt.store %ra[%c0] to %sa[%at] width 8
  simt.store %rb[%c0] to %sb[%bt] width 4
  simt.barrier
  // Rows of the four matrices of A: the upper left one, the lower left, the upper right, the lower right.
  %row = arith.remui %t, %c16 : i32
  %right = arith.divui %t, %c16 : i32
  %a_row = arith.muli %row, %c16 : i32
  %a_column = arith.muli %right, %c8 : i32
  %a_at = arith.addi %a_row, %a_column : i32
  %b_at = arith.muli %row, %c8 : i32
  %fa = simt.regs.alloc : !simt.regs<[8], bf16>
  %fb = simt.regs.alloc : !simt.regs<[4], bf16>
  %acc = simt.regs.alloc : !simt.regs<[4], f32>
  simt.ldmatrix x4 %sa[%a_at] into %fa[%c0]
  simt.ldmatrix x2 trans %sb[%b_at] into %fb[%c0]
  %zero = arith.constant 0.0 : f32
  simt.unroll %i < 4 {
    simt.regs.store %zero to %acc[%i]
  }
  simt.mma_sync m16n8k16 %fa[%c0], %fb[%c0] into %acc[%c0]
  %g = arith.divui %t, %c4 : i32
  %q = arith.remui %t, %c4 : i32
  %g8 = arith.muli %g, %c8 : i32
  %q2 = arith.muli %q, %c2 : i32
  %in_block = arith.addi %g8, %q2 : i32
  %upper = arith.addi %b_block, %in_block : i32
  %lower = arith.addi %upper, %c64 : i32
  simt.store %acc[%c0] to %c[%upper] width 2
  simt.store %acc[%c2] to %c[%lower] width 2
}
