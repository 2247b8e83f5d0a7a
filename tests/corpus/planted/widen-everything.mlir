// tilewright failure
// what: with widen-everything planted: after widen-everything: accesses of 2 elements are not proved to be aligned and inside; 1 are
// subject: vectorise
// level: tile
// sizes: M=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/widen-everything.mlir --dim M=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/widen-everything.mlir
//| sym.symbol @M
//| func.func @main(%x0: tensor<?xf32, #sym.dims<M>>) -> (tensor<?xf32, #sym.dims<M>>) {
//|   %y0 = lin.generic (d0) ins(%x0[d0] : tensor<?xf32, #sym.dims<M>>) out[d0] : tensor<?xf32, #sym.dims<M>> {
//|     ^bb0(%a0: f32):
//|       lin.yield %a0 : f32
//|   }
//|   func.return %y0 : tensor<?xf32, #sym.dims<M>>
//| }
sym.symbol @M
sym.symbol @x0_s0 {source = "stride"}
sym.symbol @x0_base {source = "base"}
sym.symbol @y0_s0 {source = "stride"}
sym.symbol @y0_base {source = "base"}
tile.kernel @main_0(%x0: !tile.buf<[M], f32, global, #tile.strided<[x0_s0]>>, %y0: !tile.buf<[M], f32, global, #tile.strided<[y0_s0]>>) grid (%g0) = [M] bases [x0_base, y0_base] {
  %f1 = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.copy %x0[%g0] to %f1 bounds [clip] other 0.0 : f32
  %f2 = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.map (d0) ins(%f1[d0]) outs(%f2[d0]) {
    ^bb0(%a0: f32):
      tile.yield %a0
  }
  tile.copy %f2 to %y0[%g0] bounds [clip]
}
host.func @main(%x0: tensor<?xf32, #sym.dims<M>>) -> (tensor<?xf32, #sym.dims<M>>) {
  host.bind %x0 strides [x0_s0] base x0_base
  %y0 = host.output 0 : tensor<?xf32, #sym.dims<M>>
  host.bind %y0 strides [y0_s0] base y0_base
  host.launch @main_0(%x0, %y0)
}
