// GEMM with bias and gelu as lin-to-tile leaves it: free of layouts, stages and threads; fusion was done on lin.
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
tile.kernel @gemm_0(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[a_s0, a_s1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[b_s0, b_s1]>>, %bias: !tile.buf<[N], bf16, global, #tile.strided<[bias_s0]>>, %out0: !tile.buf<[M, N], bf16, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i0, %i1) = [M ceildiv 128, N ceildiv 256] bases [a_base, b_base, bias_base, out0_base] {
  %o0 = sym.apply 128*i where i = %i0
  %o1 = sym.apply 256*i where i = %i1
  %f_c = tile.alloc : !tile.buf<[128, 256], f32, fragment>
  tile.fill %f_c with 0.000000e+00 : f32
  tile.for %k2 = 0 to K step 64 {
    %t_a = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%o0, %k2] to %t_a bounds [clip, clip] other 0.000000e+00 : bf16
    %t_b = tile.alloc : !tile.buf<[64, 256], bf16, fragment>
    tile.copy %b[%k2, %o1] to %t_b bounds [clip, clip] other 0.000000e+00 : bf16
    tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %f_c[d0, d1]
  }
  %t_bias = tile.alloc : !tile.buf<[256], bf16, fragment>
  tile.copy %bias[%o1] to %t_bias bounds [clip] other 0.000000e+00 : bf16
  %f_r = tile.alloc : !tile.buf<[128, 256], bf16, fragment>
  tile.map (d0, d1) ins(%f_c[d0, d1], %t_bias[d1]) outs(%f_r[d0, d1]) {
  ^bb0(%0: f32, %1: bf16):
    %half = arith.constant 5.000000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %root = arith.constant 0.707106769 : f32
    %yf = arith.extf %1 : bf16 to f32
    %z = arith.addf %0, %yf : f32
    %s = arith.mulf %z, %root : f32
    %t = math.erf %s : f32
    %u = arith.addf %t, %one : f32
    %v = arith.mulf %z, %half : f32
    %g = arith.mulf %v, %u : f32
    %r = arith.truncf %g : f32 to bf16
    tile.yield %r
  }
  tile.copy %f_r to %out0[%o0, %o1] bounds [clip, clip]
}
host.func @gemm(%a: tensor<?x?xbf16, #sym.dims<M, K>>, %b: tensor<?x?xbf16, #sym.dims<K, N>>, %bias: tensor<?xbf16, #sym.dims<N>>) -> (tensor<?x?xbf16, #sym.dims<M, N>>) {
  host.bind %a strides [a_s0, a_s1] base a_base
  host.bind %b strides [b_s0, b_s1] base b_base
  host.bind %bias strides [bias_s0] base bias_base
  %out0 = host.output 0 : tensor<?x?xbf16, #sym.dims<M, N>>
  host.bind %out0 strides [out0_s0, out0_s1] base out0_base
  host.launch @gemm_0(%a, %b, %bias, %out0)
}
