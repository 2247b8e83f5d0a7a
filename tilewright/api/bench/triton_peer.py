# pyright: basic, reportMissingImports=false, reportIndexIssue=false
"""The product in Triton as its tutorial builds it: blocks in groups of rows for the L2 cache, a loop over K, masks at
the edges. Imported only where Triton is there; strict typing ends at its decorators."""

import triton
import triton.language as tl

CONFIGURATIONS = {
    16: (
        (128, 256, 64, 8, 3),
        (256, 128, 64, 8, 3),
        (128, 128, 64, 8, 4),
        (128, 64, 64, 4, 4),
        (64, 128, 64, 4, 4),
        (16, 64, 128, 4, 4),
    ),
    32: (
        (128, 128, 16, 8, 3),
        (128, 64, 16, 8, 3),
        (64, 128, 16, 8, 3),
        (64, 64, 32, 4, 3),
        (64, 32, 32, 4, 3),
        (16, 64, 64, 4, 3),
    ),
}
"""Bits of the dtype -> block of M, of N, of K, warps and stages of each of the six configurations; in tf32 those of
16 bits with half the K, as many bytes."""
GROUP = 8
"""Rows of blocks that are walked together."""


# M does not bear on how memory is read, so no kernel is compiled for what divides it.
@triton.jit(do_not_specialize=["M"])
def _product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * blocks_n
    first_m = (pid // in_group) * GROUP_M
    rows = min(blocks_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % rows
    pid_n = (pid % in_group) // rows
    offsets_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets_k = tl.arange(0, BLOCK_K)
    # Rows and columns past the edge read others in their place; their results are not stored.
    a = a_ptr + (offsets_m % M)[:, None] * stride_am + offsets_k[None, :]
    b = b_ptr + offsets_k[:, None] * stride_bk + (offsets_n % N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        x = tl.load(a, mask=offsets_k[None, :] < left, other=0.0)
        y = tl.load(b, mask=offsets_k[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        a += BLOCK_K
        b += BLOCK_K * stride_bk
    c = c_ptr + offsets_m[:, None] * stride_cm + offsets_n[None, :]
    inside = (offsets_m[:, None] < M) & (offsets_n[None, :] < N)
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=inside)


def configurations(bits, tf32=False):
    """Name -> function (a, b, out) that queues the product on torch's current stream and returns `out`. The
    tensors are 2-D, row-major, on the GPU. With `tf32` those of float32 lose bits of their fractions."""
    known = CONFIGURATIONS[bits]
    if tf32:
        known = tuple((m, n, k // 2, w, s) for m, n, k, w, s in CONFIGURATIONS[16])
    precision = "tf32" if tf32 else "ieee"
    return {f"{m}x{n}x{k} w{w} s{s}": _launcher(m, n, k, w, s, precision) for m, n, k, w, s in known}


def version():
    """Triton's version."""
    return triton.__version__


def _launcher(block_m, block_n, block_k, warps, stages, precision):
    def launch(a, b, out):
        (m, k), n = a.shape, b.shape[1]
        grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
        _product[grid](
            a, b, out, m, n, k, k, n, n,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=GROUP, PRECISION=precision,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    return launch
