// RUN: TW_ROUNDTRIP
// RUN: TW_GENERIC_ROUNDTRIP

sym.symbol @M
sym.symbol @N
sym.symbol @x_s0 {source = "stride"}
sym.symbol @x_s1 {source = "stride"}
sym.symbol @x_base {source = "base"}
sym.symbol @out0_s0 {source = "stride"}
sym.symbol @out0_base {source = "base"}

// CHECK: host.func @main(%x: tensor<?x?xf32, #sym.dims<M, N>>, %v: f32) -> (tensor<?xf32, #sym.dims<M>>, tensor<f32>) attributes {note = "all"} {
host.func @main(%x: tensor<?x?xf32, #sym.dims<M, N>>, %v: f32) -> (tensor<?xf32, #sym.dims<M>>, tensor<f32>) attributes {note = "all"} {
  // CHECK-NEXT: host.bind %x strides [x_s0, x_s1] base x_base
  // CHECK-NEXT: %out0 = host.output 0 : tensor<?xf32, #sym.dims<M>>
  // CHECK-NEXT: host.bind %out0 strides [out0_s0] base out0_base
  // CHECK-NEXT: %out1 = host.output 1 : tensor<f32>
  // CHECK-NEXT: host.guard N <= 65536 else "N: expected \22at most\22 65536"
  // CHECK-NEXT: %t = host.alloc : tensor<?x4xf16, #sym.dims<M, 4>>
  // CHECK-NEXT: host.alloc along 0 pitch 8 : tensor<?x4xf32, #sym.dims<M, 4>>
  host.bind %x strides [x_s0, x_s1] base x_base
  %out0 = host.output 0 : tensor<?xf32, #sym.dims<M>>
  host.bind %out0 strides [out0_s0] base out0_base
  %out1 = host.output 1 : tensor<f32>
  host.guard N <= 65536 else "N: expected \"at most\" 65536"
  %t = host.alloc : tensor<?x4xf16, #sym.dims<M, 4>>
  %columns = host.alloc along 0 pitch 8 : tensor<?x4xf32, #sym.dims<M, 4>>
  // CHECK-NEXT: host.launch @free(%x, %t, %v)
  // CHECK-NEXT: host.launch @planned(%t, %out0) grid [M*(N ceildiv 4)] index_width 32 assumes [x_s1 == 1, x_base mod 16 == 0] attributes {variant = "vector32"}
  host.launch @free(%x, %t, %v)
  host.launch @planned(%t, %out0) grid [M * (N ceildiv 4)] index_width 32 assumes [x_s1 == 1, x_base mod 16 == 0] attributes {variant = "vector32"}
  // CHECK-NEXT: host.dispatch {
  // CHECK-NEXT: case "short row" when [N <= 4096, M >= 1] {
  // CHECK-NEXT: host.launch @free(%x, %t, %v) assumes [N <= 4096]
  // CHECK-NEXT: }
  // CHECK-NEXT: case "rest" {
  // CHECK-NEXT: host.launch @free(%x, %t, %v)
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  host.dispatch {
    case "short row" when [N <= 4096, M >= 1] {
      host.launch @free(%x, %t, %v) assumes [N <= 4096]
    }
    case "rest" {
      host.launch @free(%x, %t, %v)
    }
  }
}

// CHECK-LABEL: host.func @padded
host.func @padded(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> () {
  // CHECK: %y = host.dispatch -> tensor<?x?xf32, #sym.dims<M, N>> {
  // CHECK-NEXT: case "as it is" when [N mod 4 == 0] {
  // CHECK-NEXT: host.yield %x
  // CHECK-NEXT: }
  // CHECK-NEXT: case "padded" {
  // CHECK-NEXT: %t = host.alloc pitch 4 : tensor<?x?xf32, #sym.dims<M, N>>
  // CHECK-NEXT: host.launch @copy(%x, %t) attributes {widens = []}
  // CHECK-NEXT: host.yield %t
  // CHECK-NEXT: }
  // CHECK-NEXT: } attributes {chooses}
  // CHECK-NEXT: host.bind %y strides [x_s0, x_s1] base x_base
  %y = host.dispatch -> tensor<?x?xf32, #sym.dims<M, N>> {
    case "as it is" when [N mod 4 == 0] {
      host.yield %x
    }
    case "padded" {
      %t = host.alloc pitch 4 : tensor<?x?xf32, #sym.dims<M, N>>
      host.launch @copy(%x, %t) attributes {widens = []}
      host.yield %t
    }
  } attributes {chooses}
  host.bind %y strides [x_s0, x_s1] base x_base
}

// CHECK-LABEL: host.func @nothing() -> () {
host.func @nothing() -> () {
}
