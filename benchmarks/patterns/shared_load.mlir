// One warp a block fills 32 KiB, then loads in %n rounds of 8, 4 KiB apart; a barrier behind each round keeps the compiler
// from merging it with the next. Words in capitals are filled in by counters.py: groups of DIVIDE lanes read one place,
// as do lanes that differ in bits outside of KEEP, places SCALE elements apart, lanes FROM up to TO and one in EVERY, COUNT
// elements in all, PER of them in 16 bytes.
simt.kernel @NAME(%y : !simt.global<TYPE>, %n : i32) threads 32 smem 32768 grid [256] params [32] {
  %t = simt.tid
  %b = simt.block_id x
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %lanes = arith.constant 32 : i32
  %per = arith.constant PER : i32
  %round = arith.constant ROUND : i32
  %scale = arith.constant SCALE : i32
  %divide = arith.constant DIVIDE : i32
  %step = arith.constant STEP : i32
  %from = arith.constant FROM : i32
  %to = arith.constant TO : i32
  %every = arith.constant EVERY : i32
  %s = simt.shared at 0 : !simt.smem<[COUNT], TYPE>
  %fill = simt.regs.alloc : !simt.regs<[PER], TYPE>
  %v = arith.sitofp %t : i32 to TYPE
  simt.unroll %j < PER {
    simt.regs.store %v to %fill[%j]
  }
  %mine = arith.muli %t, %per : i32
  simt.unroll %i < 64 {
    %far = arith.muli %i, %round : i32
    %e = arith.addi %mine, %far : i32
    simt.store %fill[%zero] to %s[%e] width PER
  }
  simt.barrier
  %above = arith.cmpi uge, %t, %from : i32
  %below = arith.cmpi ult, %t, %to : i32
  %rest = arith.remui %t, %every : i32
  %chosen = arith.cmpi eq, %rest, %zero : i32
  %within = arith.andi %above, %below : i1
  %m = arith.andi %within, %chosen : i1
  %keep = arith.constant KEEP : i32
  %kept = arith.andi %t, %keep : i32
  %place = arith.divui %kept, %divide : i32
  %at = arith.muli %place, %scale : i32
  %r = simt.regs.alloc : !simt.regs<[8, WIDTH], TYPE>
  %sum = simt.regs.alloc : !simt.regs<[], TYPE>
  %none = arith.constant 0.0 : TYPE
  simt.regs.store %none to %sum
  scf.for %o = %zero to %n step %one : i32 {
    simt.unroll %i < 8 {
      %far = arith.muli %i, %step : i32
      %e = arith.addi %at, %far : i32
      simt.load %s[%e] into %r[%i, %zero] width WIDTH MASK
    }
    simt.unroll %i < 8 {
      simt.unroll %j < WIDTH {
        %a = simt.regs.load %sum
        %w = simt.regs.load %r[%i, %j]
        %p = arith.addf %a, %w : TYPE
        simt.regs.store %p to %sum
      }
    }
    simt.barrier
  }
  %first = arith.muli %b, %lanes : i32
  %out = arith.addi %first, %t : i32
  simt.store %sum to %y[%out] width 1
}
