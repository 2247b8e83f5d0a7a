// RUN: tilewright-opt %s -p pipeline-copies | filecheck %s
// RUN: tilewright-opt %s -p pipeline-copies --remarks 2>&1 | filecheck %s --check-prefix=WHY

// A product of one turn has nothing to copy ahead.
// WHY: [[# @LINE + 11]]:3: remark: [pipeline-copies] left as it is: no loop whose copies fill both operands
// CHECK-LABEL: tile.kernel @once
// CHECK-NOT: tile.channel
// CHECK: tile.mma {{.*}} inst mma.sync
tile.kernel @once(%a: !tile.buf<[64, 32], bf16, global, #tile.strided<[32, 1]>>, %b: !tile.buf<[32, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] arch sm_80 bases [0, 0] {
  %zero = sym.apply 0
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  %s_a = tile.alloc : !tile.buf<[64, 32], bf16, shared, #tile.swizzled<64, 1>>
  tile.copy %a[%zero, %zero] to %s_a bounds [proved, proved]
  %s_b = tile.alloc : !tile.buf<[32, 64], bf16, shared, #tile.swizzled<128, 1>>
  tile.copy %b[%zero, %zero] to %s_b bounds [proved, proved]
  tile.mma (d0, d1, d2) %s_a[d0, d2], %s_b[d2, d1] into %acc[d0, d1] inst mma.sync
}
