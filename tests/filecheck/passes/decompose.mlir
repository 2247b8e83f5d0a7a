// RUN: tilewright-opt %s -p decompose | filecheck %s
// RUN: tilewright-opt %s -p decompose --print-debuginfo | filecheck --check-prefix=PLACE %s

sym.symbol @M
sym.symbol @N

// CHECK-LABEL: func.func @matmul(
// CHECK: %[[ACC:.*]] = lin.generic (d0, d1, d2) ins(%a[d0, d2] : {{.*}}, %b[d2, d1] : {{.*}}) out[d0, d1] combine sum : tensor<?x8xf32, #sym.dims<M, 8>>
// CHECK: lin.generic (d0, d1) ins(%[[ACC]][d0, d1] : {{.*}}) out[d0, d1] : tensor<?x8xbf16, #sym.dims<M, 8>>
// CHECK: arith.truncf
// CHECK-NOT: lin.matmul
// CHECK-NOT: lin.cast
func.func @matmul(%a: tensor<?x?xbf16, #sym.dims<M, N>>, %b: tensor<?x8xbf16, #sym.dims<N, 8>>) -> tensor<?x8xbf16, #sym.dims<M, 8>> {
  %c = lin.matmul %a, %b : tensor<?x?xbf16, #sym.dims<M, N>>, tensor<?x8xbf16, #sym.dims<N, 8>> -> tensor<?x8xbf16, #sym.dims<M, 8>>
  func.return %c : tensor<?x8xbf16, #sym.dims<M, 8>>
}

// CHECK-LABEL: func.func @map(
// CHECK: lin.generic (d0, d1) ins(%x[d0, d1] : {{.*}}, %b[d1] : {{.*}}, %c[0, d1] : {{.*}}, %s : f32) out[d0, d1]
// Every op of a decomposition stands where the op stood.
// PLACE: lin.generic {{.*}}%x
// PLACE: } loc("{{.*}}decompose.mlir":[[# @LINE + 3]]:3)
func.func @map(%x: tensor<?x?xf32, #sym.dims<M, N>>, %b: tensor<?xf32, #sym.dims<N>>, %c: tensor<1x?xf32, #sym.dims<1, N>>, %s: f32) -> tensor<?x?xf32, #sym.dims<M, N>> {

  %y = lin.map ins(%x, %b, %c, %s : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xf32, #sym.dims<N>>, tensor<1x?xf32, #sym.dims<1, N>>, f32) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32, %r: f32, %t: f32):
    %u = arith.addf %p, %q : f32
    %v = arith.addf %r, %t : f32
    %w = arith.mulf %u, %v : f32
    lin.yield %w : f32
  }
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// CHECK-LABEL: func.func @softmax(
// CHECK: out[d1] combine max
// CHECK: math.exp
// CHECK: out[d1] combine sum
// CHECK: arith.divf
// CHECK-NOT: lin.softmax
func.func @softmax(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.softmax %x axis 0 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// CHECK-LABEL: func.func @clamp(
// CHECK: lin.generic (d0) ins(%x[d0] : {{.*}}) out[d0] : tensor<?xbf16, #sym.dims<N>> {
// CHECK-DAG: %[[LOW:.*]] = arith.constant -1.000000e-01 : f32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 6.000000e+00 : f32
// CHECK: %[[WIDE:.*]] = arith.extf {{.*}} : bf16 to f32
// CHECK: %[[RAISED:.*]] = arith.maximumf %[[WIDE]], %[[LOW]] : f32
// CHECK: %[[HELD:.*]] = arith.minimumf %[[RAISED]], %[[HIGH]] : f32
// CHECK: arith.truncf %[[HELD]] : f32 to bf16
// CHECK-NOT: lin.clamp
func.func @clamp(%x: tensor<?xbf16, #sym.dims<N>>) -> tensor<?xbf16, #sym.dims<N>> {
  %y = lin.clamp %x low -0.1 high 6.0 : tensor<?xbf16, #sym.dims<N>> -> tensor<?xbf16, #sym.dims<N>>
  func.return %y : tensor<?xbf16, #sym.dims<N>>
}

// What precision permits stays with the contraction.
// CHECK-LABEL: func.func @tf32(
// CHECK: lin.generic (d0, d1, d2, d3) ins(%a[d0, d1, d3] : {{.*}}, %a[d0, d3, d2] : {{.*}}) out[d0, d1, d2] combine sum precision tf32 : tensor<2x4x4xf32, #sym.dims<2, 4, 4>>
func.func @tf32(%a: tensor<2x4x4xf32, #sym.dims<2, 4, 4>>) -> tensor<2x4x4xf32, #sym.dims<2, 4, 4>> {
  %c = lin.batch_matmul %a, %a precision tf32 : tensor<2x4x4xf32, #sym.dims<2, 4, 4>>, tensor<2x4x4xf32, #sym.dims<2, 4, 4>> -> tensor<2x4x4xf32, #sym.dims<2, 4, 4>>
  func.return %c : tensor<2x4x4xf32, #sym.dims<2, 4, 4>>
}
