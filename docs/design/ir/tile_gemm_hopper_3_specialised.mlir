// The same, scheduled: two warpgroups multiply and store, a third fills slots. Nothing is open: the next step is tile-to-simt.
// tilewright-opt tile_gemm_hopper_2_pipelined.mlir -p 'specialise-warps,finish-schedule,insert-barriers,
// remove-barriers,allocate-shared'
sym.symbol @M {min = 0}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
sym.symbol @a_s0 {source = "stride"}
sym.symbol @a_s1 {source = "stride"}
sym.symbol @a_base {source = "base"}
sym.symbol @b_s0 {source = "stride"}
sym.symbol @b_s1 {source = "stride"}
sym.symbol @b_base {source = "base"}
sym.symbol @bias_s0 {source = "stride"}
sym.symbol @bias_base {source = "base"}
sym.symbol @out0_s0 {source = "stride"}
sym.symbol @out0_s1 {source = "stride"}
sym.symbol @out0_base {source = "base"}
tile.kernel @gemm_0_vector32(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, 1]>>, %bias: !tile.buf<[N], bf16, global, #tile.strided<[1]>>, %out0: !tile.buf<[M, N], bf16, global, #tile.strided<[out0_s0, 1]>>) grid (%block) = [(M ceildiv 128)*(N ceildiv 256)] threads 384 index_width 32 arch sm_90a persistent assumes [a_s1 == 1, a_s0 mod 8 == 0, K mod 8 == 0, a_base mod 16 == 0, b_s1 == 1, b_s0 mod 8 == 0, N mod 8 == 0, b_base mod 16 == 0, bias_s0 == 1, bias_base mod 16 == 0, out0_s1 == 1, out0_s0 mod 8 == 0, out0_base mod 16 == 0] bases [a_base, b_base, bias_base, out0_base] {
  %ring = tile.channel at [0, 65536] barriers 229376 : !tile.channel<4, !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 256], bf16, shared, #tile.swizzled<128, 1>>>
  %staged = tile.channel at [196608] : !tile.channel<2, !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>>
  tile.roles {
    role consumer warpgroups [0, 2] registers 240 {
      %blocks = tile.block_count
      tile.for %tile = b to (M ceildiv 128)*(N ceildiv 256) step n where b = %block, n = %blocks {
        %i0, %i1 = tile.raster %tile in [M ceildiv 128, N ceildiv 256] group 8
        %o0 = sym.apply 128*i where i = %i0
        %o1 = sym.apply 256*i where i = %i1
        %f_c = tile.alloc : !tile.buf<[128, 256], f32, fragment, #tile.mixed<[8:4, 2, 4:32, 2:128], [2, 4:1, 32]>>
        tile.fill %f_c with 0.000000e+00 : f32
        tile.for %k2 = 0 to K step 64 {
          %t_a, %t_b = tile.receive %ring
          tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %f_c[d0, d1] inst wgmma
          tile.release %ring lag 1
        }
        tile.release %ring
        tile.for %panel = 0 to 256 step 64 unroll 4 {
          %0 = tile.acquire %staged
          %t_bias = tile.alloc : !tile.buf<[64], bf16, fragment, #tile.mixed<[2, 4:1, 8]>>
          %1 = sym.apply o + p where o = %o1, p = %panel
          tile.copy %bias[%1] to %t_bias bounds [clip] other 0.000000e+00 : bf16 via thread width 2
          %f_r = tile.alloc : !tile.buf<[128, 64], bf16, fragment, #tile.mixed<[8:4, 2, 4:32, 2:128], [2, 4:1, 8]>>
          %2 = sym.apply 0
          %f_c_1 = tile.slice %f_c[%2, %panel] : !tile.buf<[128, 64], f32, fragment, #tile.mixed<[8:4, 2, 4:32, 2:128], [2, 4:1, 8]>>
          tile.map (d0, d1) ins(%f_c_1[d0, d1], %t_bias[d1]) outs(%f_r[d0, d1]) {
          ^bb0(%3: f32, %4: bf16):
            %half = arith.constant 5.000000e-01 : f32
            %one = arith.constant 1.000000e+00 : f32
            %root = arith.constant 0.707106769 : f32
            %yf = arith.extf %4 : bf16 to f32
            %z = arith.addf %3, %yf : f32
            %s = arith.mulf %z, %root : f32
            %t = math.erf %s : f32
            %u = arith.addf %t, %one : f32
            %v = arith.mulf %z, %half : f32
            %g = arith.mulf %v, %u : f32
            %r = arith.truncf %g : f32 to bf16
            tile.yield %r
          }
          %5 = sym.apply o + p where o = %o1, p = %panel
          tile.copy %f_r to %0 via stmatrix
          tile.publish %staged
          %6 = tile.receive %staged
          tile.copy %6 to %out0[%o0, %5] bounds [clip, clip] via tma
          tile.release %staged lag 1
        }
      }
      tile.release %staged
    }
    role producer warpgroups [2, 3] registers 24 {
      %blocks_1 = tile.block_count
      tile.for %tile_1 = b to (M ceildiv 128)*(N ceildiv 256) step n where b = %block, n = %blocks_1 {
        %i0_1, %i1_1 = tile.raster %tile_1 in [M ceildiv 128, N ceildiv 256] group 8
        %o0_1 = sym.apply 128*i where i = %i0_1
        %o1_1 = sym.apply 256*i where i = %i1_1
        tile.for %k2_1 = 0 to K step 64 {
          %t_a_1, %t_b_1 = tile.acquire %ring
          tile.copy %a[%o0_1, %k2_1] to %t_a_1 bounds [clip, clip] other 0.000000e+00 : bf16 via tma
          tile.copy %b[%k2_1, %o1_1] to %t_b_1 bounds [clip, clip] other 0.000000e+00 : bf16 via tma
          tile.publish %ring
        }
      }
    }
  }
}
