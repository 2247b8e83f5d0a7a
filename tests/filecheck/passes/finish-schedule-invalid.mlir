// RUN: tilewright-opt %s -p finish-schedule --split-input-file --verify-diagnostics

// expected-error@+1 {{finish-schedule: @k has no threads; run map-threads first}}
tile.kernel @k() grid (%i) = [1] {
}

// -----

tile.kernel @k() grid (%i) = [1] threads 32 {
  // expected-error@+1 {{finish-schedule: a fragment has no layout; run map-threads first}}
  %f = tile.alloc : !tile.buf<[32], f32, fragment>
}

// -----

tile.kernel @k(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  // expected-error@+1 {{finish-schedule: a copy has no distribution over threads; run map-threads first}}
  tile.copy %x to %s bounds [proved]
}

// -----

tile.kernel @k(%x: !tile.buf<[32], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 {
  %s = tile.alloc : !tile.buf<[32], f32, shared>
  // expected-error@+1 {{finish-schedule: a gather has no distribution over threads; run map-threads first}}
  tile.gather (d) %x[31 - d] to %s bounds [proved]
}
