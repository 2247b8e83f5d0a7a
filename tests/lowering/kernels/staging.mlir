// Loads of one width and stores of another into shared memory, and vectors along the first dim of a column-major array.
sym.symbol @M {min = 0, max = 65536}
sym.symbol @N {min = 0, max = 65536}
tile.kernel @staging(%x : !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %y : !tile.buf<[M, N], f32, global, #tile.strided<[1, M]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 32] threads 64 index_width 32 assumes [M mod 2 == 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 32*j where j = %j
  %s = tile.alloc at 0 : !tile.buf<[16, 32], f32, shared, #tile.strided<[34, 1]>>
  tile.copy %x[%m0, %n0] to %s bounds [clip, clip] other 0.0 : f32 via thread width 1 store_width 2 dist #tile.distributed<threads [8, 8] strides [8, 1] vector [1, 2]>
  tile.sync
  %f = tile.alloc : !tile.buf<[16, 32], f32, fragment, #tile.distributed<threads [2, 32] strides [32, 1] vector [4, 1]>>
  tile.copy %s to %f via thread width 1
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip] via thread width 2 along 0
}
