// RUN: tilewright-opt %s -p verify-facts --split-input-file --verify-diagnostics

// All of this follows: no error.
sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
  tile.publish %ch
  %r = tile.receive %ch
  tile.copy %r to %x[%zero, %zero] bounds [clip, clip] via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 2]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: no dim of stride 1 for certain}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[M, 1]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: a stride of M may be no multiple of 16 bytes}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: the address may be no multiple of 16 bytes}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[1, N]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: the slot has rows along dim 1, memory along dim 0}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 32], bf16, shared, #tile.swizzled<64, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: 32 elements along the contiguous dim are no multiple of 128 bytes}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[512, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{a tensor map cannot make this copy: a tile of [512, 64] exceeds a tensor map's box}}
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
}

// -----

// A load may end in the middle of 16 bytes, a store may not.
sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[M, M], bf16, global, #tile.strided<[N, 1]>>) grid (%i) = [1] assumes [x_base mod 16 == 0] bases [x_base] {
  %zero = sym.apply 0
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  tile.copy %x[%zero, %zero] to %s bounds [clip, clip] other 0.0 : bf16 via tma
  tile.publish %ch
  %r = tile.receive %ch
  // expected-error@+1 {{a tensor map cannot make this copy: a row of M may be no multiple of 16 bytes}}
  tile.copy %r to %x[%zero, %zero] bounds [clip, clip] via tma
}
