// As ring_gemm.mlir, in clusters of two blocks: they take tiles that are neighbours along the rows, so both need the same
// columns of B. Each fetches half of the rows of that tile for both. Lines end in a mark by which a test replaces them.
sym.symbol @M {min = 0}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
simt.kernel @gemm(%ta: !simt.tmap<[64, 64], bf16>, %tb: !simt.tmap<[32, 64], bf16>, %tc: !simt.tmap<[64, 64], bf16>, %a: !simt.global<bf16>, %b: !simt.global<bf16>, %c: !simt.global<bf16>, %gn: i32, %tiles: i32, %steps: i32) threads 256 smem 41984 grid [2*(M ceildiv 128)*(N ceildiv 64)] cluster 2 persistent params [N ceildiv 64, 2*(M ceildiv 128)*(N ceildiv 64), K ceildiv 64] maps [#simt.tensor_map<0, dims [M, K], strides [K, 1], swizzle 128>, #simt.tensor_map<1, dims [K, N], strides [N, 1], swizzle 128>, #simt.tensor_map<2, dims [M, N], strides [N, 1], swizzle 128>] {
  %sa = simt.shared at 0 : !simt.smem<[2, 64, 64], bf16, swizzle 128>
  %sb = simt.shared at 16384 : !simt.smem<[2, 64, 64], bf16, swizzle 128>
  %sc = simt.shared at 32768 : !simt.smem<[64, 64], bf16, swizzle 128>
  %full = simt.mbar at 40960 : !simt.mbar<2>
  %empty = simt.mbar at 40976 : !simt.mbar<2>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %c2048 = arith.constant 2048 : i32
  %c4096 = arith.constant 4096 : i32
  %tid = simt.tid
  %block = simt.block_id x
  %grid = simt.grid_dim
  %rank = simt.cluster_rank
  simt.elect block {
    simt.mbar.init %full arrivals 1
    simt.mbar.init %empty arrivals 8  // empty arrivals
    simt.fence mbarrier_init  // init fence
  }
  simt.cluster_barrier  // init barrier
  simt.roles {
  role consumer warpgroups [0, 1] registers 240 {
    %warp = arith.divui %tid, %c32 : i32
    %lane = arith.remui %tid, %c32 : i32
    %acc = simt.regs.alloc : !simt.regs<[2, 16], f32>
    %zero = arith.constant 0.0 : f32
    %slot_end, %phase_end = scf.for %t = %block to %tiles step %grid iter_args(%slot0 = %c0, %phase0 = %c0) -> (i32, i32) : i32 {  // consumer starts
      %pair = arith.divui %t, %c2 : i32
      %down = arith.divui %pair, %gn : i32
      %first = arith.muli %down, %c2 : i32
      %i = arith.addi %first, %rank : i32
      %j = arith.remui %pair, %gn : i32
      %m0 = arith.muli %i, %c64 : i32
      %n0 = arith.muli %j, %c64 : i32
      simt.unroll %x < 2 {
        simt.unroll %y < 16 {
          simt.regs.store %zero to %acc[%x, %y]
        }
      }
      %slot1, %phase1, %old = scf.for %k = %c0 to %steps step %c1 iter_args(%slot = %slot0, %phase = %phase0, %previous = %c0) -> (i32, i32, i32) : i32 {
        simt.mbar.wait %full[%slot] parity %phase  // full wait
        %a0 = arith.muli %slot, %c4096 : i32
        simt.wgmma.fence  // wgmma fence
        simt.unroll %kk < 4 {
          %da = arith.muli %kk, %c16 : i32
          %db = arith.muli %kk, %c1024 : i32
          %a1 = arith.addi %a0, %da : i32
          %b1 = arith.addi %a0, %db : i32
          simt.wgmma m64n64k16 %sa[%a1] k lbo 16 sbo 1024, %sb[%b1] mn lbo 8192 sbo 1024 into %acc[%c0, %c0]  // wgmma
        }
        simt.wgmma.commit  // commit
        %later = arith.cmpi ne, %k, %c0 : i32
        scf.if %later {
          simt.wgmma.wait 1  // wait 1
          simt.elect warp {
            simt.mbar.arrive %empty[%previous] at %c0  // release
            simt.mbar.arrive %empty[%previous] at %c1  // second release
          }
        }
        %next = arith.addi %slot, %c1 : i32
        %wrapped = arith.cmpi eq, %next, %c2 : i32
        %slot2 = arith.select %wrapped, %c0, %next : i32
        %flipped = arith.xori %phase, %c1 : i32
        %phase2 = arith.select %wrapped, %flipped, %phase : i32
        scf.yield %slot2, %phase2, %slot : i32, i32, i32
      }
      simt.wgmma.wait 0 of %acc  // wait 0
      %some = arith.cmpi ne, %steps, %c0 : i32
      scf.if %some {
        simt.elect warp {
          simt.mbar.arrive %empty[%old] at %c0  // last release
          simt.mbar.arrive %empty[%old] at %c1  // second last release
        }
      }
      simt.elect warpgroup {
        simt.bulk.wait 0 read  // bulk wait read
      }
      simt.named_barrier 1 threads 128  // barrier before stmatrix
      simt.unroll %q < 4 {
        %eight = simt.regs.alloc : !simt.regs<[8], bf16>
        simt.unroll %h < 2 {
          simt.unroll %x < 2 {
            simt.unroll %e < 2 {
              %col0 = arith.muli %q, %c4 : i32
              %col1 = arith.muli %h, %c2 : i32
              %col2 = arith.addi %col0, %col1 : i32
              %col = arith.addi %col2, %e : i32
              %wide = simt.regs.load %acc[%x, %col]  // accumulator
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
        %place = arith.addi %place3, %place2 : i32
        simt.stmatrix %eight[%c0] to %sc[%place]  // stmatrix
      }
      simt.fence async  // fence async
      simt.named_barrier 1 threads 128  // barrier after stmatrix
      simt.elect warpgroup {
        simt.tma.store %sc[%c0] to %tc[%m0, %n0]  // store
        simt.bulk.commit  // bulk commit
      }
      scf.yield %slot1, %phase1 : i32, i32
    }
    simt.elect warpgroup {
      simt.bulk.wait 0  // last bulk wait
    }
  }
  role producer warpgroups [1, 2] registers 24 {
    simt.elect role {
      %slot_end, %phase_end = scf.for %t = %block to %tiles step %grid iter_args(%slot0 = %c0, %phase0 = %c1) -> (i32, i32) : i32 {  // producer starts
        %pair = arith.divui %t, %c2 : i32
      %down = arith.divui %pair, %gn : i32
      %first = arith.muli %down, %c2 : i32
      %i = arith.addi %first, %rank : i32
        %j = arith.remui %pair, %gn : i32
        %m0 = arith.muli %i, %c64 : i32
        %n0 = arith.muli %j, %c64 : i32
        %slot1, %phase1 = scf.for %k = %c0 to %steps step %c1 iter_args(%slot = %slot0, %phase = %phase0) -> (i32, i32) : i32 {
          %other = arith.xori %slot, %c1 : i32
          simt.mbar.wait %empty[%slot] parity %phase  // empty wait
          simt.mbar.expect %full[%slot] bytes 16384  // expect
          %k0 = arith.muli %k, %c64 : i32
          %a0 = arith.muli %slot, %c4096 : i32
          simt.tma.load %ta[%m0, %k0] to %sa[%a0] signal %full[%slot]  // load a
          %half = arith.muli %rank, %c32 : i32
          %kb = arith.addi %k0, %half : i32
          %skip = arith.muli %rank, %c2048 : i32
          %b0 = arith.addi %a0, %skip : i32
          simt.tma.load %tb[%kb, %n0] to %sb[%b0] signal %full[%slot] multicast [0, 1]  // load b
          %wrapped = arith.cmpi eq, %slot, %c1 : i32
          %flipped = arith.xori %phase, %c1 : i32
          %phase2 = arith.select %wrapped, %flipped, %phase : i32
          scf.yield %other, %phase2 : i32, i32
        }
        scf.yield %slot1, %phase1 : i32, i32
      }
      EXTRA  // after the producer's loop
    }
  }
  }
  simt.cluster_barrier  // end barrier
}
