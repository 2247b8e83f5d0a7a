// A launch plan: one guard, scratch for the value between two kernels, and two variants of the second kernel. What the run-time dispatcher
// does is this text: bind, guard, allocate, take the first case whose predicates hold, launch. Kernel bodies are left out of the picture (a copy each).
sym.symbol @M {min = 0, max = 1048576}
sym.symbol @N {min = 1}
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}
sym.symbol @out0_s0 {source = "stride"}
sym.symbol @out0_s1 {source = "stride"}
sym.symbol @out0_base {source = "base"}
sym.require N <= 65536
tile.kernel @first(%x: !tile.buf<[M, N], f32, global, #tile.strided<[x_s0, x_s1]>>, %t: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M, N ceildiv 1024] bases [x_base, 0] {
  %n0 = sym.apply 1024*j where j = %j
  %f = tile.alloc : !tile.buf<[1, 1024], f32, fragment>
  tile.copy %x[%i, %n0] to %f bounds [clip, clip] other 0.000000e+00 : f32
  tile.copy %f to %t[%i, %n0] bounds [clip, clip]
}
tile.kernel @second(%t: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %out0: !tile.buf<[M, N], f32, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i, %j) = [M, N ceildiv 1024] bases [0, out0_base] {
  %n0 = sym.apply 1024*j where j = %j
  %f = tile.alloc : !tile.buf<[1, 1024], f32, fragment>
  tile.copy %t[%i, %n0] to %f bounds [clip, clip] other 0.000000e+00 : f32
  tile.copy %f to %out0[%i, %n0] bounds [clip, clip]
}
host.func @main(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>) {
  host.bind %x strides [x_s0, x_s1] base x_base
  %out0 = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
  host.bind %out0 strides [out0_s0, out0_s1] base out0_base
  host.guard N <= 65536 else "N: expected at most 65536"
  %t = host.alloc : tensor<?x?xf32, #sym.dims<M, N>>
  host.launch @first(%x, %t) grid [M*(N ceildiv 1024)] index_width 64
  host.dispatch {
    case "vector32" when [N mod 4 == 0, out0_s1 == 1, out0_s0 mod 4 == 0, out0_base mod 16 == 0, M*N <= 2147483647, M*max(-out0_s0, out0_s0) + 1024 <= 2147483647] {
      host.launch @second(%t, %out0) grid [M*(N ceildiv 1024)] index_width 32 assumes [N mod 4 == 0, out0_s1 == 1, out0_s0 mod 4 == 0, out0_base mod 16 == 0]
    }
    case "general64" {
      host.launch @second(%t, %out0) grid [M*(N ceildiv 1024)] index_width 64
    }
  }
}
