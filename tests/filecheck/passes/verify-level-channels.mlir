// RUN: tilewright-opt %s -p 'verify-level{level=tile stage=scheduled}' --split-input-file --verify-diagnostics

// Nothing is open: a slot that tensor maps fill has its mbarriers.
sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  %ch = tile.channel at [0] barriers 8192 : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %f = tile.alloc : !tile.buf<[64, 64], f32, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  %s = tile.acquire %ch
  tile.copy %x[%zero, %zero] to %s bounds [proved, proved] via tma
  tile.publish %ch
  %r = tile.receive %ch
  tile.mma (d0, d1, d2) %r[d0, d2], %r[d1, d2] into %f[d0, d1] inst wgmma
  tile.release %ch
}

// -----

// Nor here: threads fill the slot.
sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  %ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  // expected-error@+1 {{stage scheduled: tile.channel leaves open: barriers}}
  %ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  tile.copy %x[%zero, %zero] to %s bounds [proved, proved] via tma
  tile.publish %ch
  %r = tile.receive %ch
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  // expected-error@+1 {{stage scheduled: tile.channel leaves open: offset}}
  %ch = tile.channel : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  // expected-error@+1 {{stage scheduled: tile.channel leaves open: layout}}
  %ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[64, 64], bf16, shared>>
}

// -----

// Operands of matrix instructions are in the slots of a channel.
sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  %a = tile.alloc at 0 : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  %f = tile.alloc : !tile.buf<[64, 64], f32, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  // expected-error@+1 {{stage scheduled: tile.mma leaves open: channel}}
  tile.mma (d0, d1, d2) %a[d0, d2], %a[d1, d2] into %f[d0, d1] inst wgmma
}

// -----

sym.symbol @M
tile.kernel @k(%x: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[64, 64], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  %ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %s = tile.acquire %ch
  // expected-error@+1 {{stage scheduled: tile.copy leaves open: via}}
  tile.copy %f to %s
}
