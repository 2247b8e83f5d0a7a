// RUN: tilewright-opt %s -p map-threads --split-input-file --verify-diagnostics

tile.kernel @mapped() grid (%i) = [1] threads 32 mapped {
  // expected-error@+1 {{map-threads: the kernel is mapped, but this fragment has no layout}}
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
}

// -----

// How many warpgroups multiply is choose-mma's decision, as is the instruction.
tile.kernel @without_threads() grid (%i) = [1] {
  %a = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  %b = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  // expected-error@+1 {{map-threads: expected a product that choose-mma gave matrix instructions to}}
  tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst wgmma
}

// -----

tile.kernel @apart_from_the_product() grid (%i) = [1] threads 128 {
  %a = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  %b = tile.alloc : !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  // expected-error@+1 {{map-threads: a fragment of [3, 64] has a dim that the product lacks}}
  tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst wgmma
  %other = tile.alloc : !tile.buf<[3, 64], f32, fragment>
  tile.fill %other with 0.0 : f32
}
