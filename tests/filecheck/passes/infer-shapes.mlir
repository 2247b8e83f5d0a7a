// RUN: tilewright-opt %s --split-input-file -p infer-shapes | filecheck %s
// RUN: tilewright-opt %s --split-input-file -p infer-shapes,infer-shapes,verify-dims | filecheck %s

// Open sizes of results are filled in, and static tensors state their dims as well.
// CHECK-LABEL: func.func @fill(
// CHECK-SAME: %a: tensor<?x512xf32, #sym.dims<M, 512>>, %b: tensor<512x256xf32, #sym.dims<512, 256>>)
// CHECK-SAME: -> tensor<256x?xf32, #sym.dims<256, M>>
// CHECK: lin.matmul %a, %b : {{.*}} -> tensor<?x256xf32, #sym.dims<M, 256>>
// CHECK: lin.transpose %c perm [1, 0] : tensor<?x256xf32, #sym.dims<M, 256>> -> tensor<256x?xf32, #sym.dims<256, M>>
// CHECK: func.return %t : tensor<256x?xf32, #sym.dims<256, M>>
sym.symbol @M
func.func @fill(%a: tensor<?x512xf32, #sym.dims<M, 512>>, %b: tensor<512x256xf32>) -> tensor<256x?xf32> {
  %c = lin.matmul %a, %b : tensor<?x512xf32, #sym.dims<M, 512>>, tensor<512x256xf32> -> tensor<?x256xf32>
  %t = lin.transpose %c perm [1, 0] : tensor<?x256xf32> -> tensor<256x?xf32>
  func.return %t : tensor<256x?xf32>
}

// -----

// Broadcasting aligns at the right; reductions drop their axes; the canonical form of a size is what counts.
// CHECK-LABEL: func.func @shapes(
// CHECK-SAME: -> tensor<?xf32, #sym.dims<N>>
// CHECK: lin.map ins(%x, %b : tensor<?x?xf32, #sym.dims<2*M + 2, N>>, tensor<1x?xf32, #sym.dims<1, N>>) -> tensor<?x?xf32, #sym.dims<2*M + 2, N>>
// CHECK: lin.reduce max %y axes [0] : {{.*}} -> tensor<?xf32, #sym.dims<N>>
sym.symbol @M
sym.symbol @N
func.func @shapes(%x: tensor<?x?xf32, #sym.dims<2*(M + 1), N>>, %b: tensor<1x?xf32, #sym.dims<1, N>>) -> tensor<?xf32> {
  %y = lin.map ins(%x, %b : tensor<?x?xf32, #sym.dims<2*M + 2, N>>, tensor<1x?xf32, #sym.dims<1, N>>) -> tensor<?x?xf32, #sym.dims<M + M + 2, N>> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    lin.yield %s : f32
  }
  %r = lin.reduce max %y axes [0] : tensor<?x?xf32, #sym.dims<2*M + 2, N>> -> tensor<?xf32>
  func.return %r : tensor<?xf32>
}

// -----

// Two sizes that a requirement makes equal fit, and the stated form is kept.
// CHECK-LABEL: func.func @required(
// CHECK: lin.cast %x : tensor<?xf32, #sym.dims<N>> -> tensor<?xbf16, #sym.dims<2*M>>
sym.symbol @M
sym.symbol @N
sym.require N == 2*M
func.func @required(%x: tensor<?xf32, #sym.dims<N>>) -> tensor<?xbf16, #sym.dims<2*M>> {
  %y = lin.cast %x : tensor<?xf32, #sym.dims<N>> -> tensor<?xbf16, #sym.dims<2*M>>
  func.return %y : tensor<?xbf16, #sym.dims<2*M>>
}
