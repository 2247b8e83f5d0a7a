// RUN: tilewright-opt %s -p tile-to-simt | filecheck %s
// RUN: tilewright-opt %s -p tile-to-simt | tilewright-opt | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}

// Buffers become pointers, expressions over symbols become params, and the grid has one dimension, the last coordinate fastest.
// The address is a row and a column part; what differs between the elements of a thread stays in the loop.
// CHECK:      simt.kernel @rows(%x: !simt.global<f32>, %y: !simt.global<f32>, %[[GRID:.*]]: i32, %x_s0: i32, %M: i32, %N: i32)
// CHECK-SAME: threads 64 smem 0 grid [M*(N ceildiv 32)] params [N ceildiv 32, x_s0, M, N] assumes [N mod 4 == 0] {
// CHECK-NEXT:   %[[B:.*]] = simt.block_id x
// CHECK-NEXT:   %[[J:.*]] = arith.remui %[[B]], %[[GRID]] : i32
// CHECK-NEXT:   %[[I:.*]] = arith.divui %[[B]], %[[GRID]] : i32
// CHECK:        %n0 = arith.muli %[[J]], %{{.*}} overflow<nsw> : i32
// CHECK-NEXT:   %t = simt.regs.alloc : !simt.regs<[1, 4], f32>
// CHECK:        simt.load %x[%{{.*}}] into %t[%{{.*}}, %{{.*}}] width 4 if %{{.*}} else 0.000000e+00 : f32
// CHECK:        simt.unroll %[[U:.*]] < 4 {
// CHECK-NEXT:     %[[A:.*]] = simt.regs.load %t[%{{.*}}, %[[U]]]
// CHECK-NEXT:     %[[E:.*]] = math.exp %[[A]] : f32
// CHECK-NEXT:     simt.regs.store %[[E]] to %t[%{{.*}}, %[[U]]]
// CHECK-NEXT:   }
// 32 elements a row over 8 threads: the other 56 hold copies, and one of each eight stores.
// CHECK:        %[[COPY:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:   %[[FIRST:.*]] = arith.cmpi eq, %[[COPY]], %{{.*}} : i32
// CHECK:        %[[MASK:.*]] = arith.andi %[[FIRST]], %{{.*}} : i1
// CHECK:        simt.store %t[%{{.*}}, %{{.*}}] to %y[%{{.*}}] width 4 if %{{.*}}
tile.kernel @rows(%x : !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, 1]>>, %y : !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M, N ceildiv 32] threads 64 index_width 32 assumes [N mod 4 == 0] {
  %n0 = sym.apply 32*j where j = %j
  %t = tile.alloc : !tile.buf<[1, 32], f32, fragment, #tile.distributed<threads [1, 8] strides [1, 1] vector [1, 4]>>
  tile.copy %x[%i, %n0] to %t bounds [clip, clip] other 0.0 : f32 via thread width 4
  tile.map (d0, d1) ins(%t[d0, d1]) outs(%t[d0, d1]) {
  ^bb0(%a : f32):
    %e = math.exp %a : f32
    tile.yield %e
  }
  tile.copy %t to %y[%i, %n0] bounds [clip, clip] via thread width 4
}

// A loop with symbolic bounds stays one; barriers and shared arrays are what they were. A product is a fused multiply-add of
// registers, its summed dim outermost. The index width is that of the kernel.
// CHECK-LABEL: simt.kernel @product(
// CHECK-SAME:  threads 32 smem 128 grid [1] params [M]
// CHECK:         %s = simt.shared at 0 : !simt.smem<[32], f32>
// CHECK:         scf.for %k = %{{.*}} to %M step %{{.*}} : i64 {
// CHECK:           simt.barrier
// CHECK:           simt.unroll %[[D2:.*]] < 4 {
// CHECK-NEXT:        %[[A:.*]] = simt.regs.load %a[%{{.*}}, %[[D2]]]
// CHECK-NEXT:        simt.unroll %[[D1:.*]] < 2 {
// CHECK-NEXT:          %[[B:.*]] = simt.regs.load %b[%[[D2]], %[[D1]]]
// CHECK-NEXT:          %[[C:.*]] = simt.regs.load %acc[%{{.*}}, %[[D1]]]
// CHECK-NEXT:          %[[R:.*]] = math.fma %[[A]], %[[B]], %[[C]] : f32
// CHECK-NEXT:          simt.regs.store %[[R]] to %acc[%{{.*}}, %[[D1]]]
// CHECK:         } {unroll = 3 : i64}
tile.kernel @product() grid () = [] threads 32 index_width 64 {
  %s = tile.alloc at 0 : !tile.buf<[32], f32, shared, #tile.strided<[1]>>
  %a = tile.alloc : !tile.buf<[1, 4], f32, fragment, #tile.distributed<threads [1, 1] strides [1, 1] vector [1, 1]>>
  %b = tile.alloc : !tile.buf<[4, 64], f32, fragment, #tile.distributed<threads [1, 32] strides [1, 1] vector [1, 2]>>
  %acc = tile.alloc : !tile.buf<[1, 64], f32, fragment, #tile.distributed<threads [1, 32] strides [1, 1] vector [1, 2]>>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to M step 4 unroll 3 {
    tile.sync
    tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst fma
  }
}

// Sixteen lanes hold a row: four shuffles. Elements past the limit count as the identity.
// CHECK-LABEL: simt.kernel @maximum(
// CHECK:         %[[LOW:.*]] = arith.constant 0xff800000 : f32
// CHECK:         %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK:         arith.select %[[IN]], %{{.*}}, %[[LOW]] : f32
// CHECK:         simt.shuffle xor %{{.*}}, 1
// CHECK-NEXT:    arith.maximumf
// CHECK-NEXT:    simt.shuffle xor %{{.*}}, 2
// CHECK-NEXT:    arith.maximumf
// CHECK-NEXT:    simt.shuffle xor %{{.*}}, 4
// CHECK-NEXT:    arith.maximumf
// CHECK-NEXT:    simt.shuffle xor %{{.*}}, 8
// CHECK-NEXT:    arith.maximumf
// CHECK-NOT:     simt.shuffle
tile.kernel @maximum(%n : index) grid () = [] threads 32 index_width 32 {
  %x = tile.alloc : !tile.buf<[2, 16], f32, fragment, #tile.distributed<threads [2, 16] strides [16, 1] vector [1, 1]>>
  %y = tile.alloc : !tile.buf<[2], f32, fragment, #tile.distributed<threads [2] strides [16] vector [1]>>
  tile.reduce max (d0, d1) %x[d0, d1] into %y[d0] valid(d1 < %n)
}

// An unaligned load knows how much of the row lies before it, and from it on. Rows are masked as ever.
// CHECK-LABEL: simt.kernel @odd_rows(
// CHECK:         %[[AT:.*]] = arith.addi %n0, %[[EIGHT:.*]] overflow<nsw> : i32
// CHECK:         %[[LEFT:.*]] = arith.subi %N, %[[AT]] overflow<nsw> : i32
// CHECK:         simt.unroll
// CHECK:           %[[ROW:.*]] = arith.cmpi slt
// CHECK:           simt.load %x[%{{.*}}] into %t[%{{.*}}, %{{.*}}] width 8 unaligned %[[AT]], %[[LEFT]] if %[[ROW]] else 0.000000e+00 : bf16
tile.kernel @odd_rows(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 4, N ceildiv 128] threads 32 index_width 32 bases [0] {
  %m0 = sym.apply 4*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[4, 128], bf16, fragment, #tile.distributed<threads [2, 16] strides [16, 1] vector [1, 8]>>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : bf16 via thread width 8 unaligned
}
