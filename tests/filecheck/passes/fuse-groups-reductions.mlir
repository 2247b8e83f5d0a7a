// RUN: tilewright-opt %s -p infer-shapes,decompose,fuse-groups | filecheck %s
// RUN: tilewright-opt %s -p infer-shapes,decompose,fuse-groups,lin-to-tile | filecheck %s --check-prefix=TILE

sym.symbol @M
sym.symbol @N
sym.symbol @K

// A contraction, a reduction of its rows and what follows that are one group.
// CHECK-LABEL: func.func @rows
// CHECK: lin.group
// CHECK: lin.generic (d0, d1, d2) {{.*}} out[d0, d1] combine sum
// CHECK: lin.generic (d0, d1) {{.*}} out[d0] combine max
// CHECK: lin.generic (d0) {{.*}} out[d0] :
// CHECK: lin.yield
// CHECK-NOT: lin.group
// CHECK: func.return

// Each block reduces the columns that are inside, and stores what it has at the place of its tile; a second kernel goes on.
// TILE: tile.kernel @rows_0_large({{.*}}%out0: !tile.buf<[N ceildiv 128, 4*(M ceildiv 4)], f32, global
// TILE: tile.fill %[[F:.*]] with 0xff800000 : f32
// TILE-NEXT: %[[N:.*]] = sym.apply N - k where k = %o1
// TILE-NEXT: tile.reduce max (d0, d1) %{{.*}}[d0, d1] into %[[F]][0, d0] valid(d1 < %[[N]])
// TILE-NEXT: tile.copy %[[F]] to %out0[%i1, %o0] bounds [clip, clip]
// TILE: tile.kernel @rows_0_large_combine0(%partial: !tile.buf<[N ceildiv 128, 4*(M ceildiv 4)], f32, global
// TILE: tile.reduce max
func.func @rows(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>) -> tensor<?xf32, #sym.dims<M>> {
  %c = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %m = lin.reduce max %c axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  %r = lin.map ins(%m : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%p: f32):
    %q = math.exp %p : f32
    lin.yield %q : f32
  }
  func.return %r : tensor<?xf32, #sym.dims<M>>
}

// What is read again with the maximum of its rows goes through memory anyway: a kernel over rows reads it once.
// CHECK-LABEL: func.func @again
// CHECK: lin.group
// CHECK: lin.group
// CHECK: combine max
func.func @again(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %c = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %s = lin.softmax %c axis 1 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %s : tensor<?x?xf32, #sym.dims<M, N>>
}
