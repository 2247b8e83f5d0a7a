// tilewright failure
// what: with one-too-far planted: after one-too-far and the rest of the pipeline, in the simulator: @f_0_general32: program.mlir:2:1: simt.load: out-of-bounds: elements 0..0 exist; block 0, thread 1, index 1 (and 1 more)
// subject: tile-to-simt
// level: tensor
// sizes: M=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/one-too-far.mlir --dim M=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/one-too-far.mlir
sym.symbol @M
func.func @f(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  func.return %x : tensor<?xf32, #sym.dims<M>>
}
