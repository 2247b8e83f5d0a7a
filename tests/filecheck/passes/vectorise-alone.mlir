// RUN: tilewright-opt %s -p vectorise | filecheck %s
// RUN: not tilewright-opt %s -p vectorise{access-bytes=12} 2>&1 | filecheck %s --check-prefix=TWELVE

// TWELVE: error: vectorise: expected access_bytes to be 8 or 16, got 12

// Everything is aligned, but nobody has said how many threads there are.
// CHECK-LABEL: tile.kernel @no_threads
// CHECK: tile.copy %x[%zero] to %t bounds [proved]{{$}}
tile.kernel @no_threads(%x: !tile.buf<[128], f32, global, #tile.strided<[1]>>) grid (%i) = [1] bases [0] {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[128], f32, fragment>
  tile.copy %x[%zero] to %t bounds [proved]
}

// Who moves what into shared memory is open: so is how wide.
// CHECK-LABEL: tile.kernel @no_distribution
// CHECK: tile.copy %x[%zero] to %s bounds [proved]{{$}}
tile.kernel @no_distribution(%x: !tile.buf<[128], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 bases [0] {
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<[128], f32, shared>
  tile.copy %x[%zero] to %s bounds [proved]
}

// The same in a kernel that its author mapped; beside it a copy that has its distribution.
// CHECK-LABEL: tile.kernel @mapped
// CHECK: tile.copy %x[%zero] to %s bounds [proved]{{$}}
// CHECK: tile.copy %x[%zero] to %s bounds [proved] width 4 store_width 1 dist
tile.kernel @mapped(%x: !tile.buf<[128], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 mapped bases [0] {
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<[128], f32, shared>
  tile.copy %x[%zero] to %s bounds [proved]
  tile.copy %x[%zero] to %s bounds [proved] dist #tile.distributed<threads [32] strides [1] vector [4]>
}

// An address of which nothing is said may be odd.
// CHECK-LABEL: tile.kernel @no_bases
// CHECK: tile.copy %x[%zero] to %t bounds [proved]{{$}}
tile.kernel @no_bases(%x: !tile.buf<[128], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[128], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.copy %x[%zero] to %t bounds [proved]
}

// The same copy from scratch, which is aligned.
// CHECK-LABEL: tile.kernel @scratch
// CHECK: tile.copy %x[%zero] to %t bounds [proved] width 4
tile.kernel @scratch(%x: !tile.buf<[128], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 bases [0] {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[128], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.copy %x[%zero] to %t bounds [proved]
}

// A mapped kernel whose layouts have no neighbours along any dim.
// CHECK-LABEL: tile.kernel @mapped_apart
// CHECK: tile.copy %x[%zero, %zero] to %t bounds [proved, proved]{{$}}
tile.kernel @mapped_apart(%x: !tile.buf<[8, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] threads 32 mapped bases [0] {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[8, 32], f32, fragment, #tile.distributed<threads [1, 32] strides [1, 1] vector [1, 1]>>
  tile.copy %x[%zero, %zero] to %t bounds [proved, proved]
}

// Elements of which it is open where they lie.
// CHECK-LABEL: tile.kernel @no_strides
// CHECK: tile.copy %x[%zero] to %t bounds [proved]{{$}}
tile.kernel @no_strides(%x: !tile.buf<[128], f32, global>) grid (%i) = [1] threads 32 bases [0] {
  %zero = sym.apply 0
  %t = tile.alloc : !tile.buf<[128], f32, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.copy %x[%zero] to %t bounds [proved]
}
