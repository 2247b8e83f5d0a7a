// RUN: tilewright-opt %s -p specialise-warps --split-input-file --verify-diagnostics

sym.symbol @M
sym.symbol @N {multiple_of = 8}
sym.symbol @K {multiple_of = 8}
sym.symbol @base {source = "base"}

// expected-error@+1 {{specialise-warps: the kernel has no threads; run choose-mma first}}
tile.kernel @k(%a: !tile.buf<[M, K], bf16, global, #tile.strided<[K, 1]>>, %b: !tile.buf<[K, N], bf16, global, #tile.strided<[N, 1]>>, %c: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 64, N ceildiv 64] arch sm_90a assumes [base mod 16 == 0] bases [base, base, base] {
  %ring = tile.channel : !tile.channel<4, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %m = sym.apply 64*i where i = %i
  %n = sym.apply 64*j where j = %j
  %acc = tile.alloc : !tile.buf<[64, 64], f32, fragment>
  tile.fill %acc with 0.0 : f32
  tile.for %k = 0 to K step 64 {
    %s, %t = tile.acquire %ring
    %k8 = sym.apply k + 8 where k = %k
    tile.copy %a[%m, %k] to %s bounds [clip, clip] other 0.0 : bf16 via tma
    tile.copy %b[%k, %n] to %t bounds [clip, clip] other 0.0 : bf16 via tma
    tile.publish %ring
    %u, %v = tile.receive %ring
    tile.mma (d0, d1, d2) %u[d0, d2], %v[d2, d1] into %acc[d0, d1] inst wgmma
    tile.release %ring lag 1
  }
  tile.release %ring
}
