// tilewright failure
// what: with drop-barriers planted: after drop-barriers and the rest of the pipeline, in the simulator: @f_0_small_general32: program.mlir:4:3: simt.load: race: read of what thread 0 writes, without a barrier between; block 0, thread 1 (496 in all) (and 1 more)
// subject: remove-barriers
// level: tensor
// sizes: M=1 N=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/drop-barriers.mlir --dim M=1 --dim N=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/drop-barriers.mlir
sym.symbol @M
sym.symbol @N
func.func @f(%y: tensor<1x?x?xf32, #sym.dims<1, M, N>>, %t1: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x1xf32, #sym.dims<N, 1>> {
  %t2 = lin.generic (d0, d1, d2) ins(%t1[d0, d1] : tensor<?x?xf32, #sym.dims<M, N>>, %y[d2, d0, d1] : tensor<1x?x?xf32, #sym.dims<1, M, N>>) out[d1, d2] combine sum : tensor<?x1xf32, #sym.dims<N, 1>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  func.return %t2 : tensor<?x1xf32, #sym.dims<N, 1>>
}
