// RUN: tilewright-opt %s -p allocate-shared --split-input-file --verify-diagnostics

tile.kernel @open() grid (%i) = [1] threads 32 {
  // expected-error@+1 {{allocate-shared: expected constant strides; run finish-schedule first}}
  %s = tile.alloc : !tile.buf<[32], f32, shared>
}

// -----

tile.kernel @plain_slots() grid (%i) = [1] threads 32 {
  // expected-error@+1 {{allocate-shared: expected slots with a swizzled layout, got !tile.buf<[64, 64], bf16, shared, #tile.strided<[64, 1]>>}}
  %c = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.strided<[64, 1]>>>
}

// -----

// 4 rows of 128 bytes: the next slot would start inside a pattern of the swizzle.
tile.kernel @small_slots() grid (%i) = [1] threads 32 {
  // expected-error@+1 {{allocate-shared: a slot of !tile.buf<[4, 64], bf16, shared, #tile.swizzled<128, 1>> is no multiple of 1024 bytes}}
  %c = tile.channel : !tile.channel<2, !tile.buf<[4, 64], bf16, shared, #tile.swizzled<128, 1>>>
}
