sym.symbol @N {min = 0, max = 1073741824}
tile.kernel @scale(%x : !tile.buf<[N], f32, global, #tile.strided<[1]>>, %y : !tile.buf<[N], f32, global, #tile.strided<[1]>>, %s : f32, %n : index) grid (%i) = [N ceildiv 256] threads 64 index_width 32 {
  %n0 = sym.apply 256*i where i = %i
  %rest = sym.apply n - 256*i where n = %n, i = %i
  %t = tile.alloc : !tile.buf<[256], f32, fragment, #tile.distributed<threads [64] strides [1] vector [1]>>
  tile.copy %x[%n0] to %t bounds [clip] other 0.0 : f32 via thread width 1
  // Only the first %n elements are scaled.
  tile.map (d0) ins(%t[d0], %s) outs(%t[d0]) valid(d0 < %rest) {
  ^bb0(%a : f32, %b : f32):
    %m = arith.mulf %a, %b : f32
    tile.yield %m
  }
  tile.copy %t to %y[%n0] bounds [clip] via thread width 1
}
