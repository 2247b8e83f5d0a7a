// RUN: not tilewright-opt %s -t cuda 2>&1 | filecheck %s

// CHECK: error: target cuda: expected a simt.kernel in the module, got none: run tile-to-simt first
sym.symbol @M
