"""Products that are cut along their sum: how many parts there are, and that results are right in every backend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

import tilewright as tw
from tests.lowering.test_repack import SYMBOLS, decide, entry, operand, product, tensor, times, whole
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import AllocOp, FuncOp, LetOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.lowering.pipelines import TENSOR, make_passes
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.plan import HostPlan
from tilewright.runtime.tile_interpreter.host import interpret_host

PROCESSORS = 132


def biased() -> str:
    """@main: relu(a b + bias), which follows the sum of the parts."""
    a, b, c, bias = tensor("M", "K"), tensor("K", "N"), tensor("M", "N"), tensor("N")
    return f"""{SYMBOLS}
func.func @main(%a: {a}, %b: {b}, %bias: {bias}) -> {c} {{
  %c = lin.matmul %a, %b : {a}, {b} -> {c}
  %d = lin.map ins(%c, %bias : {c}, {bias}) -> {c} {{
  ^bb0(%p: bf16, %q: bf16):
    %zero = arith.constant 0.0 : bf16
    %s = arith.addf %p, %q : bf16
    %r = arith.maximumf %s, %zero : bf16
    lin.yield %r : bf16
  }}
  func.return %d : {c}
}}
"""


def symbols_of(m: int, n: int, k: int) -> dict[str, int]:
    """What the plan of a product computes for these sizes."""
    decision, _ = decide(operand(m, k), operand(k, n))
    return dict(zip(entry().plan.symbols, decision.symbols, strict=True))


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 20000))
@settings(max_examples=80, deadline=None)
def test_parts_cover_the_sum_and_fill_the_processors(m: int, n: int, k: int) -> None:
    values = symbols_of(m, n, k)
    numbers = sorted(name.removeprefix("parts") for name in values if name.startswith("parts"))
    assert len(numbers) == 4  # thin, wide and high tiles, multiply-adds
    for number in numbers:
        parts, depth = values[f"parts{number}"], values[f"part_depth{number}"]
        assert parts >= 1
        assert depth % 64 == 0
        assert parts * depth >= k
        assert (parts - 1) * 64 <= max(0, k - 1)  # no more parts than steps
        if parts > 1:
            assert parts <= 2 * PROCESSORS


@pytest.mark.parametrize(
    ("m", "n", "k", "kernels"),
    [
        (1, 4096, 4096, ["thin_parts", "thin_sum"]),
        (16, 14336, 4096, ["thin_parts", "thin_sum"]),
        (4096, 16, 4096, ["split128x64_parts", "split128x64_sum"]),
        (4096, 1, 4096, ["pad1", "split128x64_parts", "split128x64_sum"]),  # 1 is no stride of 16 bytes
        (256, 256, 16384, ["split64x128_parts", "split64x128_sum"]),
        (64, 4096, 4096, ["split64x128_parts", "split64x128_sum"]),
        (4096, 64, 4096, ["split128x64_parts", "split128x64_sum"]),
        (64, 8, 6773, ["split32x32_parts", "split32x32_sum"]),
        (8, 5155, 5064, ["pad1", "thin_parts", "thin_sum"]),
        (4096, 4096, 4096, ["tile128x256"]),
        (256, 256, 256, ["tile64x64"]),  # a second kernel would take longer than what it saves
        (17, 4096, 64, ["tile64x64"]),
        (32, 80, 60, ["small"]),
    ],
)
def test_what_is_cut(m: int, n: int, k: int, kernels: list[str]) -> None:
    assert decide(operand(m, k), operand(k, n))[1] == kernels


def test_scratch_is_one_sum_of_rows_and_columns_for_each_part() -> None:
    decision, _ = decide(operand(256, 16384), operand(16384, 255, turned=True))
    parts = -(-16384 // 64) // 16  # 8 tiles: 16 blocks each fill 132 processors, with 16 steps
    assert parts == 16
    assert [s for s in decision.scratch if s is not None] == [(parts, 256, 256)]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from([192, 193, 256, 513, 1000, 1024]), st.booleans())
def test_results_of_parts(m: int, n: int, k: int, turned: bool) -> None:
    a, b = whole(m, k), whole(k, n)
    if turned:
        b = np.asfortranarray(b)
    (got,) = interpret_host(entry().planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(a, b))


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 40), st.integers(1, 80), st.integers(193, 900))
def test_what_follows_the_product_follows_the_sum(m: int, n: int, k: int) -> None:
    a, b, bias = whole(m, k), whole(k, n), whole(n)
    layouts = [operand(m, k), operand(k, n), operand(n, 1)._replace(shape=(n,), strides=(1,))]
    decision = entry(biased()).plan.run(layouts, None)
    assume(len(decision.launches) > 1)
    (got,) = interpret_host(entry(biased()).planned[0], "main", [a, b, bias])
    expected = np.maximum(times(a, b).astype(np.float32) + bias.astype(np.float32), 0)
    np.testing.assert_array_equal(got, expected.astype(a.dtype))


def test_products_in_a_batch() -> None:
    a, b = whole(3, 20, 700), whole(3, 700, 24)
    text = product(batch="B")
    (got,) = interpret_host(entry(text).planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(a, b))


@pytest.mark.parametrize("backend", ["sim", "cpu"])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 40, 700), (40, 3, 704), (33, 35, 777), (64, 8, 0), (0, 5, 300)])
def test_multiply_adds_in_parts_give_the_same_everywhere(backend: Any, m: int, n: int, k: int) -> None:
    rows, columns, depth = tw.symbols("M N K")
    matmul = tw.compile(tw.matmul(tw.placeholder((rows, depth)), tw.placeholder((depth, columns))), target=backend)
    a, b = whole(m, k).astype(np.float32), whole(k, n).astype(np.float32)
    np.testing.assert_array_equal(matmul(a, b), a @ b)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 200, 4096), (304, 16, 4096), (72, 136, 4104)])
def test_matrix_instructions_in_parts(m: int, n: int, k: int) -> None:
    rows, columns, depth = tw.symbols("M N K")
    operands = tw.placeholder((rows, depth), "bfloat16"), tw.placeholder((depth, columns), "bfloat16")
    matmul = tw.compile(tw.matmul(*operands), target="sim", arch="sm_90a")
    a, b = whole(m, k), whole(k, n)
    np.testing.assert_array_equal(matmul(a, b), times(a, b))
    first, second = decide(operand(m, k), operand(k, n))[1]
    assert first.endswith("_parts")
    assert second.endswith("_sum")


def test_two_summed_dims_and_their_layouts() -> None:
    rows, columns, outer, inner = tw.symbols("M N J K")
    a_, b_ = tw.placeholder((rows, outer, inner), "bfloat16"), tw.placeholder((inner, outer, columns), "bfloat16")
    einsum = tw.compile(tw.einsum("ijk,kjl->il", a_, b_), target="sim", arch="sm_90a")
    for m, n, j, k in ((70, 72, 3, 64), (5, 64, 2, 200), (33, 7, 3, 65)):
        a, b = whole(m, j, k), whole(k, j, n)
        expected = np.einsum("ijk,kjl->il", a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
        np.testing.assert_array_equal(einsum(a, b), expected)


def test_a_product_whose_operand_is_read_at_computed_positions_has_no_copies() -> None:
    count, size = tw.symbols("N H")
    image, weights = tw.placeholder((count, 4, size, size), "bfloat16"), tw.placeholder((8, 4, 3, 3), "bfloat16")
    convolution = tw.compile(tw.conv2d(image, weights), target="sim", arch="sm_90a")
    x, w = whole(1, 4, 5, 5), whole(8, 4, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float32), (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(convolution(x, w), expected)
    assert not [each["name"] for each in convolution.stats()["kernels"] if "pad" in each["name"]]


@pytest.mark.gpu
@pytest.mark.parametrize("element", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 4096, 4096), (16, 264, 5000), (4096, 16, 4096), (300, 1, 4000), (256, 250, 16384), (64, 8, 6773), (7, 5, 300)],
)
def test_parts_on_a_gpu(element: str, m: int, n: int, k: int) -> None:
    rows, columns, depth = tw.symbols("M N K")
    a_, b_, bias_ = (tw.placeholder(s, element) for s in ((rows, depth), (depth, columns), (columns,)))
    program = tw.compile(tw.relu(tw.matmul(a_, b_) + bias_), target="cuda")
    dtype = ml_dtypes.bfloat16 if element == "bfloat16" else np.dtype(element)
    a, b, bias = (whole(*shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))
    expected = times(a, b).astype(np.float32) + bias.astype(np.float32)
    np.testing.assert_array_equal(program(a, b, bias), np.maximum(expected, 0).astype(dtype))


def planned(text: str, **options: Any) -> tuple[HostPlan, Iterator[str]]:
    """The plan of a program on sm_90a, and the remarks on the way."""
    module = parse_module(text, "product.mlir", make_context())
    with collecting_remarks() as remarks:
        run_pipeline(module, make_context(), make_passes(TENSOR, {"lin-to-tile": {"arch": "sm_90a", **options}}))
    return HostPlan(next(op for op in module.ops if isinstance(op, FuncOp))), (r.message for r in remarks)


def test_a_limit_on_scratch_holds_for_partial_sums() -> None:
    arguments = [operand(256, 16384), operand(16384, 256)]
    free, _ = planned(product())
    tight, _ = planned(product(), max_workspace=16 * 256 * 256 * 4 - 1)
    assert (16, 256, 256) in free.run(arguments, None).scratch
    assert set(tight.run(arguments, None).scratch) == {None}


def test_a_remark_says_when_a_product_is_cut() -> None:
    _, remarks = planned(product())
    (said,) = [text for text in remarks if text.startswith("split64x128 | ")]
    assert " | waves (parts*(M ceildiv 64)*(N ceildiv 128)) ceildiv 132 | " in said
    assert " | time 0.2 us * waves * (part_depth ceildiv 64) + 2.5 us + M*N*parts/375 ns | in parts, where " in said


@pytest.mark.parametrize(
    ("m", "n", "k", "taken", "waves", "time"),
    [
        (4096, 4096, 4096, "tile128x256", 4, "204.8 us"),
        (16, 4096, 4096, "thin", 1, "7.2 us"),
        (256, 256, 16384, "split64x128", 1, "8.5 us"),
        (1024, 1024, 1024, "tile64x128", 1, "3.4 us"),
    ],
)
@pytest.mark.parametrize("given", ["numbers", "likely"])
def test_remarks_say_what_is_taken_for_sizes_that_are_known(
    m: int, n: int, k: int, taken: str, waves: int, time: str, given: str
) -> None:
    text = product(m=str(m), n=str(n), k=str(k)) if given == "numbers" else product()
    if given == "likely":
        for symbol, size in (("M", m), ("N", n), ("K", k)):
            text = text.replace(f"@{symbol} {{min = 0}}", f"@{symbol} {{min = 0, likely = [{size}]}}")
    _, remarks = planned(text)
    (line,) = [text for text in remarks if re.search(r"[|,] taken( for M = \d+, N = \d+, K = \d+)?$", text)]
    assert line.startswith(f"{taken} | ")
    assert f" | waves {waves} | time {time} | " in line


def test_sizes_that_leave_no_processor_idle_are_never_cut() -> None:
    plan, _ = planned(product(m="4096", n="4096"))
    assert not [op for op in plan.func.walk() if isinstance(op, LetOp) and op.symbol.data.startswith("part")]
    assert not [op for op in plan.func.walk() if isinstance(op, AllocOp) and op.res.name_hint == "partial"]


@pytest.mark.nvrtc
def test_the_kernels_compile_without_spills_for_matrix_instructions() -> None:
    compiled = entry()
    for m, n, k in ((1, 4096, 4096), (4096, 16, 4096), (256, 256, 16384), (64, 8, 6773)):
        for launch in decide(operand(m, k), operand(k, n))[0].launches:
            site = compiled.plan.sites[launch.site]
            lowered = compiled.lower(compiled.sites[f"{site.kernel}/{site.variant}"])
            made = compile_cubin(emit_kernel(lowered.kernel, "sm_90a"), "sm_90a")
            for name, each in made.resources.items():
                assert (each.stack_bytes, each.spill_store_bytes, each.spill_load_bytes) == (0, 0, 0), name


# host.let ------------------------------------------------------------------------------------------------


PLAN = """
sym.symbol @M
sym.symbol @half {{{bounds}}}
tile.kernel @k(%x: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i) = [M] {{
  %f = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %f with 1.0 : f32
  tile.copy %f to %x[%i] bounds [clip]
}}
host.func @main(%a : tensor<?xf32, #sym.dims<M>>) -> (tensor<?xf32, #sym.dims<M>>) {{
  %y = host.output 0 : tensor<?xf32, #sym.dims<M>>
  host.let half = {value}
  host.launch @k(%y)
}}
"""


def let_plan(bounds: str, value: str) -> str:
    """A plan with a symbol of its own, completed."""
    module = parse_module(PLAN.format(bounds=bounds, value=value), "plan.mlir", make_context())
    module.verify()
    run_pipeline(module, make_context(), make_passes(["host-plan"]))
    return str(module)


def test_what_is_declared_of_a_computed_symbol_is_guarded_unless_it_follows() -> None:
    assert "host.guard half" not in let_plan('min = 1, source = "host"', "max(1, M floordiv 2)")
    text = let_plan('min = 1, source = "host"', "M floordiv 2")
    at = text.index("host.let half = M floordiv 2")
    assert text.index('host.guard half >= 1 else "half: expected at least 1"') > at


def test_a_value_that_cannot_be_computed_is_an_error() -> None:
    with pytest.raises(VerifyException, match=r"the value of half is given by itself: half \+ 1"):
        let_plan('source = "host"', "half + 1")
    module = parse_module(let_plan('source = "host"', "N + 1"), "plan.mlir", make_context())
    with pytest.raises(TilewrightError, match="no argument size determines N, which the value of half needs"):
        HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))


def test_a_computed_symbol_wants_a_declaration() -> None:
    text = PLAN.replace("sym.symbol @half {{{bounds}}}\n", "").format(value="M floordiv 2")
    module = parse_module(text, "plan.mlir", make_context())
    with pytest.raises(TilewrightError, match=r"no sym.symbol declares half"):
        run_pipeline(module, make_context(), make_passes(["host-plan"]))


def test_a_guard_says_where_a_computed_value_comes_from() -> None:
    text = let_plan('min = 1, source = "host"', "M floordiv 2")
    plan = HostPlan(next(op for op in parse_module(text, "p.mlir", make_context()).ops if isinstance(op, FuncOp)))
    layout = operand(1, 1)._replace(shape=(1,), strides=(1,))
    with pytest.raises(
        TilewrightError, match=r"half: expected at least 1, got half = 0 from host.let half = M floordiv 2"
    ):
        plan.run([layout], None)
