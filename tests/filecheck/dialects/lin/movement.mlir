// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP
// RUN: tilewright-opt %s -p infer-shapes,decompose,verify-dims | filecheck --check-prefix=MEANS %s

sym.symbol @M
sym.symbol @N
sym.symbol @S {min = 3}
sym.symbol @d0

!X = tensor<?x?xf32, #sym.dims<M, S>>

// An operand at computed positions; `as` names a value for the indices of later operands. The letters of iteration dims
// give way to a symbol of that name.
// CHECK-LABEL: func.func @computed
// CHECK: lin.generic (dd0, dd1) ins(%i[dd0] as v0 : tensor<?xi32, #sym.dims<M>>, %x at [v0, -d0 + dd1] else 0.000000e+00 : f32 : tensor<?x?xf32, #sym.dims<M, S>>, %x at [dd0, 2*dd1] : tensor<?x?xf32, #sym.dims<M, S>>) out[dd0, dd1] : tensor<?x1xf32, #sym.dims<M, 1>> {
// CHECK-NEXT: ^bb0(%p: i32, %q: f32, %r: f32):
// CHECK-NEXT:   %at = lin.index 1 : index
// CHECK-NEXT:   %end = sym.apply S
func.func @computed(%i: tensor<?xi32, #sym.dims<M>>, %x: !X) -> tensor<?x1xf32, #sym.dims<M, 1>> {
  %y = lin.generic (i, j) ins(%i[i] as row : tensor<?xi32, #sym.dims<M>>, %x at [row, j - d0] else 0.0 : f32 : !X, %x at [i, 2*j] : !X) out[i, j] : tensor<?x1xf32, #sym.dims<M, 1>> {
  ^bb0(%p: i32, %q: f32, %r: f32):
    %at = lin.index 1 : index
    %end = sym.apply S
    %c = arith.cmpi slt, %at, %end : index
    %s = arith.select %c, %q, %r : f32
    lin.yield %s : f32
  }
  func.return %y : tensor<?x1xf32, #sym.dims<M, 1>>
}

// CHECK-LABEL: func.func @slice
// CHECK: %y = lin.slice %x offsets [0, 1] sizes [M, S - 2] : tensor<?x?xf32, #sym.dims<M, S>> -> tensor<?x?xf32>
// CHECK: %z = lin.slice %x offsets [N, 0] sizes [1, 2] strides [1, 2] {note} :
// MEANS-LABEL: func.func @slice
// MEANS: lin.generic (d0, d1) ins(%x at [d0, d1 + 1] :
// What cannot be proved is required.
// MEANS: sym.require N < M
// MEANS-NEXT: lin.generic (d0, d1) ins(%x at [N + d0, 2*d1] :
func.func @slice(%x: !X) -> (tensor<?x?xf32>, tensor<1x2xf32>) {
  %y = lin.slice %x offsets [0, 1] sizes [M, S - 2] : !X -> tensor<?x?xf32>
  %z = lin.slice %x offsets [N, 0] sizes [1, 2] strides [1, 2] {note} : !X -> tensor<1x2xf32>
  func.return %y, %z : tensor<?x?xf32>, tensor<1x2xf32>
}

// CHECK-LABEL: func.func @pad
// CHECK: lin.pad %x low [1, N] high [0, 2] value 0xff800000 : f32 :
// MEANS-LABEL: func.func @pad
// MEANS: lin.generic (d0, d1) ins(%x at [d0 - 1, -N + d1] else 0xff800000 : f32 : {{.*}} : tensor<?x?xf32, #sym.dims<M + 1, N + S + 2>>
func.func @pad(%x: !X) -> tensor<?x?xf32> {
  %y = lin.pad %x low [1, N] high [0, 2] value 0xff800000 : f32 : !X -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @concat
// CHECK: lin.concat %x, %y axis 0 : tensor<?x?xf32, #sym.dims<M, S>>, tensor<2x?xf32, #sym.dims<2, S>> -> tensor<?x?xf32, #sym.dims<M + 2, S>>
// MEANS-LABEL: func.func @concat
// MEANS: lin.generic (d0, d1) ins(%x at [d0, d1] else {{.*}}, %y at [-M + d0, d1] else {{.*}}) out[d0, d1] : tensor<?x?xf32, #sym.dims<M + 2, S>>
// MEANS: lin.index 0 : index
// MEANS: sym.apply M
// MEANS: arith.select
func.func @concat(%x: !X, %y: tensor<2x?xf32, #sym.dims<2, S>>) -> tensor<?x?xf32, #sym.dims<M + 2, S>> {
  %z = lin.concat %x, %y axis 0 : !X, tensor<2x?xf32, #sym.dims<2, S>> -> tensor<?x?xf32, #sym.dims<M + 2, S>>
  func.return %z : tensor<?x?xf32, #sym.dims<M + 2, S>>
}

// Joining costs a division, splitting none.
// CHECK-LABEL: func.func @reshape
// CHECK: lin.reshape %x : tensor<?x?xf32, #sym.dims<M, S>> -> tensor<?xf32, #sym.dims<M*S>>
// MEANS-LABEL: func.func @reshape
// MEANS: ins(%x at [d0 floordiv S, d0 mod S] :
// MEANS: ins(%{{.*}} at [S*d0 + d1] :
// MEANS: sym.require M*S == N
func.func @reshape(%x: !X) -> (!X, tensor<?xf32, #sym.dims<N>>) {
  %y = lin.reshape %x : !X -> tensor<?xf32, #sym.dims<M*S>>
  %z = lin.reshape %y : tensor<?xf32, #sym.dims<M*S>> -> !X
  %w = lin.reshape %x : !X -> tensor<?xf32, #sym.dims<N>>
  func.return %z, %w : !X, tensor<?xf32, #sym.dims<N>>
}

// CHECK-LABEL: func.func @gather
// CHECK: lin.gather %x, %i : tensor<?x?xf32, #sym.dims<M, S>>, tensor<?x4xi32, #sym.dims<N, 4>> -> tensor<?x4x?xf32, #sym.dims<N, 4, S>>
// MEANS-LABEL: func.func @gather
// MEANS: ins(%i[d0, d1] as v0 : {{.*}}, %x at [v0, d2] else 0.000000e+00 : f32 : {{.*}}) out[d0, d1, d2] : tensor<?x4x?xf32, #sym.dims<N, 4, S>>
func.func @gather(%x: !X, %i: tensor<?x4xi32, #sym.dims<N, 4>>) -> tensor<?x4x?xf32, #sym.dims<N, 4, S>> {
  %y = lin.gather %x, %i : !X, tensor<?x4xi32, #sym.dims<N, 4>> -> tensor<?x4x?xf32, #sym.dims<N, 4, S>>
  func.return %y : tensor<?x4x?xf32, #sym.dims<N, 4, S>>
}

// CHECK-LABEL: func.func @conv
// CHECK: %y = lin.conv2d %x, %w strides [2, 1] padding [1, 1, 0, N] dilation [1, 2] groups 2 : {{.*}} -> tensor<?x8x?x?xf16, #sym.dims<M, 8, S ceildiv 2, N + S - 4>>
// CHECK: %z = lin.conv2d %x, %v : {{.*}} -> tensor<?x5x?x?xf16, #sym.dims<M, 5, S, S>>
// MEANS-LABEL: func.func @conv
// MEANS: lin.generic (d0, d1, d2, d3, d4, d5, d6) ins(%x at [d0, d6 + 3*(d1 floordiv 4), 2*d2 + d4 - 1, d3 + 2*d5] else {{.*}}, %w[d1, d6, d4, d5] : {{.*}}) out[d0, d1, d2, d3] combine sum : tensor<?x8x?x?xf32,
func.func @conv(%x: tensor<?x6x?x?xf16, #sym.dims<M, 6, S, S>>, %w: tensor<8x3x3x3xf16>, %v: tensor<5x6x1x1xf16>) -> (tensor<?x8x?x?xf16, #sym.dims<M, 8, (S - 1) floordiv 2 + 1, N + S - 4>>, tensor<?x5x?x?xf16, #sym.dims<M, 5, S, S>>) {
  %y = lin.conv2d %x, %w strides [2, 1] padding [1, 1, 0, N] dilation [1, 2] groups 2 : tensor<?x6x?x?xf16, #sym.dims<M, 6, S, S>>, tensor<8x3x3x3xf16> -> tensor<?x8x?x?xf16, #sym.dims<M, 8, (S - 1) floordiv 2 + 1, N + S - 4>>
  %z = lin.conv2d %x, %v : tensor<?x6x?x?xf16, #sym.dims<M, 6, S, S>>, tensor<5x6x1x1xf16> -> tensor<?x5x?x?xf16, #sym.dims<M, 5, S, S>>
  func.return %y, %z : tensor<?x8x?x?xf16, #sym.dims<M, 8, (S - 1) floordiv 2 + 1, N + S - 4>>, tensor<?x5x?x?xf16, #sym.dims<M, 5, S, S>>
}
