// tilewright failure
// what: with prove-everything planted: after prove-everything: the bound of dim 0 is said to be proved, but this does not follow: 2048*%000000032i0 + 2047 < M
// subject: prove-bounds
// level: tensor
// sizes: M=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/prove-everything.mlir --dim M=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/prove-everything.mlir
sym.symbol @M
func.func @f(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  func.return %x : tensor<?xf32, #sym.dims<M>>
}
