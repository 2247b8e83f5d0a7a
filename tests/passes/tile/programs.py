"""The programs that the tile passes are tested on, by name: what to build, and the sizes to run it at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from tilewright.api import frontend as tw
from tilewright.api.sizes import Size
from tilewright.api.tensor import Tensor

B, M, N, K = tw.symbols("B M N K")


@dataclass(frozen=True)
class Case:
    """A program, and the values that its symbols take: none, one, a tile less one, a tile, a tile and one, primes."""

    build: Callable[[], Tensor | Sequence[Tensor]]
    sizes: tuple[dict[str, int], ...]


def take(*sizes: Size | int, dtype: str = "float32") -> Tensor:
    """An argument."""
    return tw.placeholder(sizes, dtype)


def at(names: str, *values: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    """`at("M N", (1, 2), (3, 4))`: sizes by name."""
    return tuple(dict(zip(names.split(), each, strict=True)) for each in values)


def matmul_bias_relu() -> Tensor:
    return tw.relu(tw.matmul(take(M, K), take(K, N)) + take(N))


def batched_bias_relu() -> Tensor:
    return tw.relu(tw.matmul(take(B, M, K), take(K, N)) + take(N))


def matmul_row_sums() -> Tensor:
    return tw.sum(tw.relu(tw.matmul(take(M, K), take(K, N)) + take(N)), 1) * 0.5


def matmul_reductions() -> Sequence[Tensor]:
    """Over rows, over columns, and over all: the result of the product itself is none."""
    product = tw.matmul(take(M, K), take(K, N))
    return [tw.max(product, 1), tw.sum(tw.exp(product), 0), tw.min(product)]


def layer_norm() -> Tensor:
    x = take(M, N)
    centred = x - tw.sum(x, 1, keepdims=True) / 32.0
    return centred * tw.rsqrt(tw.sum(centred * centred, 1, keepdims=True) / 32.0 + 1e-3)


def plus_transpose() -> Tensor:
    x = take(M, M)
    return x + tw.transpose(x)


def broadcasting_chain() -> Tensor:
    return tw.exp(take(M, 1) * take(N) + take(M, N)) - tw.tanh(take(1, N))


def mixed_dtypes() -> Tensor:
    half = tw.cast(take(M, N, dtype="bfloat16"), "float32") * 2.0
    other = tw.cast(take(M, N, dtype="float16"), "float32") + tw.cast(take(N, dtype="int32"), "float32")
    return tw.where(take(M, N, dtype="bool"), half, other)


def counted() -> Tensor:
    return tw.sum(tw.cast(tw.greater(take(M, N), 0.0), "int32"), 1)


def scaled_by_value() -> Tensor:
    return take(M, N) * take() + tw.cast(take(dtype="int32"), "float32")


def three_results() -> Sequence[Tensor]:
    x = take(M, N)
    return [x, tw.exp(x), x]


def embedding() -> Tensor:
    ids = tw.cast(tw.greater(take(M, N), 0.0), "int32")
    return tw.gather(take(B + 2, K), ids) * 2.0


def masked_concat() -> Tensor:
    return tw.relu(tw.concat([take(M, N), take(3, N), take(B, N)]) + take(N))


def convolution(dtype: str = "float32", groups: int = 1, **options: Any) -> Callable[[], Tensor]:
    def build() -> Tensor:
        x, w = take(B, groups * N, M + 4, M + 3, dtype=dtype), take(groups * K, N, 3, 2, dtype=dtype)
        return tw.relu(tw.conv2d(x, w, groups=groups, **options))

    return build


PLANE = at("M N", (0, 5), (5, 0), (1, 1), (31, 33), (32, 32), (37, 130))
PRODUCT = at("M N K", (0, 3, 2), (3, 2, 0), (1, 1, 1), (31, 33, 15), (32, 64, 16), (37, 5, 17))
MOVED = at("M N", (0, 5), (5, 0), (1, 1), (31, 33), (33, 32), (37, 130))
CUBE = at("B M N", (1, 1, 1), (0, 3, 2), (3, 31, 33), (2, 32, 64), (5, 7, 3))
BATCH = at("B M N K", (2, 0, 3, 1), (1, 1, 1, 1), (2, 31, 33, 15), (2, 32, 32, 16), (3, 5, 37, 17))

CASES: dict[str, Case] = {
    "matmul_bias_relu": Case(matmul_bias_relu, PRODUCT),
    "matmul_ijk_kl": Case(batched_bias_relu, BATCH),
    "matmul_bf16": Case(lambda: tw.matmul(take(M, K, dtype="bfloat16"), take(K, N, dtype="bfloat16")), PRODUCT),
    "matmul_i32": Case(lambda: tw.matmul(take(M, K, dtype="int32"), take(K, N, dtype="int32")), PRODUCT),
    "matmul_row_sums": Case(matmul_row_sums, PRODUCT),
    "matmul_reductions": Case(matmul_reductions, PRODUCT),
    "matmul_known_columns": Case(
        lambda: tw.sum(tw.matmul(take(M, K), take(K, 7)), 1), at("M K", (0, 1), (1, 0), (37, 5))
    ),
    "matmul_of_computed": Case(lambda: tw.matmul(tw.exp(take(M, K)), take(K, N) * take(N)), PRODUCT),
    "batch_matmul": Case(lambda: tw.batch_matmul(take(B, M, K), take(B, K, N)), BATCH),
    "einsum_ki_kj": Case(lambda: tw.einsum("ki,kj->ij", take(K, M), take(K, N)), PRODUCT),
    "einsum_ij_kj": Case(lambda: tw.einsum("ij,kj->ik", take(M, K), take(N, K)), PRODUCT),
    "einsum_ki_jk_ji": Case(lambda: tw.einsum("ki,jk->ji", take(K, M), take(N, K)), PRODUCT),
    "einsum_two_summed": Case(lambda: tw.einsum("ijk,ljk->il", take(M, B, K), take(N, B, K)), BATCH),
    "dot": Case(lambda: tw.einsum("i,i->", take(M), take(M)), at("M", (0,), (1,), (37,), (64,))),
    "softmax": Case(lambda: tw.softmax(take(M, N)), (*PLANE, *at("M N", (2, 1025)))),
    "softmax_columns": Case(lambda: tw.softmax(take(M, N), axis=0), PLANE),
    "softmax_short_rows": Case(lambda: tw.softmax(take(M, 7)), at("M", (0,), (1,), (37,))),
    "layer_norm": Case(layer_norm, PLANE),
    "transpose": Case(lambda: tw.transpose(take(M, N)), PLANE),
    "plus_transpose": Case(plus_transpose, at("M", (0,), (1,), (31,), (32,), (33,), (67,))),
    "broadcasting_chain": Case(broadcasting_chain, PLANE),
    "clamp_bf16": Case(lambda: tw.clamp(take(M, N, dtype="bfloat16"), -0.1, 0.3), PLANE),
    "mixed_dtypes": Case(mixed_dtypes, PLANE),
    "counted": Case(counted, PLANE),
    "scaled_by_value": Case(scaled_by_value, PLANE),
    "three_results": Case(three_results, PLANE),
    "rank_0": Case(lambda: take() * take() + 1.0, ({},)),
}
CASES |= {
    "slice": Case(lambda: take(M + 3, N + 2)[1:-2, 1:] * 2.0, MOVED),
    "slice_strided": Case(lambda: tw.slice(take(2 * M, N + 4), (0, 1), (M, N), (2, 1)), MOVED),
    "pad": Case(lambda: tw.exp(tw.pad(take(M, N), (1, N), (0, 2), -1.5)), MOVED),
    "pad_of_integers": Case(lambda: tw.pad(take(M, dtype="int32"), (M,), (1,), 7), at("M", (0,), (1,), (37,))),
    "concat": Case(masked_concat, at("M N B", (0, 3, 0), (1, 1, 1), (31, 33, 2), (0, 5, 9), (5, 130, 0))),
    "concat_columns": Case(lambda: tw.concat([take(M, N), take(M, 1), take(M, N)], 1), MOVED),
    "reshape_joined": Case(lambda: tw.reshape(take(B, M, N), (B * M, N)) * 2.0, CUBE),
    "reshape_split": Case(lambda: tw.reshape(take(M * 6, N), (M, 2, 3, N)) + take(N), MOVED),
    "reshape_crossed": Case(lambda: tw.reshape(take(M, N), (N, M)), MOVED),
    "sum_of_slice": Case(lambda: tw.sum(take(M + 1, N + 2)[1:, 1:-1], 1), MOVED),
    "product_of_slice": Case(lambda: tw.matmul(take(M + 2, K)[:-2], take(K, N + 1)[:, 1:]), PRODUCT),
    "sum_of_concat": Case(lambda: tw.sum(tw.concat([take(M, N), take(M, 3)], 1), 1), PLANE),
    "softmax_of_concat": Case(lambda: tw.softmax(tw.concat([take(M + 1, N), take(2, N)]), axis=0), PLANE),
    "sum_of_reshape": Case(lambda: tw.sum(tw.reshape(take(B, M, N), (B, M * N)), 1), CUBE),
    "max_of_gather": Case(lambda: tw.max(embedding(), 1), at("M N B K", (0, 2, 0, 3), (1, 1, 0, 1), (3, 5, 4, 33))),
    "embedding": Case(embedding, at("M N B K", (0, 2, 0, 3), (1, 1, 0, 1), (3, 5, 4, 33), (2, 4, 1, 0))),
    "conv2d": Case(convolution(padding=1), at("B N M K", (1, 1, 0, 1), (0, 1, 1, 1), (2, 3, 2, 4), (1, 17, 3, 33))),
    "conv2d_all": Case(
        convolution(stride=(2, 1), padding=(0, 2, 1, B), dilation=(1, 2), groups=2),
        at("B N M K", (1, 1, 1, 1), (2, 2, 3, 3), (1, 3, 0, 2)),
    ),
    "conv2d_bf16": Case(convolution("bfloat16"), at("B N M K", (1, 3, 2, 2), (1, 1, 0, 1), (2, 2, 1, 3))),
}
for _order in permutations(range(3)):
    CASES[f"transpose_{''.join(map(str, _order))}"] = Case(
        lambda order=_order: tw.transpose(take(B, M, N), order), CUBE
    )
for _name, _fold in {"sum": tw.sum, "prod": tw.prod, "max": tw.max, "min": tw.min}.items():
    for _axes in ((0,), (1,), (0, 1)):
        CASES[f"{_name}_{''.join(map(str, _axes))}"] = Case(
            lambda fold=_fold, axes=_axes: fold(take(M, N), axes), PLANE
        )
for _axes in ((1,), (0, 2), (1, 2), (0, 1, 2)):
    CASES[f"sum_3d_{''.join(map(str, _axes))}"] = Case(lambda axes=_axes: tw.sum(take(B, M, N), axes), CUBE)
