// One warp a block: C (32 x 16, f32) = A (32 x 32) B, where B comes as its transpose (16 x 32). Both go to shared memory in
// copies of 16 bytes, rows 80 bytes apart, so that ldmatrix meets no conflict; 2 x 2 products for each 16 of k.
simt.kernel @warp_tiles(%a : !simt.global<bf16>, %b : !simt.global<bf16>, %c : !simt.global<f32>, %depth : i32) threads 32 smem 3840 grid [1] params [depth] {
  %t = simt.tid
  %block = simt.block_id x
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c512 = arith.constant 512 : i32
  %c1024 = arith.constant 1024 : i32
  %pitch = arith.constant 40 : i32
  %sa = simt.shared at 0 : !simt.smem<[32, 40], bf16>
  %sb = simt.shared at 2560 : !simt.smem<[16, 40], bf16>
  // Chunk t + 32 i of 8 elements: row (t + 32 i) / 4, the 4 chunks of a row side by side.
  %a_block = arith.muli %block, %c1024 : i32
  %b_block = arith.muli %block, %c512 : i32
  simt.unroll %i < 4 {
    %far = arith.muli %i, %c32 : i32
    %chunk = arith.addi %t, %far : i32
    %row = arith.divui %chunk, %c4 : i32
    %place = arith.remui %chunk, %c4 : i32
    %in_row = arith.muli %place, %c8 : i32
    %row_at = arith.muli %row, %pitch : i32
    %to = arith.addi %row_at, %in_row : i32
    %in_block = arith.muli %chunk, %c8 : i32
    %from = arith.addi %a_block, %in_block : i32
    simt.cp_async %a[%from] to %sa[%to] width 8
  }
  simt.unroll %i < 2 {
    %far = arith.muli %i, %c32 : i32
    %chunk = arith.addi %t, %far : i32
    %row = arith.divui %chunk, %c4 : i32
    %place = arith.remui %chunk, %c4 : i32
    %in_row = arith.muli %place, %c8 : i32
    %row_at = arith.muli %row, %pitch : i32
    %to = arith.addi %row_at, %in_row : i32
    %in_block = arith.muli %chunk, %c8 : i32
    %from = arith.addi %b_block, %in_block : i32
    simt.cp_async %b[%from] to %sb[%to] width 8
  }
  simt.cp_async_commit
  simt.cp_async_wait pending 0
  simt.barrier
  %fa = simt.regs.alloc : !simt.regs<[2, 8], bf16>
  %fb = simt.regs.alloc : !simt.regs<[8], bf16>
  %acc = simt.regs.alloc : !simt.regs<[2, 2, 4], f32>
  %zero = arith.constant 0.0 : f32
  simt.unroll %i < 2 {
    simt.unroll %j < 2 {
      simt.unroll %r < 4 {
        simt.regs.store %zero to %acc[%i, %j, %r]
      }
    }
  }
  // Rows of A: the upper left matrix, the lower left, the upper right, the lower right.
  %a_row = arith.remui %t, %c16 : i32
  %a_half = arith.divui %t, %c16 : i32
  %a_row_at = arith.muli %a_row, %pitch : i32
  %a_in_row = arith.muli %a_half, %c8 : i32
  %a_lane = arith.addi %a_row_at, %a_in_row : i32
  // Rows of B's transpose: columns 0 to 7 of B for both halves of k, then columns 8 to 15.
  %b_low = arith.remui %t, %c8 : i32
  %b_up = arith.muli %a_half, %c8 : i32
  %b_row = arith.addi %b_low, %b_up : i32
  %b_row_at = arith.muli %b_row, %pitch : i32
  %b_eighth = arith.divui %t, %c8 : i32
  %b_half = arith.remui %b_eighth, %c2 : i32
  %b_in_row = arith.muli %b_half, %c8 : i32
  %b_lane = arith.addi %b_row_at, %b_in_row : i32
  scf.for %k = %c0 to %depth step %c16 : i32 {
    %b_at = arith.addi %b_lane, %k : i32
    simt.ldmatrix x4 %sb[%b_at] into %fb[%c0]
    simt.unroll %i < 2 {
      %down = arith.muli %i, %c16 : i32
      %rows = arith.muli %down, %pitch : i32
      %a_k = arith.addi %a_lane, %k : i32
      %a_at = arith.addi %a_k, %rows : i32
      simt.ldmatrix x4 %sa[%a_at] into %fa[%i, %c0]
    }
    simt.unroll %i < 2 {
      simt.unroll %j < 2 {
        %column = arith.muli %j, %c4 : i32
        simt.mma_sync m16n8k16 %fa[%i, %c0], %fb[%column] into %acc[%i, %j, %c0]
      }
    }
  }
  %g = arith.divui %t, %c4 : i32
  %q = arith.remui %t, %c4 : i32
  %q2 = arith.muli %q, %c2 : i32
  simt.unroll %i < 2 {
    simt.unroll %j < 2 {
      simt.unroll %h < 2 {
        %down = arith.muli %i, %c16 : i32
        %half = arith.muli %h, %c8 : i32
        %row0 = arith.addi %g, %down : i32
        %row = arith.addi %row0, %half : i32
        %row_at = arith.muli %row, %c16 : i32
        %right = arith.muli %j, %c8 : i32
        %column = arith.addi %q2, %right : i32
        %in_block = arith.addi %row_at, %column : i32
        %out = arith.addi %b_block, %in_block : i32
        %first = arith.muli %h, %c2 : i32
        simt.store %acc[%i, %j, %first] to %c[%out] width 2
      }
    }
  }
}
