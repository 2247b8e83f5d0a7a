"""The front end: shapes and dtypes are checked at the call; what is built means what NumPy says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f32

from tilewright.api import frontend as tw
from tilewright.api.tensor import Tensor
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import SymbolOp
from tilewright.lowering.pipelines import make_passes
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.reference import ReferenceValue, run_reference

B, M, N, K = tw.symbols("B M N K")
ANY: Any = object()
"""What no function takes."""


def run(outputs: Tensor | list[Tensor], *inputs: Any) -> list[ReferenceValue]:
    return run_reference(tw.build_module(outputs), "main", [np.asarray(x) for x in inputs], {})


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def entry(module: ModuleOp) -> func.FuncOp:
    return next(op for op in module.ops if isinstance(op, func.FuncOp))


def vector(dtype: str = "float32") -> Tensor:
    return tw.placeholder((M,), dtype)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


FUNCTIONS: list[tuple[Callable[[Tensor], Tensor], Callable[[float], float]]] = [
    (tw.exp, math.exp),
    (tw.tanh, math.tanh),
    (tw.erf, math.erf),
    (tw.abs, abs),
    (tw.neg, lambda x: -x),
    (tw.relu, lambda x: max(x, 0.0)),
    (tw.sigmoid, sigmoid),
    (tw.silu, lambda x: x * sigmoid(x)),
    (tw.gelu, lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2)))),
    (lambda x: tw.log(x * x + 1.0), lambda x: math.log(x * x + 1)),
    (lambda x: tw.sqrt(tw.abs(x)), lambda x: math.sqrt(abs(x))),
    (lambda x: tw.rsqrt(x * x + 2.0), lambda x: 1 / math.sqrt(x * x + 2)),
    (lambda x: 2.0 - x, lambda x: 2 - x),
    (lambda x: x - 2, lambda x: x - 2),
    (lambda x: 1 / (3.0 + tw.abs(x)), lambda x: 1 / (3 + abs(x))),
    (lambda x: -x * np.float32(4), lambda x: -4 * x),
    (lambda x: np.float64(4) * x, lambda x: 4 * x),
    (lambda x: tw.maximum(x, 0.25), lambda x: max(x, 0.25)),
    (lambda x: tw.minimum(0.25, x), lambda x: min(x, 0.25)),
    (lambda x: tw.clamp(x, -0.5, 2), lambda x: min(max(x, -0.5), 2.0)),
    (lambda x: tw.where(x > 0.0, x, -1.0), lambda x: x if x > 0 else -1.0),
    (lambda x: tw.where((x >= -0.5) & ~(x > 0.5), 1.0, 0.0 * x), lambda x: float(-0.5 <= x <= 0.5)),
]


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_elementwise_functions(case: int) -> None:
    build, fn = FUNCTIONS[case]
    x = np.linspace(-3, 3, 31, dtype=np.float32)
    (got,) = run(build(vector()), x)
    np.testing.assert_allclose(got.rounded, [fn(float(v)) for v in x], rtol=1e-6, atol=1e-6)


def test_narrow_floats_round_once_for_each_function() -> None:
    x = np.linspace(-3, 3, 64).astype(ml_dtypes.bfloat16)
    (got,) = run(tw.silu(vector("bfloat16")), x)
    exact = np.asarray([float(v) * sigmoid(float(v)) for v in x])
    np.testing.assert_array_equal(got.rounded, exact.astype(np.float32).astype(ml_dtypes.bfloat16))


def test_integers() -> None:
    x = np.asarray([-3, 0, 2**31 - 1], np.int32)
    v = vector("int32")
    a, c, d, e = run([v + 1, tw.relu(v), -v, tw.cast(v, "bool")], x)
    assert a.rounded.tolist() == [-2, 1, -(2**31)]
    assert c.rounded.tolist() == [0, 0, 2**31 - 1]
    assert d.rounded.tolist() == [3, 0, -(2**31) + 1]
    assert e.rounded.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("shape", "other", "expected"),
    [((M, N), (N,), "(M, N)"), ((M, 1), (1, N), "(M, N)"), ((B, 1, 4), (M, 1), "(B, M, 4)"), ((), (M, N), "(M, N)")],
)
def test_broadcasting(shape: tuple[Any, ...], other: tuple[Any, ...], expected: str) -> None:
    result = tw.placeholder(shape) + tw.placeholder(other)
    assert str(result).startswith(f"Tensor(add: {expected}")
    values: dict[tw.Size, int] = {B: 2, M: 3, N: 5}
    x, y = (random(*(values[d] if isinstance(d, tw.Size) else d for d in dims)) for dims in (shape, other))
    (got,) = run(result, x, y)
    np.testing.assert_array_equal(got.rounded, x + y)


@pytest.mark.parametrize(("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))])
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = random(*left), random(*right)
    (got,) = run(tw.placeholder(left) @ tw.placeholder(right), x, y)
    np.testing.assert_allclose(got.rounded, x @ y, rtol=1e-5, atol=1e-5)


def square(dtype: str = "float32") -> Tensor:
    return tw.placeholder((M, M), dtype)


PRECISE: dict[str, tuple[Callable[..., Tensor], int]] = {
    # name: (program of a [3, 4] and b [4, 5], with or without batch dims; contractions that say so)
    "matmul": (lambda a, b, p: tw.matmul(a, b, precision=p), 1),
    "rank 3 by 2": (lambda a, b, p: tw.matmul(tw.reshape(a, (1, 3, 4)), b, precision=p), 1),
    "batches": (lambda a, b, p: tw.matmul(tw.reshape(a, (1, 3, 4)), tw.reshape(b, (1, 4, 5)), precision=p), 1),
    "einsum": (lambda a, b, p: tw.einsum("ij,jk->ki", a, b, precision=p), 1),
    "a sum of one": (lambda a, b, p: tw.einsum("ij->j", a, precision=p), 0),
    "no sum": (lambda a, b, p: tw.einsum("ij,jk->ijk", a, b, precision=p), 0),
}


@pytest.mark.parametrize("name", PRECISE)
def test_precision_is_written_on_contractions_alone(name: str) -> None:
    build, count = PRECISE[name]
    a, b = tw.placeholder((3, 4)), tw.placeholder((4, 5))
    for precision in (None, "tf32"):
        module = tw.build_module(build(a, b, precision))
        run_pipeline(module, make_context(), make_passes(["infer-shapes", "decompose"]))
        found = [op for op in module.walk() if isinstance(op, GenericOp) and op.precision is not None]
        assert len(found) == (count if precision else 0)


def test_matmul_of_rank_three_by_two_is_one_contraction() -> None:
    module = tw.build_module(tw.matmul(tw.placeholder((B, M, K)), tw.placeholder((K, N))))
    (generic,) = (op for op in module.walk() if isinstance(op, GenericOp))
    assert generic.is_contraction
    assert generic.operand_maps == ((0, 1, 3), (3, 2))
    assert generic.out_map == (0, 1, 2)


@pytest.mark.parametrize("spec", ["bik,bjk->bij", "bik,bjk->jbi", "bik,bjk->b", "bik,bjk->bijk", "bik->ki", "bik->"])
def test_einsum(spec: str) -> None:
    shapes = {"b": 2, "i": 3, "j": 4, "k": 5}
    words = spec.split("->")[0].split(",")
    arrays = [random(*(shapes[x] for x in word)) for word in words]
    (got,) = run(tw.einsum(spec, *(tw.placeholder(a.shape) for a in arrays)), *arrays)
    np.testing.assert_allclose(got.rounded, np.einsum(spec, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis: Any, keepdims: bool) -> None:
    x = random(3, 4, 5)
    t = tw.placeholder((M, N, K))
    outputs = [f(t, axis, keepdims=keepdims) for f in (tw.sum, tw.prod, tw.max, tw.min)]
    for got, fn in zip(run(outputs, x), (np.sum, np.prod, np.max, np.min), strict=True):
        np.testing.assert_allclose(got.rounded, fn(x, axis=axis, keepdims=keepdims), rtol=1e-5, atol=1e-5)


def test_softmax_and_transpose() -> None:
    x = random(3, 4)
    t = tw.placeholder((M, N))
    rows, columns, flipped = run([tw.softmax(t), tw.softmax(t, axis=0), tw.transpose(t)], x)
    powers = np.exp(x)
    np.testing.assert_allclose(rows.rounded, powers / powers.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(columns.rounded, powers / powers.sum(axis=0, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(flipped.rounded, x.T)
    assert tw.transpose(tw.placeholder((B, M, N)), [2, 0, 1]).shape == (N, B, M)


def test_sizes_are_canonical_and_integers_where_static() -> None:
    t = tw.placeholder((2 * M + M, (M + 1) * 2, M // 1, 7, M - M))
    assert t.shape == (3 * M, 2 * M + 2, M, 7, 0)
    assert isinstance(t.shape[3], int)
    assert (M + 3).ceildiv(4) == (M + 6) // 4
    assert 8 - 8 // N * N == 8 % N != N


def test_arguments_stand_in_the_order_they_were_made() -> None:
    first, second, unused = (tw.placeholder((n,), name=name) for n, name in ((2, "p"), (2, "q"), (3, "r")))
    total = second - first
    assert [a.name_hint for a in entry(tw.build_module(total)).body.block.args] == ["p", "q"]
    module = tw.build_module(total, inputs=[second, unused, first], name="go")
    assert entry(module).sym_name.data == "go"
    assert [a.name_hint for a in entry(module).body.block.args] == ["q", "r", "p"]


def test_symbols_are_declared_once_with_what_was_stated() -> None:
    (s,) = tw.symbols("S", min=8, max=4096, multiple_of=8, likely=[128, 256])
    module = tw.build_module(tw.placeholder((2 * s, N)) + tw.placeholder((1, N)))
    declared = [op for op in module.ops if isinstance(op, SymbolOp)]
    assert [op.symbol for op in declared] == ["S", "N"]
    assert (declared[0].lower_bound, declared[0].upper_bound, declared[0].divisor) == (8, 4096, 8)
    assert declared[0].likely_values == (128, 256)
    (other,) = tw.symbols("S", min=1)
    with pytest.raises(TilewrightError, match="symbol S: expected one declaration"):
        tw.build_module([tw.placeholder((s,)), tw.placeholder((other,))])


def test_numbers_of_rank_zero_are_passed_by_value() -> None:
    scale = tw.placeholder((), name="scale")
    module = tw.build_module([tw.placeholder((M,)) * scale, scale, tw.softmax(tw.placeholder((1,)) * scale)])
    assert entry(module).body.block.args[0].type == f32
    x = random(4)
    product, alone, one = run_reference(module, "main", [np.asarray(3, np.float32), x, np.ones(1, np.float32)], {})
    np.testing.assert_array_equal(product.rounded, x * np.float32(3))
    assert alone.rounded == np.float32(3)
    assert one.rounded.tolist() == [1.0]


def test_a_shared_value_is_computed_once_and_deep_graphs_build() -> None:
    x = vector()
    y = tw.exp(x)
    assert sum(op.name == "lin.map" for op in tw.build_module([y + y, y]).walk()) == 2
    deep = x
    for _ in range(1500):
        deep = deep + 1.0
    assert sum(op.name == "lin.map" for op in tw.build_module(deep).walk()) == 1500


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Arguments of wrong types on purpose: what a checker would refuse must end in one line all the same.
        (lambda: vector() + vector("float16"), "add: expected tensors of one dtype, got float32 and float16"),
        (lambda: tw.placeholder((M, N)) + tw.placeholder((M,)), r"equal sizes at dim -1 or 1, got N and M"),
        (lambda: tw.placeholder((M, 3)) * tw.placeholder((M, 4)), r"got 3 and 4 in shapes \(M, 3\) and \(M, 4\)"),
        (lambda: tw.matmul(tw.placeholder((M, K)), tw.placeholder((N, K))), "equal inner dims, got K and N"),
        (lambda: tw.matmul(vector(), tw.placeholder((M, K))), r"matmul: expected shapes .* got \(M,\) and \(M, K\)"),
        (lambda: tw.batch_matmul(tw.placeholder((2, M, K)), tw.placeholder((3, K, N))), "batch dims 0, got 2 and 3"),
        (lambda: tw.einsum("ij,jk->ik", tw.placeholder((M, K)), tw.placeholder((N, K))), "one size of j, got K and N"),
        (lambda: tw.einsum("ii->i", tw.placeholder((M, M))), "distinct letters, got 'ii'"),
        (lambda: tw.einsum("ij->ik", tw.placeholder((M, M))), "in an operand, got k"),
        (lambda: tw.einsum("ij", tw.placeholder((M, M))), "a spec such as"),
        (lambda: tw.softmax(vector(), axis=1), r"softmax: expected an axis in -1\.\.0, got 1"),
        (lambda: tw.softmax(vector("int32")), "softmax: expected a dtype of float32, float16, bfloat16, got int32"),
        (lambda: tw.sum(tw.placeholder((M, N)), axis=(0, -2)), "sum: expected distinct axes"),
        (lambda: tw.transpose(tw.placeholder((M, N)), [0, 0]), "expected a permutation"),
        (lambda: tw.exp(vector("int32")), "exp: expected a dtype of float32, float16, bfloat16, got int32"),
        (lambda: tw.clamp(vector("int32"), 0, 1), "clamp: expected a dtype of float32, float16, bfloat16, got int32"),
        (lambda: tw.clamp(vector(), 2.0, 1), "clamp: expected low <= high, got 2.0 and 1"),
        (lambda: tw.clamp(vector(), math.nan, 1.0), "clamp: expected a finite number that float32 holds, got nan"),
        (lambda: tw.clamp(vector(), 0.0, 10**400), "clamp: expected a finite number that float32 holds, got 1000"),
        (lambda: tw.clamp(vector(), 0.0, True), "clamp: expected a finite number that float32 holds, got True"),
        (lambda: vector("int32") + 1.5, "number that int32 holds, got 1.5"),
        (lambda: vector("int32") + 2**31, "number that int32 holds"),
        (lambda: vector() * True, "number that float32 holds, got True"),
        (lambda: tw.where(vector(), 1.0, vector()), "where: expected a bool condition, got float32"),
        (lambda: bool(vector() < 1), "no truth value"),
        (lambda: tw.placeholder((M,), "float64"), "expected a dtype of float32, .* got 'float64'"),
        (lambda: tw.placeholder((2.5,)), "expected a size: an integer or an expression over symbols, got 2.5"),
        (lambda: tw.placeholder((-1,)), "expected a size of at least 0 at dim 0, got -1"),
        (lambda: tw.symbols("M", min=3, max=2), "symbol M: expected max of at least min = 3, got 2"),
        (lambda: tw.symbols(""), "symbols: expected names"),
        (lambda: tw.build_module(vector() + vector(), inputs=[]), "expected every placeholder in inputs"),
        (lambda: tw.build_module([]), "at least one output"),
        (lambda: tw.build_module(ANY), "build_module: expected a tensor or several, got object"),
        (lambda: tw.build_module([vector(), None]), "build_module: expected a tensor at 1, got NoneType"),  # pyright: ignore[reportArgumentType]
        (lambda: tw.matmul(vector(), ANY), "matmul: expected a tensor at 1, got object"),
        (lambda: tw.batch_matmul(ANY, vector()), "batch_matmul: expected a tensor at 0, got object"),
        (lambda: tw.einsum("i,i->", vector(), ANY), "einsum: expected a tensor at 1, got object"),
        (lambda: tw.einsum(ANY, vector()), "einsum: expected a spec such as"),
        (lambda: tw.matmul(square(), square(), precision="tf16"), "precision to be None or one of 'tf32', got 'tf16'"),
        (
            lambda: tw.matmul(square(), square(), precision=ANY),
            "matmul: expected precision to be None or one of 'tf32'",
        ),
        (lambda: tw.matmul(square("float16"), square("float16"), precision="tf32"), "operands of float32, got float16"),
        (lambda: tw.batch_matmul(*[tw.placeholder((2, 3, 3), "int32")] * 2, precision="tf32"), "float32, got int32"),
        (lambda: tw.einsum("ij,jk->ik", square("bfloat16"), square("bfloat16"), precision="tf32"), "got bfloat16"),
        (lambda: tw.softmax(vector(), ANY), r"softmax: expected an axis in -1\.\.0, got <object"),
        (lambda: tw.softmax(ANY), "softmax: expected a tensor at 0, got object"),
        (lambda: tw.sum(vector(), axis=ANY), r"sum: expected an axis in -1\.\.0, got <object"),
        (lambda: tw.sum(ANY), "sum: expected a tensor at 0, got object"),
        (lambda: tw.transpose(vector(), "a"), "transpose: expected an axis in"),  # pyright: ignore[reportArgumentType]
        (lambda: vector() + np.ones((2, 2)), r"number that float32 holds, got array\(\[\[1., 1.\], \["),  # pyright: ignore[reportOperatorIssue]
        (lambda: tw.placeholder((2**63,)), r"expected a size below 2\^63, got 9223372036854775808"),
        (lambda: tw.placeholder((M,), name="a b"), "placeholder: expected a name of letters.* got 'a b'"),
        (lambda: tw.placeholder((M,), name=ANY), "placeholder: expected a name of letters.* got <object"),
        (lambda: tw.symbols(ANY), "symbols: expected names such as 'B M', got <object"),
        (lambda: tw.symbols("Q", min=ANY), "symbol Q: expected min to be a 64-bit integer, got <object"),
        (lambda: tw.symbols("Q", max=2**70), "symbol Q: expected max to be a 64-bit integer, got 11805916207"),
        (lambda: tw.symbols("Q", multiple_of=1.5), "symbol Q: expected multiple_of to be a 64-bit integer, got 1.5"),  # pyright: ignore[reportArgumentType]
        (lambda: tw.symbols("Q", likely=[-1]), r"symbol Q: expected likely sizes of at least 0, got \[-1\]"),
    ],
)
def test_errors_at_the_call(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        call()
