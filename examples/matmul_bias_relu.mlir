// relu(x @ w + b) with a symbolic number of rows: one kernel, since bias and relu are the epilogue of the contraction.
//
//   tilewright run examples/matmul_bias_relu.mlir --dim M=37 --check

!X = tensor<?x512xf32, #sym.dims<M, 512>>
!W = tensor<512x256xf32, #sym.dims<512, 256>>
!B = tensor<256xf32, #sym.dims<256>>
!Y = tensor<?x256xf32, #sym.dims<M, 256>>

sym.symbol @M {min = 1, likely = [128, 2048]}

func.func @matmul_bias_relu(%x: !X, %w: !W, %b: !B) -> !Y {
  %product = lin.matmul %x, %w : !X, !W -> !Y
  %y = lin.map ins(%product, %b : !Y, !B) -> !Y {
  ^bb0(%p: f32, %bias: f32):
    %zero = arith.constant 0.0 : f32
    %sum = arith.addf %p, %bias : f32
    %positive = arith.maximumf %sum, %zero : f32
    lin.yield %positive : f32
  }
  func.return %y : !Y
}
