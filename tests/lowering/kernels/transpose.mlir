sym.symbol @M {min = 0, max = 4194304}
sym.symbol @N {min = 0}
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
tile.kernel @transpose(%x : !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y : !tile.buf<[N, M], f32, global, #tile.strided<[M, 1]>>) grid (%i, %j) = [N ceildiv 32, M ceildiv 32] threads 256 index_width 32 {
  %n0 = sym.apply 32*i where i = %i
  %m0 = sym.apply 32*j where j = %j
  %s = tile.alloc at 0 : !tile.buf<[32, 32], f32, shared, #tile.strided<[33, 1]>>
  tile.copy %x[%m0, %n0] to %s bounds [clip, clip] other 0.0 : f32 via thread width 1 dist #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [32, 8] strides [1, 32] vector [1, 1]>>
  %o = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>>
  tile.sync
  tile.copy %s to %f via thread width 1
  tile.map (d0, d1) ins(%f[d1, d0]) outs(%o[d0, d1]) {
  ^bb0(%a : f32):
    tile.yield %a
  }
  tile.copy %o to %y[%n0, %m0] bounds [clip, clip] via thread width 1
}
