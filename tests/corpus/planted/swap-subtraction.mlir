// tilewright failure
// what: with swap-subtraction planted: after swap-subtraction, in the reference: result 0 at [0, 0]: expected 0.734375 within 0.00391, got 0.267578125 (2 of 2 elements differ)
// subject: decompose
// level: tensor
// sizes: S=2 M=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/swap-subtraction.mlir --dim S=2 --dim M=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/swap-subtraction.mlir
sym.symbol @M
sym.symbol @S
func.func @f(%t1: tensor<?x?xbf16, #sym.dims<S, M>>) -> tensor<?x?xbf16, #sym.dims<S, M>> {
  %t2 = lin.softmax %t1 axis 0 : tensor<?x?xbf16, #sym.dims<S, M>> -> tensor<?x?xbf16, #sym.dims<S, M>>
  func.return %t2 : tensor<?x?xbf16, #sym.dims<S, M>>
}
