// tilewright failure
// what: ids outside of the table read memory that is not the table's
// subject: reference-sim
// level: tensor
// sizes: M=3 N=33
// seed: 1
// lane: special
// run: tilewright run tests/corpus/gather/ids-outside.mlir --dim M=3 --dim N=33 --seed 1 --lane special --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/gather/ids-outside.mlir
sym.symbol @M
sym.symbol @N
func.func @f(%x: tensor<?x?xf32, #sym.dims<M, N>>, %ids: tensor<?xi32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<N, N>> {
  %t0 = lin.gather %x, %ids : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xi32, #sym.dims<N>> -> tensor<?x?xf32, #sym.dims<N, N>>
  func.return %t0 : tensor<?x?xf32, #sym.dims<N, N>>
}
