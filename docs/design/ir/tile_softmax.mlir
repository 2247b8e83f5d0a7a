// Row softmax, scheduled twice: the row on chip (up to 4096 elements), and a looping fallback; the host function dispatches.
sym.symbol @M
sym.symbol @N
sym.symbol @a_s0 {source = "stride"}
sym.symbol @a_s1 {source = "stride"}
sym.symbol @a_base {source = "base"}
sym.symbol @out0_s0 {source = "stride"}
sym.symbol @out0_s1 {source = "stride"}
sym.symbol @out0_base {source = "base"}
tile.kernel @main_0_on_chip(%a: !tile.buf<[M, N], f32, global, #tile.strided<[a_s0, a_s1]>>, %out0: !tile.buf<[M, N], f32, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i0) = [M] threads 256 index_width 64 bases [a_base, out0_base] {
  %scratch = tile.alloc at 0 : !tile.buf<[8], f32, shared, #tile.strided<[1]>>
  %scratch_1 = tile.alloc at 32 : !tile.buf<[8], f32, shared, #tile.strided<[1]>>
  %zero = sym.apply 0
  %t_a = tile.alloc : !tile.buf<[1, 4096], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  tile.copy %a[%i0, %zero] to %t_a bounds [proved, clip] other 0.000000e+00 : f32 via thread width 1
  %n = sym.apply N - k where k = %zero
  %f = tile.alloc : !tile.buf<[1], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  tile.fill %f with 0xff800000 : f32
  tile.reduce max (d0, d1) %t_a[d0, d1] into %f[d0] valid(d1 < %n) scratch %scratch_1
  %f_1 = tile.alloc : !tile.buf<[1, 4096], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  tile.map (d0, d1) ins(%t_a[d0, d1], %f[d0]) outs(%f_1[d0, d1]) {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.subf %0, %1 : f32
    %3 = math.exp %2 : f32
    tile.yield %3
  }
  %n_1 = sym.apply N - k where k = %zero
  %f_2 = tile.alloc : !tile.buf<[1], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  tile.fill %f_2 with 0.000000e+00 : f32
  tile.reduce sum (d0, d1) %f_1[d0, d1] into %f_2[d0] valid(d1 < %n_1) scratch %scratch
  %f_3 = tile.alloc : !tile.buf<[1, 4096], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  tile.map (d0, d1) ins(%f_1[d0, d1], %f_2[d0]) outs(%f_3[d0, d1]) {
  ^bb0(%4: f32, %5: f32):
    %6 = arith.divf %4, %5 : f32
    tile.yield %6
  }
  tile.copy %f_3 to %out0[%i0, %zero] bounds [proved, clip] via thread width 1
}
tile.kernel @main_0_looping(%a: !tile.buf<[M, N], f32, global, #tile.strided<[a_s0, a_s1]>>, %out0: !tile.buf<[M, N], f32, global, #tile.strided<[out0_s0, out0_s1]>>) grid (%i0) = [M] threads 256 index_width 64 bases [a_base, out0_base] {
  %scratch = tile.alloc at 0 : !tile.buf<[8], f32, shared, #tile.strided<[1]>>
  %acc = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
  tile.fill %acc with 0xff800000 : f32
  tile.for %k1 = 0 to N step 1024 {
    %t_a = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 256] strides [256, 1] vector [1, 1]>>
    tile.copy %a[%i0, %k1] to %t_a bounds [proved, clip] other 0.000000e+00 : f32 via thread width 1
    %n = sym.apply N - k where k = %k1
    tile.map (d0, d1) ins(%t_a[d0, d1], %acc[d0, d1]) outs(%acc[d0, d1]) valid(d1 < %n) {
    ^bb0(%0: f32, %1: f32):
      %2 = arith.maximumf %1, %0 : f32
      tile.yield %2
    }
  }
  %f = tile.alloc : !tile.buf<[1], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  tile.fill %f with 0xff800000 : f32
  tile.reduce max (d0, d1) %acc[d0, d1] into %f[d0] scratch %scratch
  %acc_1 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
  tile.fill %acc_1 with 0.000000e+00 : f32
  tile.for %k1_1 = 0 to N step 1024 {
    %t_a_1 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
    tile.copy %a[%i0, %k1_1] to %t_a_1 bounds [proved, clip] other 0.000000e+00 : f32 via thread width 1
    %f_1 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
    tile.map (d0, d1) ins(%t_a_1[d0, d1], %f[d0]) outs(%f_1[d0, d1]) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.subf %3, %4 : f32
      %6 = math.exp %5 : f32
      tile.yield %6
    }
    %n_1 = sym.apply N - k where k = %k1_1
    tile.map (d0, d1) ins(%f_1[d0, d1], %acc_1[d0, d1]) outs(%acc_1[d0, d1]) valid(d1 < %n_1) {
    ^bb0(%7: f32, %8: f32):
      %9 = arith.addf %8, %7 : f32
      tile.yield %9
    }
  }
  %f_2 = tile.alloc : !tile.buf<[1], f32, fragment, #tile.distributed<threads [1] strides [256] vector [1]>>
  tile.fill %f_2 with 0.000000e+00 : f32
  tile.reduce sum (d0, d1) %acc_1[d0, d1] into %f_2[d0]
  tile.for %k1_2 = 0 to N step 1024 {
    %t_a_2 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
    tile.copy %a[%i0, %k1_2] to %t_a_2 bounds [proved, clip] other 0.000000e+00 : f32 via thread width 1
    %f_3 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
    tile.map (d0, d1) ins(%t_a_2[d0, d1], %f[d0]) outs(%f_3[d0, d1]) {
    ^bb0(%10: f32, %11: f32):
      %12 = arith.subf %10, %11 : f32
      %13 = math.exp %12 : f32
      tile.yield %13
    }
    %f_4 = tile.alloc : !tile.buf<[1, 1024], f32, fragment, #tile.distributed<threads [1, 1] strides [256, 1] vector [1, 1]>>
    tile.map (d0, d1) ins(%f_3[d0, d1], %f_2[d0]) outs(%f_4[d0, d1]) {
    ^bb0(%14: f32, %15: f32):
      %16 = arith.divf %14, %15 : f32
      tile.yield %16
    }
    tile.copy %f_4 to %out0[%i0, %k1_2] bounds [proved, clip] via thread width 1
  }
}
host.func @main(%a: tensor<?x?xf32, #sym.dims<M, N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>) {
  host.bind %a strides [a_s0, a_s1] base a_base
  %out0 = host.output 0 : tensor<?x?xf32, #sym.dims<M, N>>
  host.bind %out0 strides [out0_s0, out0_s1] base out0_base
  host.dispatch {
    case "on_chip" when [N <= 4096] {
      host.launch @main_0_on_chip(%a, %out0) assumes [N <= 4096]
    }
    case "looping" {
      host.launch @main_0_looping(%a, %out0)
    }
  }
}
