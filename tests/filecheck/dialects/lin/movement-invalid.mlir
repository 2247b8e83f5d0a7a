// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

sym.symbol @M
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected 1 indices for operand 0: tensor<?xf32, #sym.dims<M>>, got 2}}
  %r = lin.generic (i) ins(%a at [i, i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{operand 0: expected else with a constant of type f32, got 0 : i32}}
  %r = lin.generic (i) ins(%a at [i] else 0 : i32 : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{operand 1: expected the value of an integer operand before it, got v0}}
  %r = lin.generic (i) ins(%a[i] as v : tensor<?xf32, #sym.dims<M>>, %a at [v] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32, %y: f32):
    lin.yield %y : f32
  }
  func.return
}

// -----

sym.symbol @M
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected d1 in an operand or in out}}
  %r = lin.generic (i, j) ins(%a at [i + j] : tensor<?xf32, #sym.dims<M>>) out[i] combine sum : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{lin.index: expected an iteration dim below 1, got 1}}
  %r = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    %i = lin.index 1 : index
    lin.yield %x : f32
  }
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>) {
  // expected-error@+1 {{expected 6 < 5, which never holds here}}
  %r = lin.slice %a offsets [4] sizes [3] : tensor<5xf32> -> tensor<3xf32>
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>) {
  // expected-error@+1 {{expected strides of at least 1, got [0]}}
  %r = lin.slice %a offsets [0] sizes [3] strides [0] : tensor<5xf32> -> tensor<3xf32>
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>) {
  // expected-error@+1 {{expected result type tensor<7xf32, #sym.dims<7>>, got tensor<8xf32>}}
  %r = lin.pad %a low [1] high [1] value 0.0 : f32 : tensor<5xf32> -> tensor<8xf32>
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>) {
  // expected-error@+1 {{expected a value of type f32, got 0 : i32}}
  %r = lin.pad %a low [1] high [1] value 0 : i32 : tensor<5xf32> -> tensor<7xf32>
  func.return
}

// -----

sym.symbol @M
sym.symbol @S
func.func @case(%a: tensor<?x1xf32, #sym.dims<M, 1>>, %b: tensor<?x?xf32, #sym.dims<M, S>>) {
  // A 1 is no S: nothing is stretched.
  // expected-error@+1 {{expected size 1 at dim 1 of operand 1, got S}}
  %r = lin.concat %a, %b axis 0 : tensor<?x1xf32, #sym.dims<M, 1>>, tensor<?x?xf32, #sym.dims<M, S>> -> tensor<?x1xf32, #sym.dims<2*M, 1>>
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>) {
  // expected-error@+1 {{expected 5 == 6, which never holds here}}
  %r = lin.reshape %a : tensor<5xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @case(%a: tensor<5xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{expected ids of type i32, got f32}}
  %r = lin.gather %a, %i : tensor<5xf32>, tensor<2xf32> -> tensor<2xf32>
  func.return
}

// -----

func.func @case(%x: tensor<1x4x5x5xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{expected 4 == 3, which never holds here}}
  %r = lin.conv2d %x, %w : tensor<1x4x5x5xf32>, tensor<2x3x3x3xf32> -> tensor<1x2x3x3xf32>
  func.return
}
