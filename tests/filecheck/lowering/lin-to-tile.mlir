// RUN: tilewright-opt %s -p infer-shapes,decompose,fuse-elementwise,fuse-groups,lin-to-tile | filecheck %s

sym.symbol @M
sym.symbol @N
sym.symbol @K

// One kernel for the product, its bias and relu, in two sizes of tile: accumulate over tiles of k, then the epilogue on
// the accumulators. Rows and columns past the end are clipped, and k too: what is missing adds zero.
// CHECK-LABEL: tile.kernel @matmul_0_large(
// CHECK-SAME: grid (%i0, %i1) = [M ceildiv 128, N ceildiv 128]
// CHECK-LABEL: tile.kernel @matmul_0_small(%a: !tile.buf<[M, K], f32, global, #tile.strided<[a_s0, a_s1]>>, %b: !tile.buf<[K, N], f32, global, #tile.strided<[b_s0, b_s1]>>, %c: !tile.buf<[N], f32, global, #tile.strided<[c_s0]>>, %out0: !tile.buf<[M, N], f32, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i0, %i1) = [M ceildiv 32, N ceildiv 32] bases [a_base, b_base, c_base, out0_base] {
// CHECK-NEXT: %o0 = sym.apply 32*i where i = %i0
// CHECK-NEXT: %o1 = sym.apply 32*i where i = %i1
// CHECK-NEXT: %[[ACC:.*]] = tile.alloc : !tile.buf<[32, 32], f32, fragment>
// CHECK-NEXT: tile.fill %[[ACC]] with 0.000000e+00 : f32
// CHECK-NEXT: tile.for %k2 = 0 to K step 64 {
// CHECK-NEXT: %t_a = tile.alloc : !tile.buf<[32, 64], f32, fragment>
// CHECK-NEXT: tile.copy %a[%o0, %k2] to %t_a bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: %t_b = tile.alloc : !tile.buf<[64, 32], f32, fragment>
// CHECK-NEXT: tile.copy %b[%k2, %o1] to %t_b bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: tile.mma (d0, d1, d2) %t_a[d0, d2], %t_b[d2, d1] into %[[ACC]][d0, d1]
// CHECK-NEXT: }
// CHECK: tile.copy %c[%o1] to %t_c bounds [clip] other 0.000000e+00 : f32
// CHECK: tile.map (d0, d1) ins(%[[ACC]][d0, d1], %t_c[d1]) outs(%[[R:.*]][d0, d1]) {
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: tile.copy %[[R]] to %out0[%o0, %o1] bounds [clip, clip]
// Where there are few tiles, blocks share the sum: each adds up a part, and a second kernel adds the parts before it goes
// on with the epilogue. The plan computes how many parts there are, and how deep.
// CHECK-LABEL: tile.kernel @matmul_0_split32x32_parts(
// CHECK-SAME: %out0: !tile.buf<[parts, M, 4*(N ceildiv 4)], f32, global
// CHECK-SAME: grid (%i0, %i1, %i2) = [parts, M ceildiv 32, N ceildiv 32]
// CHECK: tile.for %k3 = part*part_depth to min(K, part*part_depth + part_depth) step 64 where part = %i0 {
// CHECK: tile.copy %f_partial to %out0[%i0, %o1, %o2] bounds [clip, clip, clip]
// CHECK-LABEL: tile.kernel @matmul_0_split32x32_sum(
// CHECK: tile.for %k0 = 0 to parts step 4 {
// CHECK: tile.reduce sum
// CHECK: tile.copy %c[%o2] to %t_c
// CHECK: arith.maximumf
// CHECK-LABEL: host.func @matmul(
// CHECK-NEXT: host.bind %a strides [a_s0, a_s1] base a_base
// CHECK-NEXT: host.bind %b strides [b_s0, b_s1] base b_base
// CHECK-NEXT: host.bind %c strides [c_s0] base c_base
// CHECK-NEXT: %out0 = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
// CHECK-NEXT: host.bind %out0 strides [out0_s0, out0_s1] base out0_base
// CHECK-NEXT: host.let parts = max(1, min(K ceildiv 64, 264 floordiv max(1, (M ceildiv 32)*(N ceildiv 32))))
// CHECK-NEXT: host.let part_depth = 64*(K ceildiv (64*parts))
// CHECK-NEXT: host.dispatch {
// CHECK-NEXT: case "split32x32" when [parts >= 2, K >= 192] {
// CHECK-NEXT: %partial = host.alloc pitch 4 : tensor<?x?x?xf32, #sym.dims<parts, M, N>>
// CHECK-NEXT: host.launch @matmul_0_split32x32_parts(%a, %b, %partial)
// CHECK-NEXT: host.launch @matmul_0_split32x32_sum(%partial, %c, %out0)
// CHECK: case "large" when [M*N >= 524288] {
// CHECK-NEXT: host.launch @matmul_0_large(%a, %b, %c, %out0) assumes [M*N >= 524288]
// CHECK: case "small" {
// CHECK-NEXT: host.launch @matmul_0_small(%a, %b, %c, %out0)
func.func @matmul(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>, %c: tensor<?xf32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.matmul %a, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  %z = lin.map ins(%y, %c : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    lin.yield %r : f32
  }
  func.return %z : tensor<?x?xf32, #sym.dims<M, N>>
}

// Rows of up to 4096 elements stay on chip: read once. Elements past the end take no part in the maximum nor the sum.
// CHECK-LABEL: tile.kernel @softmax_0_on_chip(
// CHECK-COUNT-1: tile.copy %x
// CHECK: tile.reduce max (d0, d1) %{{.*}}[d0, d1] into %[[MAX:.*]][d0] valid(d1 < %{{.*}})
// CHECK: tile.map (d0, d1) ins(%{{.*}}[d0, d1], %[[MAX]][d0])
// CHECK: tile.reduce sum (d0, d1) %{{.*}}[d0, d1] into %[[SUM:.*]][d0] valid(d1 < %{{.*}})
// CHECK: tile.map (d0, d1) ins(%{{.*}}[d0, d1], %[[SUM]][d0])
// Longer ones are walked three times; each walk accumulates element by element and combines once after it.
// CHECK-LABEL: tile.kernel @softmax_0_looping(
// CHECK: tile.for
// CHECK: tile.map {{.*}} valid(d1 < %{{.*}}) {
// CHECK: arith.maximumf
// CHECK: tile.reduce max
// CHECK: tile.for
// CHECK: tile.reduce sum
// CHECK: tile.for
// CHECK: tile.copy %{{.*}} to %out0
// CHECK-LABEL: host.func @softmax(
// CHECK: case "on_chip" when [N <= 4096] {
// CHECK: case "looping" {
func.func @softmax(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.softmax %x axis 1 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}

// Buffers come before scalars. A result that is an argument as it came is copied by a kernel.
// CHECK-LABEL: tile.kernel @scaled_0(%x: !tile.buf<[N], f32, global, #tile.strided<[x_s0_1]>>, %out0: !tile.buf<[N], f32, global, #tile.strided<[out1_s0]>>, %s: f32) grid (%i0) = [N ceildiv 2048] bases [x_base_1, out1_base, 0] {
// CHECK: tile.map (d0) ins(%t_x[d0], %s) outs(%f_y[d0]) {
// CHECK-LABEL: tile.kernel @scaled_1(
// CHECK-LABEL: host.func @scaled(
// CHECK: host.launch @scaled_0(%x, %out1, %s)
// CHECK-NEXT: host.launch @scaled_1(%x, %out0)
func.func @scaled(%x: tensor<?xf32, #sym.dims<N>>, %s: f32) -> (tensor<?xf32, #sym.dims<N>>, tensor<?xf32, #sym.dims<N>>) {
  %y = lin.map ins(%x, %s : tensor<?xf32, #sym.dims<N>>, f32) -> tensor<?xf32, #sym.dims<N>> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }
  func.return %x, %y : tensor<?xf32, #sym.dims<N>>, tensor<?xf32, #sym.dims<N>>
}

// A product whose operand is computed first. Where the product is small, or few of its tiles read an element, no kernel
// runs before it: each block computes what it has loaded. What lies past the end of the sum is zero in the product,
// which exp of a zero is not. Where that does not pay, the operand is made once.
// CHECK-LABEL: tile.kernel @prepared_0(
// CHECK: math.exp
// CHECK-LABEL: tile.kernel @prepared_1_loads_large(
// CHECK-LABEL: tile.kernel @prepared_1_loads_small(%a: !tile.buf<[M, K], f32, global, #tile.strided<[a_s0{{.*}}, a_s1{{.*}}]>>, %b:
// CHECK: tile.for %k1 = 0 to K step 64 {
// CHECK-NEXT: %[[LEFT:.*]] = sym.apply K - k where k = %k1
// CHECK-NEXT: %t_a = tile.alloc : !tile.buf<[32, 64], f32, fragment>
// CHECK-NEXT: tile.copy %a[%o0, %k1] to %t_a bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: %f_e = tile.alloc : !tile.buf<[32, 64], f32, fragment>
// CHECK-NEXT: tile.fill %f_e with 0.000000e+00 : f32
// CHECK-NEXT: tile.map (d0, d1) ins(%t_a[d0, d1]) outs(%f_e[d0, d1]) valid(d1 < %[[LEFT]]) {
// CHECK: math.exp
// CHECK: tile.copy %b[%k1, %o2] to %t_b bounds [clip, clip] other 0.000000e+00 : f32
// CHECK-NEXT: tile.mma (d0, d1, d2) %f_e[d0, d2], %t_b[d2, d1] into
// CHECK-LABEL: tile.kernel @prepared_1_loads_split32x32_parts(
// CHECK: math.exp
// CHECK: tile.mma
// CHECK-LABEL: tile.kernel @prepared_1_loads_split32x32_sum(
// CHECK-NOT: math.exp
// CHECK-LABEL: tile.kernel @prepared_1_large(%e:
// CHECK-LABEL: host.func @prepared(
// CHECK: case "in loads" when [min(K*max(M, 32)*max(N, 32) - 10000000, N - 128) <= 0] {
// CHECK-NEXT: ^bb0:
// CHECK-NEXT: }
// CHECK-NEXT: case "made" {
// CHECK-NEXT: host.launch @prepared_0(%a, %e)
// CHECK: case "in loads" when [min(K*max(M, 32)*max(N, 32) - 10000000, N - 128) <= 0] {
// CHECK: host.launch @prepared_1_loads_small(%a, %b, %out0)
// CHECK: case "made" {
// CHECK: host.launch @prepared_1_small(%e, %b, %out0)
func.func @prepared(%a: tensor<?x?xf32, #sym.dims<M, K>>, %b: tensor<?x?xf32, #sym.dims<K, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %e = lin.map ins(%a : tensor<?x?xf32, #sym.dims<M, K>>) -> tensor<?x?xf32, #sym.dims<M, K>> {
  ^bb0(%p: f32):
    %r = math.exp %p : f32
    lin.yield %r : f32
  }
  %y = lin.matmul %e, %b : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}
