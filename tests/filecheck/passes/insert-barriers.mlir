// RUN: tilewright-opt %s -p insert-barriers | filecheck %s

// One before and one after each copy that writes shared memory; reads alone need none.
// CHECK-LABEL: tile.kernel @k
// CHECK: tile.for
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %x to %s
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %s to %f
// CHECK-NEXT: }
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %f to %s
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %f to %x
// CHECK-NOT: tile.sync
tile.kernel @k(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
  tile.for %k = 0 to 4 step 1 {
    tile.copy %x to %s bounds [proved]
    tile.copy %s to %f
  }
  tile.copy %f to %s
  tile.copy %f to %x bounds [proved]
}
