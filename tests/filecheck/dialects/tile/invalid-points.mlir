// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{a kernel that is mapped has threads}}
tile.kernel @k() grid (%i) = [1] mapped {
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{expected an output to be read where it is written, at [d0, d1], got [d1, d0]}}
  tile.map (d0, d1) ins(%f[d1, d0]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected an output to run along every iteration dim, got [d0] without d1}}
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%r[d0]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected each output once, got a buffer twice}}
  tile.map (d0) ins(%f[d0]) outs(%f[d0], %f[d0]) {
  ^bb0(%a: f32):
    tile.yield %a, %a
  }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  %g = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{tile.mma: expected an accumulator that is no operand}}
  tile.mma (d0, d1, d2) %f[d0, d2], %g[d2, d1] into %g[d0, d1]
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected another buffer as target than as source}}
  tile.reduce sum (d0) %f[d0] into %f[d0]
}
