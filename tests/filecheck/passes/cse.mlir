// RUN: tilewright-opt %s -p cse | filecheck %s

sym.symbol @M

// Two generics that compute the same value are one; one with another body is another.
// CHECK-LABEL: func.func @generics(
// CHECK: %a = lin.map
// CHECK: %c = lin.map
// CHECK-NOT: lin.map
// CHECK: func.return %a, %a, %c
func.func @generics(%x: tensor<?xf32, #sym.dims<M>>) -> (tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>) {
  %a = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%p: f32):
    %e = math.exp %p : f32
    lin.yield %e : f32
  }
  %b = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%q: f32):
    %e = math.exp %q : f32
    lin.yield %e : f32
  }
  %c = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%q: f32):
    %e = math.log %q : f32
    lin.yield %e : f32
  }
  func.return %a, %b, %c : tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>
}

// A value from outside serves inside a branch; a value of one branch does not serve in the other.
// CHECK-LABEL: func.func @branches(
// CHECK: arith.addi %x, %x
// CHECK: scf.if
// CHECK-NOT: arith.addi
// CHECK: arith.muli %x, %x
// CHECK: else
// CHECK: arith.muli %x, %x
func.func @branches(%x: i32, %c: i1) -> (i32, i32) {
  %a = arith.addi %x, %x : i32
  %r = scf.if %c -> (i32) {
    %b = arith.addi %x, %x : i32
    %m = arith.muli %x, %x : i32
    %s = arith.subi %b, %m : i32
    scf.yield %s : i32
  } else {
    %m = arith.muli %x, %x : i32
    scf.yield %m : i32
  }
  func.return %a, %r : i32, i32
}
