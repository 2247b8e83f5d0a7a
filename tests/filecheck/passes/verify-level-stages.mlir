// RUN: tilewright-opt %s -p lin-to-tile,verify-level{level=tile} | filecheck %s
// RUN: not tilewright-opt %s -p 'lin-to-tile,verify-level{level=tile stage=scheduled}' 2>&1 | filecheck --check-prefix=OPEN %s
// RUN: not tilewright-opt %s -p 'lin-to-tile,verify-level{level=tensor}' 2>&1 | filecheck --check-prefix=TENSOR %s
// RUN: not tilewright-opt %s -p 'lin-to-tile,verify-level{level=simt}' 2>&1 | filecheck --check-prefix=SIMT %s

// As lin-to-tile leaves it, the program is of the tile level, and no decision is written on its ops.
// CHECK: tile.kernel
// CHECK: host.func
// OPEN: verify-level-stages.mlir:[[# @LINE + 6]]:{{[0-9]+}}: error: stage scheduled: tile.kernel leaves open: threads (and
// TENSOR: error: level tensor: expected func, sym in the module, got tile.kernel
// SIMT: error: level simt: expected host, simt, sym in the module, got tile.kernel

sym.symbol @M
func.func @f(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %y = lin.group ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%a: tensor<?xf32, #sym.dims<M>>):
    %b = lin.generic (i) ins(%a[i] : tensor<?xf32, #sym.dims<M>>) out[i] : tensor<?xf32, #sym.dims<M>> {
    ^bb0(%p: f32):
      %r = math.exp %p : f32
      lin.yield %r : f32
    }
    lin.yield %b : tensor<?xf32, #sym.dims<M>>
  }
  func.return %y : tensor<?xf32, #sym.dims<M>>
}
