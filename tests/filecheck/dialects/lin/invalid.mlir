// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected 2 indices for operand 0}}
  %r = lin.generic (i, j) ins(%a[i] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected distinct iteration dims, got (i, i)}}
  %r = lin.generic (i, i) ins(%a[i, i] : tensor<?x?xf32, #sym.dims<M, K>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected one of the iteration dims (i, j), got k}}
  %r = lin.generic (i, j) ins(%a[i, k] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected an iteration dim or 0, got 1}}
  %r = lin.generic (i, j) ins(%a[i, 1] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected size 1 at index 0 of operand 0 dim 1, got K}}
  %r = lin.generic (i, j) ins(%a[i, 0] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected distinct iteration dims in out}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, i] combine sum : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected combine for the reduction dims d1, got none}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected no combine without reduction dims, got sum}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] combine sum : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected combine to be one of sum, prod, max, min, got mean}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i] combine mean : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected d2 in an operand or in out}}
  %r = lin.generic (i, j, k) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] combine sum : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected size K of d0 for operand 0 dim 0, got M}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[j, i] : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected size K of d2 for operand 1 dim 0, got M}}
  %r = lin.generic (i, j, k) ins(%a[i, k] : tensor<?x?xf32, #sym.dims<M, K>>, %b[k, j] : tensor<?x?xf32, #sym.dims<M, K>>) out[i, j] combine sum : tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    lin.yield %p : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected body arguments (f32), got (f16)}}
  %r = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f16):
    lin.yield %x : f16
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected the body to yield f32, got f16}}
  %r = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    %p = arith.truncf %x : f32 to f16
    lin.yield %p : f16
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>, %s: f32) {
  // expected-error@+1 {{value defined out of its IsolatedFromAbove parent}}
  %r = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    lin.yield %s : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected only arith and math ops in the body, got sym.require}}
  %r = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%x: f32):
    sym.require M >= 1
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<4xf64>) {
  // expected-error@+1 {{expected elements of type f32, f16, bf16, i32, i1 or index, got f64}}
  %r = lin.generic (i) ins(%a[i] : tensor<4xf64>) out[i] : tensor<4xf64> {
  ^bb0(%x: f64):
    lin.yield %x : f64
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected equal sizes at dim 1 of the broadcast, got K and M}}
  %r = lin.map ins(%a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?xf32, #sym.dims<M>>) -> tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    lin.yield %p : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected result type tensor<?x?xf32, #sym.dims<M, K>>, got tensor<?x?xf32, #sym.dims<K, M>>}}
  %r = lin.map ins(%a : tensor<?x?xf32, #sym.dims<M, K>>) -> tensor<?x?xf32, #sym.dims<K, M>> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{'lin.reduce': expected axes in 0..1, got 2}}
  %r = lin.reduce sum %a axes [2] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected distinct axes, got [1, 1]}}
  %r = lin.reduce sum %a axes [1, 1] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected result type tensor<?xf32, #sym.dims<K>>, got tensor<?xf32, #sym.dims<M>>}}
  %r = lin.reduce sum %a axes [0] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected result elements of type f32, got i32}}
  %r = lin.reduce sum %a axes [1] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xi32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected equal inner dims, got K (lhs dim 1) and M (rhs dim 0)}}
  %r = lin.matmul %a, %a : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected two operands of rank 2, got ranks 2 and 1}}
  %r = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x8xf16, #sym.dims<K, 8>>) {
  // expected-error@+1 {{expected operands of one element type, got f32 and f16}}
  %r = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x8xf16, #sym.dims<K, 8>> -> tensor<?x8xf32, #sym.dims<M, 8>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<4x4xi32>) {
  // expected-error@+1 {{expected a result of the operands' kind i32, got f32}}
  %r = lin.matmul %a, %a : tensor<4x4xi32>, tensor<4x4xi32> -> tensor<4x4xf32>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected two operands of one rank, at least 3, got ranks 2 and 2}}
  %r = lin.batch_matmul %a, %a : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<2x4x4xf32>, %b: tensor<3x4x4xf32>) {
  // expected-error@+1 {{expected equal batch dims 0, got 2 and 3}}
  %r = lin.batch_matmul %a, %b : tensor<2x4x4xf32>, tensor<3x4x4xf32> -> tensor<2x4x4xf32>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected an axis in 0..1, got 2}}
  %r = lin.softmax %a axis 2 : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<4xi32>) {
  // expected-error@+1 {{expected one float type for operand and result, got i32}}
  %r = lin.softmax %a axis 0 : tensor<4xi32> -> tensor<4xi32>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected a permutation of 0..1, got [0, 0]}}
  %r = lin.transpose %a perm [0, 0] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected result type tensor<?x?xf32, #sym.dims<K, M>>}}
  %r = lin.transpose %a perm [1, 0] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?x?xf32, #sym.dims<M, K>>) {
  // expected-error@+1 {{expected result type tensor<?x?xf32, #sym.dims<M, K>>, got tensor<?xf32, #sym.dims<M>>}}
  %r = lin.cast %a : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<4xi32>) {
  // expected-error@+1 {{expected one float type for operand and result, got i32, i32}}
  %r = lin.clamp %a low 0.0 high 1.0 : tensor<4xi32> -> tensor<4xi32>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected one float type for operand and result, got f32, f16}}
  %r = lin.clamp %a low 0.0 high 1.0 : tensor<4xf32> -> tensor<4xf16>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected finite f32 numbers low <= high, got 2.0 and 1.0}}
  %r = lin.clamp %a low 2.0 high 1.0 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected finite f32 numbers low <= high, got 0.0 and inf}}
  %r = lin.clamp %a low 0.0 high 1.0e39 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected finite f32 numbers low <= high, got nan and 1.0}}
  %r = "lin.clamp"(%a) <{low = 0x7FC00000 : f32, high = 1.0 : f32}> : (tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected float literal}}
  %r = lin.clamp %a low 0 high 1.0 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected result type tensor<?xf32, #sym.dims<M>>, got tensor<?xf32, #sym.dims<K>>}}
  %r = lin.clamp %a low 0.0 high 1.0 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<K>>
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected only lin.generic ops inside, got lin.softmax}}
  %r = lin.group ins(%a : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%v: tensor<?xf32, #sym.dims<M>>):
    %s = lin.softmax %v axis 0 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
    lin.yield %s : tensor<?xf32, #sym.dims<M>>
  }
  func.return
}

// -----

sym.symbol @M
sym.symbol @K
func.func @case(%a: tensor<?xf32, #sym.dims<M>>) {
  // expected-error@+1 {{expected to yield (tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>), got (tensor<?xf32, #sym.dims<M>>)}}
  %r, %q = lin.group ins(%a : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>> {
  ^bb0(%v: tensor<?xf32, #sym.dims<M>>):
    lin.yield %v : tensor<?xf32, #sym.dims<M>>
  }
  func.return
}

// -----

func.func @case(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected precision to be one of tf32, got bf16}}
  %r = lin.matmul %a, %a precision bf16 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  func.return
}

// -----

func.func @case(%a: tensor<4x4xf16>) {
  // expected-error@+1 {{precision tf32: expected f32 operands, got f16}}
  %r = lin.matmul %a, %a precision tf32 : tensor<4x4xf16>, tensor<4x4xf16> -> tensor<4x4xf16>
  func.return
}

// -----

func.func @case(%a: tensor<2x4x4xi32>) {
  // expected-error@+1 {{precision tf32: expected f32 operands, got i32}}
  %r = lin.batch_matmul %a, %a precision tf32 : tensor<2x4x4xi32>, tensor<2x4x4xi32> -> tensor<2x4x4xi32>
  func.return
}

// -----

func.func @case(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{precision tf32: expected a contraction that sums products in f32}}
  %r = lin.generic (i, j) ins(%a[i, j] : tensor<4x4xf32>) out[i] combine sum precision tf32 : tensor<4xf32> {
  ^bb0(%x: f32):
    lin.yield %x : f32
  }
  func.return
}
