// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p verify-dims
// RUN: tilewright-opt %s --split-input-file --verify-diagnostics -p verify-dims | filecheck %s

// What is right passes, and nothing changes.
// CHECK: func.func @right(%x: tensor<?x4xf32, #sym.dims<2*M, 4>>, %y: tensor<8xf32>)
sym.symbol @M
func.func @right(%x: tensor<?x4xf32, #sym.dims<2*M, 4>>, %y: tensor<8xf32>) {
  func.return
}

// -----

sym.symbol @M
// expected-error@below {{symbol 'N' is not declared}}
func.func @undeclared(%x: tensor<?xf32, #sym.dims<N>>) {
  func.return
}

// -----

sym.symbol @M
// expected-error@below {{tensor of rank 2 expected as many dims, got 1}}
func.func @rank(%x: tensor<?x?xf32, #sym.dims<M>>) {
  func.return
}

// -----

// expected-error@below {{dim 0 expected the static size 4 in place of '?'}}
func.func @dynamic(%x: tensor<?xf32, #sym.dims<4>>) {
  func.return
}

// -----

sym.symbol @M
// Two ops with faults: the first is reported, with the number of the others.
// expected-error@below {{dim 0 expected '?' for the size M, got 4 in tensor<4xf32, #sym.dims<M>> (and 1 more)}}
func.func @static(%x: tensor<4xf32, #sym.dims<M>>) {
  func.return
}
func.func @open(%x: tensor<?xf32>) {
  func.return
}
