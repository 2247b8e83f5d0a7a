// RUN: tilewright-opt %s -p decompose,fuse-elementwise,fuse-groups | filecheck %s
// RUN: tilewright-opt %s -p decompose,fuse-elementwise,fuse-groups,verify-level{level=tensor} | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @K

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %y = lin.group ins(%x : {{.*}}) -> tensor<?x?xf32, #sym.dims<M, N>> {
// CHECK: (d0, d1) {{.*}} out[d0] combine max
// CHECK: (d0, d1) {{.*}} out[d0, d1] : tensor<?x?xf32
// CHECK: (d0, d1) {{.*}} out[d0] combine sum
// CHECK: (d0, d1) {{.*}} out[d0, d1] : tensor<?x?xf32
// CHECK-NOT: lin.group
// CHECK: func.return %y
func.func @softmax(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.softmax %x axis 1 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// Along the other axis the rows are the columns: dims are numbered rows first in every generic of the group.
// CHECK-LABEL: func.func @softmax_of_columns(
// CHECK-NEXT: lin.group
// CHECK: (d0, d1) ins(%{{.*}}[d1, d0] : {{.*}}) out[d0] combine max
// CHECK: (d0, d1) ins(%{{.*}}[d1, d0] : {{.*}}, %{{.*}}[d0] : {{.*}}) out[d1, d0] :
// CHECK: (d0, d1) ins(%{{.*}}[d1, d0] : {{.*}}) out[d0] combine sum
// CHECK-NOT: lin.group
// CHECK: func.return
func.func @softmax_of_columns(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.softmax %x axis 0 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// The accumulator is rounded to bf16, then bias and relu, all in the epilogue.
// CHECK-LABEL: func.func @matmul_bias_relu(
// CHECK-NEXT: %r = lin.group ins(%a, %b, %c : {{.*}}) -> tensor<?x?xbf16, #sym.dims<M, N>> {
// CHECK: %[[ACC:.*]] = lin.generic (d0, d1, d2) ins(%{{.*}}[d0, d2] : {{.*}}, %{{.*}}[d2, d1] : {{.*}}) out[d0, d1] combine sum : tensor<?x?xf32
// CHECK: lin.generic (d0, d1) ins(%[[ACC]][d0, d1] : {{.*}}, %{{.*}}[d1] : {{.*}}) out[d0, d1] : tensor<?x?xbf16
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.addf {{.*}} : bf16
// CHECK: arith.maximumf
// CHECK-NOT: lin.generic
// CHECK: func.return %r
func.func @matmul_bias_relu(%a: tensor<?x?xbf16, #sym.dims<M, K>>, %b: tensor<?x?xbf16, #sym.dims<K, N>>, %c: tensor<?xbf16, #sym.dims<N>>) -> tensor<?x?xbf16, #sym.dims<M, N>> {
  %y = lin.matmul %a, %b : tensor<?x?xbf16, #sym.dims<M, K>>, tensor<?x?xbf16, #sym.dims<K, N>> -> tensor<?x?xbf16, #sym.dims<M, N>>
  %z = lin.map ins(%y, %c : tensor<?x?xbf16, #sym.dims<M, N>>, tensor<?xbf16, #sym.dims<N>>) -> tensor<?x?xbf16, #sym.dims<M, N>> {
  ^bb0(%p: bf16, %q: bf16):
    %s = arith.addf %p, %q : bf16
    lin.yield %s : bf16
  }
  %r = lin.map ins(%z : tensor<?x?xbf16, #sym.dims<M, N>>) -> tensor<?x?xbf16, #sym.dims<M, N>> {
  ^bb0(%p: bf16):
    %zero = arith.constant 0.0 : bf16
    %s = arith.maximumf %p, %zero : bf16
    lin.yield %s : bf16
  }
  func.return %r : tensor<?x?xbf16, #sym.dims<M, N>>
}

// ijk,kl->ijl with its epilogue; the reduced dim is numbered last wherever it stood.
// CHECK-LABEL: func.func @batched(
// CHECK-NEXT: lin.group
// CHECK: (d0, d1, d2, d3) ins(%{{.*}}[d0, d1, d3] : {{.*}}, %{{.*}}[d3, d2] : {{.*}}) out[d0, d1, d2] combine sum
// CHECK: (d0, d1, d2) ins(%{{.*}}[d0, d1, d2] : {{.*}}, %{{.*}}[d2] : {{.*}}) out[d0, d1, d2]
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: lin.generic
// CHECK: func.return
func.func @batched(%x: tensor<8x?x?xf32, #sym.dims<8, M, K>>, %w: tensor<?x?xf32, #sym.dims<K, N>>, %b: tensor<?xf32, #sym.dims<N>>) -> tensor<8x?x?xf32, #sym.dims<8, M, N>> {
  %c = lin.generic (i, j, k, l) ins(%x[i, j, k] : tensor<8x?x?xf32, #sym.dims<8, M, K>>, %w[k, l] : tensor<?x?xf32, #sym.dims<K, N>>) out[i, j, l] combine sum : tensor<8x?x?xf32, #sym.dims<8, M, N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  %z = lin.map ins(%c, %b : tensor<8x?x?xf32, #sym.dims<8, M, N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<8x?x?xf32, #sym.dims<8, M, N>> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    lin.yield %s : f32
  }
  %r = lin.map ins(%z : tensor<8x?x?xf32, #sym.dims<8, M, N>>) -> tensor<8x?x?xf32, #sym.dims<8, M, N>> {
  ^bb0(%p: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.maximumf %p, %zero : f32
    lin.yield %s : f32
  }
  func.return %r : tensor<8x?x?xf32, #sym.dims<8, M, N>>
}

// The value between is returned too: a second result of the group.
// CHECK-LABEL: func.func @returned_between(
// CHECK-NEXT: %c, %d = lin.group ins(%a, %b : {{.*}}) -> tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>> {
// CHECK-NOT: lin.group
// CHECK: func.return %c, %d
func.func @returned_between(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>) {
  %c = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %d = lin.map ins(%c : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32):
    %s = arith.negf %p : f32
    lin.yield %s : f32
  }
  func.return %c, %d : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>
}

// Reductions over different dims are different kernels.
// CHECK-LABEL: func.func @rows_then_columns(
// CHECK: lin.group
// CHECK: combine max
// CHECK: lin.group
// CHECK: combine sum
// CHECK-NOT: lin.group
// CHECK: func.return
func.func @rows_then_columns(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<N>>) {
  %m = lin.reduce max %x axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  %d = lin.generic (i, j) ins(%x[i, j] : tensor<?x?xf32, #sym.dims<M, N>>, %m[i] : tensor<?xf32, #sym.dims<M>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.subf %p, %q : f32
    lin.yield %s : f32
  }
  %s = lin.reduce sum %d axes [0] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<N>>
  func.return %m, %s : tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<N>>
}

// Mean and mean of squares over the same rows, and what normalises by them: one group, though the two sums do not read each other.
// CHECK-LABEL: func.func @normalise(
// CHECK-NEXT: lin.group ins(%x : {{.*}}) -> tensor<?x?xf32, #sym.dims<M, N>> {
// CHECK-COUNT-2: combine sum
// CHECK-NOT: lin.group
// CHECK: func.return
func.func @normalise(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %s = lin.reduce sum %x axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  %xx = lin.map ins(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32):
    %r = arith.mulf %p, %p : f32
    lin.yield %r : f32
  }
  %q = lin.reduce sum %xx axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  %y = lin.generic (i, j) ins(%x[i, j] : tensor<?x?xf32, #sym.dims<M, N>>, %s[i] : tensor<?xf32, #sym.dims<M>>, %q[i] : tensor<?xf32, #sym.dims<M>>) out[i, j] : tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %u: f32, %v: f32):
    %a = arith.subf %p, %u : f32
    %b = arith.divf %a, %v : f32
    lin.yield %b : f32
  }
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// The second matmul needs the first, and the sum needs both: joined to the first, the sum would wait for itself.
// CHECK-LABEL: func.func @around(
// CHECK-COUNT-2: lin.group
// CHECK-NOT: lin.group
// CHECK: func.return
func.func @around(%x: tensor<?x?xf32, #sym.dims<M, M>>) -> tensor<?x?xf32, #sym.dims<M, M>> {
  %a = lin.matmul %x, %x : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, M>> -> tensor<?x?xf32, #sym.dims<M, M>>
  %b = lin.matmul %a, %x : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, M>> -> tensor<?x?xf32, #sym.dims<M, M>>
  %c = lin.map ins(%a, %b : tensor<?x?xf32, #sym.dims<M, M>>, tensor<?x?xf32, #sym.dims<M, M>>) -> tensor<?x?xf32, #sym.dims<M, M>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    lin.yield %r : f32
  }
  func.return %c : tensor<?x?xf32, #sym.dims<M, M>>
}
