// RUN: tilewright-opt %s -p infer-shapes,cancel-movement | filecheck %s

sym.symbol @M
sym.symbol @P

// The pad goes, and what it asks of the sizes stays: no count is negative.
// CHECK-LABEL: func.func @padded_and_sliced
// CHECK-NOT: lin.
// CHECK: sym.require P - 5 >= 0
// CHECK-NOT: lin.
// CHECK: func.return %x
func.func @padded_and_sliced(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %p = lin.pad %x low [P - 5] high [0] value 0.0 : f32 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M + P - 5>>
  %y = lin.slice %p offsets [P - 5] sizes [M] : tensor<?xf32, #sym.dims<M + P - 5>> -> tensor<?xf32, #sym.dims<M>>
  func.return %y : tensor<?xf32, #sym.dims<M>>
}
