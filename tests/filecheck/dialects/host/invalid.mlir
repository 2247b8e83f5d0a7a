// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{the function type must list the types of the arguments}}
"host.func"() <{sym_name = "main", signature = (f32) -> ()}> ({
^bb0(%x: i32):
}) : () -> ()

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{the last case must have no predicates}}
  host.dispatch {
  case "a" when [N >= 1] {
    host.launch @k(%x)
  }
  }
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{case names must differ}}
  host.dispatch {
  case "a" when [N >= 1] {
    host.launch @k(%x)
  }
  case "a" {
    host.launch @k(%x)
  }
  }
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{expected one name, one predicate list and one body for each case}}
  host.dispatch {
  }
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{expected one name, one predicate list and one body for each case}}
  "host.dispatch"() <{cases = ["a"], predicates = []}> ({
    host.launch @k(%x)
  }) : () -> ()
}

// -----

sym.symbol @N
host.func @main(%s: f32) -> () {
  // expected-error@+1 {{host.bind names the strides of a tensor, got f32}}
  host.bind %s strides [] base b
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{expected 1 stride symbols, got 2}}
  host.bind %x strides [a, b] base c
}

// -----

%x = builtin.unrealized_conversion_cast to tensor<f32>
// expected-error@+1 {{'host.bind' expects parent op 'host.func'}}
host.bind %x strides [] base b

// -----

sym.symbol @N
host.func @main() -> () {
  // expected-error@+1 {{expected a pitch of at least 1 element, got 0}}
  %t = host.alloc pitch 0 : tensor<?xf32, #sym.dims<N>>
}

// -----

host.func @main() -> () {
  // expected-error@+1 {{a pitch is for tensors that have rows, got rank 0}}
  %t = host.alloc pitch 8 : tensor<f32>
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{case 'b': expected to yield tensor<?xf32, #sym.dims<N>>, got nothing}}
  %y = host.dispatch -> tensor<?xf32, #sym.dims<N>> {
  case "a" when [N >= 1] {
    host.yield %x
  }
  case "b" {
    host.launch @k(%x)
  }
  }
}

// -----

sym.symbol @N
host.func @main(%x: tensor<?xf32, #sym.dims<N>>) -> () {
  // expected-error@+1 {{case 'a': expected to yield nothing, got tensor<?xf32, #sym.dims<N>>}}
  host.dispatch {
  case "a" {
    host.yield %x
  }
  }
}

// -----

sym.symbol @N
host.func @main() -> () {
  // expected-error@+1 {{expected rows along a dim below 1, got 1}}
  %t = host.alloc along 1 pitch 8 : tensor<?xf32, #sym.dims<N>>
}
