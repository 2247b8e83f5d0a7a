// tilewright failure
// what: with forget-padding planted: after forget-padding, in the reference: result 0 at []: expected 0.0, got 1.0 (1 of 1 elements differ)
// subject: fuse-elementwise
// level: tensor
// sizes: K=2
// seed: 112
// lane: special
// run: tilewright run tests/corpus/planted/forget-padding.mlir --dim K=2 --seed 112 --lane special --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/forget-padding.mlir
sym.symbol @K
func.func @f(%x: tensor<?xf16, #sym.dims<K>>, %y: tensor<i32>) -> tensor<f16> {
  %t0 = lin.gather %x, %y : tensor<?xf16, #sym.dims<K>>, tensor<i32> -> tensor<f16>
  func.return %t0 : tensor<f16>
}
