// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p 'verify-level{level=tile}'
// RUN: not tilewright-opt %s -p 'map-threads,finish-schedule,tile-to-simt' 2>&1 | filecheck %s

// A block has no branches; what depends on a size stands in a loop of one turn or none.
tile.kernel @once(%n: index) grid (%i) = [1] {
  tile.for %once = 0 to min(n, 1) step 1 where n = %n {
    %f = tile.alloc : !tile.buf<[8], f32, fragment>
    tile.fill %f with 0.0 : f32
  }
}

// -----

// CHECK: verify-level-tile.mlir:[[# @LINE + 3]]:3: error: {{.*}}scf.if
tile.kernel @branch(%c: i1) grid (%i) = [1] {
  // expected-error@below {{level tile: expected arith, math, sym, tile in tile.kernel, got scf.if}}
  scf.if %c {
    tile.sync
  }
}
