// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p infer-shapes

sym.symbol @M
// expected-error@below {{argument 1 of @open: expected a #sym.dims encoding on a tensor with '?' sizes, got tensor<?x8xf32>}}
func.func @open(%a: tensor<?xf32, #sym.dims<M>>, %b: tensor<?x8xf32>) {
  func.return
}

// -----

// The size of %t is open until the pass; then it is M, which nothing says is N.
sym.symbol @M
sym.symbol @N
func.func @unequal(%a: tensor<?x4xf32, #sym.dims<M, 4>>, %b: tensor<?xf32, #sym.dims<N>>) {
  %t = lin.transpose %a perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32>
  // expected-error@below {{lin.map: expected equal sizes at dim 1 of the broadcast, got M and N}}
  %r = lin.map ins(%t, %b : tensor<4x?xf32>, tensor<?xf32, #sym.dims<N>>) -> tensor<4x?xf32> {
  ^bb0(%p: f32, %q: f32):
    lin.yield %q : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @N
func.func @stated(%a: tensor<?x4xf32, #sym.dims<M, 4>>) {
  %t = lin.transpose %a perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32>
  // expected-error@below {{lin.reduce: expected size M at dim 0, got stated size N}}
  %r = lin.reduce sum %t axes [0] : tensor<4x?xf32> -> tensor<?xf32, #sym.dims<N>>
  func.return
}
