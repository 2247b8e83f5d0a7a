// RUN: tilewright-opt %s -p cancel-movement | filecheck %s
// RUN: tilewright-opt %s -p cancel-movement,verify-dims | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @P
sym.symbol @Q {min = 2}

!MN = tensor<?x?xf32, #sym.dims<M, N>>
!PN = tensor<?x?xf32, #sym.dims<P, N>>
!PAIR = tensor<?x?xf32, #sym.dims<M + P, N>>

// CHECK-LABEL: func.func @transposes
// CHECK-NEXT: func.return %x
func.func @transposes(%x: !MN) -> !MN {
  %t = lin.transpose %x perm [1, 0] : !MN -> tensor<?x?xf32, #sym.dims<N, M>>
  %y = lin.transpose %t perm [1, 0] : tensor<?x?xf32, #sym.dims<N, M>> -> !MN
  func.return %y : !MN
}

// One reshape, and back to the same sizes none.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: %z = lin.reshape %x : {{.*}} -> tensor<?x1xf32, #sym.dims<M*N, 1>>
// CHECK-NEXT: func.return %z, %x
func.func @reshapes(%x: !MN) -> (tensor<?x1xf32, #sym.dims<M*N, 1>>, !MN) {
  %y = lin.reshape %x : !MN -> tensor<?xf32, #sym.dims<M*N>>
  %z = lin.reshape %y : tensor<?xf32, #sym.dims<M*N>> -> tensor<?x1xf32, #sym.dims<M*N, 1>>
  %w = lin.reshape %y : tensor<?xf32, #sym.dims<M*N>> -> !MN
  func.return %z, %w : tensor<?x1xf32, #sym.dims<M*N, 1>>, !MN
}

// What the reshape between required stays required.
// CHECK-LABEL: func.func @reshape_through_a_requirement
// CHECK-NEXT: sym.require M*N == P
// CHECK-NEXT: func.return %x
func.func @reshape_through_a_requirement(%x: !MN) -> !MN {
  %y = lin.reshape %x : !MN -> tensor<?xf32, #sym.dims<P>>
  %z = lin.reshape %y : tensor<?xf32, #sym.dims<P>> -> !MN
  func.return %z : !MN
}

// CHECK-LABEL: func.func @split_and_joined
// CHECK-NEXT: func.return %x
func.func @split_and_joined(%x: !PAIR) -> !PAIR {
  %a = lin.slice %x offsets [0, 0] sizes [M, N] : !PAIR -> !MN
  %b = lin.slice %x offsets [M, 0] sizes [P, N] : !PAIR -> !PN
  %y = lin.concat %a, %b axis 0 : !MN, !PN -> !PAIR
  func.return %y : !PAIR
}

// In another order it is another tensor.
// CHECK-LABEL: func.func @swapped
// CHECK: lin.concat %b, %a axis 0
func.func @swapped(%x: !PAIR) -> !PAIR {
  %a = lin.slice %x offsets [0, 0] sizes [M, N] : !PAIR -> !MN
  %b = lin.slice %x offsets [M, 0] sizes [P, N] : !PAIR -> !PN
  %y = lin.concat %b, %a axis 0 : !PN, !MN -> !PAIR
  func.return %y : !PAIR
}

// CHECK-LABEL: func.func @joined_and_split
// CHECK-NEXT: func.return %a, %b
func.func @joined_and_split(%a: !MN, %b: !PN) -> (!MN, !PN) {
  %y = lin.concat %a, %b axis 0 : !MN, !PN -> !PAIR
  %c = lin.slice %y offsets [0, 0] sizes [M, N] : !PAIR -> !MN
  %d = lin.slice %y offsets [M, 0] sizes [P, N] : !PAIR -> !PN
  func.return %c, %d : !MN, !PN
}

// Whether rows 1 to P lie in %a depends on the call.
// CHECK-LABEL: func.func @not_proved
// CHECK: lin.concat
// CHECK: lin.slice
func.func @not_proved(%a: !MN, %b: !PN) -> !PN {
  %y = lin.concat %a, %b axis 0 : !MN, !PN -> !PAIR
  %c = lin.slice %y offsets [1, 0] sizes [P, N] : !PAIR -> !PN
  func.return %c : !PN
}

// CHECK-LABEL: func.func @padded_and_sliced
// CHECK-NEXT: %z = lin.slice %x offsets [0, 1] sizes [M, Q - 2]
// CHECK-NEXT: func.return %x, %z
func.func @padded_and_sliced(%x: tensor<?x?xf32, #sym.dims<M, Q>>) -> (tensor<?x?xf32, #sym.dims<M, Q>>, tensor<?x?xf32, #sym.dims<M, Q - 2>>) {
  %p = lin.pad %x low [1, N] high [P, 0] value 0.0 : f32 : tensor<?x?xf32, #sym.dims<M, Q>> -> tensor<?x?xf32, #sym.dims<M + P + 1, N + Q>>
  %y = lin.slice %p offsets [1, N] sizes [M, Q] : tensor<?x?xf32, #sym.dims<M + P + 1, N + Q>> -> tensor<?x?xf32, #sym.dims<M, Q>>
  %z = lin.slice %p offsets [1, N + 1] sizes [M, Q - 2] : tensor<?x?xf32, #sym.dims<M + P + 1, N + Q>> -> tensor<?x?xf32, #sym.dims<M, Q - 2>>
  func.return %y, %z : tensor<?x?xf32, #sym.dims<M, Q>>, tensor<?x?xf32, #sym.dims<M, Q - 2>>
}

// 1 is no S: a pad that may add nothing is not nothing.
// CHECK-LABEL: func.func @slice_into_the_padding
// CHECK: lin.pad
// CHECK: lin.slice
func.func @slice_into_the_padding(%x: !MN) -> !MN {
  %p = lin.pad %x low [P, 0] high [0, 0] value 0.0 : f32 : !MN -> tensor<?x?xf32, #sym.dims<M + P, N>>
  %y = lin.slice %p offsets [0, 0] sizes [M, N] : tensor<?x?xf32, #sym.dims<M + P, N>> -> !MN
  func.return %y : !MN
}
