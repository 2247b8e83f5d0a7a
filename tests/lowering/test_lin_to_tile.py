"""lin-to-tile: which kernels a group gets, in which tiles, and what it says of what it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import CONTEXT, parse
from tests.passes.tile.support import Lowering
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import AllocOp, DispatchOp, LaunchOp
from tilewright.dialects.tile.compute import MmaOp, ReduceOp
from tilewright.dialects.tile.structure import AllocOp as TileAllocOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.lowering import pipelines
from tilewright.lowering.lin_to_tile import LinToTilePass
from tilewright.lowering.lin_to_tile import tile_sizes as tiles
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.tile_interpreter.host import interpret_host

B, M, N, K = tw.symbols("B M N K")
UNKNOWN = None


def take(*sizes: object, dtype: str = "float32") -> Tensor:
    return tw.placeholder(sizes, dtype)  # pyright: ignore[reportArgumentType]


def tiled(program: Tensor | Sequence[Tensor] | ModuleOp | str, given: tuple[int, ...] = (), *left_out: str) -> ModuleOp:
    """The module after lin-to-tile, verified."""
    if isinstance(program, str):
        module = parse(program)
    else:
        module = program if isinstance(program, ModuleOp) else build_module(program)
    names = [n for n in pipelines.TENSOR[: pipelines.TENSOR.index("lin-to-tile")] if n not in left_out]
    run_pipeline(module, CONTEXT, [*pipelines.make_passes(names), LinToTilePass(given)], verify_each=True)
    return module


def kernels(module: ModuleOp) -> dict[str, KernelOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


def count(module: ModuleOp | KernelOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def grid(kernel: KernelOp) -> list[str]:
    return [str(e) for e in kernel.grid.data]


def test_tiles_follow_the_bounds_of_symbols() -> None:
    small, _ = tw.symbols("S T", max=5)
    (kernel,) = kernels(tiled(tw.exp(take(small, 24)))).values()
    # Covering powers of two: 8 for 5, 32 for 24.
    assert grid(kernel) == ["S ceildiv 8", "1"]


def test_a_contraction_whose_size_is_known_has_one_schedule() -> None:
    assert list(kernels(tiled(tw.matmul(take(1024, K), take(K, 512))))) == ["main_0_large"]
    assert list(kernels(tiled(tw.matmul(take(512, K), take(K, 512))))) == ["main_0_small"]
    both = list(kernels(tiled(tw.matmul(take(M, K), take(K, 512)))))
    assert both == ["main_0_large", "main_0_small", "main_0_split32x32_parts", "main_0_split32x32_sum"]


def test_batch_dims_are_walked_by_the_grid() -> None:
    module = tiled(tw.batch_matmul(take(B, M, K), take(B, K, N)))
    assert grid(kernels(module)["main_0_small"]) == ["B", "M ceildiv 32", "N ceildiv 32"]


def test_a_transpose_takes_square_tiles() -> None:
    (kernel,) = kernels(tiled(tw.transpose(take(M, N)))).values()
    assert grid(kernel) == ["N ceildiv 32", "M ceildiv 32"]


def test_rows_that_are_known_to_be_short_stay_on_chip() -> None:
    assert list(kernels(tiled(tw.softmax(take(M, 100))))) == ["main_0_on_chip"]
    module = tiled(tw.softmax(take(M, N)))
    assert list(kernels(module)) == ["main_0_on_chip", "main_0_looping"]
    assert count(kernels(module)["main_0_on_chip"], ForOp) == 0
    # One walk for the maximum, one for the sum, one for the quotients.
    assert count(kernels(module)["main_0_looping"], ForOp) == 3
    assert count(module, DispatchOp) == 1


def test_rows_that_are_known_to_be_long_are_walked() -> None:
    (long,) = tw.symbols("L", min=tiles.ON_CHIP_CAPACITY + 1)
    assert list(kernels(tiled(tw.softmax(take(M, long))))) == ["main_0_looping"]


def test_a_walk_computes_a_result_once_that_a_result_before_it_reads() -> None:
    x, y = "tensor<?x?xf32, #sym.dims<M, N>>", "tensor<?xf32, #sym.dims<M>>"
    text = f"""
    sym.symbol @M
    sym.symbol @N {{min = {tiles.ON_CHIP_CAPACITY + 1}}}
    func.func @main(%x: {x}) -> ({x}, {x}) {{
      %p, %q = lin.group ins(%x : {x}) -> {x}, {x} {{
      ^bb0(%v: {x}):
        %sum = lin.generic (i, j) ins(%v[i, j] : {x}) out[i] combine sum : {y} {{
        ^bb1(%a: f32):
          lin.yield %a : f32
        }}
        %rest = lin.generic (i, j) ins(%v[i, j] : {x}, %sum[i] : {y}) out[i, j] : {x} {{
        ^bb2(%a: f32, %b: f32):
          %r = arith.subf %a, %b : f32
          lin.yield %r : f32
        }}
        %least = lin.generic (i, j) ins(%rest[i, j] : {x}) out[i, j] : {x} {{
        ^bb3(%a: f32):
          %r = arith.negf %a : f32
          lin.yield %r : f32
        }}
        lin.yield %least, %rest : {x}, {x}
      }}
      func.return %p, %q : {x}, {x}
    }}
    """
    (kernel,) = kernels(tiled(text)).values()
    assert count(kernel, arith.SubfOp) == 1
    Lowering(text).assert_right({"M": 2, "N": tiles.ON_CHIP_CAPACITY + 1})


@pytest.mark.parametrize(("reduce", "op"), [(tw.reduce_max, arith.MaxUIOp), (tw.reduce_min, arith.MinUIOp)])
def test_truth_values_that_are_walked_count_as_unsigned(reduce: Callable[..., Tensor], op: type) -> None:
    """As signed numbers of one bit, true would be the lesser."""
    program = reduce(take(M, tiles.ON_CHIP_CAPACITY + 1, dtype="bool"), 1)
    (kernel,) = kernels(tiled(program)).values()
    assert count(kernel, ForOp) == 1
    assert count(kernel, op) == 1
    Lowering(program).assert_right({"M": 3})


def test_short_rows_share_a_block_as_far_as_there_are_rows() -> None:
    """64 rows of 16 make a tile of 1024 elements; of the 3 along the last other dim it takes what covers them."""
    (kernel,) = kernels(tiled(tw.softmax(take(64, 3, 16)))).values()
    assert {op.res.type.sizes for op in kernel.walk() if isinstance(op, TileAllocOp) and op.res.type.rank == 3} == {
        (1, 4, 16)
    }


def test_several_reduced_dims_are_a_nest() -> None:
    (kernel,) = kernels(tiled(tw.sum(take(B, M, N), (0, 2)))).values()
    assert grid(kernel) == ["M"]
    assert (count(kernel, ForOp), count(kernel, ReduceOp)) == (2, 1)


def test_what_one_group_hands_to_the_next_is_scratch() -> None:
    x = take(M, M)
    module = tiled(tw.matmul(tw.matmul(x, x), x))
    handed = [op for op in module.walk() if isinstance(op, AllocOp) and op.res.name_hint != "partial"]
    assert len(handed) == 1
    launched = [op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp)]
    assert [name for name in launched if "split" not in name] == [
        f"main_{n}_{size}" for n in (0, 1) for size in ("large", "small")
    ]


def test_generics_without_groups_are_kernels_of_their_own() -> None:
    module = tiled(tw.softmax(take(M, N)), (), "fuse-groups", "fuse-elementwise")
    assert count(module, LaunchOp) >= 4
    assert count(module, AllocOp) >= 3


def test_a_group_that_reads_its_own_value_at_computed_positions_is_no_one_kernel() -> None:
    """What is read backwards, another block has made; that both also walk one input does not bring them together."""
    import numpy as np

    vector = "tensor<?xf32, #sym.dims<M>>"
    text = f"""
    sym.symbol @M
    func.func @main(%x: {vector}) -> {vector} {{
      %y = lin.group ins(%x : {vector}) -> {vector} {{
      ^bb0(%v: {vector}):
        %a = lin.generic (i) ins(%v[i] : {vector}) out[i] : {vector} {{
        ^bb0(%p: f32):
          %r = arith.addf %p, %p : f32
          lin.yield %r : f32
        }}
        %b = lin.generic (i) ins(%a at [M - 1 - i] : {vector}, %v[i] : {vector}) out[i] : {vector} {{
        ^bb0(%p: f32, %q: f32):
          %r = arith.subf %p, %q : f32
          lin.yield %r : f32
        }}
        lin.yield %b : {vector}
      }}
      func.return %y : {vector}
    }}
    """
    module = tiled(text, (), "fuse-elementwise", "fuse-groups")
    assert count(module, LaunchOp) == 2
    assert count(module, AllocOp) == 1
    x = np.arange(7, dtype=np.float32)
    (got,) = interpret_host(module, None, [x])
    np.testing.assert_array_equal(got, 2 * x[::-1] - x)


def test_sums_in_less_than_f32_are_no_products() -> None:
    # A multiply-accumulate adds in f32 or i32; this sum is kept in bf16.
    text = """
    sym.symbol @M
    sym.symbol @K
    func.func @main(%a: tensor<?x?xbf16, #sym.dims<M, K>>, %b: tensor<?xbf16, #sym.dims<K>>) -> tensor<?xbf16, #sym.dims<M>> {
      %c = lin.generic (i, k) ins(%a[i, k] : tensor<?x?xbf16, #sym.dims<M, K>>, %b[k] : tensor<?xbf16, #sym.dims<K>>) out[i] combine sum : tensor<?xbf16, #sym.dims<M>> {
      ^bb0(%x: bf16, %y: bf16):
        %p = arith.mulf %x, %y : bf16
        lin.yield %p : bf16
      }
      func.return %c : tensor<?xbf16, #sym.dims<M>>
    }
    """  # noqa: E501
    assert count(tiled(text), MmaOp) == 0
    products = text.replace("tensor<?xbf16, #sym.dims<M>>", "tensor<?xf32, #sym.dims<M>>").replace(
        "%p = arith.mulf %x, %y : bf16\n        lin.yield %p : bf16",
        """%v = arith.extf %x : bf16 to f32
        %w = arith.extf %y : bf16 to f32
        %p = arith.mulf %v, %w : f32
        lin.yield %p : f32""",
    )
    assert count(tiled(products), MmaOp) > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((3,), "expected tile sizes that are powers of two, got 3"),
        ((0,), "expected tile sizes that are powers of two, got 0"),
        ((1, 1, 1, 1), "expected at most 3 tile sizes, got 4"),
    ],
)
def test_given_tile_sizes_that_do_not_fit(given: tuple[int, ...], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        tiled(tw.matmul(take(M, K), take(K, N)), given)


def test_given_tile_sizes_are_taken_in_order() -> None:
    (kernel,) = kernels(tiled(tw.matmul(take(M, K), take(K, N)), (64, 16, 8))).values()
    assert grid(kernel) == ["M ceildiv 64", "N ceildiv 16"]
    (loop,) = (op for op in kernel.walk() if isinstance(op, ForOp))
    assert str(loop.step.data) == "8"


def failure(text: str) -> str:
    with pytest.raises(TilewrightError) as raised:
        tiled(text)
    return raised.value.message


def test_named_ops_must_have_been_decomposed() -> None:
    module = build_module(tw.transpose(take(M, N)))
    with pytest.raises(TilewrightError, match="run decompose first") as raised:
        LinToTilePass().apply(CONTEXT, module)
    assert "lin.transpose" in raised.value.message


def test_a_result_that_is_not_a_tensor() -> None:
    text = "func.func @main(%v: f32) -> f32 {\n  func.return %v : f32\n}"
    assert failure(text) == "result 0: expected a tensor, got f32"


def test_a_function_that_is_only_declared_stays() -> None:
    module = tiled("func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>")
    assert [op.name for op in module.ops] == ["func.func"]


def test_a_function_must_return() -> None:
    assert failure("func.func @main(%x: tensor<4xf32>) { lin.yield }") == "expected the function to end in func.return"


@pytest.mark.parametrize("seed", range(3))
def test_the_kernels_compute_the_program(seed: int) -> None:
    import numpy as np

    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((37, 19), (19, 5)))
    (got,) = interpret_host(tiled(tw.matmul(take(M, K), take(K, N))), None, [a, b])
    np.testing.assert_array_equal(got, a @ b)


class TestTileSizes:
    """The arithmetic alone: sizes are powers of two, and no larger than a known bound asks for."""

    @pytest.mark.parametrize(
        ("n", "limit", "expected"), [(0, 64, 1), (1, 64, 1), (5, 64, 8), (64, 64, 64), (99, 64, 64)]
    )
    def test_covering_power(self, n: int, limit: int, expected: int) -> None:
        assert tiles.covering_power(n, limit) == expected

    def test_elementwise(self) -> None:
        assert tiles.elementwise([], {}, None) == {}
        assert tiles.elementwise([0], {0: UNKNOWN}, None) == {0: 2048}
        assert tiles.elementwise([0, 1], {0: UNKNOWN, 1: UNKNOWN}, None) == {0: 16, 1: 128}
        assert tiles.elementwise([0, 1], {0: UNKNOWN, 1: 3}, None) == {0: 512, 1: 4}
        assert tiles.elementwise([0, 1, 2], dict.fromkeys(range(3), UNKNOWN), 0) == {0: 32, 1: 1, 2: 32}

    def test_rows(self) -> None:
        unknown = dict.fromkeys(range(2), UNKNOWN)
        assert tiles.rows([0], [1], 1, unknown, 1024) == {0: 1, 1: 1024}
        assert tiles.rows([1], [0], 1, unknown, 1024) == {0: 8, 1: 128}
        assert tiles.rows([0], [1], 1, {0: UNKNOWN, 1: 16}, 1024) == {0: 64, 1: 16}
