// RUN: tilewright-opt %s -p map-threads,coalesce,vectorise | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}

// Neighbours in the tile are not neighbours in memory: one element at a time, however well all is aligned.
// CHECK-LABEL: tile.kernel @every_other
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32{{$}}
// Wide stores beside loads of single elements: 8 bytes a thread, so that a warp loads from two lines.
// CHECK: tile.copy %t to %y[%m0, %n0] bounds [clip, clip] width 2
tile.kernel @every_other(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] assumes [x_s1 == 2, x_s0 mod 4 == 0, x_base mod 16 == 0, N mod 4 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// A stride of which nothing is known is not taken for 1.
// CHECK-LABEL: tile.kernel @unknown
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32{{$}}
tile.kernel @unknown(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] assumes [x_s0 mod 4 == 0, x_base mod 16 == 0, N mod 4 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// A base address is a number of bytes: a multiple of 4 aligns one f32, not four.
// CHECK-LABEL: tile.kernel @base_of_one
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32{{$}}
tile.kernel @base_of_one(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] assumes [x_s1 == 1, x_s0 mod 4 == 0, x_base mod 4 == 0, N mod 4 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}
