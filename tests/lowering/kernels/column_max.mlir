// Columns lie in lanes 0 to 7, rows in lane bits 8 and 16; the other two warps hold copies.
sym.symbol @R {min = 0, max = 65536}
sym.symbol @C {min = 0, max = 65536}
tile.kernel @column_max(%x : !tile.buf<[R, C], f32, global, #tile.strided<[C, 1]>>, %y : !tile.buf<[1, C], f32, global, #tile.strided<[C, 1]>>) grid (%i) = [C ceildiv 16] threads 64 index_width 32 {
  %zero = sym.apply 0
  %c0 = sym.apply 16*i where i = %i
  %s = tile.alloc : !tile.buf<[1, 16], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 2]>>
  tile.fill %s with 0xFF800000 : f32
  tile.for %k = 0 to R step 12 {
    %t = tile.alloc : !tile.buf<[12, 16], f32, fragment, #tile.distributed<threads [4, 8] strides [8, 1] vector [1, 2]>>
    tile.copy %x[%k, %c0] to %t bounds [clip, clip] other 0.0 : f32 via thread width 1
    %n = sym.apply R - k where k = %k
    tile.reduce max (d0, d1) %t[d0, d1] into %s[0, d1] valid(d0 < %n)
  }
  tile.copy %s to %y[%zero, %c0] bounds [proved, clip] via thread width 1
}
