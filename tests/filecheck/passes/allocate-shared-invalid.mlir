// RUN: tilewright-opt %s -p allocate-shared --split-input-file --verify-diagnostics

tile.kernel @open() grid (%i) = [1] threads 32 {
  // expected-error@+1 {{allocate-shared: expected constant strides; run finish-schedule first}}
  %s = tile.alloc : !tile.buf<[32], f32, shared>
}
