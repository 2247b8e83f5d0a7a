// One warp a block fills 32 KiB, then loads 16 x 16 tiles of f16 in %n rounds of 8, 4 KiB apart. Words in capitals are
// filled in by counters.py: rows PITCH elements apart, the chunk of 16 bytes at chunk xor (row and SWIZZLE), KIND of load.
simt.kernel @NAME(%y : !simt.global<f16>, %n : i32) threads 32 smem 32768 grid [256] params [32] {
  %t = simt.tid
  %b = simt.block_id x
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %lanes = arith.constant 32 : i32
  %per = arith.constant 8 : i32
  %rows = arith.constant 16 : i32
  %round = arith.constant 256 : i32
  %step = arith.constant 2048 : i32
  %pitch = arith.constant PITCH : i32
  %swizzle = arith.constant SWIZZLE : i32
  %s = simt.shared at 0 : !simt.smem<[16384], f16>
  %fill = simt.regs.alloc : !simt.regs<[8], f16>
  %v = arith.sitofp %t : i32 to f16
  simt.unroll %j < 8 {
    simt.regs.store %v to %fill[%j]
  }
  %mine = arith.muli %t, %per : i32
  simt.unroll %i < 64 {
    %far = arith.muli %i, %round : i32
    %e = arith.addi %mine, %far : i32
    simt.store %fill[%zero] to %s[%e] width 8
  }
  simt.barrier
  %row = arith.remui %t, %rows : i32
  %chunk = arith.divui %t, %rows : i32
  %bits = arith.andi %row, %swizzle : i32
  %swizzled = arith.xori %chunk, %bits : i32
  %in_row = arith.muli %swizzled, %per : i32
  %row_at = arith.muli %row, %pitch : i32
  %at = arith.addi %row_at, %in_row : i32
  %r = simt.regs.alloc : !simt.regs<[8, WIDTH], f16>
  %sum = simt.regs.alloc : !simt.regs<[], f16>
  %none = arith.constant 0.0 : f16
  simt.regs.store %none to %sum
  scf.for %o = %zero to %n step %one : i32 {
    simt.unroll %i < 8 {
      %far = arith.muli %i, %step : i32
      %e = arith.addi %at, %far : i32
      simt.ldmatrix KIND %s[%e] into %r[%i, %zero]
    }
    simt.unroll %i < 8 {
      simt.unroll %j < WIDTH {
        %a = simt.regs.load %sum
        %w = simt.regs.load %r[%i, %j]
        %p = arith.addf %a, %w : f16
        simt.regs.store %p to %sum
      }
    }
    simt.barrier
  }
  %first = arith.muli %b, %lanes : i32
  %out = arith.addi %first, %t : i32
  simt.store %sum to %y[%out] width 1
}
