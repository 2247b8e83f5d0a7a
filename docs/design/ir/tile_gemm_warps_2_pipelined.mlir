// The same, once copies run ahead: asynchronous copies fill two of three slots before the loop, and in each turn the
// slot after these (a loop of at most one turn), while the one that was received is multiplied.
// tilewright-opt tile_gemm_warps_1_chosen.mlir -p 'make-persistent,pipeline-copies,share-copies,specialise-warps,finish-schedule,
// insert-barriers,remove-barriers,allocate-shared'
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
tile.kernel @gemm_0_vector32(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, 1]>>, %bias: !tile.buf<[N], bf16, global, #tile.strided<[1]>>, %out0: !tile.buf<[M, N], bf16, global, #tile.strided<[out0_s0, 1]>>) grid (%i0, %i1) = [M ceildiv 128, N ceildiv 256] threads 256 index_width 32 arch sm_80 assumes [a_s1 == 1, a_s0 mod 8 == 0, K mod 8 == 0, a_base mod 16 == 0, b_s1 == 1, b_s0 mod 8 == 0, N mod 8 == 0, b_base mod 16 == 0, bias_s0 == 1, bias_base mod 16 == 0, out0_s1 == 1, out0_s0 mod 8 == 0, out0_base mod 16 == 0] bases [a_base, b_base, bias_base, out0_base] {
  %ring = tile.channel at [0, 49152] : !tile.channel<3, !tile.buf<[128, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 256], bf16, shared, #tile.swizzled<128, 1>>>
  %o0 = sym.apply 128*i where i = %i0
  %o1 = sym.apply 256*i where i = %i1
  %f_c = tile.alloc : !tile.buf<[128, 256], f32, fragment, #tile.mixed<[8:4, 2, 2:32, 4], [2, 4:1, 8, 4:64]>>
  tile.fill %f_c with 0.000000e+00 : f32
  tile.for %k2 = 0 to min(K, 128) step 64 {
    %t_a, %t_b = tile.acquire %ring
    tile.copy %a[%o0, %k2] to %t_a bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8 dist #tile.distributed<threads [32, 8] strides [8, 1] vector [1, 8]>
    tile.copy %b[%k2, %o1] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8 dist #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 8]>
    tile.publish %ring
  }
  tile.for %k2_1 = 0 to K step 64 {
    %t_a_1, %t_b_1 = tile.receive %ring
    tile.for %k2_2 = k + 128 to min(K, k + 192) step 64 where k = %k2_1 {
      %t_a_2, %t_b_2 = tile.acquire %ring
      tile.copy %a[%o0, %k2_2] to %t_a_2 bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8 dist #tile.distributed<threads [32, 8] strides [8, 1] vector [1, 8]>
      tile.copy %b[%k2_2, %o1] to %t_b_2 bounds [clip, clip] other 0.000000e+00 : bf16 via cp.async width 8 store_width 8 dist #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 8]>
      tile.publish %ring
    }
    tile.mma (d0, d1, d2) %t_a_1[d0, d2], %t_b_1[d2, d1] into %f_c[d0, d1] inst mma.sync
    tile.release %ring
  }
  tile.for %panel = 0 to 128 step 32 unroll 4 {
    %t_bias = tile.alloc : !tile.buf<[256], bf16, fragment, #tile.mixed<[2, 4:1, 8, 4:64]>>
    tile.copy %bias[%o1] to %t_bias bounds [clip] other 0.000000e+00 : bf16 via thread width 2
    %f_r = tile.alloc : !tile.buf<[32, 256], bf16, fragment, #tile.mixed<[8:4, 2, 2:32], [2, 4:1, 8, 4:64]>>
    %0 = sym.apply 0
    %f_c_1 = tile.slice %f_c[%panel, %0] : !tile.buf<[32, 256], f32, fragment, #tile.mixed<[8:4, 2, 2:32], [2, 4:1, 8, 4:64]>>
    tile.map (d0, d1) ins(%f_c_1[d0, d1], %t_bias[d1]) outs(%f_r[d0, d1]) {
    ^bb0(%1: f32, %2: bf16):
      %half = arith.constant 5.000000e-01 : f32
      %one = arith.constant 1.000000e+00 : f32
      %root = arith.constant 0.707106769 : f32
      %yf = arith.extf %2 : bf16 to f32
      %z = arith.addf %1, %yf : f32
      %s = arith.mulf %z, %root : f32
      %t = math.erf %s : f32
      %u = arith.addf %t, %one : f32
      %v = arith.mulf %z, %half : f32
      %g = arith.mulf %v, %u : f32
      %r = arith.truncf %g : f32 to bf16
      tile.yield %r
    }
    %3 = sym.apply o + p where o = %o0, p = %panel
    tile.copy %f_r to %out0[%3, %o1] bounds [clip, clip] via thread width 2
  }
}
