// RUN: tilewright-opt %s -p map-threads | filecheck %s
// RUN: tilewright-opt %s -p map-threads{threads=64} | filecheck %s --check-prefix=FEW
// RUN: not tilewright-opt %s -p map-threads{threads=96} 2>&1 | filecheck %s --check-prefix=ODD

// ODD: error: map-threads: expected threads to be a power of two from 32 to 1024, got 96

sym.symbol @M
sym.symbol @N

// The accumulators decide: at least 4 a thread, as square as can be. The operands take the entries of their dims, and
// what a thread holds of the summed dim it holds alone; the copy into shared memory has a distribution of its own.
// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: threads 256
// CHECK: %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [16, 16] strides [1, 16] vector [1, 1]>>
// CHECK: tile.copy %a[%zero, %zero] to %s bounds [proved, proved] dist #tile.distributed<threads [32, 8] strides [1, 32] vector [1, 1]>
// CHECK: %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment, #tile.distributed<threads [16, 1] strides [1, 1] vector [1, 1]>>
// CHECK: %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment, #tile.distributed<threads [1, 16] strides [1, 16] vector [1, 1]>>
tile.kernel @product(%a: !tile.buf<[32, 16], f32, global, #tile.strided<[16, 1]>>, %b: !tile.buf<[16, 32], f32, global, #tile.strided<[32, 1]>>, %c: !tile.buf<[32, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.fill %acc with 0.0 : f32
  %s = tile.alloc : !tile.buf<[32, 16], f32, shared>
  tile.copy %a[%zero, %zero] to %s bounds [proved, proved]
  %ta = tile.alloc : !tile.buf<[32, 16], f32, fragment>
  tile.copy %s to %ta
  %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment>
  tile.copy %b[%zero, %zero] to %tb bounds [proved, proved]
  tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  tile.copy %acc to %c[%zero, %zero] bounds [proved, proved]
}

// At least 4 elements a thread: 2048 elements fill 256 threads. A value for each row sits in every thread of the row.
// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: threads 256
// CHECK: %x = tile.alloc : !tile.buf<[16, 128], f32, fragment, #tile.distributed<threads [16, 16] strides [1, 16] vector [1, 1]>>
// CHECK: %r = tile.alloc : !tile.buf<[16], f32, fragment, #tile.distributed<threads [16] strides [1] vector [1]>>
// FEW-LABEL: tile.kernel @rows
// FEW-SAME: threads 64
// FEW: %x = tile.alloc : !tile.buf<[16, 128], f32, fragment, #tile.distributed<threads [16, 4] strides [1, 16] vector [1, 1]>>
tile.kernel @rows(%a: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %y: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i) = [M ceildiv 16] {
  %zero = sym.apply 0
  %m0 = sym.apply 16*i where i = %i
  %x = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %a[%m0, %zero] to %x bounds [clip, clip] other 0.0 : f32
  %r = tile.alloc : !tile.buf<[16], f32, fragment>
  tile.fill %r with 0.0 : f32
  tile.reduce sum (d0, d1) %x[d0, d1] into %r[d0]
  tile.copy %r to %y[%m0] bounds [clip]
}

// A single element: one warp, of which each thread holds a copy.
// CHECK-LABEL: tile.kernel @single
// CHECK-SAME: threads 32
// CHECK: tile.buf<[], f32, fragment, #tile.distributed<threads [] strides [] vector []>>
tile.kernel @single(%y: !tile.buf<[], f32, global, #tile.strided<[]>>) grid () = [] {
  %f = tile.alloc : !tile.buf<[], f32, fragment>
  tile.fill %f with 1.0 : f32
  tile.copy %f to %y
}

// What an author wrote stays where the kernel says that it is mapped; copies without a distribution get one.
// CHECK-LABEL: tile.kernel @mapped
// CHECK-SAME: threads 32 mapped
// CHECK: %f = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [2]>>
// CHECK: tile.copy %s to %f via thread width 2
// CHECK: tile.copy %s to %y bounds [clip] dist #tile.distributed<threads [32] strides [1] vector [1]>
tile.kernel @mapped(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>, %y: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid () = [] threads 32 mapped {
  %s = tile.alloc : !tile.buf<[64], f32, shared, #tile.strided<[1]>>
  tile.copy %x to %s bounds [clip] other 0.0 : f32 via thread width 1 dist #tile.distributed<threads [16] strides [2] vector [2]>
  %f = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [2]>>
  tile.copy %s to %f via thread width 2
  tile.copy %f to %y bounds [clip]
  tile.copy %s to %y bounds [clip]
}

// Else the layouts are chosen anew, and what was written for the old ones goes.
// CHECK-LABEL: tile.kernel @not_mapped
// CHECK-SAME: threads 32 {
// CHECK: tile.copy %x to %s bounds [clip] other 0.000000e+00 : f32 via thread dist #tile.distributed<threads [32] strides [1] vector [1]>
// CHECK: %f = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
// CHECK: tile.copy %s to %f via thread{{$}}
tile.kernel @not_mapped(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>, %y: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid () = [] threads 32 {
  %s = tile.alloc : !tile.buf<[64], f32, shared, #tile.strided<[1]>>
  tile.copy %x to %s bounds [clip] other 0.0 : f32 via thread width 1 dist #tile.distributed<threads [16] strides [2] vector [2]>
  %f = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [2]>>
  tile.copy %s to %f via thread width 2
  tile.copy %f to %y bounds [clip]
}
