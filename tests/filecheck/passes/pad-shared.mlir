// RUN: tilewright-opt %s -p map-threads,coalesce,pad-shared | filecheck %s
// RUN: tilewright-opt %s -p pad-shared | filecheck %s --check-prefix=ALONE

sym.symbol @M
sym.symbol @N

// Written by rows, read by columns: one element of padding puts the 32 words of a column in 32 banks.
// CHECK-LABEL: tile.kernel @transpose
// CHECK: %s = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[33, 1]>>
tile.kernel @transpose(%x: !tile.buf<[N, M], f32, global, #tile.strided<[M, 1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
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

// Written and read by rows: stays plain. One that has a layout already keeps it.
// CHECK-LABEL: tile.kernel @plain
// CHECK: %s = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[32, 1]>>
// CHECK: %t = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[40, 1]>>
tile.kernel @plain(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %y: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] {
  %m0 = sym.apply 32*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %s = tile.alloc : !tile.buf<[32, 32], f32, shared>
  tile.copy %x[%m0, %n0] to %s bounds [clip, clip] other 0.0 : f32
  %u = tile.alloc : !tile.buf<[32, 32], f32, fragment>
  tile.copy %s to %u
  %t = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[40, 1]>>
  tile.copy %u to %t
  tile.copy %u to %y[%m0, %n0] bounds [clip, clip]
}

// A product reads its left operand along the rows, 4 of them a thread: rows are turned, so that these are neighbours,
// and the pitch keeps the reads wide.
// ALONE-LABEL: tile.kernel @left_operand
// ALONE: %s = tile.alloc : !tile.buf<[32, 16], f32, shared, #tile.strided<[1, [[P:[0-9]+]]]>>
// ALONE: tile.copy %s[%zero, %kk] to %ta width {{[24]}} along 0
tile.kernel @left_operand(%a: !tile.buf<[32, 16], f32, global, #tile.strided<[16, 1]>>) grid (%i) = [1] threads 64 {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 8] strides [8, 1] vector [4, 4]>>
  %s = tile.alloc : !tile.buf<[32, 16], f32, shared>
  tile.copy %a[%zero, %zero] to %s bounds [proved, proved] dist #tile.distributed<threads [4, 16] strides [16, 1] vector [1, 1]>
  tile.for %kk = 0 to 16 step 1 unroll 16 {
    %ta = tile.alloc : !tile.buf<[32, 1], f32, fragment, #tile.distributed<threads [8, 1] strides [8, 1] vector [4, 1]>>
    tile.copy %s[%zero, %kk] to %ta
  }
}
