// RUN: tilewright-opt %s -p remove-barriers --remarks 2>&1 | filecheck %s

// No barrier is needed, but six loops have 3^6 ways through: all stay.
// CHECK: remark: [remove-barriers] 6 loops touch shared memory, more than 5: all barriers stay
// CHECK: tile.sync
// CHECK: tile.sync
// CHECK: tile.sync
// CHECK: tile.sync
// CHECK: tile.sync
// CHECK: tile.sync
sym.symbol @N
tile.kernel @k() grid (%i) = [1] {
  tile.for %l0 = 0 to N step 1 {
    tile.sync
  }
  tile.for %l1 = 0 to N step 1 {
    tile.sync
  }
  tile.for %l2 = 0 to N step 1 {
    tile.sync
  }
  tile.for %l3 = 0 to N step 1 {
    tile.sync
  }
  tile.for %l4 = 0 to N step 1 {
    tile.sync
  }
  tile.for %l5 = 0 to N step 1 {
    tile.sync
  }
}
