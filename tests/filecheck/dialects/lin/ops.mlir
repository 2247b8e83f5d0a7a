// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

!A = tensor<?x?xf32, #sym.dims<M, K>>
!B = tensor<?x?xf32, #sym.dims<K, N>>
!C = tensor<?x?xf32, #sym.dims<M, N>>
!R = tensor<?xf32, #sym.dims<M>>

sym.symbol @M
sym.symbol @K
sym.symbol @N
sym.symbol @P
sym.require P == 2*M

// Any names are read for the iteration dims; d0, d1, ... are written.
// CHECK-LABEL: func.func @generic
// CHECK: %c = lin.generic (d0, d1, d2) ins(%a[d0, d2] : tensor<?x?xf32, #sym.dims<M, K>>, %b[d2, d1] : tensor<?x?xf32, #sym.dims<K, N>>) out[d0, d1] combine sum : tensor<?x?xf32, #sym.dims<M, N>> {
// CHECK-NEXT: ^bb0(%x: f32, %y: f32):
// CHECK-NEXT:   %p = arith.mulf %x, %y : f32
// CHECK-NEXT:   lin.yield %p : f32
// CHECK-NEXT: }
func.func @generic(%a: !A, %b: !B) -> !C {
  %c = lin.generic (i, j, k) ins(%a[i, k] : !A, %b[k, j] : !B) out[i, j] combine sum : !C {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    lin.yield %p : f32
  }
  func.return %c : !C
}

// A scalar has no brackets, a tensor of rank 0 has empty ones, 0 reads a dim of size 1, d1 occurs in out alone.
// CHECK-LABEL: func.func @operands
// CHECK: lin.generic (d0, d1) ins(%s : f32, %t[] : tensor<f32>, %u[d0, 0] : tensor<?x1xf32, #sym.dims<M, 1>>) out[d1, d0] : tensor<?x?xf32, #sym.dims<N, M>> attributes {note = 1 : i32} {
// CHECK: lin.generic () ins() out[] : tensor<f32> {
func.func @operands(%s: f32, %t: tensor<f32>, %u: tensor<?x1xf32, #sym.dims<M, 1>>) -> tensor<?x?xf32, #sym.dims<N, M>> {
  %r = lin.generic (i, j) ins(%s : f32, %t[] : tensor<f32>, %u[i, 0] : tensor<?x1xf32, #sym.dims<M, 1>>) out[j, i] : tensor<?x?xf32, #sym.dims<N, M>> attributes {note = 1 : i32} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = math.exp %p : f32
    lin.yield %q : f32
  }
  %one = lin.generic () ins() out[] : tensor<f32> {
    %v = arith.constant 1.0 : f32
    lin.yield %v : f32
  }
  func.return %r : tensor<?x?xf32, #sym.dims<N, M>>
}

// CHECK-LABEL: func.func @named
// CHECK: %m = lin.map ins(%a, %row, %s : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?xf32, #sym.dims<K>>, f32) -> tensor<?x?xf32, #sym.dims<M, K>> {
// CHECK: %r = lin.reduce sum %m axes [1] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<M>>
// CHECK: lin.reduce prod %m axes [1, 0] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<f32>
// CHECK: lin.reduce max %m axes [] : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?x?xf32, #sym.dims<M, K>>
// CHECK: lin.reduce min %m axes [0] {note = "least"} : tensor<?x?xf32, #sym.dims<M, K>> -> tensor<?xf32, #sym.dims<K>>
// CHECK: %c = lin.matmul %m, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
// CHECK: lin.batch_matmul %p, %q : tensor<?x4x?xbf16, #sym.dims<M, 4, K>>, tensor<?x?x8xbf16, #sym.dims<M, K, 8>> -> tensor<?x4x8xf32, #sym.dims<M, 4, 8>>
// CHECK: lin.matmul %m, %b precision tf32 {note = "cut"} : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
// CHECK: lin.generic (d0, d1, d2) ins(%m[d0, d2] : {{.*}}, %b[d2, d1] : {{.*}}) out[d0, d1] combine sum precision tf32 : tensor<?x?xf32, #sym.dims<M, N>>
// CHECK: %y = lin.softmax %c axis 1 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
// CHECK: %t = lin.transpose %y perm [1, 0] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<N, M>>
// CHECK: lin.cast %t : tensor<?x?xf32, #sym.dims<N, M>> -> tensor<?x?xf16, #sym.dims<N, M>>
// CHECK: lin.clamp %h low 0.000000e+00 high 6.000000e+00 {note = "relu6"} : tensor<?x?xf16, #sym.dims<N, M>> -> tensor<?x?xf16, #sym.dims<N, M>>
// CHECK: lin.clamp %row low -1.000000e-01 high 1.6777218e+07 : tensor<?xf32, #sym.dims<K>> -> tensor<?xf32, #sym.dims<K>>
// CHECK: lin.clamp %row low -3.4028235e+38 high -0.000000e+00 : tensor<?xf32, #sym.dims<K>> -> tensor<?xf32, #sym.dims<K>>
func.func @named(%a: !A, %b: !B, %row: tensor<?xf32, #sym.dims<K>>, %s: f32, %p: tensor<?x4x?xbf16, #sym.dims<M, 4, K>>, %q: tensor<?x?x8xbf16, #sym.dims<M, K, 8>>) -> !R {
  %m = lin.map ins(%a, %row, %s : !A, tensor<?xf32, #sym.dims<K>>, f32) -> !A {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %v = math.fma %x, %y, %z : f32
    lin.yield %v : f32
  }
  %r = lin.reduce sum %m axes [1] : !A -> !R
  %r1 = lin.reduce prod %m axes [1, 0] : !A -> tensor<f32>
  %r2 = lin.reduce max %m axes [] : !A -> !A
  %r3 = lin.reduce min %m axes [0] {note = "least"} : !A -> tensor<?xf32, #sym.dims<K>>
  %c = lin.matmul %m, %b : !A, !B -> !C
  %d = lin.batch_matmul %p, %q : tensor<?x4x?xbf16, #sym.dims<M, 4, K>>, tensor<?x?x8xbf16, #sym.dims<M, K, 8>> -> tensor<?x4x8xf32, #sym.dims<M, 4, 8>>
  %c1 = lin.matmul %m, %b precision tf32 {note = "cut"} : !A, !B -> !C
  %c2 = lin.generic (i, j, k) ins(%m[i, k] : !A, %b[k, j] : !B) out[i, j] combine sum precision tf32 : !C {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    lin.yield %z : f32
  }
  %y = lin.softmax %c axis 1 : !C -> !C
  %t = lin.transpose %y perm [1, 0] : !C -> tensor<?x?xf32, #sym.dims<N, M>>
  %h = lin.cast %t : tensor<?x?xf32, #sym.dims<N, M>> -> tensor<?x?xf16, #sym.dims<N, M>>
  %l = lin.clamp %h low 0.0 high 6.0 {note = "relu6"} : tensor<?x?xf16, #sym.dims<N, M>> -> tensor<?x?xf16, #sym.dims<N, M>>
  %l1 = lin.clamp %row low -0.1 high 16777218.0 : tensor<?xf32, #sym.dims<K>> -> tensor<?xf32, #sym.dims<K>>
  %l2 = lin.clamp %row low -3.4028234663852886e38 high -0.0 : tensor<?xf32, #sym.dims<K>> -> tensor<?xf32, #sym.dims<K>>
  func.return %r : !R
}

// CHECK-LABEL: func.func @group
// CHECK: %y, %z = lin.group ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>>, tensor<f32> {
// CHECK-NEXT: ^bb0(%v: tensor<?xf32, #sym.dims<M>>):
// CHECK: lin.yield %v, %sum : tensor<?xf32, #sym.dims<M>>, tensor<f32>
func.func @group(%x: !R) -> (!R, tensor<f32>) {
  %y, %z = lin.group ins(%x : !R) -> !R, tensor<f32> {
  ^bb0(%v: !R):
    %sum = lin.generic (d0) ins(%v[d0] : !R) out[] combine sum : tensor<f32> {
    ^bb0(%e: f32):
      lin.yield %e : f32
    }
    lin.yield %v, %sum : !R, tensor<f32>
  }
  func.return %y, %z : !R, tensor<f32>
}

// Sizes that a requirement makes equal fit; so does a '?' that nothing is known of yet.
// CHECK-LABEL: func.func @proved
// CHECK: lin.softmax %x axis 0 : tensor<?xf32, #sym.dims<P>> -> tensor<?xf32, #sym.dims<2*M>>
// CHECK: lin.softmax %x axis 0 : tensor<?xf32, #sym.dims<P>> -> tensor<?xf32>
func.func @proved(%x: tensor<?xf32, #sym.dims<P>>) -> tensor<?xf32, #sym.dims<2*M>> {
  %y = lin.softmax %x axis 0 : tensor<?xf32, #sym.dims<P>> -> tensor<?xf32, #sym.dims<2*M>>
  %z = lin.softmax %x axis 0 : tensor<?xf32, #sym.dims<P>> -> tensor<?xf32>
  func.return %y : tensor<?xf32, #sym.dims<2*M>>
}
