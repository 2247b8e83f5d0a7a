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

// -----

// The sizes beside the dims and the dims themselves must not differ: each is read by some later step.
// expected-error@below {{dim 1 expected the static size 6, got 5 in tensor<4x5xf32, #sym.dims<4, 6>>}}
func.func @differs(%a: tensor<4x5xf32, #sym.dims<4, 6>>) {
  func.return
}

// -----

sym.symbol @M
// expected-error@below {{symbol 'N' is not declared}}
func.func @undeclared(%a: tensor<?x?xf32, #sym.dims<M, N>>) {
  func.return
}

// -----

sym.symbol @M
// expected-error@below {{tensor of rank 2 expected as many dims, got 1}}
func.func @rank(%a: tensor<?x?xf32, #sym.dims<M>>) {
  func.return
}

// -----

// expected-error@below {{symbol 'Q' is not declared}}
sym.require Q >= 10

// -----

// Both requirements hold for S1 == 0 only, which is declared impossible.
sym.symbol @S1 {min = 1}
sym.symbol @S0
sym.require S0 == 2*S1
func.func @contradiction(%a: tensor<?xf32, #sym.dims<S0>>) {
  // expected-error@below {{requirements that cannot hold: S0 == 2*S1}}
  sym.require S0 == S1
  func.return
}

// -----

// The verifier cannot tell while the operand's size is open.
sym.symbol @M
func.func @stated_rank(%a: tensor<?x4xf32, #sym.dims<M, 4>>) {
  %t = lin.transpose %a perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32>
  // expected-error@below {{lin.transpose: expected rank 2, got stated rank 1}}
  %u = lin.transpose %t perm [1, 0] : tensor<4x?xf32> -> tensor<?xf32>
  func.return
}

// -----

sym.symbol @M
// expected-error@below {{result 0 of @declared: expected a #sym.dims encoding on a tensor with '?' sizes, got tensor<?xf32>}}
func.func private @declared(tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32>

// -----

// expected-error@below {{@blocks: expected one block, got 2}}
func.func @blocks(%a: f32) -> f32 {
  func.return %a : f32
^bb1:
  func.return %a : f32
}
