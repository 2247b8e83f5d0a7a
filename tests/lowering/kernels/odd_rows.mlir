sym.symbol @M {min = 0, max = 1073741824}
sym.symbol @N {min = 0, max = 1073741824}
sym.symbol @x_s0 {source = "stride"}
tile.kernel @odd_rows(%x : !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>, %y : !tile.buf<[M, 8*(N ceildiv 8)], bf16, global, #tile.strided<[8*(N ceildiv 8), 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] threads 128 index_width 32 {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], bf16, fragment, #tile.distributed<threads [8, 16] strides [16, 1] vector [1, 8]>>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : bf16 via thread width 8 unaligned
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip] via thread width 8
}
