// C = A * B in bf16 on sm_90a: a producer warpgroup fills a ring of four slots by tensor maps, two consumer warpgroups
// multiply from it (128 x 256 x 64 a block) and write their tile through shared memory. Persistent: block b takes the
// tiles b, b + grid, ..., eight rows of tiles a group. K = 0 gives zeros: the accumulators are filled.
sym.symbol @M {min = 0}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
sym.symbol @P {min = 1, source = "host"}
sym.symbol @a_s0 {source = "stride"}
sym.symbol @b_s0 {source = "stride"}
sym.symbol @c_s0 {source = "stride"}
simt.kernel @gemm(%ta: !simt.tmap<[128, 64], bf16>, %tb: !simt.tmap<[64, 64], bf16>, %tc: !simt.tmap<[64, 64], bf16>, %a: !simt.global<bf16>, %b: !simt.global<bf16>, %c: !simt.global<bf16>, %gm: i32, %gn: i32, %tiles: i32, %steps: i32, %grid: i32) threads 384 smem 229440 grid [P] params [M ceildiv 128, N ceildiv 256, (M ceildiv 128)*(N ceildiv 256), K ceildiv 64, P] maps [#simt.tensor_map<0, dims [M, K], strides [a_s0, 1], swizzle 128>, #simt.tensor_map<1, dims [K, N], strides [b_s0, 1], swizzle 128>, #simt.tensor_map<2, dims [M, N], strides [c_s0, 1], swizzle 128>] {
  %sa = simt.shared at 0 : !simt.smem<[4, 128, 64], bf16, swizzle 128>
  %sb = simt.shared at 65536 : !simt.smem<[4, 4, 64, 64], bf16, swizzle 128>
  %sc = simt.shared at 196608 : !simt.smem<[2, 2, 64, 64], bf16, swizzle 128>
  %full = simt.mbar at 229376 : !simt.mbar<4>
  %empty = simt.mbar at 229408 : !simt.mbar<4>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %c1024 = arith.constant 1024 : i32
  %c4096 = arith.constant 4096 : i32
  %c8192 = arith.constant 8192 : i32
  %c16384 = arith.constant 16384 : i32
  %tid = simt.tid
  %block = simt.block_id x
  simt.elect block {
    simt.prefetch_map %ta
    simt.prefetch_map %tb
    simt.prefetch_map %tc
    simt.mbar.init %full arrivals 1
    simt.mbar.init %empty arrivals 8
    simt.fence mbarrier_init
  }
  simt.barrier
  %per = arith.muli %gn, %c8 : i32
  simt.roles {
  role consumer warpgroups [0, 2] registers 240 {
    %wg = arith.divui %tid, %c128 : i32
    %wgtid = arith.remui %tid, %c128 : i32
    %warp = arith.divui %wgtid, %c32 : i32
    %lane = arith.remui %tid, %c32 : i32
    %acc = simt.regs.alloc : !simt.regs<[2, 64], f32>
    %zero = arith.constant 0.0 : f32
    %slot_end, %phase_end = scf.for %t = %block to %tiles step %grid iter_args(%slot0 = %c0, %phase0 = %c0) -> (i32, i32) : i32 {
      %group = arith.divui %t, %per : i32
      %first = arith.muli %group, %c8 : i32
      %left = arith.subi %gm, %first : i32
      %height = arith.minsi %left, %c8 : i32
      %before = arith.muli %group, %per : i32
      %rest = arith.subi %t, %before : i32
      %down = arith.remui %rest, %height : i32
      %i = arith.addi %first, %down : i32
      %j = arith.divui %rest, %height : i32
      %m0 = arith.muli %i, %c128 : i32
      %n0 = arith.muli %j, %c256 : i32
      simt.unroll %x < 2 {
        simt.unroll %y < 64 {
          simt.regs.store %zero to %acc[%x, %y]
        }
      }
      %slot1, %phase1, %old = scf.for %k = %c0 to %steps step %c1 iter_args(%slot = %slot0, %phase = %phase0, %previous = %c0) -> (i32, i32, i32) : i32 {
        simt.mbar.wait %full[%slot] parity %phase
        %a0 = arith.muli %slot, %c8192 : i32
        %row = arith.muli %wg, %c4096 : i32
        %a1 = arith.addi %a0, %row : i32
        %b1 = arith.muli %slot, %c16384 : i32
        simt.wgmma.fence
        simt.unroll %kk < 4 {
          %da = arith.muli %kk, %c16 : i32
          %db = arith.muli %kk, %c1024 : i32
          %a2 = arith.addi %a1, %da : i32
          %b2 = arith.addi %b1, %db : i32
          simt.wgmma m64n256k16 %sa[%a2] k lbo 16 sbo 1024, %sb[%b2] mn lbo 8192 sbo 1024 into %acc[%c0, %c0]
        }
        simt.wgmma.commit
        %later = arith.cmpi ne, %k, %c0 : i32
        scf.if %later {
          simt.wgmma.wait 1
          simt.elect warp {
            simt.mbar.arrive %empty[%previous]
          }
        }
        %next = arith.addi %slot, %c1 : i32
        %wrapped = arith.cmpi eq, %next, %c4 : i32
        %slot2 = arith.select %wrapped, %c0, %next : i32
        %flipped = arith.xori %phase, %c1 : i32
        %phase2 = arith.select %wrapped, %flipped, %phase : i32
        scf.yield %slot2, %phase2, %slot : i32, i32, i32
      }
      simt.wgmma.wait 0 of %acc
      %some = arith.cmpi ne, %steps, %c0 : i32
      scf.if %some {
        simt.elect warp {
          simt.mbar.arrive %empty[%old]
        }
      }
      simt.unroll %panel < 4 {
        %buffer = arith.remui %panel, %c2 : i32
        %base0 = arith.muli %wg, %c8192 : i32
        %base1 = arith.muli %buffer, %c4096 : i32
        %base = arith.addi %base0, %base1 : i32
        simt.elect warpgroup {
          simt.bulk.wait 1 read
        }
        simt.named_barrier 1 threads 256
        simt.unroll %q < 4 {
          %eight = simt.regs.alloc : !simt.regs<[8], bf16>
          simt.unroll %h < 2 {
            simt.unroll %x < 2 {
              simt.unroll %e < 2 {
                %col0 = arith.muli %panel, %c16 : i32
                %col1 = arith.muli %q, %c4 : i32
                %col2 = arith.muli %h, %c2 : i32
                %col3 = arith.addi %col0, %col1 : i32
                %col4 = arith.addi %col3, %col2 : i32
                %col = arith.addi %col4, %e : i32
                %wide = simt.regs.load %acc[%x, %col]
                %v = arith.truncf %wide : f32 to bf16
                %p0 = arith.muli %h, %c4 : i32
                %p1 = arith.muli %x, %c2 : i32
                %p2 = arith.addi %p0, %p1 : i32
                %p = arith.addi %p2, %e : i32
                simt.regs.store %v to %eight[%p]
              }
            }
          }
          %l16 = arith.remui %lane, %c16 : i32
          %half = arith.divui %lane, %c16 : i32
          %w16 = arith.muli %warp, %c16 : i32
          %row = arith.addi %w16, %l16 : i32
          %place0 = arith.muli %row, %c64 : i32
          %place1 = arith.muli %q, %c16 : i32
          %place2 = arith.muli %half, %c8 : i32
          %place3 = arith.addi %place0, %place1 : i32
          %place4 = arith.addi %place3, %place2 : i32
          %place = arith.addi %base, %place4 : i32
          simt.stmatrix %eight[%c0] to %sc[%place]
        }
        simt.fence async
        simt.named_barrier 1 threads 256
        simt.elect warpgroup {
          %m1 = arith.muli %wg, %c64 : i32
          %m = arith.addi %m0, %m1 : i32
          %n1 = arith.muli %panel, %c64 : i32
          %n = arith.addi %n0, %n1 : i32
          simt.tma.store %sc[%base] to %tc[%m, %n]
          simt.bulk.commit
        }
      }
      scf.yield %slot1, %phase1 : i32, i32
    }
    simt.elect warpgroup {
      simt.bulk.wait 0
    }
  }
  role producer warpgroups [2, 3] registers 24 {
    simt.elect role {
      %slot_end, %phase_end = scf.for %t = %block to %tiles step %grid iter_args(%slot0 = %c0, %phase0 = %c1) -> (i32, i32) : i32 {
        %group = arith.divui %t, %per : i32
        %first = arith.muli %group, %c8 : i32
        %left = arith.subi %gm, %first : i32
        %height = arith.minsi %left, %c8 : i32
        %before = arith.muli %group, %per : i32
        %rest = arith.subi %t, %before : i32
        %down = arith.remui %rest, %height : i32
        %i = arith.addi %first, %down : i32
        %j = arith.divui %rest, %height : i32
        %m0 = arith.muli %i, %c128 : i32
        %n0 = arith.muli %j, %c256 : i32
        %slot1, %phase1 = scf.for %k = %c0 to %steps step %c1 iter_args(%slot = %slot0, %phase = %phase0) -> (i32, i32) : i32 {
          simt.mbar.wait %empty[%slot] parity %phase
          simt.mbar.expect %full[%slot] bytes 49152
          %k0 = arith.muli %k, %c64 : i32
          %a0 = arith.muli %slot, %c8192 : i32
          simt.tma.load %ta[%m0, %k0] to %sa[%a0] signal %full[%slot]
          %b0 = arith.muli %slot, %c16384 : i32
          simt.unroll %panel < 4 {
            %b1 = arith.muli %panel, %c4096 : i32
            %b2 = arith.addi %b0, %b1 : i32
            %n1 = arith.muli %panel, %c64 : i32
            %n = arith.addi %n0, %n1 : i32
            simt.tma.load %tb[%k0, %n] to %sb[%b2] signal %full[%slot]
          }
          %next = arith.addi %slot, %c1 : i32
          %wrapped = arith.cmpi eq, %next, %c4 : i32
          %slot2 = arith.select %wrapped, %c0, %next : i32
          %flipped = arith.xori %phase, %c1 : i32
          %phase2 = arith.select %wrapped, %flipped, %phase : i32
          scf.yield %slot2, %phase2 : i32, i32
        }
        scf.yield %slot1, %phase1 : i32, i32
      }
    }
  }
  }
}
