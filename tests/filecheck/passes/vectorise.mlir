// RUN: tilewright-opt %s -p map-threads,coalesce,vectorise | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}

// All that 16 bytes need is assumed: unit stride, other stride, base and size divisible. Scratch %y is aligned as it is.
// CHECK-LABEL: tile.kernel @assumed
// CHECK: fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 4]>>
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32 width 4
// CHECK: tile.copy %t to %y[%m0, %n0] bounds [clip, clip] width 4
tile.kernel @assumed(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] assumes [x_s1 == 1, x_s0 mod 4 == 0, x_base mod 16 == 0, N mod 4 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// Half of it: pairs.
// CHECK-LABEL: tile.kernel @pairs
// CHECK: vector [1, 2]>>
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32 width 2
tile.kernel @pairs(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] assumes [x_s1 == 1, x_s0 mod 2 == 0, x_base mod 8 == 0, N mod 2 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// The size is not known to be divisible, so the last access might reach over it; with the bound proved it cannot.
// CHECK-LABEL: tile.kernel @size_unknown
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : f32{{$}}
// CHECK: tile.copy %x[%m0, %n0] to %u bounds [clip, proved] other 0.000000e+00 : f32 width 4
// CHECK: tile.copy %t to %y[%m0, %n0] bounds [clip, clip]{{$}}
tile.kernel @size_unknown(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N floordiv 128] assumes [x_s1 == 1, x_s0 mod 4 == 0, x_base mod 16 == 0] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  %u = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %u bounds [clip, proved] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// bf16: eight elements make 16 bytes. A copy into shared memory loads wide and stores one by one until pad-shared decides.
// CHECK-LABEL: tile.kernel @staged
// CHECK: tile.copy %x[%m0, %n0] to %s bounds [proved, clip] other 0.000000e+00 : bf16 width 8 store_width 1 dist #tile.distributed<threads [32, 8] strides [8, 1] vector [1, 8]>
tile.kernel @staged(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>, %y: !tile.buf<[N], bf16, global, #tile.strided<[1]>>) grid (%i, %j) = [M floordiv 32, N ceildiv 64] assumes [N mod 8 == 0] bases [0, 0] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 64*i where i = %j
  %s = tile.alloc : !tile.buf<[32, 64], bf16, shared>
  tile.copy %x[%m0, %n0] to %s bounds [proved, clip] other 0.0 : bf16
  %f = tile.alloc : !tile.buf<[32, 64], bf16, fragment>
  tile.copy %s to %f
}

// A mapped kernel keeps its layouts: a width that is open becomes what they allow, one that is written stays.
// CHECK-LABEL: tile.kernel @mapped
// CHECK: tile.copy %x to %f bounds [proved] width 2
// CHECK: tile.copy %f to %y bounds [proved] width 1
// CHECK: tile.copy %x to %s bounds [proved] width 4 store_width 4 dist
tile.kernel @mapped(%x: !tile.buf<[64], f32, global, #tile.strided<[1]>>, %y: !tile.buf<[64], f32, global, #tile.strided<[1]>>) grid () = [] threads 32 mapped bases [0, 0] {
  %f = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [2]>>
  tile.copy %x to %f bounds [proved]
  tile.copy %f to %y bounds [proved] width 1
  %s = tile.alloc : !tile.buf<[64], f32, shared, #tile.strided<[1]>>
  tile.copy %x to %s bounds [proved] dist #tile.distributed<threads [16] strides [2] vector [4]>
}

// Both sides of a copy of what is laid out by hand: along dim 0 shared memory is contiguous and global memory is not.
// CHECK-LABEL: tile.kernel @turned
// CHECK: tile.copy %s to %y bounds [proved, proved] width 1 store_width 4 dist
// CHECK: tile.copy %r to %y bounds [proved, proved] width 2 store_width 4 dist
tile.kernel @turned(%y: !tile.buf<[16, 16], f32, global, #tile.strided<[16, 1]>>) grid () = [] bases [0] {
  %s = tile.alloc : !tile.buf<[16, 16], f32, shared, #tile.strided<[1, 16]>>
  %r = tile.alloc : !tile.buf<[16, 16], f32, shared, #tile.strided<[18, 1]>>
  tile.copy %s to %y bounds [proved, proved]
  tile.copy %r to %y bounds [proved, proved]
}

// Nothing is known of where rows of %x begin, but those of scratch %y are aligned. So are the words that are read.
// CHECK-LABEL: tile.kernel @odd_rows
// CHECK: fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 8]>>
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : bf16 width 8 unaligned{{$}}
// CHECK: tile.copy %t to %y[%m0, %n0] bounds [clip, clip] width 8{{$}}
tile.kernel @odd_rows(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, 8*(N ceildiv 8)], bf16, global, #tile.strided<[8*(N ceildiv 8), 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 256] assumes [x_s1 == 1] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 256*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 256], bf16, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : bf16
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// A wide read touches neighbours, which another block may be writing; where no store is wide, nothing is gained.
// CHECK-LABEL: tile.kernel @odd_rows_in_place
// CHECK: tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.000000e+00 : bf16{{$}}
// CHECK: tile.copy %t to %y[%m0, %n0] bounds [clip, clip] width 4{{$}}
// CHECK: tile.copy %t to %x[%m0, %n0] bounds [clip, clip]{{$}}
tile.kernel @odd_rows_in_place(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, 8*(N ceildiv 8)], bf16, global, #tile.strided<[8*(N ceildiv 8), 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 256] assumes [x_s1 == 1] bases [x_base, 0] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 256*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 256], bf16, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : bf16
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
  tile.copy %t to %x[%m0, %n0] bounds [clip, clip]
}

// Results leave a slot in words that are aligned in memory, wherever rows begin: two words of the slot are shifted into
// one. A stride that is not known to be 1 leaves single elements.
// CHECK-LABEL: tile.kernel @odd_results
// CHECK: tile.copy %full to %y[%m0, %n0] bounds [clip, clip] width 8 store_width 8 unaligned dist #tile.distributed<threads [32, 8] strides [8, 1] vector [1, 8]>
// CHECK: tile.copy %full to %x[%m0, %n0] bounds [clip, clip] dist
tile.kernel @odd_results(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 64*i where i = %j
  %staged = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %free = tile.acquire %staged
  %t = tile.alloc : !tile.buf<[64, 64], bf16, fragment>
  tile.fill %t with 0.0 : bf16
  tile.copy %t to %free
  tile.publish %staged
  %full = tile.receive %staged
  tile.copy %full to %y[%m0, %n0] bounds [clip, clip]
  tile.copy %full to %x[%m0, %n0] bounds [clip, clip]
  tile.release %staged
}

// Rows of 4 words are too short for the threads of a row to shift them among themselves.
// CHECK-LABEL: tile.kernel @short_rows
// CHECK: tile.copy %full to %y[%m0, %n0] bounds [clip, clip] dist
tile.kernel @short_rows(%y: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %staged = tile.channel : !tile.channel<1, !tile.buf<[64, 32], bf16, shared, #tile.swizzled<64, 1>>>
  %free = tile.acquire %staged
  %t = tile.alloc : !tile.buf<[64, 32], bf16, fragment>
  tile.fill %t with 0.0 : bf16
  tile.copy %t to %free
  tile.publish %staged
  %full = tile.receive %staged
  tile.copy %full to %y[%m0, %n0] bounds [clip, clip]
  tile.release %staged
}

// Nor do the words of a row go on in the next panel: it lies elsewhere.
// CHECK-LABEL: tile.kernel @two_panels
// CHECK: tile.copy %full to %y[%m0, %n0] bounds [clip, clip] dist
tile.kernel @two_panels(%y: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 128] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %staged = tile.channel : !tile.channel<1, !tile.buf<[64, 128], bf16, shared, #tile.swizzled<128, 1>>>
  %free = tile.acquire %staged
  %t = tile.alloc : !tile.buf<[64, 128], bf16, fragment>
  tile.fill %t with 0.0 : bf16
  tile.copy %t to %free
  tile.publish %staged
  %full = tile.receive %staged
  tile.copy %full to %y[%m0, %n0] bounds [clip, clip]
  tile.release %staged
}

// Two doubles are 16 bytes, but two of the bytes beside them are no word that could be shifted.
// CHECK-LABEL: tile.kernel @bytes_beside_doubles
// CHECK: tile.copy %x[%n0] to %t bounds [clip] other 0.000000e+00 : f64 width 2{{$}}
// CHECK: tile.copy %y[%n0] to %u bounds [clip] other 0 : i8{{$}}
tile.kernel @bytes_beside_doubles(%x: !tile.buf<[N], f64, global, #tile.strided<[1]>>, %y: !tile.buf<[N], i8, global, #tile.strided<[1]>>) grid (%j) = [N ceildiv 512] assumes [N mod 2 == 0] bases [0, x_base] {
  %n0 = sym.apply 512*i where i = %j
  %t = tile.alloc : !tile.buf<[512], f64, fragment>
  tile.copy %x[%n0] to %t bounds [clip] other 0.0 : f64
  %u = tile.alloc : !tile.buf<[512], i8, fragment>
  tile.copy %y[%n0] to %u bounds [clip] other 0 : i8
  tile.map (d0) ins(%u[d0]) outs(%t[d0]) {
  ^bb0(%v: i8):
    %w = arith.sitofp %v : i8 to f64
    tile.yield %w
  }
}
