// RUN: tilewright-opt %s --load %S/exact_reciprocals.py -p exact-reciprocals | filecheck %s
// RUN: tilewright-opt %s --load %S/exact_reciprocals.py -p 'exact-reciprocals{dtypes=f16,f64}' | filecheck %s --check-prefix=F16

sym.symbol @N

// Division by 4 becomes multiplication by 0.25; division by 3 stays, since 1/3 is no f32.
// CHECK-LABEL: @thirds_of_quarters
// CHECK-NEXT: lin.map
// CHECK-NEXT: ^{{.*}}(%p: f32):
// CHECK-NEXT: %three = arith.constant 3.000000e+00 : f32
// CHECK-NEXT: %q = arith.constant 2.500000e-01 : f32
// CHECK-NEXT: %q_1 = arith.mulf %p, %q : f32
// CHECK-NEXT: %r = arith.divf %q_1, %three : f32
// F16: arith.divf %p, %four : f32
func.func @thirds_of_quarters(%x: tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  %y = lin.map ins(%x : tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  ^bb0(%p: f32):
    %four = arith.constant 4.0 : f32
    %three = arith.constant 3.0 : f32
    %q = arith.divf %p, %four : f32
    %r = arith.divf %q, %three : f32
    lin.yield %r : f32
  }
  func.return %y : tensor<?xf32, #sym.dims<N>>
}
