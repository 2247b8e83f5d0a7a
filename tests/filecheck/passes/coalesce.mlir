// RUN: tilewright-opt %s -p map-threads,coalesce | filecheck %s
// RUN: tilewright-opt %s -p coalesce | filecheck %s --check-prefix=ALONE

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}

// map-threads runs along d0; both tensors are contiguous along d1, so neighbouring threads go there.
// CHECK-LABEL: tile.kernel @rows
// CHECK: %t = tile.alloc : !tile.buf<[16, 128], f32, fragment, #tile.distributed<threads [2, 128] strides [128, 1] vector [1, 1]>>
// CHECK: %f = tile.alloc : !tile.buf<[16, 128], f32, fragment, #tile.distributed<threads [2, 128] strides [128, 1] vector [1, 1]>>
// Without layouts there is nothing to turn.
// ALONE-LABEL: tile.kernel @rows
// ALONE-NOT: tile.distributed
tile.kernel @rows(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  %f = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.map (d0, d1) ins(%t[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%p: f32):
    tile.yield %p
  }
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}

// Stride 1 along the first dim, in the input and the output: that one is the fast one.
// CHECK-LABEL: tile.kernel @columns
// CHECK: %t = tile.alloc : !tile.buf<[128, 16], f32, fragment, #tile.distributed<threads [128, 2] strides [1, 128] vector [1, 1]>>
tile.kernel @columns(%x: !tile.buf<[M, N], f32, global, #tile.strided<[1, M]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[1, M]>>) grid (%i, %j) = [M ceildiv 128, N ceildiv 16] {
  %m0 = sym.apply 128*i where i = %i
  %n0 = sym.apply 16*i where i = %j
  %t = tile.alloc : !tile.buf<[128, 16], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %y[%m0, %n0] bounds [clip, clip]
}

// A copy into shared memory runs along its own tensor's contiguous dim, whatever the fragments want.
// CHECK-LABEL: tile.kernel @staged
// CHECK: tile.copy %x[%n0, %m0] to %s bounds [clip, clip] other 0.000000e+00 : f32 dist #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>
// CHECK: %u = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [32, 8] strides [1, 32] vector [1, 1]>>
// CHECK: %f = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>>
tile.kernel @staged(%x: !tile.buf<[N, M], f32, global, #tile.strided<[M, 1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %s = tile.alloc : !tile.buf<[32, 32], f32, shared>
  tile.copy %x[%n0, %m0] to %s bounds [clip, clip] other 0.0 : f32
  %u = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %s to %u
  %f = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.map (d0, d1) ins(%u[d1, d0]) outs(%f[d0, d1]) {
  ^bb0(%p: f32):
    tile.yield %p
  }
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}

// Widths went by the layout that was: they are open again where it changes, and stay where it does not.
// CHECK-LABEL: tile.kernel @widths
// ALONE-LABEL: tile.kernel @widths
// ALONE: %t = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [4, 8] strides [8, 1] vector [1, 4]>>
// ALONE: tile.copy %x[%zero, %zero] to %t bounds [proved, proved] via thread{{$}}
// ALONE: tile.copy %t to %y[%zero, %zero] bounds [proved, proved] via thread{{$}}
tile.kernel @widths(%x: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>, %y: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] threads 32 {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 4] strides [1, 8] vector [1, 4]>>
  tile.copy %x[%zero, %zero] to %t bounds [proved, proved] via thread width 4
  tile.copy %t to %y[%zero, %zero] bounds [proved, proved] via thread width 4
}

// ALONE-LABEL: tile.kernel @turned_already
// ALONE: tile.copy %x[%zero, %zero] to %t bounds [proved, proved] via thread width 4{{$}}
tile.kernel @turned_already(%x: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] threads 32 {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [4, 8] strides [8, 1] vector [1, 4]>>
  tile.copy %x[%zero, %zero] to %t bounds [proved, proved] via thread width 4
}

// A fragment without a layout: what there is to turn is not known yet.
// ALONE-LABEL: tile.kernel @half_open
// ALONE: %t = tile.alloc : !tile.buf<[32, 32], f32, fragment>
// ALONE: %u = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 4] strides [1, 8] vector [1, 1]>>
tile.kernel @half_open(%x: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] threads 32 {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %x[%zero, %zero] to %t bounds [proved, proved]
  %u = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 4] strides [1, 8] vector [1, 1]>>
  tile.copy %x[%zero, %zero] to %u bounds [proved, proved]
}

// What has no dims has no dim along which threads could run.
// CHECK-LABEL: tile.kernel @scalar
// CHECK: tile.copy %x to %s dist #tile.distributed<threads [] strides [] vector []>
tile.kernel @scalar(%x: !tile.buf<[], f32, global, #tile.strided<[]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[], f32, shared>
  tile.copy %x to %s
}
