// RUN: tilewright-opt %s -p 'builtin.module(func.func(infer-shapes,canonicalize),cse)' | filecheck %s
// RUN: tilewright-opt %s -p 'func.func(canonicalize),any(lin-to-tile)' --dump-pass-pipeline 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: tilewright-opt %s -p 'func.func(canonicalize)' --print-ir-after-change 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: tilewright-opt %s -p 'func.func(canonicalize)' --mlir-print-ir-after-change --mlir-print-ir-module-scope 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: tilewright-opt %s --canonicalize --mlir-pass-statistics 2>&1 | filecheck %s --check-prefix=STATISTICS
// RUN: not tilewright-opt %s -p 'func.func(cse,lin-to-tile)' 2>&1 | filecheck %s --check-prefix=ANCHOR

// PIPELINE: builtin.module(func.func(canonicalize),lin-to-tile)

// ANCHOR: <pipeline>:1:15: error: pass 'lin-to-tile' cannot run on 'func.func': it runs on 'builtin.module'
// ANCHOR-NEXT: func.func(cse,lin-to-tile)
// ANCHOR-NEXT: {{^}}              ^

// Only the function that a pass changed is dumped, alone or within its module.
// DUMP: // -----// IR Dump After canonicalize ('func.func' operation: @turned) //----- //
// DUMP-NEXT: func.func @turned
// DUMP-NOT: IR Dump
// SCOPE: // -----// IR Dump After canonicalize ('func.func' operation: @turned) //----- //
// SCOPE-NEXT: builtin.module {
// SCOPE: func.func @kept

// STATISTICS: // -----// Pass statistics //----- //
// STATISTICS-NEXT: canonicalize
// STATISTICS-NEXT: (S) {{.*}}1 fold_transpose

!X = tensor<?x8xf32, #sym.dims<N, 8>>

// The size stands at module level, and each function sees it.
// CHECK: sym.symbol @N
sym.symbol @N

// CHECK-NEXT: func.func @turned(%x: [[X:.*]]) -> [[X]] {
// CHECK-NEXT: func.return %x
func.func @turned(%x: !X) -> !X {
  %y = lin.transpose %x perm [0, 1] : !X -> !X
  func.return %y : !X
}

// CHECK: func.func @kept
func.func @kept(%x: !X) -> !X {
  func.return %x : !X
}
