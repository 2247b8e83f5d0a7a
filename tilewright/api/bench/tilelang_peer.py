# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false
"""The product in TileLang as its documentation builds it: a kernel for given sizes, with a pipelined loop over K and
blocks in panels for the L2 cache. Imported only where TileLang is there; strict typing ends at its decorators.

Written against the public documentation (`examples/gemm` of tile-ai/tilelang), and not run yet.
"""

from functools import cache

import tilelang
import tilelang.language as T

CONFIGURATIONS = {
    16: (
        (128, 256, 64, 3, 256),
        (256, 128, 64, 3, 256),
        (128, 128, 64, 3, 256),
        (128, 128, 64, 3, 128),
        (64, 128, 64, 3, 128),
        (64, 64, 64, 3, 128),
    ),
}
"""Bits of the dtype -> block of M, of N, of K, stages and threads of each configuration. None for 32 bits: its matrix
instructions would round the operands to tf32."""
PANEL = 10
"""Blocks of a panel that is walked together."""


def configurations(bits, tf32=False):
    """Name -> function (a, b, out) that queues the product on torch's current stream and returns `out`. The tensors are
    2-D, row-major, on the GPU. A configuration is compiled for the sizes of its first call, and again for others."""
    del tf32  # none of f32, in tf32 or not
    return {f"{m}x{n}x{k} s{s} t{t}": _launcher(m, n, k, s, t) for m, n, k, s, t in CONFIGURATIONS.get(bits, ())}


def version():
    """TileLang's version."""
    return tilelang.__version__


@cache
def _compiled(m, n, k, dtype, block_m, block_n, block_k, stages, threads):
    """The kernel for these sizes; it takes both operands and the result."""

    @T.prim_func
    def product(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, block_n), T.ceildiv(m, block_m), threads=threads) as (bx, by):
            a_tile = T.alloc_shared((block_m, block_k), dtype)
            b_tile = T.alloc_shared((block_k, block_n), dtype)
            total = T.alloc_fragment((block_m, block_n), "float32")
            T.use_swizzle(panel_size=PANEL, enable=True)
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, block_k), num_stages=stages):
                T.copy(A[by * block_m, step * block_k], a_tile)
                T.copy(B[step * block_k, bx * block_n], b_tile)
                T.gemm(a_tile, b_tile, total)
            T.copy(total, C[by * block_m, bx * block_n])

    return tilelang.compile(product, target="cuda")


def _launcher(block_m, block_n, block_k, stages, threads):
    def launch(a, b, out):
        (m, k), n = a.shape, b.shape[1]
        dtype = str(a.dtype).removeprefix("torch.")
        _compiled(m, n, k, dtype, block_m, block_n, block_k, stages, threads)(a, b, out)
        return out

    return launch
