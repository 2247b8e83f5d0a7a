sym.symbol @N {min = 0, max = 1073741824}
tile.kernel @cast(%x : !tile.buf<[N], f32, global, #tile.strided<[1]>>, %y : !tile.buf<[N], bf16, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 1024] threads 128 index_width 32 assumes [N mod 2 == 0] {
  %n0 = sym.apply 1024*i where i = %i
  %t = tile.alloc : !tile.buf<[1024], f32, fragment, #tile.distributed<threads [128] strides [1] vector [4]>>
  tile.copy %x[%n0] to %t bounds [clip] other 0.0 : f32 via thread width 2
  %o = tile.alloc : !tile.buf<[1024], bf16, fragment, #tile.distributed<threads [128] strides [1] vector [4]>>
  tile.map (d0) ins(%t[d0]) outs(%o[d0]) {
  ^bb0(%a : f32):
    %b = arith.truncf %a : f32 to bf16
    tile.yield %b
  }
  tile.copy %o to %y[%n0] bounds [clip] via thread width 2
}
