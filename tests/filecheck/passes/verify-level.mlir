// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p 'verify-level{level=tensor}'
// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p 'verify-level{level=tensor}' | filecheck %s
// RUN: not tilewright-opt %s -p 'verify-level{level=linalg}' 2>&1 | filecheck --check-prefix=LEVEL %s
// RUN: not tilewright-opt %s -p 'verify-level{level=simt stage=scheduled}' 2>&1 | filecheck --check-prefix=STAGE %s
// LEVEL: expected level to be one of tensor, tile, simt, host, got 'linalg'
// STAGE: stage scheduled is a stage of level tile, got level simt

// CHECK-LABEL: func.func @right(
sym.symbol @M
func.func @right(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %two = arith.constant 2.0 : f32
  %y = lin.map ins(%x, %two : tensor<?xf32, #sym.dims<M>>, f32) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  func.return %y : tensor<?xf32, #sym.dims<M>>
}

// -----

// Scalar arithmetic stands in the bodies of structured ops only.
func.func @scalars(%x: f32) -> f32 {
  // expected-error@below {{level tensor: expected arith.constant, func, lin, sym in func.func, got arith.addf (and 1 more)}}
  %y = arith.addf %x, %x : f32
  %z = arith.mulf %y, %x : f32
  func.return %z : f32
}

// -----

func.func @control(%c: i1) {
  // expected-error@below {{got scf.if}}
  scf.if %c {
  }
  func.return
}

// -----

// expected-error@below {{level tensor: expected func, sym in the module, got arith.constant}}
%c = arith.constant 1 : i32
