// RUN: tilewright-opt %s -p host-plan | filecheck %s
// RUN: tilewright-opt %s -p 'host-plan{max-variants=1},instantiate-variants' | filecheck %s --check-prefix=ONE

sym.symbol @N {max = 1024, multiple_of = 4}
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_base {source = "base"}

// The stride of x may be anything, so the one variant that serves all calls has 64-bit indices.
// ONE: tile.kernel @double_general64({{.*}}) grid (%i) = [N ceildiv 128] index_width 64 bases [x_base, y_base] {
// ONE-NOT: host.func
tile.kernel @double(%x : !tile.buf<[N], f32, global, #tile.strided<[x_s0]>>, %y : !tile.buf<[N], f32, global, #tile.strided<[1]>>) grid (%i) = [N ceildiv 128] {
  %n0 = sym.apply 128*i where i = %i
  %f = tile.alloc : !tile.buf<[128], f32, fragment>
  tile.copy %x[%n0] to %f bounds [clip] other 0.0 : f32
  %g = tile.alloc : !tile.buf<[128], f32, fragment>
  tile.map (d0) ins(%f[d0]) outs(%g[d0]) {
  ^bb0(%a : f32):
    %b = arith.addf %a, %a : f32
    tile.yield %b
  }
  tile.copy %g to %y[%n0] bounds [clip]
}

// CHECK-LABEL: host.func @main
// CHECK-NEXT: host.bind %x strides [x_s0] base x_base
// CHECK-NEXT: host.guard N <= 1024 else "N: expected at most 1024"
// CHECK-NEXT: host.guard N mod 4 == 0 else "N: expected a multiple of 4"
// CHECK-NEXT: %y = host.output 0
// CHECK-NEXT: host.bind %y strides [y_s0] base y_base
// CHECK-NEXT: host.guard y_s0 == 1 else
// CHECK-NEXT: host.dispatch {
// CHECK-NEXT: case "vector32" when [x_s0 == 1, x_base mod 16 == 0, y_base mod 16 == 0
// CHECK-NEXT: host.launch @double(%x, %y) grid [N ceildiv 128] index_width 32 assumes [x_s0 == 1, N mod 4 == 0, x_base mod 16 == 0, y_base mod 16 == 0]
// CHECK: case "general32"
host.func @main(%x : tensor<?xf32, #sym.dims<N>>) -> (tensor<?xf32, #sym.dims<N>>) {
  host.bind %x strides [x_s0] base x_base
  %y = host.output 0 : tensor<?xf32, #sym.dims<N>>
  host.launch @double(%x, %y)
}
