// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

sym.symbol @M {min = 0}
// expected-error@+1 {{expected an entry of cluster for each of 2 grid dims}}
tile.kernel @k(%a: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i, %j) = [M, M] cluster [2] {
}

// -----

sym.symbol @M {min = 0}
// expected-error@+1 {{expected clusters of 2, 4, 8 blocks, got [3, 1]}}
tile.kernel @k(%a: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i, %j) = [M, M] cluster [3, 1] {
}

// -----

sym.symbol @M {min = 0}
// expected-error@+1 {{expected clusters of 2, 4, 8 blocks, got [1, 1]}}
tile.kernel @k(%a: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i, %j) = [M, M] cluster [1, 1] {
}

// -----

sym.symbol @M {min = 0}
tile.kernel @k(%a: !tile.buf<[M, M], bf16, global, #tile.strided<[M, 1]>>) grid (%i, %r) = [M, 2] cluster [1, 2] {
  %ring = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.receive %ring
  // expected-error@+1 {{multicast copies are made via tma, from global memory}}
  tile.copy %s to %a[%i, %i] bounds [clip, clip] via tma multicast
}
