// tilewright failure
// what: with wrong-identity planted: after wrong-identity, in the tile interpreter: result 0 at [0]: expected 1.5100065469741821 within 2.38e-07, got 2.5100064277648926 (1 of 1 elements differ)
// subject: map-threads
// level: tile
// sizes: M=1 N=1
// seed: 0
// lane: ordinary
// run: tilewright run tests/corpus/planted/wrong-identity.mlir --dim M=1 --dim N=1 --seed 0 --backend sim --check
// replay: tilewright fuzz --replay tests/corpus/planted/wrong-identity.mlir
//| sym.symbol @M
//| sym.symbol @N
//| func.func @main(%x0: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?xf32, #sym.dims<M>>) {
//|   %y0 = lin.generic (d0, d1) ins(%x0[d0, d1] : tensor<?x?xf32, #sym.dims<M, N>>) out[d0] combine sum : tensor<?xf32, #sym.dims<M>> {
//|     ^bb0(%a0: f32):
//|       lin.yield %a0 : f32
//|   }
//|   func.return %y0 : tensor<?xf32, #sym.dims<M>>
//| }
sym.symbol @M
sym.symbol @N
sym.symbol @x0_s0 {source = "stride"}
sym.symbol @x0_s1 {source = "stride"}
sym.symbol @x0_base {source = "base"}
sym.symbol @y0_s0 {source = "stride"}
sym.symbol @y0_base {source = "base"}
tile.kernel @main_0(%x0: !tile.buf<[M, N], f32, global, #tile.strided<[x0_s0, x0_s1]>>, %y0: !tile.buf<[M], f32, global, #tile.strided<[y0_s0]>>) grid (%g0) = [M] bases [x0_base, y0_base] {
  %t1 = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %t1 with 0.0 : f32
  tile.for %k2 = 0 to N step 2 {
    %f3 = tile.alloc : !tile.buf<[1, 2], f32, fragment>
    tile.copy %x0[%g0, %k2] to %f3 bounds [clip, clip] other 0.0 : f32
    tile.reduce sum (d0, d1) %f3[d0, d1] into %t1[d0]
  }
  tile.copy %t1 to %y0[%g0] bounds [clip]
}
host.func @main(%x0: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?xf32, #sym.dims<M>>) {
  host.bind %x0 strides [x0_s0, x0_s1] base x0_base
  %y0 = host.output 0 : tensor<?xf32, #sym.dims<M>>
  host.bind %y0 strides [y0_s0] base y0_base
  host.launch @main_0(%x0, %y0)
}
