// RUN: tilewright-opt %s -p verify-facts --split-input-file --verify-diagnostics

sym.symbol @M
sym.symbol @N {multiple_of = 4}
// All of these follow: no error.
tile.kernel @k(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M, N floordiv 128] bases [0] {
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[1, 128], f32, fragment>
  tile.copy %x[%i, %n0] to %t bounds [proved, proved] width 4
  tile.copy %t to %x[%i, %n0] bounds [clip, clip] width 4
}

// -----

sym.symbol @N
tile.kernel @k(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 128] bases [0] {
  %n0 = sym.apply 128*i where i = %i
  %t = tile.alloc : !tile.buf<[128], f32, fragment>
  // expected-error@+1 {{the bound of dim 0 is said to be proved, but this does not follow}}
  tile.copy %x[%n0] to %t bounds [proved]
}

// -----

sym.symbol @N
tile.kernel @k(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 128] assumes [N mod 2 == 0] bases [0] {
  %n0 = sym.apply 128*i where i = %i
  %t = tile.alloc : !tile.buf<[128], f32, fragment>
  // expected-error@+1 {{accesses of 4 elements are not proved to be aligned and inside; 2 are}}
  tile.copy %x[%n0] to %t bounds [clip] other 0.0 : f32 width 4
}

// -----

sym.symbol @N {multiple_of = 4}
sym.symbol @x_base {source = "base"}
tile.kernel @k(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 128] bases [x_base] {
  %n0 = sym.apply 128*i where i = %i
  %t = tile.alloc : !tile.buf<[128], f32, fragment>
  // expected-error@+1 {{accesses of 4 elements are not proved to be aligned and inside; 1 are}}
  tile.copy %x[%n0] to %t bounds [clip] other 0.0 : f32 width 4
}

// -----

// What unaligned reads need is a stride of 1.
sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>, %y: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, x_s1]>>) grid (%i, %j) = [M, N ceildiv 256] {
  %n0 = sym.apply 256*i where i = %j
  %t = tile.alloc : !tile.buf<[1, 256], bf16, fragment>
  tile.copy %x[%i, %n0] to %t bounds [proved, clip] other 0.0 : bf16 width 8 unaligned
  // expected-error@+1 {{unaligned accesses need a source with a stride of 1 that nothing writes}}
  tile.copy %y[%i, %n0] to %t bounds [proved, clip] other 0.0 : bf16 width 8 unaligned
}

// -----

// And nobody may write what they read beside.
sym.symbol @M
sym.symbol @N
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M, N ceildiv 256] {
  %n0 = sym.apply 256*i where i = %j
  %t = tile.alloc : !tile.buf<[1, 256], bf16, fragment>
  // expected-error@+1 {{unaligned accesses need a source with a stride of 1 that nothing writes}}
  tile.copy %x[%i, %n0] to %t bounds [proved, clip] other 0.0 : bf16 width 8 unaligned
  tile.copy %t to %x[%i, %n0] bounds [proved, clip]
}

// -----

// Stores from any element on need a stride of 1 as well.
sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, x_s1]>>) grid (%i, %j) = [M, N ceildiv 64] {
  %n0 = sym.apply 64*i where i = %j
  %ch = tile.channel : !tile.channel<1, !tile.buf<[8, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.receive %ch
  // expected-error@+1 {{unaligned stores need a stride of 1, and a slot with rows along it}}
  tile.copy %s to %x[%i, %n0] bounds [clip, clip] width 8 unaligned
  tile.release %ch
}

// -----

// Where the stride is 1, they follow.
sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
tile.kernel @k(%x: !tile.buf<[M, N], bf16, global, #tile.strided<[x_s0, 1]>>) grid (%i, %j) = [M, N ceildiv 64] {
  %n0 = sym.apply 64*i where i = %j
  %ch = tile.channel : !tile.channel<1, !tile.buf<[8, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.receive %ch
  tile.copy %s to %x[%i, %n0] bounds [clip, clip] width 8 unaligned
  tile.release %ch
}

// -----

sym.symbol @N
// Position 31 is not inside for certain; without the claim there is nothing to prove.
tile.kernel @k(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  tile.gather (d) %x[31 - d] to %s bounds [clip] other 0.0 : f32
  // expected-error@+1 {{the bound of dim 0 is said to be proved, but this does not follow}}
  tile.gather (d) %x[31 - d] to %s bounds [proved]
}

// -----

sym.symbol @N {min = 32}
tile.kernel @k(%x: !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  tile.gather (d) %x[31 - d] to %s bounds [proved]
}
