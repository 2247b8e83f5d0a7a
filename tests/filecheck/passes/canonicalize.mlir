// RUN: tilewright-opt %s -p canonicalize | filecheck %s
// RUN: tilewright-opt %s -p canonicalize,canonicalize | filecheck %s

sym.symbol @M
sym.symbol @N

// CHECK-LABEL: func.func @transposes(
// CHECK-NEXT: %[[T:.*]] = lin.transpose %x perm [2, 0, 1]
// CHECK-NEXT: func.return %x, %[[T]]
func.func @transposes(%x: tensor<2x3x4xf32, #sym.dims<2, 3, 4>>) -> (tensor<2x3x4xf32, #sym.dims<2, 3, 4>>, tensor<4x2x3xf32, #sym.dims<4, 2, 3>>) {
  %a = lin.transpose %x perm [1, 2, 0] : tensor<2x3x4xf32, #sym.dims<2, 3, 4>> -> tensor<3x4x2xf32, #sym.dims<3, 4, 2>>
  // There and back is the identity; this way round twice is one transpose.
  %b = lin.transpose %a perm [2, 0, 1] : tensor<3x4x2xf32, #sym.dims<3, 4, 2>> -> tensor<2x3x4xf32, #sym.dims<2, 3, 4>>
  %c = lin.transpose %a perm [1, 2, 0] : tensor<3x4x2xf32, #sym.dims<3, 4, 2>> -> tensor<4x2x3xf32, #sym.dims<4, 2, 3>>
  func.return %b, %c : tensor<2x3x4xf32, #sym.dims<2, 3, 4>>, tensor<4x2x3xf32, #sym.dims<4, 2, 3>>
}

// Widening is exact, so narrowing back is nothing; rounding to bf16 and back is not.
// CHECK-LABEL: func.func @casts(
// CHECK-NEXT: %[[R:.*]] = lin.cast %y : {{.*}}f32{{.*}} -> {{.*}}bf16
// CHECK-NEXT: %[[S:.*]] = lin.cast %[[R]] : {{.*}}bf16{{.*}} -> {{.*}}f32
// CHECK-NEXT: func.return %x, %[[S]]
func.func @casts(%x: tensor<?xbf16, #sym.dims<M>>, %y: tensor<?xf32, #sym.dims<M>>) -> (tensor<?xbf16, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>) {
  %a = lin.cast %x : tensor<?xbf16, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  %b = lin.cast %a : tensor<?xf32, #sym.dims<M>> -> tensor<?xbf16, #sym.dims<M>>
  %c = lin.cast %y : tensor<?xf32, #sym.dims<M>> -> tensor<?xbf16, #sym.dims<M>>
  %d = lin.cast %c : tensor<?xbf16, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>
  func.return %b, %d : tensor<?xbf16, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>
}

// A scalar constant goes into the body, what is read twice is read once, the dead exp is gone.
// CHECK-LABEL: func.func @operands(
// CHECK-NEXT: lin.generic (d0) ins(%x[d0] : tensor<?xf32, #sym.dims<M>>) out[d0]
// CHECK-NEXT: ^bb0(%{{.*}}: f32):
// CHECK-NEXT: arith.constant 2.5
// CHECK-NOT: math.exp
// CHECK: func.return
func.func @operands(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %c = arith.constant 2.5 : f32
  %dead = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%p: f32):
    %e = math.exp %p : f32
    lin.yield %e : f32
  }
  %y = lin.generic (i) ins(%x[i] : tensor<?xf32, #sym.dims<M>>, %x[i] : tensor<?xf32, #sym.dims<M>>, %c : f32) out[i] : tensor<?xf32, #sym.dims<M>> {
  ^bb0(%p: f32, %q: f32, %k: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.mulf %s, %k : f32
    lin.yield %t : f32
  }
  func.return %y : tensor<?xf32, #sym.dims<M>>
}

// A map that yields an operand of the result's own type is that operand; one that stretches it is not.
// CHECK-LABEL: func.func @identities(
// CHECK-NEXT: %[[B:.*]] = lin.map
// CHECK: func.return %x, %[[B]]
func.func @identities(%x: tensor<?x?xf32, #sym.dims<M, N>>, %b: tensor<?xf32, #sym.dims<N>>) -> (tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>) {
  %y = lin.map ins(%x, %b : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    lin.yield %p : f32
  }
  %z = lin.map ins(%x, %b : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?xf32, #sym.dims<N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  ^bb0(%p: f32, %q: f32):
    lin.yield %q : f32
  }
  func.return %y, %z : tensor<?x?xf32, #sym.dims<M, N>>, tensor<?x?xf32, #sym.dims<M, N>>
}

// CHECK-LABEL: func.func @index_expressions(
// CHECK-NEXT: %[[C:.*]] = arith.constant 35 : index
// CHECK-NEXT: %[[A:.*]] = sym.apply {{.*}} where j = %j, i = %i
// CHECK-NEXT: func.return %[[C]], %i, %[[A]]
func.func @index_expressions(%i: index, %j: index) -> (index, index, index) {
  %five = arith.constant 5 : index
  %a = sym.apply 7*n where n = %five
  %b = sym.apply n where n = %i
  %c = sym.apply 128*i + M where i = %b
  %d = sym.apply c + 2*j where c = %c, j = %j
  func.return %a, %b, %d : index, index, index
}

// CHECK-LABEL: func.func @integers(
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[MIN:.*]] = arith.constant -2147483648 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[SUM:.*]] = arith.addi %x, %[[EIGHT]] : i32
// CHECK: func.return %[[SUM]], %[[MIN]], %[[ZERO]], %x
func.func @integers(%x: i32) -> (i32, i32, i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %five = arith.constant 5 : i32
  %greatest = arith.constant 2147483647 : i32
  // (3 + x) + 5
  %a = arith.addi %three, %x : i32
  %sum = arith.addi %a, %five : i32
  // wraps around
  %wrapped = arith.addi %greatest, %one : i32
  %nothing = arith.muli %x, %zero : i32
  %q = arith.divsi %x, %one : i32
  %r = arith.remui %q, %one : i32
  %same = arith.addi %q, %r : i32
  func.return %sum, %wrapped, %nothing, %same : i32, i32, i32, i32
}

// CHECK-LABEL: func.func @branches(
// CHECK-NEXT: %[[A:.*]] = arith.addi %x, %x
// CHECK-NEXT: func.return %[[A]], %x
func.func @branches(%x: i32) -> (i32, i32) {
  %four = arith.constant 4 : i32
  %five = arith.constant 5 : i32
  %less = arith.cmpi slt, %four, %five : i32
  %r = scf.if %less -> (i32) {
    %s = arith.addi %x, %x : i32
    scf.yield %s : i32
  } else {
    %s = arith.muli %x, %x : i32
    scf.yield %s : i32
  }
  %other = arith.cmpi ugt, %four, %five : i32
  %t = arith.select %other, %r, %x : i32
  func.return %r, %t : i32, i32
}

// Division by zero has no value: the op stays as it is.
// CHECK-LABEL: func.func @no_value(
// CHECK: arith.divsi
func.func @no_value() -> i32 {
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %q = arith.divsi %one, %zero : i32
  func.return %q : i32
}
