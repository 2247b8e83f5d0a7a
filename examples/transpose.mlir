// The transpose of x: through shared memory, padded so that no two lanes meet in a bank.
//
//   tilewright run examples/transpose.mlir --dim M=100 --dim N=37 --check

sym.symbol @M {likely = [1024]}
sym.symbol @N {likely = [1024]}

func.func @transpose(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<N, M>> {
  %y = lin.transpose %x perm [1, 0] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<N, M>>
  func.return %y : tensor<?x?xf32, #sym.dims<N, M>>
}
