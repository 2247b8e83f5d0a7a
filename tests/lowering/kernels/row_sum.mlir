sym.symbol @R {min = 0, max = 65536}
sym.symbol @C {min = 0, max = 65536}
tile.kernel @row_sum(%x : !tile.buf<[R, C], f32, global, #tile.strided<[C, 1]>>, %y : !tile.buf<[R], f32, global, #tile.strided<[1]>>) grid (%i) = [R ceildiv 4] threads 256 index_width 32 {
  %r0 = sym.apply 4*i where i = %i
  %s = tile.alloc : !tile.buf<[4], f32, fragment, #tile.distributed<threads [4] strides [1] vector [1]>>
  %w = tile.alloc at 0 : !tile.buf<[8, 4], f32, shared, #tile.strided<[4, 1]>>
  tile.fill %s with 0.0 : f32
  tile.for %k = 0 to C step 128 {
    %t = tile.alloc : !tile.buf<[4, 128], f32, fragment, #tile.distributed<threads [4, 64] strides [1, 4] vector [1, 1]>>
    tile.copy %x[%r0, %k] to %t bounds [clip, clip] other 0.0 : f32 via thread width 1
    %n = sym.apply C - k where k = %k
    tile.reduce sum (d0, d1) %t[d0, d1] into %s[d0] valid(d1 < %n) scratch %w
  }
  tile.copy %s to %y[%r0] bounds [clip] via thread width 1
}
