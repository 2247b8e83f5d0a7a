sym.symbol @M {min = 0, max = 65536}
sym.symbol @N {min = 0, max = 65536}
sym.symbol @K {min = 0, max = 65536}
sym.symbol @a_s0 {source = "stride"}
sym.symbol @a_s1 {source = "stride"}
tile.kernel @matmul(%a : !tile.buf<[M, K], f32, global, #tile.strided<[a_s0, a_s1]>>, %b : !tile.buf<[K, N], f32, global, #tile.strided<[N, 1]>>, %bias : !tile.buf<[N], f32, global, #tile.strided<[1]>>, %c : !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] threads 256 index_width 32 {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 64*j where j = %j
  %sa = tile.alloc at 0 : !tile.buf<[64, 16], f32, shared, #tile.strided<[17, 1]>>
  %sb = tile.alloc at 4352 : !tile.buf<[16, 64], f32, shared, #tile.strided<[64, 1]>>
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment, #tile.distributed<threads [16, 16] strides [16, 1] vector [1, 1]>>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 16 {
    tile.sync
    tile.copy %a[%m0, %k] to %sa bounds [clip, clip] other 0.0 : f32 via thread width 1 dist #tile.distributed<threads [16, 16] strides [16, 1] vector [1, 1]>
    tile.copy %b[%k, %n0] to %sb bounds [clip, clip] other 0.0 : f32 via thread width 1 dist #tile.distributed<threads [4, 64] strides [64, 1] vector [1, 1]>
    tile.sync
    tile.for %kk = 0 to 16 step 1 unroll 16 {
      %z = sym.apply 0
      %ta = tile.alloc : !tile.buf<[64, 1], f32, fragment, #tile.distributed<threads [16, 1] strides [16, 1] vector [1, 1]>>
      tile.copy %sa[%z, %kk] to %ta via thread width 1
      %tb = tile.alloc : !tile.buf<[1, 64], f32, fragment, #tile.distributed<threads [1, 16] strides [1, 1] vector [1, 1]>>
      tile.copy %sb[%kk, %z] to %tb via thread width 1
      tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1] inst fma
    }
  }
  %tbias = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [16] strides [1] vector [1]>>
  tile.copy %bias[%n0] to %tbias bounds [clip] other 0.0 : f32 via thread width 1
  %out = tile.alloc : !tile.buf<[64, 64], f32, fragment, #tile.distributed<threads [16, 16] strides [16, 1] vector [1, 1]>>
  tile.map (d0, d1) ins(%acc[d0, d1], %tbias[d1]) outs(%out[d0, d1]) {
  ^bb0(%x : f32, %y : f32):
    %s = arith.addf %x, %y : f32
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %s, %zero : f32
    tile.yield %r
  }
  tile.copy %out to %c[%m0, %n0] bounds [clip, clip] via thread width 1
}
