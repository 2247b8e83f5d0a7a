// One warp a block stores to shared memory in %n rounds of 8, 4 KiB apart, with a barrier behind each round. Words in
// capitals as in shared_load.mlir.
simt.kernel @NAME(%y : !simt.global<TYPE>, %n : i32) threads 32 smem 32768 grid [256] params [32] {
  %t = simt.tid
  %b = simt.block_id x
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %lanes = arith.constant 32 : i32
  %scale = arith.constant SCALE : i32
  %step = arith.constant STEP : i32
  %from = arith.constant FROM : i32
  %to = arith.constant TO : i32
  %every = arith.constant EVERY : i32
  %s = simt.shared at 0 : !simt.smem<[COUNT], TYPE>
  %above = arith.cmpi uge, %t, %from : i32
  %below = arith.cmpi ult, %t, %to : i32
  %rest = arith.remui %t, %every : i32
  %chosen = arith.cmpi eq, %rest, %zero : i32
  %within = arith.andi %above, %below : i1
  %m = arith.andi %within, %chosen : i1
  %at = arith.muli %t, %scale : i32
  %r = simt.regs.alloc : !simt.regs<[8, WIDTH], TYPE>
  %v = arith.sitofp %t : i32 to TYPE
  simt.unroll %i < 8 {
    simt.unroll %j < WIDTH {
      simt.regs.store %v to %r[%i, %j]
    }
  }
  scf.for %o = %zero to %n step %one : i32 {
    simt.unroll %i < 8 {
      %far = arith.muli %i, %step : i32
      %e = arith.addi %at, %far : i32
      simt.store %r[%i, %zero] to %s[%e] width WIDTH MASK
    }
    simt.barrier
  }
  %first = simt.regs.alloc : !simt.regs<[], TYPE>
  simt.load %s[%zero] into %first width 1
  %block = arith.muli %b, %lanes : i32
  %out = arith.addi %block, %t : i32
  simt.store %first to %y[%out] width 1
}
