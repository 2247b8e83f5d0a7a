// 64 blocks of 256 threads; each thread stores 4 times, far apart. Words in capitals as in global_load.mlir.
simt.kernel @NAME(%y : !simt.global<TYPE>) threads 256 smem 0 grid [64] {
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
  %v = arith.sitofp %t : i32 to TYPE
  simt.unroll %i < 4 {
    simt.unroll %j < WIDTH {
      simt.regs.store %v to %r[%i, %j]
    }
  }
  simt.unroll %i < 4 {
    %far = arith.muli %i, %step : i32
    %e = arith.addi %at, %far : i32
    simt.store %r[%i, %zero] to %y[%e] width WIDTH MASK
  }
}
