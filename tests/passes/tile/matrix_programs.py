"""Products of 16-bit operands and in tf32 that matrix instructions of sm_90a can take, and the sizes to run them at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.passes.tile.programs import at, take
from tilewright.api import frontend as tw
from tilewright.api.sizes import Size
from tilewright.api.tensor import Tensor

B, M, N, K = tw.symbols("B M N K")


@dataclass(frozen=True)
class Product:
    """A program, the values that its symbols take, and the sizes of its tiles."""

    build: Callable[[], Tensor | Sequence[Tensor]]
    sizes: tuple[dict[str, int], ...]
    tiles: tuple[int, ...] = (64, 64, 64)


PRODUCT = at("M N K", (1, 8, 8), (63, 64, 72), (64, 72, 64), (65, 136, 200), (200, 328, 0), (0, 8, 8), (130, 200, 24))
"""None, one, tiles and tails of each dim, in rows of whole 16 bytes."""
EIGHTHS = at("M N K", (8, 8, 8), (56, 64, 72), (64, 72, 64), (200, 136, 0), (136, 200, 24))
"""The same where M is the contiguous dim of an operand or of the result."""
BATCH = at("B M N K", (1, 1, 8, 8), (2, 65, 72, 64), (3, 64, 64, 136), (0, 8, 8, 8), (2, 8, 8, 0))


def bias_gelu() -> Tensor:
    x = tw.cast(tw.matmul(half(M, K), half(K, N)), "float32") + tw.cast(half(N), "float32")
    return tw.cast(tw.gelu(x), "bfloat16")


def scaled_rows() -> Tensor:
    return tw.relu(tw.matmul(half(M, K), half(K, N)) * half(M, 1)) + half(M, N)


def two_results() -> Sequence[Tensor]:
    product = tw.matmul(half(M, K), half(K, N))
    return [product, tw.relu(product + half(M, 1))]


def row_sums() -> Tensor:
    return tw.sum(tw.relu(tw.matmul(half(M, K), half(K, N)) + half(N)), 1)


def column_max() -> Tensor:
    return tw.max(tw.matmul(half(M, K), half(K, N)) + half(M, 1), 0)


def result_and_reductions() -> Sequence[Tensor]:
    """The result, what is left of its rows with something behind it, and of its columns."""
    result = tw.relu(tw.matmul(half(M, K), half(K, N)) + half(N))
    return [result, tw.sum(result, 1) * half(M), tw.max(tw.cast(result, "float32"), 0)]


def reduced_batches() -> Sequence[Tensor]:
    """Rows of a batch, columns of all of it, and all elements."""
    product = tw.cast(tw.batch_matmul(half(B, M, K), half(B, K, N)), "float32")
    return [tw.sum(product * product, 2), tw.sum(product, (0, 1)), tw.max(product, (0, 1, 2))]


def half(*sizes: Size | int) -> Tensor:
    """An argument of bf16."""
    return take(*sizes, dtype="bfloat16")


def einsum(text: str, left: Sequence[Size], right: Sequence[Size], dtype: str = "bfloat16") -> Callable[[], Tensor]:
    return lambda: tw.einsum(text, take(*left, dtype=dtype), take(*right, dtype=dtype))


def tf32(text: str, left: Sequence[Size], right: Sequence[Size]) -> Callable[[], Tensor]:
    return lambda: tw.einsum(text, take(*left), take(*right), precision="tf32")


def tf32_across_bias() -> Tensor:
    return tw.relu(tw.matmul(take(M, K), take(K, N), precision="tf32") + take(N)) * take(M, 1)


def tf32_bias_gelu() -> Tensor:
    x = tw.einsum("ik,jk->ij", take(M, K), take(N, K), precision="tf32") + take(N)
    return tw.cast(tw.gelu(x), "bfloat16")


PRODUCTS: dict[str, Product] = {
    "plain": Product(einsum("ik,kj->ij", (M, K), (K, N)), PRODUCT),
    "f16": Product(einsum("ik,kj->ij", (M, K), (K, N), "float16"), PRODUCT),
    "wide_result": Product(lambda: tw.cast(tw.matmul(half(M, K), half(K, N)), "float32"), PRODUCT),
    "bias_gelu": Product(bias_gelu, PRODUCT),
    "scaled_rows": Product(scaled_rows, PRODUCT),
    "two_results": Product(two_results, PRODUCT),
    "left_transposed": Product(einsum("ki,kj->ij", (K, M), (K, N)), EIGHTHS),
    "right_transposed": Product(einsum("ik,jk->ij", (M, K), (N, K)), PRODUCT),
    "both_transposed": Product(einsum("ki,jk->ij", (K, M), (N, K)), EIGHTHS),
    "result_transposed": Product(einsum("ik,kj->ji", (M, K), (K, N)), EIGHTHS),
    "batched": Product(einsum("bik,bkj->bij", (B, M, K), (B, K, N)), BATCH, (1, 64, 64, 64)),
    "batch_inside": Product(einsum("ibk,kbj->ibj", (M, B, K), (K, B, N)), BATCH, (64, 1, 64, 64)),
    "two_panels": Product(bias_gelu, PRODUCT, (64, 128, 64)),
    "two_groups": Product(bias_gelu, PRODUCT, (128, 128, 64)),
    "deep": Product(einsum("ik,jk->ij", (M, K), (N, K)), PRODUCT, (64, 64, 128)),
    "row_sums": Product(row_sums, PRODUCT, (64, 128, 64)),
    "column_max": Product(column_max, PRODUCT, (128, 64, 64)),
    "result_and_reductions": Product(result_and_reductions, PRODUCT, (64, 128, 64)),
    "reduced_batches": Product(reduced_batches, BATCH, (1, 64, 64, 64)),
    "narrow": Product(einsum("ki,kj->ij", (K, M), (K, N)), EIGHTHS, (64, 256, 16)),
}

TF32_PRODUCTS: dict[str, Product] = {
    "right_transposed": Product(tf32("ik,jk->ij", (M, K), (N, K)), PRODUCT, (64, 64, 32)),
    "result_transposed": Product(tf32("ik,jk->ji", (M, K), (N, K)), EIGHTHS, (64, 64, 32)),
    "batched": Product(tf32("bik,bjk->bij", (B, M, K), (B, N, K)), BATCH, (1, 64, 64, 32)),
    "batch_inside": Product(tf32("ibk,jbk->ibj", (M, B, K), (N, B, K)), BATCH, (64, 1, 64, 32)),
    "bias_gelu": Product(tf32_bias_gelu, PRODUCT, (128, 128, 32)),
    "deep": Product(tf32("ik,jk->ij", (M, K), (N, K)), PRODUCT, (64, 64, 64)),
    "right_across": Product(tf32("ik,kj->ij", (M, K), (K, N)), PRODUCT, (64, 64, 32)),
    "right_across_two_groups": Product(tf32_across_bias, PRODUCT, (64, 128, 32)),
    "right_across_two_blocks": Product(tf32("ik,kj->ij", (M, K), (K, N)), PRODUCT, (64, 256, 64)),
    "left_across": Product(tf32("ki,jk->ij", (K, M), (N, K)), EIGHTHS, (128, 64, 32)),
    "batched_across": Product(tf32("bik,bkj->bij", (B, M, K), (B, K, N)), BATCH, (1, 64, 64, 32)),
}
"""Products of f32 in tf32 that warpgroups can take as they lie: one operand or both are contiguous along the sum."""

TF32_ACROSS: dict[str, Product] = {
    "left_transposed": Product(tf32("ki,kj->ij", (K, M), (K, N)), EIGHTHS, (64, 64, 32)),
    "both_transposed": Product(tf32("ki,jk->ij", (K, M), (N, K)), EIGHTHS, (128, 64, 16)),
}
"""Others, which warps can take."""
