// i8 operands, i32 sums, batched; the operands of a block stay in registers, the summed dim in one thread.
sym.symbol @B {min = 0, max = 256}
sym.symbol @M {min = 0, max = 4096}
sym.symbol @N {min = 0, max = 4096}
sym.symbol @K {min = 0, max = 4096}
tile.kernel @integer_matmul(%a : !tile.buf<[B, M, K], i8, global, #tile.strided<[K*M, K, 1]>>, %b : !tile.buf<[B, K, N], i8, global, #tile.strided<[K*N, N, 1]>>, %c : !tile.buf<[B, M, N], i32, global, #tile.strided<[M*N, N, 1]>>) grid (%h, %i, %j) = [B, M ceildiv 8, N ceildiv 8] threads 32 index_width 32 {
  %m0 = sym.apply 8*i where i = %i
  %n0 = sym.apply 8*j where j = %j
  %acc = tile.alloc : !tile.buf<[1, 8, 8], i32, fragment, #tile.distributed<threads [1, 4, 8] strides [1, 8, 1] vector [1, 2, 1]>>
  tile.fill %acc with 0 : i32
  tile.for %k = 0 to K step 4 unroll 2 {
    %ta = tile.alloc : !tile.buf<[1, 8, 4], i8, fragment, #tile.distributed<threads [1, 4, 1] strides [1, 8, 1] vector [1, 2, 4]>>
    tile.copy %a[%h, %m0, %k] to %ta bounds [proved, clip, clip] other 0 : i8 via thread width 1
    %tb = tile.alloc : !tile.buf<[1, 4, 8], i8, fragment, #tile.distributed<threads [1, 1, 8] strides [1, 1, 1] vector [1, 1, 1]>>
    tile.copy %b[%h, %k, %n0] to %tb bounds [proved, clip, clip] other 0 : i8 via thread width 1
    tile.mma (d0, d1, d2, d3) %ta[d0, d1, d3], %tb[d0, d3, d2] into %acc[d0, d1, d2] inst fma
  }
  tile.copy %acc to %c[%h, %m0, %n0] bounds [proved, clip, clip] via thread width 1
}
