// RUN: tilewright-opt %s -p finish-schedule | filecheck %s
// RUN: tilewright-opt %s -p finish-schedule,allocate-shared,verify-level{level=tile} | filecheck %s

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: threads 64 index_width 64
// CHECK: %s = tile.alloc{{.*}} : !tile.buf<[2, 32, 16], f32, shared, #tile.strided<[512, 16, 1]>>
// CHECK: tile.copy %a[%zero, %zero, %zero] to %s bounds [proved, proved, proved] via thread width 1 dist
// CHECK: tile.copy %s[%zero, %zero, %zero] to %ta via thread width 1
// CHECK: tile.mma (d0, d1, d2, d3) %ta[d3, d0, d2], %tb[d2, d1] into %acc[d0, d1] inst fma
tile.kernel @product(%a: !tile.buf<[2, 32, 16], f32, global, #tile.strided<[512, 16, 1]>>) grid (%i) = [1] threads 64 {
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<[2, 32, 16], f32, shared>
  tile.copy %a[%zero, %zero, %zero] to %s bounds [proved, proved, proved] dist #tile.distributed<threads [1, 4, 16] strides [1, 16, 1] vector [1, 1, 1]>
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 8] strides [8, 1] vector [1, 1]>>
  %ta = tile.alloc : !tile.buf<[1, 32, 16], f32, fragment, #tile.distributed<threads [1, 8, 1] strides [1, 8, 1] vector [1, 1, 1]>>
  %tb = tile.alloc : !tile.buf<[16, 32], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 1]>>
  tile.copy %s[%zero, %zero, %zero] to %ta
  tile.mma (d0, d1, d2, d3) %ta[d3, d0, d2], %tb[d2, d1] into %acc[d0, d1]
}

// A sum over 256 threads: eight warps exchange one partial result each for both rows. Over the lanes of a warp: none.
// CHECK-LABEL: tile.kernel @reductions
// CHECK: %scratch = tile.alloc{{.*}} : !tile.buf<[16], f32, shared, #tile.strided<[1]>>
// CHECK: tile.reduce sum (d0, d1) %x[d0, d1] into %r[d0] scratch %scratch
// CHECK: tile.reduce sum (d0, d1) %y[d0, d1] into %s[d0]{{$}}
tile.kernel @reductions() grid (%i) = [1] threads 256 index_width 32 {
  %x = tile.alloc : !tile.buf<[2, 256], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  %r = tile.alloc : !tile.buf<[2], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  tile.reduce sum (d0, d1) %x[d0, d1] into %r[d0]
  %y = tile.alloc : !tile.buf<[8, 32], f32, fragment, #tile.distributed<threads [8, 32] strides [32, 1] vector [1, 1]>>
  %s = tile.alloc : !tile.buf<[8], f32, fragment, #tile.distributed<threads [8] strides [32] vector [1]>>
  tile.reduce sum (d0, d1) %y[d0, d1] into %s[d0]
}

// Scratch that the author gave stays, and no other is made.
// CHECK-LABEL: tile.kernel @given
// CHECK-COUNT-1: tile.buf<[16], f32, shared
// CHECK-NOT: tile.alloc
// CHECK: tile.reduce sum (d0, d1) %x[d0, d1] into %r[d0] scratch %own
tile.kernel @given() grid (%i) = [1] threads 256 index_width 32 {
  %x = tile.alloc : !tile.buf<[2, 256], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  %r = tile.alloc : !tile.buf<[2], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  %own = tile.alloc : !tile.buf<[16], f32, shared, #tile.strided<[1]>>
  tile.reduce sum (d0, d1) %x[d0, d1] into %r[d0] scratch %own
}
