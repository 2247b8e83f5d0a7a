// Two stages of asynchronous copies: y[t] = the sum over tiles of 4 mirrored elements of each tile of 256, the tiles of all
// blocks in turn. Beyond element n the copies bring zeros.
simt.kernel @pipeline(%x : !simt.global<f32>, %y : !simt.global<f32>, %n : i32, %tiles : i32) threads 64 smem 2048 grid [1] params [n, tiles] {
  %t = simt.tid
  %block = simt.block_id x
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %last = arith.constant 252 : i32
  %s = simt.shared at 0 : !simt.smem<[2, 256], f32>
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %sum = simt.regs.alloc : !simt.regs<[], f32>
  %zero = arith.constant 0.0 : f32
  simt.regs.store %zero to %sum
  %t4 = arith.muli %t, %c4 : i32
  %mirrored = arith.subi %last, %t4 : i32
  %tile0 = arith.muli %block, %tiles : i32
  %block_from = arith.muli %tile0, %c256 : i32
  %from = arith.addi %block_from, %t4 : i32
  %rest = arith.subi %n, %from : i32
  %low = arith.maxsi %rest, %c0 : i32
  %valid = arith.minsi %low, %c4 : i32
  simt.cp_async %x[%from] to %s[%t4] width 4 valid %valid
  simt.cp_async_commit
  scf.for %i = %c0 to %tiles step %c1 : i32 {
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %tiles : i32
    scf.if %more {
      %slot = arith.remui %next, %c2 : i32
      %slot_at = arith.muli %slot, %c256 : i32
      %to = arith.addi %slot_at, %t4 : i32
      %ahead = arith.muli %next, %c256 : i32
      %next_from = arith.addi %from, %ahead : i32
      %next_rest = arith.subi %n, %next_from : i32
      %next_low = arith.maxsi %next_rest, %c0 : i32
      %next_valid = arith.minsi %next_low, %c4 : i32
      simt.cp_async %x[%next_from] to %s[%to] width 4 valid %next_valid
    }
    simt.cp_async_commit
    simt.cp_async_wait pending 1
    // What other threads copied is there.
    simt.barrier
    %slot = arith.remui %i, %c2 : i32
    %slot_at = arith.muli %slot, %c256 : i32
    %at = arith.addi %slot_at, %mirrored : i32
    simt.load %s[%at] into %r[%c0] width 4
    simt.unroll %j < 4 {
      %a = simt.regs.load %sum
      %b = simt.regs.load %r[%j]
      %c = arith.addf %a, %b : f32
      simt.regs.store %c to %sum
    }
    // All have read the slot that the next round copies to.
    simt.barrier
  }
  %block_to = arith.muli %block, %c64 : i32
  %out = arith.addi %block_to, %t : i32
  simt.store %sum to %y[%out] width 1
}
