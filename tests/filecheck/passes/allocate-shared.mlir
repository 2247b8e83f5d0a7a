// RUN: tilewright-opt %s -p allocate-shared | filecheck %s
// RUN: not tilewright-opt %s -p 'allocate-shared{arch=sm_86}' 2>&1 | filecheck %s --check-prefix=SMALL

// From the first element to the last, padding between rows included (31*33 + 32 floats), at multiples of 16 bytes.
// CHECK-LABEL: tile.kernel @padded
// CHECK: %s = tile.alloc at 0 : !tile.buf<[32, 32], f32, shared, #tile.strided<[33, 1]>>
// CHECK: %t = tile.alloc at 4224 : !tile.buf<[3], f16, shared, #tile.strided<[1]>>
// CHECK: %u = tile.alloc at 4240 : !tile.buf<[16, 2], f32, shared, #tile.strided<[1, 18]>>
// CHECK: %f = tile.alloc : !tile.buf<[32], f32, fragment>
tile.kernel @padded() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32, 32], f32, shared, #tile.strided<[33, 1]>>
  tile.for %k = 0 to 4 step 1 {
    %t = tile.alloc : !tile.buf<[3], f16, shared, #tile.strided<[1]>>
  }
  %u = tile.alloc : !tile.buf<[16, 2], f32, shared, #tile.strided<[1, 18]>>
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
}

// 160 KiB fit a block of sm_80 (163 KiB), not one of sm_86 (99 KiB).
// CHECK-LABEL: tile.kernel @large
// CHECK: tile.alloc at 131072
// SMALL: error: @large needs 32768 x 4 + 8192 x 4 = 163840 bytes of shared memory, sm_86 allows 101376
tile.kernel @large() grid (%i) = [1] {
  %s = tile.alloc : !tile.buf<[32768], f32, shared, #tile.strided<[1]>>
  %t = tile.alloc : !tile.buf<[8192], f32, shared, #tile.strided<[1]>>
}
