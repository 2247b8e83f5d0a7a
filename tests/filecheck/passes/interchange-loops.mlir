// RUN: tilewright-opt %s -p interchange-loops | filecheck %s

sym.symbol @J
sym.symbol @K
sym.symbol @M

// x is contiguous along k, so the loop over k goes inside; bounds and uses move together.
// CHECK-LABEL: tile.kernel @sum_of_both
// CHECK: tile.for %j = 0 to J step 1 {
// CHECK-NEXT: tile.for %k = 0 to K step 64 {
// CHECK: tile.copy %x[%i, %j, %k] to %t
// CHECK: sym.apply K - n where n = %k
tile.kernel @sum_of_both(%x: !tile.buf<[M, J, K], f32, global, #tile.strided<[J*K, K, 1]>>, %y: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i) = [M] {
  %acc = tile.alloc : !tile.buf<[1, 1, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    tile.for %j = 0 to J step 1 {
      %t = tile.alloc : !tile.buf<[1, 1, 64], f32, fragment>
      tile.copy %x[%i, %j, %k] to %t bounds [proved, proved, clip] other 0.0 : f32
      %n = sym.apply K - n where n = %k
      tile.map (d0, d1, d2) ins(%t[d0, d1, d2], %acc[d0, d1, d2]) outs(%acc[d0, d1, d2]) valid(d2 < %n) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %q, %p : f32
        tile.yield %s
      }
    }
  }
  %r = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %r with 0.0 : f32
  tile.reduce sum (d0, d1, d2) %acc[d0, d1, d2] into %r[d0]
  tile.copy %r to %y[%i] bounds [proved]
}

// Contiguous along j as it is: nothing to do.
// CHECK-LABEL: tile.kernel @in_order
// CHECK: tile.for %k = 0 to K step 1 {
// CHECK-NEXT: tile.for %j = 0 to J step 64 {
tile.kernel @in_order(%x: !tile.buf<[K, J], f32, global, #tile.strided<[J, 1]>>) grid (%i) = [1] {
  %acc = tile.alloc : !tile.buf<[1, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 1 {
    tile.for %j = 0 to J step 64 {
      %t = tile.alloc : !tile.buf<[1, 64], f32, fragment>
      tile.copy %x[%k, %j] to %t bounds [proved, clip] other 0.0 : f32
      tile.map (d0, d1) ins(%t[d0, d1], %acc[d0, d1]) outs(%acc[d0, d1]) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %q, %p : f32
        tile.yield %s
      }
    }
  }
}

// A nest that writes memory is no accumulation; one whose inner bound depends on the outer variable has one order only.
// CHECK-LABEL: tile.kernel @kept
// CHECK: tile.for %k = 0 to K step 64 {
// CHECK-NEXT: tile.for %j = 0 to J step 1 {
// CHECK: tile.copy %t to %y
// CHECK: tile.for %k_1 = 0 to K step 64 {
// CHECK-NEXT: tile.for %j_1 = 0 to l step 1 where l = %k_1 {
tile.kernel @kept(%x: !tile.buf<[J, K], f32, global, #tile.strided<[K, 1]>>, %y: !tile.buf<[J, K], f32, global, #tile.strided<[K, 1]>>) grid (%i) = [1] {
  tile.for %k = 0 to K step 64 {
    tile.for %j = 0 to J step 1 {
      %t = tile.alloc : !tile.buf<[1, 64], f32, fragment>
      tile.copy %x[%j, %k] to %t bounds [proved, clip] other 0.0 : f32
      tile.copy %t to %y[%j, %k] bounds [proved, clip]
    }
  }
  %acc = tile.alloc : !tile.buf<[1, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    tile.for %j = 0 to l step 1 where l = %k {
      %t = tile.alloc : !tile.buf<[1, 64], f32, fragment>
      tile.copy %x[%j, %k] to %t bounds [clip, clip] other 0.0 : f32
      tile.map (d0, d1) ins(%t[d0, d1], %acc[d0, d1]) outs(%acc[d0, d1]) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %q, %p : f32
        tile.yield %s
      }
    }
  }
}

// What a turn only reads, here a factor for each row, does not tie it to other turns.
// CHECK-LABEL: tile.kernel @scaled
// CHECK: tile.for %j = 0 to J step 1 {
// CHECK-NEXT: tile.for %k = 0 to K step 64 {
tile.kernel @scaled(%x: !tile.buf<[J, K], f32, global, #tile.strided<[K, 1]>>) grid (%i) = [1] {
  %factor = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %factor with 2.0 : f32
  %acc = tile.alloc : !tile.buf<[1, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    tile.for %j = 0 to J step 1 {
      %t = tile.alloc : !tile.buf<[1, 64], f32, fragment>
      tile.copy %x[%j, %k] to %t bounds [proved, clip] other 0.0 : f32
      %u = tile.alloc : !tile.buf<[1, 64], f32, fragment>
      tile.map (d0, d1) ins(%t[d0, d1], %factor[d0]) outs(%u[d0, d1]) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.mulf %q, %p : f32
        tile.yield %s
      }
      tile.map (d0, d1) ins(%u[d0, d1], %acc[d0, d1]) outs(%acc[d0, d1]) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %q, %p : f32
        tile.yield %s
      }
    }
  }
}
