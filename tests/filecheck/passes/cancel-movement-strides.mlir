// RUN: tilewright-opt %s -p infer-shapes,cancel-movement | filecheck %s

// Element i of %b is element 3 + 2*i of %a, and so element 1 + 5*(3 + 2*i) = 16 + 10*i of %x.
// CHECK-LABEL: func.func @slice_of_slice
// CHECK-NEXT: lin.slice %x offsets [16] sizes [4] strides [10]
// CHECK-NEXT: func.return
func.func @slice_of_slice(%x: tensor<100xf32, #sym.dims<100>>) -> tensor<4xf32, #sym.dims<4>> {
  %a = lin.slice %x offsets [1] sizes [12] strides [5] : tensor<100xf32, #sym.dims<100>> -> tensor<12xf32, #sym.dims<12>>
  %b = lin.slice %a offsets [3] sizes [4] strides [2] : tensor<12xf32, #sym.dims<12>> -> tensor<4xf32, #sym.dims<4>>
  func.return %b : tensor<4xf32, #sym.dims<4>>
}
