// 64 blocks of 256 threads; each thread loads 4 times, far apart, and stores the sum. Words in capitals are filled in by
// counters.py: lane order (t xor FLIP) / DIVIDE, elements SCALE apart from OFFSET on, lanes FROM up to TO and one in EVERY.
simt.kernel @NAME(%x : !simt.global<TYPE>, %y : !simt.global<TYPE>) threads 256 smem 0 grid [64] {
  %t = simt.tid
  %b = simt.block_id x
  %zero = arith.constant 0 : i32
  %threads = arith.constant 256 : i32
  %lanes = arith.constant 32 : i32
  %flip = arith.constant FLIP : i32
  %divide = arith.constant DIVIDE : i32
  %scale = arith.constant SCALE : i32
  %offset = arith.constant OFFSET : i32
  %step = arith.constant STEP : i32
  %from = arith.constant FROM : i32
  %to = arith.constant TO : i32
  %every = arith.constant EVERY : i32
  %first = arith.muli %b, %threads : i32
  %flipped = arith.xori %t, %flip : i32
  %place = arith.divui %flipped, %divide : i32
  %element = arith.addi %first, %place : i32
  %scaled = arith.muli %element, %scale : i32
  %at = arith.addi %scaled, %offset : i32
  %lane = arith.remui %t, %lanes : i32
  %above = arith.cmpi uge, %lane, %from : i32
  %below = arith.cmpi ult, %lane, %to : i32
  %rest = arith.remui %lane, %every : i32
  %chosen = arith.cmpi eq, %rest, %zero : i32
  %within = arith.andi %above, %below : i1
  %m = arith.andi %within, %chosen : i1
  %r = simt.regs.alloc : !simt.regs<[4, WIDTH], TYPE>
  %sum = simt.regs.alloc : !simt.regs<[], TYPE>
  %none = arith.constant 0.0 : TYPE
  simt.regs.store %none to %sum
  simt.unroll %i < 4 {
    %far = arith.muli %i, %step : i32
    %e = arith.addi %at, %far : i32
    simt.load %x[%e] into %r[%i, %zero] width WIDTH MASK
  }
  simt.unroll %i < 4 {
    simt.unroll %j < WIDTH {
      %a = simt.regs.load %sum
      %v = simt.regs.load %r[%i, %j]
      %s = arith.addf %a, %v : TYPE
      simt.regs.store %s to %sum
    }
  }
  %out = arith.addi %first, %t : i32
  simt.store %sum to %y[%out] width 1
}
