// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected memory space global, shared, fragment, got registers}}
  %b = tile.alloc : !tile.buf<[8], f32, registers>
}

// -----

sym.symbol @N
tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{sizes of a shared buffer must be constants of at least 1, got}}
  %b = tile.alloc : !tile.buf<[N], f32, shared>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{sizes of a fragment buffer must be constants of at least 1, got}}
  %b = tile.alloc : !tile.buf<[0], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{a fragment has a #tile.distributed layout, got #tile.strided}}
  %b = tile.alloc : !tile.buf<[8], f32, fragment, #tile.strided<[1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected 2 strides, got 1}}
  %b = tile.alloc : !tile.buf<[8, 4], f32, shared, #tile.strided<[1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a #tile.strided, #tile.swizzled, #tile.distributed or #tile.mixed layout, got i32}}
  %b = tile.alloc : !tile.buf<[8], f32, shared, i32>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{a shared buffer has a #tile.strided layout, got #tile.distributed}}
  %b = tile.alloc : !tile.buf<[8], f32, shared, #tile.distributed<threads [8] strides [1] vector [1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a layout of 2 dims, got 1}}
  %b = tile.alloc : !tile.buf<[8, 4], f32, fragment, #tile.distributed<threads [8] strides [1] vector [1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{size 8 is not divisible by threads 4 times vector 4}}
  %b = tile.alloc : !tile.buf<[8], f32, fragment, #tile.distributed<threads [4] strides [1] vector [4]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{threads, strides and vector must have one entry a dim, got 1, 2, 1}}
  %b = tile.alloc : !tile.buf<[8], f32, fragment, #tile.distributed<threads [8] strides [1, 2] vector [1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{threads, strides and vector must be at least 1}}
  %b = tile.alloc : !tile.buf<[8], f32, fragment, #tile.distributed<threads [8] strides [0] vector [1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a !tile.buf type, got f32}}
  %b = tile.alloc : f32 tile.sync
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{tile.alloc makes shared buffers and fragments, got global}}
  %b = tile.alloc : !tile.buf<[8], f32, global>
}

// -----

// expected-error@+1 {{kernel buffers are in global memory, got shared}}
tile.kernel @k(%x: !tile.buf<[8], f32, shared>) grid (%i) = [1] {

}

// -----

// expected-error@+1 {{expected one base for each of 1 arguments, got 2}}
tile.kernel @k(%x: !tile.buf<[8], f32, global>) grid (%i) = [1] bases [0, 0] {

}

// -----

// expected-error@+1 {{index width is 32 or 64, got 16}}
tile.kernel @k() grid (%i) = [1] index_width 16 {

}

// -----

// expected-error@+1 {{expected 2 grid coordinates}}
"tile.kernel"() <{sym_name = "k", grid = #sym.dims<1, 1>, assumes = [], bases = []}> ({
^bb0(%i: index):
}) : () -> ()

// -----

// expected-error@+1 {{grid coordinates are index values, got f32}}
"tile.kernel"() <{sym_name = "k", grid = #sym.dims<1>, assumes = [], bases = []}> ({
^bb0(%i: f32):
}) : () -> ()

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a step of at least 1, got 0}}
  tile.for %k = 0 to 4 step 0 {
  }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected one index loop variable}}
  "tile.for"() <{lower = #sym.expr<0>, upper = #sym.expr<4>, step = #sym.expr<1>, names = []}> ({
  ^bb0(%k: i32):
  }) : () -> ()
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected one name for each value after `where`}}
  "tile.for"(%i) <{lower = #sym.expr<0>, upper = #sym.expr<4>, step = #sym.expr<1>, names = []}> ({
  ^bb0(%k: index):
  }) : (index) -> ()
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f16, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected equal element types, got f16 and f32}}
  tile.copy %x to %f bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected equal ranks, got 1 and 2}}
  tile.copy %x to %f bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{a copy between fragments goes through shared memory}}
  tile.copy %f to %f
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{a copy needs a shared buffer or a fragment on one side}}
  tile.copy %x to %x
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected 2 source offsets or none, got 1}}
  tile.copy %x[%i] to %f bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected 2 target offsets or none, got 1}}
  tile.copy %f to %x[%i] bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{a fragment has no offsets}}
  tile.copy %x to %f[%i, %i] bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %t = tile.alloc : !tile.buf<[8, 2], f32, shared>
  // expected-error@+1 {{tile of sizes [8, 4] exceeds}}
  tile.copy %t to %f
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected 2 bounds, got 1}}
  tile.copy %x to %f bounds [clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{bounds belong to copies with global memory}}
  tile.copy %s to %f bounds [clip, clip]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected bound to be one of clip, proved, got sure}}
  tile.copy %x to %f bounds [clip, sure]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{width must be 1, 2, 4, 8 or 16, got 3}}
  tile.copy %x to %f bounds [clip, clip] width 3
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{width must be 1, 2, 4, 8 or 16, got 5}}
  tile.copy %x to %s bounds [clip, clip] width 4 store_width 5
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected along to be a dim from 0 to 1, got 2}}
  tile.copy %x to %f bounds [clip, clip] width 4 along 2
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected a #tile.distributed layout, got}}
  tile.copy %x to %s bounds [clip, clip] dist #tile.strided<[1, 1]> tile.sync
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{tile.fill writes a fragment}}
  tile.fill %s with 0.0 : f32
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{iteration dim d1 has size 4 and size 8}}
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%f[d1, d0]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected 2 dims for}}
  tile.map (d0, d1) ins(%f[d0]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{a broadcast dim has size 1, got 4}}
  tile.map (d0, d1) ins(%f[d0, 0]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%v: f32) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{a scalar operand has no dims, got [0]}}
  tile.map (d0, d1) ins(%v[d0]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{every iteration dim must index a buffer}}
  tile.map (d0, d1, d2) ins(%f[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{tile.map works on fragments, got shared}}
  tile.map (d0, d1) ins(%s[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected body arguments}}
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%a: f16):
    %b = arith.constant 0.0 : f32
    tile.yield %b
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{the body must end in tile.yield with one value of each output's element type}}
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a, %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{d2 is not an iteration dim; they are d0, d1}}
  tile.map (d0, d1) ins(%f[d0, d2]) outs(%f[d0, d1]) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{d2 is not an iteration dim}}
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%f[d0, d1]) valid(d2 < %i) {
  ^bb0(%a: f32):
    tile.yield %a
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected one map for each input and output}}
  "tile.map"(%f, %f) <{maps = [[#builtin.int<0>, #builtin.int<1>]], iteration = 2 : i64, valid = [], operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%a: f32):
    tile.yield %a
  }) : (!tile.buf<[8, 4], f32, fragment>, !tile.buf<[8, 4], f32, fragment>) -> ()
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{iteration dim d5 does not exist}}
  "tile.map"(%f, %f) <{maps = [[#builtin.int<0>, #builtin.int<1>], [#builtin.int<0>, #builtin.int<5>]], iteration = 2 : i64, valid = [], operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%a: f32):
    tile.yield %a
  }) : (!tile.buf<[8, 4], f32, fragment>, !tile.buf<[8, 4], f32, fragment>) -> ()
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  // expected-error@+1 {{expected one limit for each valid dim}}
  "tile.map"(%f, %f) <{maps = [[#builtin.int<0>, #builtin.int<1>], [#builtin.int<0>, #builtin.int<1>]], iteration = 2 : i64, valid = [#builtin.int<0>], operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%a: f32):
    tile.yield %a
  }) : (!tile.buf<[8, 4], f32, fragment>, !tile.buf<[8, 4], f32, fragment>) -> ()
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected combiner to be one of sum, prod, max, min, got mean}}
  tile.reduce mean (d0, d1) %f[d0, d1] into %r[d0]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{every iteration dim must index a buffer}}
  tile.reduce sum (d0, d1, d2) %f[d0, d1] into %r[d0]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %r = tile.alloc : !tile.buf<[8], f16, fragment>
  // expected-error@+1 {{expected equal element types, got f32 and f16}}
  tile.reduce sum (d0, d1) %f[d0, d1] into %r[d0]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  %r = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{tile.reduce works on fragments}}
  tile.reduce sum (d0, d1) %s[d0, d1] into %r[d0]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %c = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{every iteration dim must index a buffer}}
  tile.mma (d0, d1, d2, d3) %f[d0, d2], %f[d0, d2] into %c[d0, d1]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %s = tile.alloc : !tile.buf<[8, 4], f32, shared>
  %c = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{tile.mma with inst fma: expected a fragment buffer, got shared}}
  tile.mma (d0, d1, d2) %f[d0, d2], %s[d1, d2] into %c[d0, d1]
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %c = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{expected inst to be one of fma, mma.sync, wgmma, got wmma}}
  tile.mma (d0, d1, d2) %f[d0, d2], %f[d1, d2] into %c[d0, d1] inst wmma
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], f32, fragment>
  %c = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{expected precision to be one of tf32, got tf16}}
  tile.mma (d0, d1, d2) %f[d0, d2], %f[d1, d2] into %c[d0, d1] precision tf16
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 4], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8, 4], i32, fragment>
  %c = tile.alloc : !tile.buf<[8, 8], i32, fragment>
  // expected-error@+1 {{tile.mma: precision tf32: expected f32 sums, got i32}}
  tile.mma (d0, d1, d2) %f[d0, d2], %f[d1, d2] into %c[d0, d1] precision tf32
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[M], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected 1 indices, got 2}}
  tile.gather (d0) %x[d0, d0] to %f bounds [clip]
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[M], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected bound to be one of clip, proved, trusted, got masked}}
  tile.gather (d0) %x[d0] to %f bounds [masked]
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[M], f32, global>) grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected integer fragments after with}}
  tile.gather (d0) %x[v0] to %f with v0 = %f[d0] bounds [trusted]
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  tile.map (d0) ins(%f[d0]) outs(%f[d0]) {
  ^bb0(%p: f32):
    // expected-error@+1 {{expected an iteration dim of the tile.map around, got 1}}
    %at = tile.index 1 : index
    tile.yield %p
  }
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 64], bf16, global, #tile.strided<[64, 1]>>) grid () = [] {
  %s = tile.alloc : !tile.buf<[8, 64], bf16, shared>
  // expected-error@+1 {{unaligned accesses are those of threads to global memory}}
  tile.copy %x to %s bounds [clip, clip] via tma unaligned
}

// -----

tile.kernel @k(%x: !tile.buf<[8, 64], bf16, global, #tile.strided<[64, 1]>>) grid () = [] {
  %f = tile.alloc : !tile.buf<[8, 64], bf16, fragment>
  // expected-error@+1 {{unaligned stores read a swizzled slot, got !tile.buf<[8, 64], bf16, fragment>}}
  tile.copy %f to %x bounds [clip, clip] via thread width 8 unaligned
}
