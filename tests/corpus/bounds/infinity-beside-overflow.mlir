// tilewright failure
// what: in the simulator: result 0 at [0, 1, 1, 4]: expected inf, got nan: the bound of a sum forgot that -1.5 * the largest number may overflow beside an infinity
// subject: reference-sim
// level: tensor
// sizes: K=1 M=3 N=4
// seed: 57563
// lane: special
// run: tilewright run tests/corpus/bounds/infinity-beside-overflow.mlir --dim K=1 --dim M=3 --dim N=4 --seed 57563 --lane special --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/bounds/infinity-beside-overflow.mlir
sym.symbol @M
sym.symbol @N
sym.symbol @K
func.func @f(%x: tensor<?x?x?xf32, #sym.dims<K, M, N>>, %y: tensor<2x?x5x?xf32, #sym.dims<2, K, 5, N>>, %z: tensor<?x?x1x2xf32, #sym.dims<M, K, 1, 2>>) -> tensor<2x?x4x?xf32, #sym.dims<2, M, 4, N + 3>> {
  %t1 = lin.conv2d %y, %z strides [2, 1] padding [1, 2, 2, 2] dilation [2, 1] : tensor<2x?x5x?xf32, #sym.dims<2, K, 5, N>>, tensor<?x?x1x2xf32, #sym.dims<M, K, 1, 2>> -> tensor<2x?x4x?xf32, #sym.dims<2, M, 4, N + 3>>
  func.return %t1 : tensor<2x?x4x?xf32, #sym.dims<2, M, 4, N + 3>>
}
