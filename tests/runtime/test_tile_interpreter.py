"""The tile interpreter: each op as its docstring says, the documents' texts against NumPy and the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.lowering.support import kernel_text, lowered, parsed, run
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.tile.structure import KernelOp
from tilewright.runtime.tile_interpreter.host import interpret_host
from tilewright.runtime.tile_interpreter.kernel import interpret

DOCUMENTS = Path(__file__).parents[2] / "docs" / "design" / "ir"
F32 = np.float32


def document(name: str) -> ModuleOp:
    module = parse_module((DOCUMENTS / f"{name}.mlir").read_text(encoding="utf-8"), name, make_context())
    module.verify()
    return module


def kernel_of(module: ModuleOp) -> KernelOp:
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    return kernel


def execute(
    body: str,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    elements: str = "f32",
    scalars: str = "",
    values: Sequence[Any] = (),
    symbols: Mapping[str, int] | None = None,
) -> None:
    """Run one block of a kernel over contiguous buffers of static sizes, named as in `arrays`."""
    buffers = [f"%{n} : !tile.buf<{list(a.shape)}, {elements}, global>" for n, a in arrays.items()]
    arguments = ", ".join([*buffers, *([scalars] if scalars else [])])
    declared = "\n".join(f"sym.symbol @{s}" for s in symbols or {})
    text = f"{declared}\ntile.kernel @k({arguments}) grid (%g) = [1] {{\n%zero = sym.apply 0\n{body}\n}}"
    module = parse_module(text, "k.mlir", make_context())
    module.verify()
    interpret(kernel_of(module), list(arrays.values()), values, symbols)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).standard_normal(shape).astype(F32)


# Ops


def test_clip_fills_with_other_on_the_way_in_and_drops_on_the_way_out() -> None:
    x, y, z = numbers(5, 7), np.full((4, 8), -1, F32), np.full((3, 5), -1, F32)
    execute(
        """
  %two = sym.apply 2
  %six = sym.apply 6
  %t = tile.alloc : !tile.buf<[4, 8], f32, fragment>
  tile.copy %x[%two, %six] to %t bounds [clip, clip] other 9.0 : f32
  tile.copy %t to %y[%zero, %zero] bounds [proved, proved]
  tile.copy %t to %z[%zero, %zero] bounds [clip, clip]
""",
        {"x": x, "y": y, "z": z},
    )
    expected = np.full((4, 8), 9, F32)
    expected[:3, :1] = x[2:, 6:]
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, expected[:3, :5])


def test_a_tile_wholly_past_the_size_reads_and_writes_nothing() -> None:
    x, y = numbers(3, 3), np.full((3, 3), -1, F32)
    execute(
        """
  %ten = sym.apply 10
  %t = tile.alloc : !tile.buf<[2, 2], f32, fragment>
  tile.copy %x[%ten, %zero] to %t bounds [clip, clip] other 4.0 : f32
  tile.copy %t to %y[%zero, %ten] bounds [clip, clip]
  tile.copy %t to %y[%zero, %zero] bounds [clip, clip]
""",
        {"x": x, "y": y},
    )
    expected = np.full((3, 3), -1, F32)
    expected[:2, :2] = 4
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("offset", "bounds", "message"),
    [
        ("4", "proved", "elements 4..5 in dim 0 exceed size 5 (bound proved)"),
        ("0 - 1", "clip", "offset -1 in dim 0 is negative"),
    ],
)
def test_copies_that_break_their_bound(offset: str, bounds: str, message: str) -> None:
    body = f"""
  %o = sym.apply {offset}
  %t = tile.alloc : !tile.buf<[2], f32, fragment>
  tile.copy %x[%o] to %t bounds [{bounds}]
"""
    with pytest.raises(TilewrightError) as raised:
        execute(body, {"x": numbers(5)})
    # The text begins with an empty line, the kernel and its zero.
    assert str(raised.value) == f"k.mlir:7:3: error: tile.copy: {message}"


def test_a_rectangle_of_a_larger_shared_buffer() -> None:
    x, y = numbers(4, 4), np.zeros((2, 4), F32)
    execute(
        """
  %two = sym.apply 2
  %s = tile.alloc : !tile.buf<[4, 4], f32, shared>
  tile.copy %x[%zero, %zero] to %s bounds [proved, proved]
  tile.sync
  %f = tile.alloc : !tile.buf<[2, 2], f32, fragment>
  tile.copy %s[%two, %zero] to %f
  tile.copy %f to %s[%zero, %two]
  %h = tile.alloc : !tile.buf<[2, 4], f32, fragment>
  tile.copy %s to %h
  tile.copy %h to %y[%zero, %zero] bounds [proved, proved]
""",
        {"x": x, "y": y},
    )
    expected = x[:2].copy()
    expected[:, 2:] = x[2:, :2]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("element", "dtype", "shows"),
    [
        ("f32", F32, np.isnan),
        ("bf16", ml_dtypes.bfloat16, lambda v: np.isnan(v.astype(F32))),
        ("i32", np.int32, lambda v: v == np.array(0xA5A5A5A5, np.uint32).view(np.int32)),
        ("i8", np.int8, lambda v: v == np.array(0xA5, np.uint8).view(np.int8)),
    ],
)
def test_reading_what_nobody_wrote_shows(element: str, dtype: Any, shows: Any) -> None:
    y = np.zeros(4, dtype)
    body = f"%t = tile.alloc : !tile.buf<[4], {element}, fragment>\ntile.copy %t to %y[%zero] bounds [proved]"
    execute(body, {"y": y}, element)
    assert shows(y).all()


def test_map_broadcasts_transposes_takes_scalars_and_keeps_what_is_not_valid() -> None:
    x, row, y = numbers(3, 4), numbers(1, 3), np.full((4, 3), 5, F32)
    execute(
        """
  %a = tile.alloc : !tile.buf<[3, 4], f32, fragment>
  %r = tile.alloc : !tile.buf<[1, 3], f32, fragment>
  %o = tile.alloc : !tile.buf<[4, 3], f32, fragment>
  tile.copy %x[%zero, %zero] to %a bounds [proved, proved]
  tile.copy %row[%zero, %zero] to %r bounds [proved, proved]
  tile.copy %y[%zero, %zero] to %o bounds [proved, proved]
  tile.map (d0, d1) ins(%a[d1, d0], %r[0, d1], %s) outs(%o[d0, d1]) valid(d0 < %n) {
  ^bb0(%u : f32, %v : f32, %w : f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %p, %w : f32
    tile.yield %q
  }
  tile.copy %o to %y[%zero, %zero] bounds [proved, proved]
""",
        {"x": x, "row": row, "y": y},
        scalars="%s : f32, %n : index",
        values=[0.25, 3],
    )
    expected = np.full((4, 3), 5, F32)
    expected[:3] = (x.T * row + F32(0.25))[:3]
    np.testing.assert_array_equal(y, expected)


def test_an_output_that_is_an_input_is_read_before_it_is_written() -> None:
    y = numbers(3, 3)
    before = y.copy()
    execute(
        """
  %t = tile.alloc : !tile.buf<[3, 3], f32, fragment>
  %s = tile.alloc : !tile.buf<[3, 3], f32, fragment>
  tile.copy %y[%zero, %zero] to %t bounds [proved, proved]
  tile.copy %y[%zero, %zero] to %s bounds [proved, proved]
  tile.map (d0, d1) ins(%s[d1, d0], %t[d0, d1]) outs(%t[d0, d1]) {
  ^bb0(%u : f32, %v : f32):
    %w = arith.subf %u, %v : f32
    tile.yield %w
  }
  tile.copy %t to %y[%zero, %zero] bounds [proved, proved]
""",
        {"y": y},
    )
    np.testing.assert_array_equal(y, before.T - before)


@pytest.mark.parametrize(("combine", "fold"), [("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)])
@pytest.mark.parametrize(("element", "dtype"), [("f32", F32), ("i32", np.int32)])
@pytest.mark.parametrize("limit", [0, 3, 9])
def test_reduce_combines_valid_elements_with_the_target(
    combine: str, fold: Any, element: str, dtype: Any, limit: int
) -> None:
    x = np.random.default_rng(3).integers(-4, 5, (2, 5)).astype(dtype)
    y = np.array([3, -2], dtype)
    expected = [fold([start, *row[:limit]]) for start, row in zip(y, x, strict=True)]
    execute(
        f"""
  %a = tile.alloc : !tile.buf<[2, 5], {element}, fragment>
  %t = tile.alloc : !tile.buf<[2], {element}, fragment>
  tile.copy %x[%zero, %zero] to %a bounds [proved, proved]
  tile.copy %y[%zero] to %t bounds [proved]
  tile.reduce {combine} (d0, d1) %a[d0, d1] into %t[d0] valid(d1 < %n)
  tile.copy %t to %y[%zero] bounds [proved]
""",
        {"x": x, "y": y},
        element,
        scalars="%n : index",
        values=[limit],
    )
    np.testing.assert_array_equal(y, expected)


def test_mma_adds_by_fused_steps_in_increasing_order() -> None:
    # 2^24 + 1 is no float32: in order, the small products are lost one by one; summed first they would count.
    a, b, c = np.array([[2.0**24, 1, 1]], F32), np.ones((3, 1), F32), np.zeros((1, 1), F32)
    body = """
  %ta = tile.alloc : !tile.buf<[1, 3], f32, fragment>
  %tb = tile.alloc : !tile.buf<[3, 1], f32, fragment>
  %tc = tile.alloc : !tile.buf<[1, 1], f32, fragment>
  tile.copy %a[%zero, %zero] to %ta bounds [proved, proved]
  tile.copy %b[%zero, %zero] to %tb bounds [proved, proved]
  tile.fill %tc with 0.0 : f32
  tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %tc[d0, d1]
  tile.copy %tc to %c[%zero, %zero] bounds [proved, proved]
"""
    execute(body, {"a": a, "b": b, "c": c})
    assert c[0, 0] == 2.0**24
    # One rounding a step: (1 + e)^2 - (1 + 2 e) = e^2 survives in a fused multiply-add.
    e = F32(2.0**-13)
    execute(body, {"a": np.array([[-1, 1 + e, 0]], F32), "b": np.array([[1 + 2 * e], [1 + e], [0]], F32), "c": c})
    assert c[0, 0] == e * e


def test_a_loop_with_symbols_and_values_in_its_bounds_and_a_branch() -> None:
    y = np.zeros(12, np.int32)
    execute(
        """
  tile.for %k = n to N - n step 3 where n = %n {
    %c = arith.cmpi eq, %k, %n : index
    %t = tile.alloc : !tile.buf<[1], i32, fragment>
    scf.if %c {
      tile.fill %t with 1 : i32
    } else {
      tile.fill %t with 2 : i32
    }
    tile.copy %t to %y[%k] bounds [clip]
  }
""",
        {"y": y},
        "i32",
        scalars="%n : index",
        values=[2],
        symbols={"N": 11},
    )
    np.testing.assert_array_equal(y, [0, 0, 1, 0, 0, 2, 0, 0, 2, 0, 0, 0])


# Entries


@pytest.mark.parametrize("shape", [(70, 45), (1, 33), (0, 4), (32, 64)])
def test_transpose_of_strided_views(shape: tuple[int, int]) -> None:
    x = numbers(shape[0] * 2, shape[1])[::2]
    for view in (x, x[:, ::-1]):
        (y,) = interpret_host(document("tile_transpose"), "main", [view])
        np.testing.assert_array_equal(y, view.T)


def test_results_may_be_given() -> None:
    x = numbers(20, 10)
    storage = np.zeros((10, 40), F32)
    (y,) = interpret_host(document("tile_transpose"), None, [x], [storage[:, ::2]])
    np.testing.assert_array_equal(storage[:, ::2], x.T)
    assert not storage[:, 1::2].any()
    assert np.shares_memory(y, storage)
    with pytest.raises(TilewrightError, match=r"result 0: expected shape \(10, 20\), got \(10, 19\)"):
        interpret_host(document("tile_transpose"), None, [x], [np.zeros((10, 19), F32)])


@pytest.mark.parametrize("columns", [1, 333, 4500])
def test_softmax_takes_the_case_that_holds(columns: int) -> None:
    x = numbers(3, columns)
    (y,) = interpret_host(document("tile_softmax"), None, [x])
    exponentials = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, exponentials / exponentials.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("name", ["tile_gemm_0_plain", "tile_gemm_scheduled"])
@pytest.mark.parametrize(("m", "n", "k"), [(130, 264, 40), (1, 8, 0)])
def test_gemm_with_epilogue_free_and_scheduled(name: str, m: int, n: int, k: int) -> None:
    bf16 = ml_dtypes.bfloat16
    a, b, bias = (numbers(*s).astype(bf16) for s in ((m, k), (k, n), (n,)))
    (y,) = interpret_host(document(name), "gemm", [a, b, bias])
    z = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    exact = 0.5 * z * (1 + np.vectorize(erf)(z * 0.5**0.5))
    # One rounding to bf16, 8 bits of significand, and the f32 sums before it.
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2.0**-8, atol=1e-4)


def test_scratch_between_two_kernels_and_a_guard() -> None:
    module = document("host_plan")
    x = numbers(3, 1500)
    (y,) = interpret_host(module, None, [x])
    np.testing.assert_array_equal(y, x)
    with pytest.raises(TilewrightError, match="N: expected at most 65536, got N = 65537"):
        interpret_host(module, None, [np.zeros((1, 65537), F32)])


def test_arguments_that_do_not_fit() -> None:
    module = document("tile_gemm_0_plain")
    a = np.zeros((2, 8), ml_dtypes.bfloat16)
    for inputs, message in [
        ([a, a.T], "expected 3 arguments, got 2"),
        ([a, np.zeros((7, 8), a.dtype), np.zeros(8, a.dtype)], "K = 8 from argument 0 dim 1, 7 from argument 1"),
        ([a, np.zeros((8, 8), F32), np.zeros(8, a.dtype)], "expected dtype bfloat16, got float32"),
        ([a, a.T, 3.0], "argument 2: expected an array"),
    ]:
        with pytest.raises(TilewrightError, match=message):
            interpret_host(module, None, inputs)
    with pytest.raises(TilewrightError, match=r"expected a host\.func @nope, got 0"):
        interpret_host(module, "nope", [a, a.T, a[0]])


def test_what_a_launch_assumes_is_checked() -> None:
    text = (DOCUMENTS / "tile_transpose.mlir").read_text(encoding="utf-8")
    module = parse_module(
        text.replace("@main_0(%a, %out0)", "@main_0(%a, %out0) assumes [a_s1 == 1]"), "t", make_context()
    )
    interpret_host(module, None, [numbers(4, 4)])
    with pytest.raises(TilewrightError, match="@main_0 assumes a_s1 == 1, got a_s1 = 2"):
        interpret_host(module, None, [numbers(4, 8)[:, ::2]])


# Against the simulator: the same scheduled kernel, as threads.


@pytest.mark.parametrize(
    ("name", "symbols", "inputs", "output"),
    [
        ("transpose", {"M": 33, "N": 40, "x_s0": 40, "x_s1": 1}, [(33, 40)], (40, 33)),
        ("matmul", {"M": 65, "N": 63, "K": 17, "a_s0": 17, "a_s1": 1}, [(65, 17), (17, 63), (63,)], (65, 63)),
        ("column_max", {"R": 25, "C": 37}, [(25, 37)], (1, 37)),
    ],
)
def test_threads_give_the_same_bits(
    name: str, symbols: dict[str, int], inputs: list[tuple[int, ...]], output: tuple[int, ...]
) -> None:
    arrays = [numbers(*shape) for shape in inputs]
    expected, simulated = np.full(output, np.nan, F32), np.full(output, np.nan, F32)
    interpret(kernel_of(parsed(kernel_text(name))), [*arrays, expected], (), symbols)
    report = run(lowered(kernel_text(name)), symbols, [*(a.ravel() for a in arrays), simulated.reshape(-1)])
    assert not report.diagnostics
    np.testing.assert_array_equal(simulated, expected)
