// RUN: tilewright-opt %s -p remove-barriers | filecheck %s

// Two buffers are written and then read in each turn: one barrier between, one before the next turn writes again.
// CHECK-LABEL: tile.kernel @turns
// CHECK: tile.for
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %x to %s
// CHECK-NEXT: tile.copy %x to %t
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %s to %f
// CHECK-NEXT: tile.copy %t to %f
// CHECK-NEXT: }
tile.kernel @turns(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  %t = tile.alloc : !tile.buf<[32], f32, shared>
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
  tile.for %k = 0 to 4 step 1 {
    tile.sync
    tile.copy %x to %s bounds [proved]
    tile.sync
    tile.sync
    tile.copy %x to %t bounds [proved]
    tile.sync
    tile.copy %s to %f
    tile.copy %t to %f
  }
}

// Written once, before all reads: the loop needs no barrier, and nothing comes after the last read.
// CHECK-LABEL: tile.kernel @read_only_loop
// CHECK: tile.copy %x to %s
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.for
// CHECK-NEXT: tile.copy %s to %f
// CHECK-NEXT: }
// CHECK-NOT: tile.sync
tile.kernel @read_only_loop(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
  tile.sync
  tile.copy %x to %s bounds [proved]
  tile.sync
  tile.for %k = 0 to 4 step 1 {
    tile.sync
    tile.copy %s to %f
    tile.sync
  }
  tile.sync
}

// A reduction with a scratch waits for the block itself.
// CHECK-LABEL: tile.kernel @reduction_between
// CHECK: tile.copy %x to %s
// CHECK-NEXT: tile.reduce
// CHECK-NEXT: tile.copy %s to %f
// CHECK-NOT: tile.sync
tile.kernel @reduction_between(%x: !tile.buf<[256], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[256], f32, shared>
  %w = tile.alloc : !tile.buf<[8], f32, shared>
  %f = tile.alloc : !tile.buf<[256], f32, fragment>
  %r = tile.alloc : !tile.buf<[], f32, fragment>
  tile.copy %x to %s bounds [proved]
  tile.sync
  tile.reduce sum (d0) %f[d0] into %r scratch %w
  tile.sync
  tile.copy %s to %f
}

// A gather fills all of its target, each thread its own elements in every turn, so that turns need no barrier between
// them; the reads of others do.
// CHECK-LABEL: tile.kernel @gathers
// CHECK: tile.gather
// CHECK-NEXT: }
// CHECK-NEXT: tile.sync
// CHECK-NEXT: tile.copy %s to %f
tile.kernel @gathers(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
  tile.for %k = 0 to 4 step 1 {
    tile.gather (d) %x[31 - d] to %s bounds [proved]
    tile.sync
  }
  tile.sync
  tile.copy %s to %f
}
