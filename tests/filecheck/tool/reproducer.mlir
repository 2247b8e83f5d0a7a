// RUN: tilewright-opt %s --run-reproducer --dump-pass-pipeline 2>&1 | filecheck %s
// RUN: not tilewright-opt %s -p 'verify-level{level=tile}' --crash-reproducer=%t 2>&1 | filecheck %s --check-prefix=FAILED
// RUN: not tilewright-opt %t --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: tilewright-opt %t | filecheck %s --check-prefix=TEXT

// A reproducer as mlir-opt writes it: the pipeline stands at the end of the file.
// CHECK: builtin.module(func.func(cse),canonicalize)
// CHECK-NOT: arith.addi

// FAILED: error: level tile: expected host, sym, tile in the module, got func.func
// FAILED: note: the reproducer is '{{.*}}': tilewright-opt {{.*}} --run-reproducer
// AGAIN: error: level tile: expected host, sym, tile in the module, got func.func
// TEXT: %b = arith.addi %a, %a : i32
func.func @f(%a: i32) {
  %b = arith.addi %a, %a : i32
  func.return
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(func.func(cse),canonicalize)",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
