// RUN: tilewright-opt %s -p decompose,fuse-elementwise | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @K

// A chain with broadcasting is one generic: bias, scale by a scalar, exp, a row that stretches, and a use of the first operand again.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: lin.generic (d0, d1) ins(%x[d0, d1] : {{.*}}, %b[d1] : {{.*}}, %s : f32, %c[0, d1] : {{.*}}) out[d0, d1]
// CHECK: math.exp
// CHECK-NOT: lin.generic
// CHECK: func.return
func.func @chain(%x: tensor<?x?xf32, #sym.dims<M, N>>, %b: tensor<?xf32, #sym.dims<N>>, %c: tensor<1x?xf32, #sym.dims<1, N>>, %s: f32) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %0 = lin.map ins(%x, %b : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    lin.yield %r : f32
  }
  %1 = lin.map ins(%0, %s : tensor<?x?xf32, #sym.dims<M, N>>, f32) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  %2 = lin.map ins(%1 : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32):
    %r = math.exp %p : f32
    lin.yield %r : f32
  }
  %3 = lin.map ins(%2, %c : tensor<?x?xf32, #sym.dims<M, N>>, tensor<1x?xf32, #sym.dims<1, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    lin.yield %r : f32
  }
  %4 = lin.map ins(%3, %x : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.subf %p, %q : f32
    lin.yield %r : f32
  }
  %5 = lin.map ins(%4 : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32):
    %r = arith.negf %p : f32
    lin.yield %r : f32
  }
  func.return %5 : tensor<?x?xf32, #sym.dims<M, N>>
}

// The value between the bodies keeps its type: it is rounded to bf16 as before.
// CHECK-LABEL: func.func @rounding(
// CHECK: ^bb0(%{{.*}}: f32):
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT: arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT: lin.yield
func.func @rounding(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %a = lin.cast %x : tensor<?xf32, #sym.dims<M>> -> tensor<?xbf16, #sym.dims<M>>
  %b = lin.cast %a : tensor<?xbf16, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return %b : tensor<?xf32, #sym.dims<M>>
}

// A transpose becomes a map of the elementwise user, and of the contraction; x + x^T reads x through two maps.
// CHECK-LABEL: func.func @transposes(
// CHECK-NEXT: %[[S:.*]] = lin.generic (d0, d1) ins(%x[d0, d1] : {{.*}}, %x[d1, d0] : {{.*}}) out[d0, d1]
// CHECK: lin.generic (d0, d1, d2) ins(%x[d0, d2] : {{.*}}, %b[d1, d2] : {{.*}}) out[d0, d1] combine sum
// CHECK-NOT: lin.generic
// CHECK: func.return
func.func @transposes(%x: tensor<?x?xf32, #sym.dims<M, M>>, %b: tensor<?x?xf32, #sym.dims<N, M>>) -> (tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, N>>) {
  %t = lin.transpose %x perm [1, 0] : tensor<?x?xf32, #sym.dims<M, M>> -> tensor<?x?xf32, #sym.dims<M, M>>
  %s = lin.map ins(%x, %t : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, M>>) -> tensor<?x?xf32, #sym.dims<M, M>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    lin.yield %r : f32
  }
  %u = lin.transpose %b perm [1, 0] : tensor<?x?xf32, #sym.dims<N, M>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %c = lin.matmul %x, %u : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %s, %c : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, N>>
}

// The prologue of a reduction; the square is read once, so this is no contraction.
// CHECK-LABEL: func.func @prologue(
// CHECK-NEXT: lin.generic (d0, d1) ins(%x[d0, d1] : tensor<?x?xf32, #sym.dims<M, N>>) out[d0] combine sum
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32):
// CHECK-NEXT: arith.mulf %[[P]], %[[P]] : f32
// CHECK-NOT: lin.generic
// CHECK: func.return
func.func @prologue(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?xf32, #sym.dims<M>> {
  %s = lin.map ins(%x, %x : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  %r = lin.reduce sum %s axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  func.return %r : tensor<?xf32, #sym.dims<M>>
}

// exp is not computed once for each of its users, and not in the contraction; a cheap producer of two kernels stays as well.
// CHECK-LABEL: func.func @kept(
// CHECK: %[[E:.*]] = lin.generic (d0, d1) {{.*}} out[d0, d1]
// CHECK: math.exp
// CHECK: combine sum
// CHECK: lin.generic {{.*}}%[[E]]
// CHECK: lin.generic {{.*}}%[[E]]
// CHECK: func.return
func.func @kept(%x: tensor<?x?xf32, #sym.dims<M, K>>, %w: tensor<?x?xf32, #sym.dims<K, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<M, K>>) {
  %e = lin.map ins(%x : tensor<?x?xf32, #sym.dims<M, K>>) -> tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%p: f32):
    %r = math.exp %p : f32
    lin.yield %r : f32
  }
  %c = lin.matmul %e, %w : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %y = lin.map ins(%e : tensor<?x?xf32, #sym.dims<M, K>>) -> tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%p: f32):
    %r = arith.addf %p, %p : f32
    lin.yield %r : f32
  }
  %z = lin.map ins(%e : tensor<?x?xf32, #sym.dims<M, K>>) -> tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%p: f32):
    %r = arith.negf %p : f32
    lin.yield %r : f32
  }
  func.return %c, %y, %z : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<M, K>>
}

// A matmul written as a broadcast product and a sum is a contraction.
// CHECK-LABEL: func.func @broadcast_matmul(
// CHECK-NEXT: lin.generic (d0, d1, d2) ins(%a[d0, d1] : {{.*}}, %b[d1, d2] : {{.*}}) out[d0, d2] combine sum
// CHECK-NOT: lin.generic
// CHECK: func.return
func.func @broadcast_matmul(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %p = lin.generic (i, k, j) ins(%a[i, k] : tensor<?x?xf32, #sym.dims<M, K>>, %b[k, j] : tensor<?x?xf32, #sym.dims<K, N>>) out[i, k, j] : tensor<?x?x?xf32, #sym.dims<M, K, N>> {
  ^bb0(%x: f32, %y: f32):
    %r = arith.mulf %x, %y : f32
    lin.yield %r : f32
  }
  %c = lin.reduce sum %p axes [1] : tensor<?x?x?xf32, #sym.dims<M, K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %c : tensor<?x?xf32, #sym.dims<M, N>>
}
