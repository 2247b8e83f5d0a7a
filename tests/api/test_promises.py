"""What users are promised of every kernel: one run of the pipeline for all sizes, few variants, and errors in one line.

Dispatch is tried with a thousand shapes and layouts through a backend that lowers what a call chooses and runs nothing;
the addresses of its arrays are never read, so they may be of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilewright as tw
from examples import batch_matmul, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from tilewright.api.opt.main import main
from tilewright.diagnostics import TilewrightWarning
from tilewright.lowering import pipelines
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.backends.base import Backend, layouts, take_arguments
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.variants import CompiledEntry

Array = np.ndarray[Any, Any]
EXAMPLES = (matmul_bias_relu, row_softmax, transpose, batch_matmul, elementwise_chain)
CALLS, SETTLED = 1000, 100
"""Calls made, and the number after which nothing may be lowered any more."""


class Dispatching(Backend):
    """Does all that a call does before a kernel runs: arguments, plan, lowering, scalars."""

    name: ClassVar[str] = "dispatching"

    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        plan = self.entry.plan
        decision = plan.decide(layouts(plan.arguments, take_arguments(plan.arguments, args, plan.entry)))
        self.launches = len(decision.launches)
        for launch in decision.launches:
            lowered = self.entry.lower(plan.sites[launch.site])
            assert len(lowered.scalars(decision.symbols)) == len(lowered.kernel.params.data)
        return [decision.results]


def unread(shape: Sequence[int], strides: Sequence[int], start: int) -> Array:
    """An f32 array of any shape and element strides whose memory must not be read."""
    memory = np.empty(64, np.float32)
    aligned = memory[(-memory.ctypes.data // 4) % 4 :]
    return as_strided(aligned[start:], shape, [4 * s for s in strides])


def drawn(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """Contiguous and aligned, contiguous at any address, or strided in any way (backwards and broadcast included)."""
    rows = row_major(shape)
    kind = rng.integers(4)
    if kind < 2:
        return unread(shape, rows, 0 if kind == 0 else int(rng.integers(4)))
    if kind == 2:
        return unread(shape, [(s + int(rng.integers(4))) * int(rng.integers(1, 3)) for s in rows], 0)
    return unread(shape, [int(rng.choice([-3, -1, 0, 1, 2, 7])) * s for s in rows], int(rng.integers(4)))


def far(shape: Sequence[int]) -> Array:
    """Aligned rows with 2^31 elements from each of the outermost to the next, which 32-bit indices do not reach."""
    return unread(shape, [1 << 31, *row_major(shape)[1:]], 0)


def row_major(shape: Sequence[int]) -> list[int]:
    """Strides without gaps."""
    return [int(np.prod(shape[d + 1 :], dtype=np.int64)) or 1 for d in range(len(shape))]


def shapes_of(sizes: dict[str, int], example: Any) -> list[tuple[int, ...]]:
    B, M, N, K = (sizes[name] for name in "BMNK")
    return {
        "matmul_bias_relu": [(B, M, 512), (512, 256), (256,)],
        "row_softmax": [(M, N)],
        "transpose": [(M, N)],
        "batch_matmul": [(B, M, K), (B, K, N)],
        "elementwise_chain": [(M, N), (N,), (N,), (M, 1)],
    }[example.EXAMPLE.name]


@pytest.fixture
def pipeline_runs(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The pass lists of every pipeline that is run during the test."""
    made: list[Sequence[str]] = []
    original: Callable[..., None] = pipelines.run

    def counted(module: Any, ctx: Any, names: Sequence[str], **options: Any) -> None:
        made.append(names)
        original(module, ctx, names, **options)

    monkeypatch.setattr(pipelines, "run", counted)
    return made


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda module: module.EXAMPLE.name)
def test_a_thousand_shapes_take_one_run_and_few_variants(example: Any, pipeline_runs: list[Sequence[str]]):
    entry = CompiledEntry(tw.build_module(example.build()), "main", "sm_80")
    kernel = Kernel(entry, Dispatching(entry), "for the test")
    rng = np.random.default_rng(7)
    special = [0, 1, 2, 16, 31, 32, 33, 128, 1024, 4096, 4097]
    seen: set[tuple[Any, ...]] = set()
    runs_when_settled = 0
    for call in range(CALLS):
        free = rng.integers(1, 1500, size=4)
        sizes = {
            n: int(rng.choice(special)) if rng.random() < 0.3 else int(f) for n, f in zip("BMNK", free, strict=True)
        }
        # Two of ten calls choose variants that chance rarely does: few results or many, with dims that vectors divide
        # or not, in aligned rows, and one of them beyond the reach of 32-bit indices.
        if call % 10 >= 8:
            odd, many = call // 10 % 2, call // 20 % 2
            first = 8192 + 4 * call if many else 64 + call // 10 * 4
            sizes = {"B": 2, "M": first + odd, "N": 1024 * many + 32 + odd, "K": 64 + odd}
        arrays = [drawn(rng, shape) for shape in shapes_of(sizes, example)]
        if call % 10 >= 8:
            arrays = [unread(a.shape, row_major(a.shape), 0) for a in arrays]
        if call % 10 == 9:
            arrays[0] = far(arrays[0].shape)
        seen.add(tuple((a.shape, a.strides) for a in arrays))
        kernel(*arrays)
        if call == SETTLED - 1:
            runs_when_settled = len(pipeline_runs)
    assert len(seen) > 0.9 * CALLS
    assert kernel.stats()["pipeline_runs"] == 1
    assert sum(1 for names in pipeline_runs if names is pipelines.TENSOR) == 1
    assert len(pipeline_runs) == runs_when_settled, "a call after the hundredth lowered something"
    variants: dict[str, set[str]] = {}
    for site in entry.sites.values():
        if entry.is_lowered(site):
            variants.setdefault(site.kernel, set()).add(emit_kernel(entry.lower(site).kernel, "sm_80"))
    assert variants
    assert all(len(sources) <= 4 for sources in variants.values()), {k: len(v) for k, v in variants.items()}
    # Two schedules; a product has two kernels more, for sums in parts.
    assert len(variants) <= 4


def test_every_batch_fits_the_grid():
    """70,000 is more than y and z of a grid hold."""
    (B,) = tw.symbols("B")
    x = np.arange(70_000 * 6, dtype=np.float32).reshape(-1, 2, 3) % 1000
    placeholder = tw.placeholder((B, 2, 3), "float32")
    turned = tw.compile(tw.transpose(placeholder, (0, 2, 1)), target="sim")(x)
    np.testing.assert_array_equal(turned, x.transpose(0, 2, 1))
    np.testing.assert_array_equal(tw.compile(tw.sum(placeholder, axis=-1), target="sim")(x), x.sum(axis=-1))


@pytest.mark.slow
def test_a_batch_of_70000_products():
    (B,) = tw.symbols("B")
    a, b = tw.placeholder((B, 2, 3), "float32"), tw.placeholder((B, 3, 2), "float32")
    x = np.arange(70_000 * 6, dtype=np.float32).reshape(-1, 2, 3) % 100
    y = np.ascontiguousarray(x.transpose(0, 2, 1))
    np.testing.assert_array_equal(tw.compile(tw.batch_matmul(a, b), target="sim")(x, y, force=True), x @ y)


def product(target: str = "sim") -> Kernel:
    M, N, K = tw.symbols("M N K")
    a, b = tw.placeholder((M, K), "float32", name="a"), tw.placeholder((K, N), "float32", name="b")
    return tw.compile(tw.matmul(a, b), target=target)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_a_symbol_with_two_values_names_both_places(target: str):
    M, N = tw.symbols("M N")
    x, bias = tw.placeholder((4, M, N), "float32", name="x"), tw.placeholder((M, 1), "float32", name="bias")
    kernel = tw.compile(x + bias, target=target)
    with pytest.raises(tw.TilewrightError) as caught:
        kernel(zeros(4, 128, 5), zeros(96, 1))
    assert str(caught.value) == "error: M = 128 from argument 0 dim 1, 96 from argument 1 dim 0"
    kernel(zeros(4, 96, 5), zeros(96, 1))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((zeros(3, 4), zeros(5, 6)), "K = 4 from argument 0 dim 1, 5 from argument 1 dim 0"),
        ((zeros(3), zeros(4, 5)), "argument 0 ('a'): expected 2 dims, got 1: shape (3,)"),
        ((zeros(3, 4), zeros(4, 5, 1)), "argument 1 ('b'): expected 2 dims, got 3: shape (4, 5, 1)"),
        ((zeros(3, 4), zeros(4, 5, dtype=np.float64)), "argument 1 ('b'): expected element type f32, got float64"),
        ((zeros(3, 4, dtype=np.int32), zeros(4, 5)), "argument 0 ('a'): expected element type f32, got i32"),
        ((zeros(3, 4),), "@main: expected 2 arguments (a, b), got 1"),
    ],
)
@pytest.mark.parametrize("target", ["sim", "reference"])
def test_what_does_not_fit_is_said_in_one_line(target: str, arrays: tuple[Array, ...], message: str):
    with pytest.raises(tw.TilewrightError) as caught:
        product(target)(*arrays)
    assert str(caught.value) == f"error: {message}"


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_a_constant_dim_of_another_size_is_named(target: str):
    (M,) = tw.symbols("M")
    kernel = tw.compile(tw.relu(tw.placeholder((M, 8), "float32", name="x")), target=target)
    with pytest.raises(tw.TilewrightError) as caught:
        kernel(zeros(3, 9))
    assert str(caught.value) == "error: argument 0 dim 1: expected 8, got 9"


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_out_is_written_and_partial_overlap_refused(target: str):
    N = tw.symbols("N")
    kernel = tw.compile(tw.placeholder(N, "float32", name="x") * 2, target=target)
    memory = np.arange(20, dtype=np.float32)
    with pytest.raises(tw.TilewrightError, match="overlap") as caught:
        kernel(memory[:12], out=memory[8:])
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(memory, np.arange(20))
    # Interleaved elements overlap in no byte.
    even, odd = memory[0::2], memory[1::2]
    assert kernel(even, out=odd) is odd
    np.testing.assert_array_equal(memory[1::2], 2 * np.arange(0, 20, 2))
    np.testing.assert_array_equal(memory[0::2], np.arange(0, 20, 2))


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_byte_strides_between_elements_are_copied_with_a_warning(target: str):
    N = tw.symbols("N")
    kernel = tw.compile(tw.placeholder(N, "float32", name="x") + 1, target=target)
    records = np.zeros(5, np.dtype([("tag", "u1"), ("value", "<f4")]))
    records["value"] = np.arange(5)
    assert records["value"].strides == (5,)
    with pytest.warns(TilewrightWarning, match=r"argument 0 \('x'\): copied.*\(5,\)"):
        result = kernel(records["value"])
    np.testing.assert_array_equal(result, np.arange(5) + 1)


def test_a_tile_beyond_shared_memory_shows_the_sum_and_the_limit(tmp_path: Any, capsys: pytest.CaptureFixture[str]):
    """f32 tiles of 1024 x 64 and 64 x 1024 against the 163 KiB of sm_80 (CUDA C++ Programming Guide)."""
    M, N, K = tw.symbols("M N K")
    module = tw.build_module(tw.matmul(tw.placeholder((M, K), "float32"), tw.placeholder((K, N), "float32")))
    file = tmp_path / "product.mlir"
    file.write_text(str(module))
    tensor = [f"{n}{{tile-sizes=1024,1024,64}}" if n == "lin-to-tile" else n for n in pipelines.TENSOR]
    passes = ",".join([*tensor, "instantiate-variants", *pipelines.TILE])
    assert main([str(file), "-p", passes]) == 1
    first = capsys.readouterr().err.splitlines()[0]
    formula, _, rest = first.partition(" needs ")[2].partition(" = ")
    needed, limit = int(rest.split()[0]), 163 * 1024
    terms = [term.removesuffix(" of padding").split(" x ") for term in formula.split(" + ")]
    assert sum(int(np.prod([int(factor) for factor in term])) for term in terms) == needed
    assert needed >= 2 * 1024 * 64 * 4
    assert rest == f"{needed} bytes of shared memory, sm_80 allows {limit}"
