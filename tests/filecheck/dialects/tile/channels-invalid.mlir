// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected 1 to 16 slots, got 17}}
  %ch = tile.channel : !tile.channel<17, !tile.buf<[8], f32, shared>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected 1 to 16 slots, got 0}}
  %ch = tile.channel : !tile.channel<0, !tile.buf<[8], f32, shared>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a !tile.buf for each buffer of a slot, at least one}}
  %ch = tile.channel : !tile.channel<2>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a !tile.buf for each buffer of a slot, at least one}}
  %ch = tile.channel : !tile.channel<2, !tile.buf<[8], f32, shared>, i32>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{slots lie in shared memory, got fragment}}
  %ch = tile.channel : !tile.channel<2, !tile.buf<[8], f32, fragment>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected 1 offsets, got 2}}
  %ch = tile.channel at [0, 64] : !tile.channel<2, !tile.buf<[8], f32, shared>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{mbarriers lie at a multiple of 8 bytes, got 12}}
  %ch = tile.channel at [0] barriers 12 : !tile.channel<2, !tile.buf<[8], f32, shared>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %ch = tile.channel : !tile.channel<2, !tile.buf<[8], f32, shared>>
  // expected-error@+1 {{expected the types of the slot's buffers as results}}
  %b = "tile.acquire"(%ch) : (!tile.channel<2, !tile.buf<[8], f32, shared>>) -> !tile.buf<[4], f32, shared>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %ch = tile.channel : !tile.channel<2, !tile.buf<[8], f32, shared>>
  // expected-error@+1 {{expected the types of the slot's buffers as results}}
  "tile.receive"(%ch) : (!tile.channel<2, !tile.buf<[8], f32, shared>>) -> ()
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  // expected-error@+1 {{expected a channel, got index}}
  %b = tile.acquire %zero
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %ch = tile.channel : !tile.channel<2, !tile.buf<[8], f32, shared>>
  // expected-error@+1 {{expected a lag of 0 or 1, less than the number of slots, got 2}}
  tile.release %ch lag 2
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %ch = tile.channel : !tile.channel<1, !tile.buf<[8], f32, shared>>
  // expected-error@+1 {{expected a lag of 0 or 1, less than the number of slots, got 1}}
  tile.release %ch lag 1
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected a name, two bounds and a register count for each region}}
  "tile.roles"() <{names = ["a"], bounds = [#builtin.int<0>], registers = [#builtin.int<0>]}> ({
  ^bb0:
  }) : () -> ()
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{role a: expected warpgroups [first, past last] within [0, 8], got [1, 1]}}
  tile.roles { role a warpgroups [1, 1] {} }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{role b: warpgroup 1 has a role already}}
  tile.roles { role a warpgroups [0, 2] {} role b warpgroups [1, 3] {} }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{role a: expected a multiple of 8 registers from 24 to 256, got 20}}
  tile.roles { role a warpgroups [0, 1] registers 20 {} }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{role a: expected a multiple of 8 registers from 24 to 256, got 264}}
  tile.roles { role a warpgroups [0, 1] registers 264 {} }
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  // expected-error@+1 {{expected two sizes, got 3}}
  %a, %b = tile.raster %zero in [1, 2, 3] group 8
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  // expected-error@+1 {{expected groups of at least one row, got 0}}
  %a, %b = tile.raster %zero in [1, 2] group 0
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<[8], f32, shared>
  // expected-error@+1 {{expected a part of a fragment with its element type}}
  %p = tile.slice %s[%zero] : !tile.buf<[4], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected a part of a fragment with its element type}}
  %p = tile.slice %f[%zero] : !tile.buf<[4], f16, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[8, 8], f32, fragment>
  // expected-error@+1 {{expected a size and an offset for each of 2 dims}}
  %p = tile.slice %f[%zero] : !tile.buf<[4, 4], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{sizes [3] do not divide [8]}}
  %p = tile.slice %f[%zero] : !tile.buf<[3], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected a !tile.buf type, got f32}}
  %p = tile.slice %f[%zero] : f32
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{expected panels of 32, 64 or 128 bytes, got 48}}
  %s = tile.alloc : !tile.buf<[8, 64], bf16, shared, #tile.swizzled<48, 1>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{a swizzled layout is for a dim of a shared buffer, got}}
  %s = tile.alloc : !tile.buf<[8, 64], bf16, shared, #tile.swizzled<128, 2>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{a swizzled layout is for a dim of a shared buffer, got}}
  %s = tile.alloc : !tile.buf<[8, 64], bf16, fragment, #tile.swizzled<128, 1>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{the digits of a mixed layout count at least 1}}
  %f = tile.alloc : !tile.buf<[8], f32, fragment, #tile.mixed<[0, 8]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  // expected-error@+1 {{the digits of a dim of 8 elements count 4}}
  %f = tile.alloc : !tile.buf<[8], f32, fragment, #tile.mixed<[2, 2:1]>>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  %f = tile.alloc : !tile.buf<[8], bf16, fragment>
  // expected-error@+1 {{via tma moves between global and shared memory, got fragment to shared}}
  tile.copy %f to %s via tma
}

// -----

tile.kernel @k(%x: !tile.buf<[8], bf16, global>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  // expected-error@+1 {{via tma fills with zero, got 1.000000e+00 : bf16}}
  tile.copy %x to %s bounds [clip] other 1.0 : bf16 via tma
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  %f = tile.alloc : !tile.buf<[8], bf16, fragment>
  // expected-error@+1 {{via stmatrix moves fragment to shared, got shared to fragment}}
  tile.copy %s to %f via stmatrix
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], f32, shared>
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{via stmatrix moves bf16 or f16, got f32}}
  tile.copy %f to %s via stmatrix
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], f32, shared>
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected via thread, cp.async, tma, stmatrix, got bulk}}
  "tile.copy"(%f, %s) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, bounds = [], via = "bulk"}> : (!tile.buf<[8], f32, fragment>, !tile.buf<[8], f32, shared>) -> ()
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %a = tile.alloc : !tile.buf<[64, 16], bf16, fragment>
  %c = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  // expected-error@+1 {{tile.mma with inst wgmma: expected a shared buffer, got fragment}}
  tile.mma (d0, d1, d2) %a[d0, d2], %a[d1, d2] into %c[d0, d1] inst wgmma
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %a = tile.alloc : !tile.buf<[64, 16], bf16, fragment>
  %c = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  // expected-error@+1 {{tile.mma with inst mma.sync: expected a shared buffer, got fragment}}
  tile.mma (d0, d1, d2) %a[d0, d2], %a[d1, d2] into %c[d0, d1] inst mma.sync
}

// -----

tile.kernel @k(%x: !tile.buf<[8], bf16, global>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  // expected-error@+1 {{via cp.async moves global to shared memory, got shared to global}}
  tile.copy %s to %x bounds [clip] via cp.async width 8
}

// -----

tile.kernel @k(%x: !tile.buf<[8], bf16, global>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  // expected-error@+1 {{via cp.async moves 4, 8 or 16 bytes at a time, got 1 of bf16}}
  tile.copy %x to %s bounds [clip] via cp.async width 1
}

// -----

tile.kernel @k(%x: !tile.buf<[8], bf16, global>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[8], bf16, shared>
  // expected-error@+1 {{via cp.async fills with zero, got 1.000000e+00 : bf16}}
  tile.copy %x to %s bounds [clip] other 1.0 : bf16 via cp.async width 8
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %o = sym.apply -4
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected an offset along dim 0 that is a multiple of 4 from 0 to 4, got -4}}
  %p = tile.slice %f[%o] : !tile.buf<[4], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %o = sym.apply 2
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected an offset along dim 0 that is a multiple of 4 from 0 to 4, got 2}}
  %p = tile.slice %f[%o] : !tile.buf<[4], f32, fragment>
}

// -----

tile.kernel @k() grid (%i) = [1] {
  %o = sym.apply 8
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  // expected-error@+1 {{expected an offset along dim 0 that is a multiple of 4 from 0 to 4, got 8}}
  %p = tile.slice %f[%o] : !tile.buf<[4], f32, fragment>
}
