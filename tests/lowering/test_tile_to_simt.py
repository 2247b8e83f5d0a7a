"""Scheduled tile kernels, lowered and simulated with every access checked, give what NumPy gives, at odd sizes too."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf

from tests.lowering.support import NAMES, kernel_text, lowered, parsed, run
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import UnrollOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.dialects.tile.structure import KernelOp as TileKernelOp
from tilewright.lowering.tile_to_simt import TileToSimtPass
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

WIDTHS = (32, 64)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype == "int8":
        return generator.integers(-128, 128, shape, dtype)
    # Integers of a few bits: sums and products of them are exact in f32 in any order.
    return generator.integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("m", "n"), [(0, 5), (1, 1), (32, 32), (33, 31), (70, 5)])
def test_transpose(width: int, m: int, n: int) -> None:
    # Rows of 3 * n + 1 elements, of which every third is used: both strides are general.
    storage = numbers(max(1, m), 3 * n + 1).ravel()
    x = np.lib.stride_tricks.as_strided(storage, (m, n), (4 * (3 * n + 1), 12))
    y = np.full(n * m, np.nan, np.float32)
    symbols = {"M": m, "N": n, "x_s0": 3 * n + 1, "x_s1": 3}
    report = run(lowered(kernel_text("transpose", width)), symbols, [storage, y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y.reshape(n, m), x.T)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 16), (65, 63, 17), (1, 130, 3), (70, 1, 0)])
def test_matmul_with_bias_and_relu(m: int, n: int, k: int) -> None:
    a, b, bias = numbers(m, k), numbers(k, n, seed=1), numbers(n, seed=2)
    c = np.full(m * n, np.nan, np.float32)
    symbols = {"M": m, "N": n, "K": k, "a_s0": k, "a_s1": 1}
    report = run(lowered(kernel_text("matmul")), symbols, [a.ravel(), b.ravel(), bias, c])
    assert report.diagnostics == []
    np.testing.assert_array_equal(c.reshape(m, n), np.maximum(a @ b + bias, 0))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("combine", "fill", "fold"), [("sum", "0.0", np.sum), ("max", "0xFF800000", np.max)])
@pytest.mark.parametrize(("r", "c"), [(4, 128), (3, 1), (9, 333)])
def test_reduction_across_warps(width: int, combine: str, fill: str, fold, r: int, c: int) -> None:
    text = kernel_text("row_sum", width).replace("reduce sum", f"reduce {combine}").replace("with 0.0", f"with {fill}")
    # Negative throughout: a maximum that took part of the fill value 0.0 would show.
    x = numbers(r, c) - 20
    y = np.full(r, np.nan, np.float32)
    report = run(lowered(text), {"R": r, "C": c}, [x.ravel(), y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, fold(x, axis=1))


@pytest.mark.parametrize(("r", "c"), [(4, 128), (9, 333)])
def test_a_reduction_may_keep_the_dim_that_it_sums(r: int, c: int) -> None:
    """Each row has a target of one element a row, at index 0 along what was summed."""
    text = kernel_text("row_sum").replace("into %s[d0]", "into %s[d0, 0]").replace("to %y[%r0]", "to %y[%r0, %zero]")
    text = text.replace("[R], f32, global, #tile.strided<[1]>", "[R, 1], f32, global, #tile.strided<[1, 1]>")
    text = text.replace("%r0 = sym.apply", "%zero = sym.apply 0\n  %r0 = sym.apply").replace(
        "[clip] via", "[clip, clip] via"
    )
    text = text.replace("threads [4] strides [1] vector [1]", "threads [4, 1] strides [1, 1] vector [1, 1]")
    x, y = numbers(r, c), np.full(r, np.nan, np.float32)
    report = run(
        lowered(text.replace("<[4], f32, fragment", "<[4, 1], f32, fragment")), {"R": r, "C": c}, [x.ravel(), y]
    )
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, x.sum(axis=1))


PARTS = """
tile.kernel @parts(%x: !tile.buf<[2, 32], f32, global, #tile.strided<[32, 1]>>, %y: !tile.buf<[8, 32], f32, global, #tile.strided<[32, 1]>>) grid (%i) = [1] threads 32 index_width 32 {{
  %zero = sym.apply 0
  %two = sym.apply 2
  %four = sym.apply 4
  %f = tile.alloc : !tile.buf<[8, 32], f32, fragment, {rows}>
  tile.fill %f with 0.0 : f32
  %half = tile.slice %f[%four, %zero] : !tile.buf<[4, 32], f32, fragment, {rows}>
  tile.fill %half with 1.0 : f32
  %part = tile.slice %half[%two, %zero] : !tile.buf<[2, 32], f32, fragment, {rows}>
  %from = tile.alloc : !tile.buf<[2, 32], f32, fragment, {rows}>
  tile.copy %x[%zero, %zero] to %from bounds [proved, proved] via thread width 1
  {write}
  tile.copy %f to %y[%zero, %zero] bounds [proved, proved] via thread width 1
}}
"""  # noqa: E501
ROWS = "#tile.distributed<threads [1, 32] strides [1, 1] vector [1, 1]>"
WRITES = {
    "fill": ("tile.fill %part with 3.0 : f32", lambda x: np.full_like(x, 3)),
    "map": (
        "tile.map (d0, d1) ins(%from[d0, d1], %part[d0, d1]) outs(%part[d0, d1]) "
        "{ ^bb0(%p: f32, %q: f32): %s = arith.addf %p, %q : f32 tile.yield %s }",
        lambda x: x + 1,
    ),
    "reduce": (
        "%fours = tile.alloc : !tile.buf<[2, 32, 4], f32, fragment, "
        "#tile.distributed<threads [1, 32, 1] strides [1, 1, 1] vector [1, 1, 1]>> tile.fill %fours with 2.0 : f32 "
        "tile.reduce sum (d0, d1, d2) %fours[d0, d1, d2] into %part[d0, d1]",
        lambda x: np.full_like(x, 9),
    ),
    "load": ("tile.copy %x[%zero, %zero] to %part bounds [proved, proved] via thread width 1", lambda x: x),
    "gather": ("tile.gather (d0, d1) %x[1 - d0, d1] to %part bounds [proved, proved]", lambda x: x[::-1]),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_to_a_part_of_a_part_is_where_both_say(name: str) -> None:
    """Rows 6 and 7 of 8: the part starts at row 2 of the half that starts at row 4."""
    write, what = WRITES[name]
    x, y = numbers(2, 32), np.full((8, 32), np.nan, np.float32)
    report = run(lowered(PARTS.format(rows=ROWS, write=write)), {}, [x.ravel(), y.ravel()])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y[:4], 0)
    np.testing.assert_array_equal(y[4:6], 1)
    np.testing.assert_array_equal(y[6:], what(x))


PRODUCT_OF_PARTS = """
tile.kernel @parts(%a: !tile.buf<[32, 4], f32, global, #tile.strided<[4, 1]>>, %b: !tile.buf<[4, 8], f32, global, #tile.strided<[8, 1]>>, %y: !tile.buf<[32, 8], f32, global, #tile.strided<[8, 1]>>) grid (%i) = [1] threads 32 index_width 32 {
  %zero = sym.apply 0
  %four = sym.apply 4
  %f = tile.alloc : !tile.buf<[32, 8], f32, fragment, #tile.distributed<threads [32, 1] strides [1, 1] vector [1, 1]>>
  tile.fill %f with 0.5 : f32
  %ta = tile.alloc : !tile.buf<[32, 4], f32, fragment, #tile.distributed<threads [32, 1] strides [1, 1] vector [1, 1]>>
  tile.copy %a[%zero, %zero] to %ta bounds [proved, proved] via thread width 1
  %tb = tile.alloc : !tile.buf<[4, 8], f32, fragment, #tile.distributed<threads [1, 1] strides [1, 1] vector [1, 1]>>
  tile.copy %b[%zero, %zero] to %tb bounds [proved, proved] via thread width 1
  %right = tile.slice %tb[%zero, %four] : !tile.buf<[4, 4], f32, fragment, #tile.distributed<threads [1, 1] strides [1, 1] vector [1, 1]>>
  %sums = tile.slice %f[%zero, %four] : !tile.buf<[32, 4], f32, fragment, #tile.distributed<threads [32, 1] strides [1, 1] vector [1, 1]>>
  tile.mma (d0, d1, d2) %ta[d0, d2], %right[d2, d1] into %sums[d0, d1] inst fma
  tile.copy %f to %y[%zero, %zero] bounds [proved, proved] via thread width 1
}
"""  # noqa: E501


def test_a_product_of_parts_into_a_part() -> None:
    a, b, y = numbers(32, 4), numbers(4, 8, seed=1), np.full((32, 8), np.nan, np.float32)
    report = run(lowered(PRODUCT_OF_PARTS), {}, [a.ravel(), b.ravel(), y.ravel()])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y[:, :4], 0.5)
    np.testing.assert_array_equal(y[:, 4:], a @ b[:, 4:] + 0.5)


MATRIX_OF_A_PART = """
tile.kernel @parts(%x: !tile.buf<[64, 128], bf16, global, #tile.strided<[128, 1]>>, %y: !tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>) grid (%i) = [1] threads 128 index_width 32 {
  %zero = sym.apply 0
  %half = sym.apply 64
  %c = tile.channel at [0] : !tile.channel<1, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %f = tile.alloc : !tile.buf<[64, 128], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 16]>>
  tile.copy %x[%zero, %zero] to %f bounds [proved, proved] via thread width 1
  %part = tile.slice %f[%zero, %half] : !tile.buf<[64, 64], bf16, fragment, #tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>>
  %s = tile.acquire %c
  tile.copy %part to %s via stmatrix
  tile.publish %c
  %r = tile.receive %c
  tile.copy %r to %y[%zero, %zero] bounds [proved, proved] via thread width 1 dist #tile.distributed<threads [16, 8] strides [8, 1] vector [1, 1]>
  tile.release %c
}
"""  # noqa: E501


def test_a_matrix_store_of_a_part() -> None:
    x = numbers(64, 128).astype(ml_dtypes.bfloat16)
    y = np.zeros((64, 64), ml_dtypes.bfloat16)
    report = run(lowered(MATRIX_OF_A_PART), {}, [x.ravel(), y.ravel()])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, x[:, 64:])


@pytest.mark.parametrize("lacking", [0, 1])
def test_each_barrier_of_a_reduction_in_a_loop_orders_something(lacking: int) -> None:
    """Before a turn writes to the scratch that the turn before read, and before it reads what it wrote; no more."""
    kernel = lowered(kernel_text("row_sum"))
    barriers = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
    assert len(barriers) == 2
    barriers[lacking].detach()
    report = run(kernel, {"R": 4, "C": 256}, [numbers(4, 256).ravel(), np.zeros(4, np.float32)])
    assert "race" in {d.kind for d in report.diagnostics}


@pytest.mark.parametrize("combine", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize(
    ("kind", "dtype", "low", "high"), [("i32", "int32", -3, 4), ("i1", "bool", 0, 2)], ids=["i32", "i1"]
)
def test_integers_are_reduced_from_the_neutral_value(combine: str, kind: str, dtype: str, low: int, high: int) -> None:
    """In i1 a sum is the parity, a product and a minimum say whether all hold, a maximum whether any does."""
    start = {
        ("i32", "sum"): "0 : i32", ("i32", "prod"): "1 : i32",
        ("i32", "max"): "-2147483648 : i32", ("i32", "min"): "2147483647 : i32",
        ("i1", "sum"): "false", ("i1", "prod"): "true", ("i1", "max"): "false", ("i1", "min"): "true",
    }[kind, combine]  # fmt: skip
    fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[combine]
    if kind == "i1":
        fold = {"sum": np.logical_xor, "prod": np.logical_and, "max": np.logical_or, "min": np.logical_and}[combine]
    text = kernel_text("row_sum").replace("reduce sum", f"reduce {combine}")
    text = text.replace("with 0.0 : f32", f"with {start}").replace("other 0.0 : f32", f"other {start}")
    x = np.random.default_rng(3).integers(low, high, (9, 333)).astype(dtype)
    x[0], x[1], x[2, :-1] = high - 1, low, high - 1
    y = np.zeros(9, dtype)
    report = run(lowered(text.replace("f32", kind)), {"R": 9, "C": 333}, [x.ravel(), y])
    assert report.diagnostics == []
    expected = fold.reduce(x, axis=1) if kind == "i1" else fold.reduce(x, axis=1, dtype=np.int32)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("kind", "size"), [("i32", 4), ("i8", 1), ("i64", 8), ("f16", 2)])
def test_shared_memory_is_counted_in_bytes(kind: str, size: int) -> None:
    text = (
        kernel_text("transpose")
        .replace("0.0 : f32", "0 : i32" if kind[0] == "i" else "0.0 : f32")
        .replace("0 : i32", f"0 : {kind}")
    )
    assert (
        lowered(text.replace("f32", kind)).smem.value.data * 4
        == lowered(kernel_text("transpose")).smem.value.data * size
    )


@pytest.mark.parametrize(("r", "c"), [(12, 16), (1, 1), (25, 37)])
def test_reduction_in_a_warp_with_copies(r: int, c: int) -> None:
    x = numbers(r, c) - 20
    y = np.full(c, np.nan, np.float32)
    report = run(lowered(kernel_text("column_max")), {"R": r, "C": c}, [x.ravel(), y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, x.max(axis=0))


def test_a_maximum_propagates_nan() -> None:
    x = numbers(5, 20)
    x[3, 7] = np.nan
    y = np.zeros(20, np.float32)
    run(lowered(kernel_text("column_max")), {"R": 5, "C": 20}, [x.ravel(), y])
    np.testing.assert_array_equal(y, x.max(axis=0))


@pytest.mark.parametrize("n", [2, 1024, 1030, 3070])
def test_cast_rounds_to_nearest_even(n: int) -> None:
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    y = np.zeros(n, ml_dtypes.bfloat16)
    report = run(lowered(kernel_text("cast")), {"N": n}, [x, y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y.view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))


@pytest.mark.parametrize(("b", "m", "n", "k"), [(1, 8, 8, 4), (3, 9, 7, 5), (2, 1, 17, 1)])
def test_integer_matmul(b: int, m: int, n: int, k: int) -> None:
    x, y = numbers(b, m, k, dtype="int8"), numbers(b, k, n, dtype="int8", seed=1)
    c = np.full(b * m * n, -1, np.int32)
    report = run(lowered(kernel_text("integer_matmul")), {"B": b, "M": m, "N": n, "K": k}, [x.ravel(), y.ravel(), c])
    assert report.diagnostics == []
    np.testing.assert_array_equal(c.reshape(b, m, n), x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("m", "n"), [(16, 32), (2, 1), (30, 33), (50, 31)])
def test_accesses_of_different_widths_and_along_any_dim(width: int, m: int, n: int) -> None:
    x, y = numbers(m, n), np.full(m * n, np.nan, np.float32)
    report = run(lowered(kernel_text("staging", width)), {"M": m, "N": n}, [x.ravel(), y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y.reshape(n, m), x.T)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(0, 9), st.integers(0, 7), st.sampled_from(WIDTHS))
@settings(max_examples=40, deadline=None)
def test_odd_rows(m: int, n: int, gap: int, offset: int, width: int) -> None:
    storage = np.arange(m * (n + gap)).astype(ml_dtypes.bfloat16)
    padded = np.full((m, -(-n // 8) * 8), 7, storage.dtype)
    kernel = lowered(kernel_text("odd_rows", width))
    symbols = {"M": m, "N": n, "x_s0": n + gap}
    scalars = [p.data.evaluate(symbols) for p in kernel.params.data]
    # Nothing lies behind the last element of the last row.
    buffers = [Buffer(storage[: storage.size - gap], address=2 * offset), Buffer(padded.reshape(-1))]
    report = simulate(kernel, buffers, scalars, grid=kernel.grid.data.evaluate(symbols), level="check")
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    np.testing.assert_array_equal(padded[:, :n], storage.reshape(m, n + gap)[:, :n])
    assert not padded[:, n:].any()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("n", "limit"), [(256, 256), (300, 299), (300, 10), (5, 0)])
def test_scalars_by_value_and_a_valid_limit(width: int, n: int, limit: int) -> None:
    x = numbers(n)
    y = np.zeros(n, np.float32)
    report = run(lowered(kernel_text("scale", width)), {"N": n}, [x, y], values=[0.5, limit])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, np.where(np.arange(n) < limit, x * np.float32(0.5), x))


def test_symbolic_matmul_with_epilogue_stays_small() -> None:
    assert sum(1 for _ in lowered(kernel_text("matmul")).walk()) < 200


def test_arguments_are_pointers_values_params() -> None:
    kernel = lowered(kernel_text("scale"))
    assert [str(a.type) for a in kernel.values] == ["f32", "i64"]
    assert [str(p.data) for p in kernel.params.data] == ["N"]
    assert len(kernel.pointers) == 2
    assert len(kernel.scalars) == 1


def test_expressions_over_symbols_are_parameters() -> None:
    kernel = lowered(kernel_text("integer_matmul"))
    # The kernel multiplies no sizes and divides by no tile size; the first grid size is not needed to decode.
    expected = {"N ceildiv 8", "M ceildiv 8", "K*M", "K", "M", "K*N", "N", "M*N"}
    assert {str(p.data) for p in kernel.params.data} == expected
    assert len(kernel.params.data) == len(expected)


def test_an_assumed_constant_is_one() -> None:
    text = kernel_text("transpose").replace("index_width 32", "index_width 32 assumes [x_s1 == 1]")
    assert "x_s1" not in [str(p.data) for p in lowered(text).params.data]
    assert "x_s1" in [str(p.data) for p in lowered(kernel_text("transpose")).params.data]


def test_a_fully_unrolled_loop_is_static() -> None:
    counts = [op.count.value.data for op in lowered(kernel_text("matmul")).walk() if isinstance(op, UnrollOp)]
    assert counts.count(16) == 1
    (loop,) = (op for op in lowered(kernel_text("integer_matmul")).walk() if isinstance(op, scf.ForOp))
    assert str(loop.attributes["unroll"]) == "2 : i64"


BLOCKS = """
tile.kernel @k(%x: !tile.buf<[64], f32, global, #tile.strided<[1]>>, %y: !tile.buf<[64], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 index_width 32 {{
  tile.for %k = {first} to {last} step 4{unroll} {{
    %t = tile.alloc : !tile.buf<[4], f32, fragment, #tile.distributed<threads [4] strides [1] vector [1]>>
    tile.copy %x[%k] to %t bounds [proved] via thread width 1
    tile.copy %t to %y[%k] bounds [proved] via thread width 1
  }}
}}
"""  # noqa: E501


@pytest.mark.parametrize("unroll", ["", " unroll 1", " unroll 2", " unroll 3"])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (0, 4), (3, 10), (0, 9), (1, 13)])
def test_a_loop_of_known_bounds_runs_as_often_as_a_range(first: int, last: int, unroll: str) -> None:
    x, y = np.arange(1, 65, dtype=np.float32), np.zeros(64, np.float32)
    expected = np.zeros(64, np.float32)
    for k in range(first, last, 4):
        expected[k : k + 4] = x[k : k + 4]
    report = run(lowered(BLOCKS.format(first=first, last=last, unroll=unroll)), {}, [x, y])
    assert report.diagnostics == []
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_lowered_kernel_reads_back(name: str) -> None:
    kernel = lowered(kernel_text(name))
    text = str(kernel)
    assert str(next(iter(parsed(text).ops))) == text


@pytest.mark.parametrize("name", NAMES)
def test_ops_keep_their_places(name: str) -> None:
    module = parsed(kernel_text(name))
    lines = {str(op.location) for op in module.walk() if isinstance(op, TileKernelOp)}
    (place,) = lines
    kernel = lowered(kernel_text(name))
    assert str(kernel.location) == place
    assert len({str(op.location) for op in kernel.walk()}) > 5


def failure(text: str) -> TilewrightError:
    module = parsed(text)
    with pytest.raises(TilewrightError) as raised:
        TileToSimtPass().apply(make_context(), module)
    assert raised.value.location is not None
    return raised.value


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (" via thread width 2\n  %o", "\n  %o", "tile.copy: expected a scheduled op, got one without via, width"),
        (" threads 128 index_width 32", "", "expected a scheduled op, got one without threads, index_width"),
        ("width 2\n  %o", "width 8\n  %o", "width 8 does not divide the 4 neighbouring elements that a thread"),
        (
            "#tile.strided<[1]>>, %y",
            "#tile.strided<[N]>>, %y",
            "width 2 needs a stride along dim 0 that is known to be 1",
        ),
        (
            "bf16, fragment, #tile.distributed<threads [128] strides [1] vector [4]>>",
            "bf16, fragment, #tile.distributed<threads [128] strides [1] vector [2]>>",
            "operands differ in the distribution of d0",
        ),
    ],
)
def test_what_is_undecided_or_impossible_is_an_error_at_the_op(old: str, new: str, expected: str) -> None:
    text = kernel_text("cast")
    assert old in text
    assert expected in failure(text.replace(old, new)).message


def test_a_reduction_across_warps_needs_its_scratch() -> None:
    assert (
        "expected a scratch of at least 32 elements, got 0"
        in failure(kernel_text("row_sum").replace(" scratch %w", "")).message
    )
    text = kernel_text("row_sum").replace("tile.buf<[8, 4], f32, shared", "tile.buf<[4, 4], f32, shared")
    assert "expected a scratch of at least 32 elements, got 16" in failure(text).message


TURNS = """
tile.kernel @turns(%x: {matrix}, %y: {matrix}) grid (%i) = [1] threads 128 index_width 32 {{
  %zero = sym.apply 0
  %ring = tile.channel at [0] : !tile.channel<1, !tile.buf<[16, 64], bf16, shared, #tile.swizzled<128, 1>>>
  tile.for %k = 0 to 64 step 16 {{
    %free = tile.acquire %ring
    tile.copy %x[%k, %zero] to %free bounds [proved, proved] via cp.async width 8 store_width 8 {by_rows}
    tile.publish %ring
    %full = tile.receive %ring
    tile.copy %full to %y[%k, %zero] bounds [proved, proved] via thread width 8 store_width 8 {by_columns}
    tile.release %ring
  }}
}}
""".format(
    matrix="!tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>",
    by_rows="dist #tile.distributed<threads [16, 8] strides [8, 1] vector [1, 8]>",
    by_columns="dist #tile.distributed<threads [16, 8] strides [1, 16] vector [1, 8]>",
)


def test_a_slot_is_filled_again_when_all_threads_have_read_it() -> None:
    """Nothing else stands between the reads of one turn and the copies of the next, which are other threads'."""
    kernel = lowered(TURNS)
    x, y = (np.arange(first, first + 64 * 64).astype(ml_dtypes.bfloat16) for first in (0, 1))
    assert run(kernel, {}, [x, y]).diagnostics == []
    np.testing.assert_array_equal(y, x)
    before, _ = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
    before.detach()
    assert {d.kind for d in run(kernel, {}, [x, y]).diagnostics} == {"race"}


WORDS = """
sym.symbol @s {{source = "stride"}}
tile.kernel @words(%x: {rows}<[64, 1]>>, %y: {rows}<[s, 1]>>) grid (%i) = [1] threads 64 index_width 32 {{
  %zero = sym.apply 0
  %ring = tile.channel at [0] : !tile.channel<1, !tile.buf<[8, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %free = tile.acquire %ring
  %t = tile.alloc : !tile.buf<[8, 64], bf16, fragment, {spread}>
  tile.copy %x[%zero, %zero] to %t bounds [proved, proved] via thread width 8
  tile.copy %t to %free via thread width 8
  tile.publish %ring
  %full = tile.receive %ring
  tile.copy %full to %y bounds [proved, proved] via thread width 8 store_width 8 unaligned dist {spread}
  tile.release %ring
}}
""".format(
    rows="!tile.buf<[8, 64], bf16, global, #tile.strided",
    spread="#tile.distributed<threads [8, 8] strides [8, 1] vector [1, 8]>",
)


def test_a_row_a_thread_is_stored_in_words_wherever_it_begins() -> None:
    x = np.arange(8 * 64).astype(ml_dtypes.bfloat16)
    y = np.full(8 * 67, -1, x.dtype)
    assert run(lowered(WORDS), {"s": 67}, [x, y]).diagnostics == []
    np.testing.assert_array_equal(y.reshape(8, 67)[:, :64], x.reshape(8, 64))
    assert (y.reshape(8, 67)[:, 64:] == -1).all()


HALF_WORDS = """
sym.symbol @s {{source = "stride"}}
sym.symbol @N
tile.kernel @halves(%x: !tile.buf<[8, N], bf16, global, #tile.strided<[s, 1]>>, \
%y: !tile.buf<[8, 64], bf16, global, #tile.strided<[64, 1]>>) \
grid (%i) = [1] threads 64 index_width 32 {{
  %zero = sym.apply 0
  %s = tile.alloc at 0 : !tile.buf<[8, 64], bf16, shared, #tile.strided<[64, 1]>>
  tile.copy %x[%zero, %zero] to %s bounds [proved, clip] other 0.0 : bf16 via thread width 4 store_width 8 unaligned \
dist {spread}
  tile.sync
  %t = tile.alloc : !tile.buf<[8, 64], bf16, fragment, {spread}>
  tile.copy %s to %t via thread width 8
  tile.copy %t to %y bounds [proved, proved] via thread width 8
}}
""".format(spread="#tile.distributed<threads [8, 8] strides [8, 1] vector [1, 8]>")


@pytest.mark.parametrize("n", [3, 61, 64])
def test_unaligned_loads_may_be_narrower_than_the_stores(n: int) -> None:
    """A thread reads its 8 elements as two words of 4, of which each may end outside of the row."""
    x = np.arange(8 * 67).astype(ml_dtypes.bfloat16)
    y = np.full(8 * 64, -1, x.dtype)
    assert run(lowered(HALF_WORDS), {"s": 67, "N": n}, [x, y]).diagnostics == []
    expected = x.reshape(8, 67)[:, :64].copy()
    expected[:, n:] = 0
    np.testing.assert_array_equal(y.reshape(8, 64), expected)
