// 2-D transpose through shared memory, scheduled: read along rows, padded by counting bank conflicts, turned by the maps of tile.map.
sym.symbol @M
sym.symbol @N
sym.symbol @a_s0 {source = "stride"}
sym.symbol @a_s1 {source = "stride"}
sym.symbol @a_base {source = "base"}
sym.symbol @out0_s0 {source = "stride"}
sym.symbol @out0_s1 {source = "stride"}
sym.symbol @out0_base {source = "base"}
tile.kernel @main_0(%a: !tile.buf<[M, N], f32, global, #tile.strided<[a_s0, a_s1]>>, %out0: !tile.buf<[N, M], f32, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i0, %i1) = [N ceildiv 32, M ceildiv 32] threads 256 index_width 64 bases [a_base, out0_base] {
  %o0 = sym.apply 32*i where i = %i0
  %o1 = sym.apply 32*i where i = %i1
  %t_a = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [32, 8] strides [1, 32] vector [1, 1]>>
  %s_t_a = tile.alloc at 0 : !tile.buf<[32, 32], f32, shared, #tile.strided<[33, 1]>>
  tile.copy %a[%o1, %o0] to %s_t_a bounds [clip, clip] other 0.000000e+00 : f32 via thread width 1 dist #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>
  tile.sync
  tile.copy %s_t_a to %t_a via thread width 1
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>>
  tile.map (d0, d1) ins(%t_a[d1, d0]) outs(%f[d0, d1]) {
  ^bb0(%0: f32):
    tile.yield %0
  }
  tile.copy %f to %out0[%o0, %o1] bounds [clip, clip] via thread width 1
}
host.func @main(%a: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?x?xf32, #sym.dims<N, M>>) {
  host.bind %a strides [a_s0, a_s1] base a_base
  %out0 = host.output 0 : tensor<?x?xf32, #sym.dims<N, M>>
  host.bind %out0 strides [out0_s0, out0_s1] base out0_base
  host.launch @main_0(%a, %out0)
}
