// RUN: tilewright-opt %s -p form-clusters | filecheck %s

sym.symbol @M {min = 0}
sym.symbol @N {min = 0}
!A = !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>
!F = !tile.buf<[64, 32], f32, fragment>

// Two neighbours along the rows: pairs of rows, and the place in the pair last.
// CHECK: tile.kernel @rows({{.*}}) grid (%i, %j, %rank) = [M ceildiv 128, N ceildiv 32, 2] cluster [1, 1, 2] {
// CHECK-NEXT: %i_1 = sym.apply 2*c + r where c = %i, r = %rank
// CHECK-NEXT: %m0 = sym.apply 64*i where i = %i_1
// CHECK-NEXT: %n0 = sym.apply 32*j where j = %j
tile.kernel @rows(%a: !A, %b: !A) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] cluster [2, 1] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 32*j where j = %j
  %t = tile.alloc : !F
  tile.copy %a[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %b[%m0, %n0] bounds [clip, clip]
}

// CHECK: tile.kernel @columns({{.*}}) grid (%i, %j, %rank) = [M ceildiv 64, N ceildiv 128, 4] cluster [1, 1, 4] {
// CHECK-NEXT: %j_1 = sym.apply 4*c + r where c = %j, r = %rank
tile.kernel @columns(%a: !A, %b: !A) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] cluster [1, 4] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 32*j where j = %j
  %t = tile.alloc : !F
  tile.copy %a[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  tile.copy %t to %b[%m0, %n0] bounds [clip, clip]
}

// Nothing is left to do.
// CHECK: tile.kernel @formed({{.*}}) grid (%i, %r) = [M ceildiv 64, 2] cluster [1, 2] {
tile.kernel @formed(%a: !A) grid (%i, %r) = [M ceildiv 64, 2] cluster [1, 2] {
}

// A bound that was proved of another grid would not hold: blocks run alone.
// CHECK: tile.kernel @proved({{.*}}) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] {
tile.kernel @proved(%a: !A, %b: !A) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] cluster [2, 1] {
  %m0 = sym.apply 64*i where i = %i
  %n0 = sym.apply 32*j where j = %j
  %t = tile.alloc : !F
  tile.copy %a[%m0, %n0] to %t bounds [clip, proved] other 0.0 : f32
  tile.copy %t to %b[%m0, %n0] bounds [clip, clip]
}

// CHECK: tile.kernel @both({{.*}}) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] {
tile.kernel @both(%a: !A) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] cluster [2, 2] {
}

// CHECK: tile.kernel @elsewhere({{.*}}) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] arch sm_80 {
tile.kernel @elsewhere(%a: !A) grid (%i, %j) = [M ceildiv 64, N ceildiv 32] cluster [2, 1] arch sm_80 {
}
