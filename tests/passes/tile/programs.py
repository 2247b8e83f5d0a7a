"""The programs that the tile passes are tested on, by name: what to build, and the sizes to run it at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

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


PLANE = at("M N", (0, 5), (5, 0), (1, 1), (31, 33), (32, 32), (37, 130))
PRODUCT = at("M N K", (0, 3, 2), (3, 2, 0), (1, 1, 1), (31, 33, 15), (32, 64, 16), (37, 5, 17))
CUBE = at("B M N", (1, 1, 1), (0, 3, 2), (3, 31, 33), (2, 32, 64), (5, 7, 3))
BATCH = at("B M N K", (2, 0, 3, 1), (1, 1, 1, 1), (2, 31, 33, 15), (2, 32, 32, 16), (3, 5, 37, 17))

CASES: dict[str, Case] = {
    "matmul_bias_relu": Case(matmul_bias_relu, PRODUCT),
    "matmul_ijk_kl": Case(batched_bias_relu, BATCH),
    "matmul_bf16": Case(lambda: tw.matmul(take(M, K, dtype="bfloat16"), take(K, N, dtype="bfloat16")), PRODUCT),
    "matmul_i32": Case(lambda: tw.matmul(take(M, K, dtype="int32"), take(K, N, dtype="int32")), PRODUCT),
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
