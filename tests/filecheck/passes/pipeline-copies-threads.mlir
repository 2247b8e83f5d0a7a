// RUN: tilewright-opt %s -p pipeline-copies | filecheck %s
// RUN: tilewright-opt %s -p pipeline-copies --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: remark: [pipeline-copies] loads run a turn ahead, in 8 registers a thread
// REMARK: remark: [pipeline-copies] left as it is: 32 registers a thread for the next turn, at most 16
// REMARK: remark: [pipeline-copies] left as it is: no loop whose copies fill shared memory

sym.symbol @M
sym.symbol @N
sym.symbol @K

!A = !tile.buf<[M, K], f32, global, #tile.strided<[K, 1]>>
!B = !tile.buf<[K, N], f32, global, #tile.strided<[N, 1]>>
!C = !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>
!acc = !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 8] strides [8, 1] vector [4, 4]>>

// Threads multiply: what the next turn needs is on its way to registers meanwhile, and goes on to shared memory then.
// Behind the last turn nothing lies inside, whatever was proved of the turns.
// CHECK-LABEL: tile.kernel @ahead
// CHECK: %0 = sym.apply 0
// CHECK-NEXT: %next_sa = tile.alloc : !tile.buf<[32, 8], f32, fragment, #tile.distributed<threads [32, 2] strides [2, 1] vector [1, 4]>>
// CHECK-NEXT: tile.copy %a[%m, %0] to %next_sa bounds [proved, clip] other 0.000000e+00 : f32 width 4
// CHECK-NEXT: %next_sb = tile.alloc
// CHECK-NEXT: %r = sym.apply k + 1 where k = %0
// CHECK-NEXT: tile.copy %b[%r, %n] to %next_sb bounds [clip, clip]
// CHECK-NEXT: tile.for %k = 0 to K step 8 {
// CHECK: tile.copy %next_sa to %sa width 1
// CHECK: tile.copy %next_sb to %sb width 4
// CHECK-NEXT: %1 = sym.apply min(K, k + 8) where k = %k
// CHECK-NEXT: tile.copy %a[%m, %1] to %next_sa bounds [proved, clip] other 0.000000e+00 : f32 width 4
// CHECK-NEXT: %r_2 = sym.apply k + 1 where k = %1
// CHECK-NEXT: tile.copy %b[%r_2, %n] to %next_sb bounds [clip, clip] other 0.000000e+00 : f32 width 4
// CHECK-NEXT: %ta = tile.alloc
tile.kernel @ahead(%a: !A, %b: !B, %c: !C) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] threads 64 {
  %m = sym.apply 32*i where i = %i
  %n = sym.apply 32*j where j = %j
  %acc = tile.alloc : !acc
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 8 {
    %sa = tile.alloc : !tile.buf<[32, 8], f32, shared, #tile.strided<[1, 33]>>
    tile.copy %a[%m, %k] to %sa bounds [proved, proved] other 0.0 : f32 width 4 store_width 1 dist #tile.distributed<threads [32, 2] strides [2, 1] vector [1, 4]>
    %r = sym.apply k + 1 where k = %k
    %sb = tile.alloc : !tile.buf<[8, 32], f32, shared, #tile.strided<[32, 1]>>
    tile.copy %b[%r, %n] to %sb bounds [proved, clip] other 0.0 : f32 width 4 dist #tile.distributed<threads [8, 8] strides [8, 1] vector [1, 4]>
    %ta = tile.alloc : !tile.buf<[32, 8], f32, fragment, #tile.distributed<threads [8, 1] strides [8, 1] vector [4, 1]>>
    tile.copy %sa to %ta width 1
    %tb = tile.alloc : !tile.buf<[8, 32], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 4]>>
    tile.copy %sb to %tb width 1
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  tile.copy %acc to %c[%m, %n] bounds [clip, clip] width 4
}

// Too much for registers, and a copy of which nobody has said who makes it.
// CHECK-LABEL: tile.kernel @much
// CHECK: tile.copy %a[%m, %k] to %sa
tile.kernel @much(%a: !A, %b: !B, %c: !C) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] threads 64 {
  %m = sym.apply 32*i where i = %i
  %n = sym.apply 32*j where j = %j
  %acc = tile.alloc : !acc
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 32 {
    %sa = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[32, 1]>>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : f32 width 4 dist #tile.distributed<threads [8, 8] strides [8, 1] vector [1, 4]>
    %sb = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[32, 1]>>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : f32 width 4 dist #tile.distributed<threads [8, 8] strides [8, 1] vector [1, 4]>
    %ta = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [8, 1] strides [8, 1] vector [4, 1]>>
    tile.copy %sa to %ta width 1
    %tb = tile.alloc : !tile.buf<[32, 32], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 4]>>
    tile.copy %sb to %tb width 1
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  tile.copy %acc to %c[%m, %n] bounds [clip, clip] width 4
}

// CHECK-LABEL: tile.kernel @open
// CHECK: tile.copy %a[%m, %k] to %sa
tile.kernel @open(%a: !A, %b: !B, %c: !C) grid (%i, %j) = [M ceildiv 32, N ceildiv 32] threads 64 {
  %m = sym.apply 32*i where i = %i
  %n = sym.apply 32*j where j = %j
  %acc = tile.alloc : !acc
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 8 {
    %sa = tile.alloc : !tile.buf<[32, 8], f32, shared>
    tile.copy %a[%m, %k] to %sa bounds [clip, clip] other 0.0 : f32
    %sb = tile.alloc : !tile.buf<[8, 32], f32, shared>
    tile.copy %b[%k, %n] to %sb bounds [clip, clip] other 0.0 : f32
    %ta = tile.alloc : !tile.buf<[32, 8], f32, fragment, #tile.distributed<threads [8, 1] strides [8, 1] vector [4, 1]>>
    tile.copy %sa to %ta width 1
    %tb = tile.alloc : !tile.buf<[8, 32], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 4]>>
    tile.copy %sb to %tb width 1
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %acc[d0, d1]
  }
  tile.copy %acc to %c[%m, %n] bounds [clip, clip] width 4
}
