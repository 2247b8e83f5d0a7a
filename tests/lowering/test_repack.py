"""Products whose operands tensor maps cannot move: what is copied, which tile is taken, and that results are right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp as FunctionOp

import tilewright as tw
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.lowering.lin_to_tile.repack import row_multiple
from tilewright.lowering.pipelines import TENSOR, make_passes
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks
from tilewright.runtime.binding import Layout
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.plan import Decision, HostPlan, Slot
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.tile_interpreter.host import interpret_host
from tilewright.runtime.variants import CompiledEntry

Array = np.ndarray[Any, Any]

SYMBOLS = "".join(f"sym.symbol @{s} {{min = 0}}\n" for s in "BMNKH")


def tensor(*sizes: str, element: str = "bf16") -> str:
    """A tensor type of these sizes, by letter or by number."""
    dims = "".join("?x" if s.isalpha() else f"{s}x" for s in sizes)
    return f"tensor<{dims}{element}, #sym.dims<{', '.join(sizes)}>>"


def product(batch: Sequence[str] = (), m: str = "M", n: str = "N", k: str = "K", element: str = "bf16") -> str:
    """@main: one product."""
    op = "batch_matmul" if batch else "matmul"
    a, b, c = (tensor(*batch, *pair, element=element) for pair in ((m, k), (k, n), (m, n)))
    return f"""{SYMBOLS}
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %c = lin.{op} %a, %b : {a}, {b} -> {c}
  func.return %c : {c}
}}
"""


def two_products() -> str:
    """@main: (a b) c, where a b goes through scratch."""
    a, b, c, h, d = (tensor(*pair) for pair in ("MK", "KH", "HN", "MH", "MN"))
    return f"""{SYMBOLS}
func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {d} {{
  %h = lin.matmul %a, %b : {a}, {b} -> {h}
  %d = lin.matmul %h, %c : {h}, {c} -> {d}
  func.return %d : {d}
}}
"""


@cache
def entry(text: str = product(), arch: str = "sm_90a") -> CompiledEntry:
    """The program, compiled for an architecture."""
    return CompiledEntry(parse_module(text, "product.mlir", make_context()), "main", arch)


def operand(rows: int, columns: int, *, turned: bool = False, offset: int = 0) -> Layout:
    """A matrix, row-major or column-major, `offset` bytes after an aligned address."""
    return Layout((rows, columns), (1, rows) if turned else (columns, 1), 4096 + offset)


def decide(a: Layout, b: Layout, text: str = product()) -> tuple[Decision, list[str]]:
    """What a call does, and the kernels that it launches, without the name of the group."""
    plan = entry(text).plan
    decision = plan.run([a, b], None)
    assert decision == plan.interpret([a, b], None)
    return decision, [plan.sites[launch.site].kernel.removeprefix("main_0_") for launch in decision.launches]


@pytest.mark.parametrize(
    ("m", "n", "k", "options", "copies"),
    [
        (4096, 4096, 4096, {}, []),
        (4095, 4096, 4096, {}, []),  # only what lies along rows must be a multiple of 8
        (4096, 4096, 4093, {}, ["pad0"]),
        (4096, 4097, 4096, {}, ["pad1"]),
        (4095, 4097, 4093, {}, ["pads"]),  # both in one launch
        (4095, 4097, 4096, {"offset": 2}, ["pad0", "pad1"]),  # which asks for odd rows of both
        (4096, 4096, 4093, {"ta": True}, []),  # the odd size is no longer the fast one
        (4095, 4096, 4096, {"ta": True}, ["turn0"]),
        (4096, 4097, 4096, {"tb": True}, []),
        (4096, 4096, 4093, {"tb": True}, ["pad0", "turn1"]),
        (4096, 4096, 4096, {"offset": 2}, ["pad0"]),
        (4096, 4096, 4096, {"offset": 16}, []),
        (512, 512, 257, {}, ["pad0"]),
    ],
)  # fmt: skip
def test_what_is_copied(m: int, n: int, k: int, options: dict[str, Any], copies: list[str]) -> None:
    a = operand(m, k, turned=options.get("ta", False), offset=options.get("offset", 0))
    decision, kernels = decide(a, operand(k, n, turned=options.get("tb", False)))
    assert kernels[:-1] == copies
    assert kernels[-1].startswith("tile")
    # Rows of copies are multiples of a line of the caches, 128 bytes.
    shapes = {"0": (m, -(-k // 64) * 64), "1": (k, -(-n // 64) * 64)}
    made = "01" if copies == ["pads"] else [name[-1] for name in copies]
    assert [s for s in decision.scratch if s is not None] == [shapes[number] for number in made]


def test_strides_that_are_1_along_no_dim_or_not_positive() -> None:
    b = operand(512, 512)
    for strides in ((2048, 2), (0, 1), (-512, 1), (512, 0)):
        assert decide(Layout((512, 512), strides, 4096), b)[1][0] == "pad0"


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (129, 129, 129),
        (3, 1111, 487),  # a tile has 32 rows, so that these count as 32: 17.3 million, and the copies cost 17.6
        (4095, 4097, 0),
        (0, 4097, 4093),
        (4095, 0, 4093),
        (1, 1, 1),
    ],
)
def test_a_copy_that_would_not_pay_is_not_made(m: int, n: int, k: int) -> None:
    _, kernels = decide(operand(m, k), operand(k, n))
    assert not [kernel for kernel in kernels if kernel.startswith(("pad", "turn"))]
    assert all(kernel in ("large", "small", "split32x32_parts", "split32x32_sum") for kernel in kernels)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 1111, 519), (63, 4097, 4093), (4095, 4097, 63), (4095, 1, 4093)])
def test_copies_pay_from_some_size_on_whatever_the_form(m: int, n: int, k: int) -> None:
    _, kernels = decide(operand(m, k), operand(k, n))
    assert [kernel for kernel in kernels if kernel.startswith("pad")] == ["pads"]
    assert kernels[-1] not in ("large", "small", "split32x32_sum")


SLOWNESS = {
    (128, 256, 1): 1.0,
    (128, 256, 2): 1.02,
    (128, 128, 1): 1.04,
    (128, 128, 2): 1.06,
    (64, 128, 1): 1.05,
    (64, 128, 2): 1.18,
    (64, 64, 1): 1.87,
}
"""By rows, columns and blocks of a cluster."""
RAGGED = {(128, 256): 118_000, (128, 128): 39_000, (64, 128): 104_000, (64, 64): 60_000}
"""What is added times the depth of the sum where no tensor map stores the results."""


def cost_of(tile: tuple[int, int, int], m: int, n: int, line: int) -> float:
    """What a tile costs where 128 bytes of a row of the left operand cost 11, and of the right one `line`."""
    rows, columns, blocks = tile
    tiles = blocks * -(-m // (blocks * rows)) * -(-n // columns)
    own = rows * columns * SLOWNESS[tile] * 100 / 4096 + (RAGGED[rows, columns] // 4096 if n % 8 else 0)
    computing, fetching = 10 * own, rows * 11 + columns / blocks * line
    last = max(computing, tiles % 132 / 132 * fetching) if tiles % 132 else 0
    return tiles // 132 * max(computing, fetching) + last


@settings(max_examples=60, deadline=None)
@given(st.integers(64, 9000), st.integers(64, 9000))
def test_the_tile_costs_least(m: int, n: int) -> None:
    """In whole rounds of all processors, which compute or wait for operands."""
    # An operand with an odd number of columns is turned; else its rows are as far apart as n says.
    line = {8: 23, 16: 16, 32: 14}.get(n & -n, 11)
    cost = {tile: cost_of(tile, m, n, line) for tile in SLOWNESS}
    _, kernels = (
        decide(operand(m, 4096), operand(4096, -(-n // 8) * 8))
        if n % 8 == 0
        else decide(operand(m, 4096), operand(4096, n, turned=True))
    )
    if kernels[-1] in ("split64x128_sum", "split128x64_sum"):
        rows, columns = (64, 128) if kernels[-1] == "split64x128_sum" else (128, 64)
        assert -(-m // rows) * -(-n // columns) <= 132 // 2  # processors would be idle
        return
    taken = next(t for t in SLOWNESS if kernels[-1] == f"tile{t[0]}x{t[1]}{'_rows' if t[2] > 1 else ''}")
    # Costs are whole numbers in units that round down by less than a percent.
    assert cost[taken] <= min(cost.values()) * 1.01


@pytest.mark.parametrize(
    ("m", "n", "tile"),
    [(4096, 4096, "128x256"), (4095, 4097, "128x128"), (512, 4096, "128x128"), (1024, 1024, "64x128"),
     (128, 4096, "64x64")],
)  # fmt: skip
def test_tiles_of_known_sizes(m: int, n: int, tile: str) -> None:
    # The fastest ones as measured on one H200.
    assert decide(operand(m, 4093), operand(4093, n))[1][-1] == f"tile{tile}"


@pytest.mark.parametrize(
    ("n", "out", "variant"),
    [
        (4096, None, "vector32"),
        (4097, None, "rows32"),
        (4096, (4099, 1), "rows32"),
        (4097, (4104, 1), "rows32"),
        (4096, (8192, 2), "general64"),
        (4096, (1, 4095), "general64"),
    ],
)
def test_results_ask_for_contiguous_rows(n: int, out: tuple[int, int] | None, variant: str) -> None:
    plan = entry().plan
    results = None if out is None else [Layout((4095, n), out, 4096)]
    decision = plan.run([operand(4095, 4096), operand(4096, n, turned=True)], results)
    (launch,) = decision.launches
    assert plan.sites[launch.site].variant.partition("_")[0] == variant


def test_a_limit_on_scratch_is_kept() -> None:
    module = parse_module(product(), "product.mlir", make_context())
    options = {"lin-to-tile": {"arch": "sm_90a", "max_workspace": 2 * (512 * 320 + 257 * 512)}}
    run_pipeline(module, make_context(), make_passes(TENSOR, options))
    limited = HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))

    def scratch(m: int) -> set[Any]:
        return set(limited.run([operand(m, 257), operand(257, 512)], None).scratch)

    assert scratch(512) == {None, (512, 320)}
    assert scratch(513) == {None}


def test_remarks_name_the_candidates_and_the_copies() -> None:
    module = parse_module(product(n="128"), "product.mlir", make_context())
    with collecting_remarks() as remarks:
        run_pipeline(module, make_context(), make_passes(TENSOR[:-1], {"lin-to-tile": {"arch": "sm_90a"}}))
    texts = [r.message for r in remarks if r.pass_name == "lin-to-tile"]
    assert "%a is copied into rows of multiples of 64 elements where tensor maps cannot move it as it is: " in texts[0]
    assert "14*K*M + 1792*K + 10000000 <= 128*K*max(M, 32)" in texts[0]
    assert (
        "tile128x256 | tile 128x256x64 | shared 196608 B | registers ~168 | waves M ceildiv 16896 | "  # 132 of 128 rows
        "time 0.8 us * waves * (K ceildiv 64) | where it costs least" in texts
    )
    last = next(text for text in texts if text.startswith("tile64x64 | "))
    assert last.endswith(" | time 0.187 us * waves * (K ceildiv 64) | where none before it is taken")
    cluster = next(text for text in texts if text.startswith("tile128x256_rows | "))
    assert " | waves M ceildiv 16896 | time 0.816 us * waves * (K ceildiv 64) | " in cluster
    assert len(texts) == len(set(texts)) <= 15


def whole(*shape: int) -> Array:
    """Small whole numbers, so that sums are exact."""
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(ml_dtypes.bfloat16)


def times(a: Array, b: Array) -> Array:
    """The product, rounded once."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)


@pytest.mark.parametrize("layout", ["rows", "columns", "steps"])
def test_results_through_copies(layout: str) -> None:
    a, b = whole(405, 409), whole(409, 407)
    if layout == "columns":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    elif layout == "steps":
        a = np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3]
    (got,) = interpret_host(entry().planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(a, b))


def test_results_of_products_in_a_batch() -> None:
    a, b = whole(3, 285, 283), whole(3, 283, 281)
    (got,) = interpret_host(entry(product(batch="B")).planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(a, b))


def test_sizes_that_are_numbers() -> None:
    a, b = whole(405, 409).astype(np.float16), whole(409, 416).astype(np.float16)
    text = product(m="405", n="416", k="409", element="f16")
    (got,) = interpret_host(entry(text).planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(a, b))
    assert decide(operand(405, 409), operand(409, 416), text)[1] == ["pad0", "tile64x64"]


def kernels_of(text: str, arch: str) -> set[str]:
    """The names of the kernels that a plan may launch."""
    return {site.kernel for site in entry(text, arch).plan.sites}


def test_numbers_that_rule_out_copies_and_tiles() -> None:
    """A copy takes longer than so small a product; two thirds of a large tile would be empty."""
    small = product(m="32", n="32", k="33")
    assert kernels_of(small, "sm_90a") == {"main_0_tile64x64", "main_0_small"}
    assert kernels_of(small, "sm_80") == {"main_0_warps64x64", "main_0_warps64x64_any"}


def test_a_product_of_scratch_into_scratch_is_known_to_be_aligned() -> None:
    """The second of three products needs no other kernel than that for copies of 16 bytes."""
    square = tensor("64", "64")
    text = f"""
func.func @main(%a: {square}) -> {square} {{
  %p = lin.matmul %a, %a : {square}, {square} -> {square}
  %q = lin.matmul %p, %p : {square}, {square} -> {square}
  %r = lin.matmul %q, %a : {square}, {square} -> {square}
  func.return %r : {square}
}}
"""
    assert kernels_of(text, "sm_80") == {
        "main_0_warps64x64",
        "main_0_warps64x64_any",
        "main_1_warps64x64",
        "main_2_warps64x64",
        "main_2_warps64x64_any",
    }


def test_an_operand_that_is_read_twice_is_copied_once() -> None:
    square = tensor("M", "M")
    text = f"""{SYMBOLS}
func.func @main(%a: {square}) -> {square} {{
  %t = lin.transpose %a perm [1, 0] : {square} -> {square}
  %c = lin.matmul %a, %t : {square}, {square} -> {square}
  %d = lin.map ins(%c, %a : {square}, {square}) -> {square} {{
  ^bb0(%p: bf16, %q: bf16):
    %s = arith.addf %p, %q : bf16
    lin.yield %s : bf16
  }}
  func.return %d : {square}
}}
"""
    a = whole(411, 411)
    (got,) = interpret_host(entry(text).planned[0], "main", [a])
    product_ = times(a, np.ascontiguousarray(a.T)).astype(np.float32)
    np.testing.assert_array_equal(got, (product_ + a.astype(np.float32)).astype(a.dtype))
    plan = entry(text).plan
    found = [plan.sites[launch.site].kernel for launch in plan.run([operand(4095, 4095)], None).launches]
    assert found == ["main_0_pad0", "main_0_tile128x256"]


def test_scratch_between_products_has_rows_that_tensor_maps_can_move() -> None:
    # The padding of its rows is NaN: nothing reads it.
    a, b, c = whole(405, 409), whole(409, 407), whole(407, 415)
    compiled = entry(two_products())
    (got,) = interpret_host(compiled.planned[0], "main", [a, b, c])
    np.testing.assert_array_equal(got, times(times(a, b), c))
    decision = compiled.plan.run([operand(405, 409), operand(409, 407), operand(407, 415)], None)
    kernels = [compiled.plan.sites[launch.site].kernel for launch in decision.launches]
    assert [k.partition("_")[2][:6] for k in kernels] == ["0_pads", "0_tile", "1_pad1", "1_tile"]
    assert (405, 448) in decision.scratch


SCRATCH = """
func.func @main(%a: {a}, %b: {b}) -> ({c}, {a}) {{
  %h = lin.generic (i, k) ins(%a[i, k] : {a}) out[i, k] : {a} {{
  ^bb0(%x: bf16):
    %n = arith.negf %x : bf16
    lin.yield %n : bf16
  }}
  %r = {product}
  %t = lin.generic (i, k) ins(%h[i, k] : {a}) out[i, k] : {a} {{
  ^bb0(%x: bf16):
    %n = arith.negf %x : bf16
    lin.yield %n : bf16
  }}
  func.return %r, %t : {c}, {a}
}}
"""
GENERIC = """lin.generic (i, j, k) ins({left}[i, k] : {a}, {right}[k, j] : {b}) out[i, j] combine sum : {c} {{
  ^bb0(%x: bf16, %y: bf16):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %m = arith.mulf %v, %w : f32
    lin.yield %m : f32
  }}"""


@pytest.mark.parametrize(
    ("arch", "grouped", "multiple"), [("sm_80", True, 1), ("sm_90a", True, 64), ("sm_90a", False, 64)]
)
def test_scratch_is_padded_where_a_product_reads_it(arch: str, grouped: bool, multiple: int) -> None:
    """Whether the product stands in a group or not; what no product reads has no need of it."""
    types = {"a": tensor("M", "K"), "b": tensor("K", "N"), "c": tensor("M", "N", element="f32")}
    if grouped:
        inner = GENERIC.format(left="%p", right="%q", **types)
        head = "lin.group ins(%h, %b : {a}, {b}) -> {c} {{ ^bb0(%p: {a}, %q: {b}): ".format(**types)
        product_ = f"{head}%s = {inner} lin.yield %s : {types['c']} }}"
    else:
        product_ = GENERIC.format(left="%h", right="%b", **types)
    module = parse_module(SYMBOLS + SCRATCH.format(product=product_, **types), "scratch.mlir", make_context())
    (function,) = (op for op in module.ops if isinstance(op, FunctionOp))
    halves, _, turned, _ = function.body.block.ops
    assert row_multiple(halves.results[0], arch) == multiple
    assert row_multiple(turned.results[0], arch) == 1


OWN_OPERAND = """
func.func @main(%v: {v}, %b: {b}) -> {c} {{
  %r = lin.group ins(%v, %b : {v}, {b}) -> {c} {{
  ^bb0(%p: {v}, %q: {b}):
    %h = lin.generic (i) ins(%p[i] : {v}) out[i] : {v} {{
    ^bb1(%x: bf16):
      %n = arith.negf %x : bf16
      lin.yield %n : bf16
    }}
    %s = lin.generic (i, j, k) ins(%h[i] : {v}, %q[k, j] : {b}) out[i, j] combine sum : {c} {{
    ^bb2(%x: bf16, %y: bf16):
      %f = arith.extf %x : bf16 to f32
      %g = arith.extf %y : bf16 to f32
      %m = arith.mulf %f, %g : f32
      lin.yield %m : f32
    }}
    lin.yield %s : {c}
  }}
  func.return %r : {c}
}}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_an_operand_that_its_own_kernel_makes_is_in_no_memory_to_copy_from(arch: str) -> None:
    types = {"v": tensor("M"), "b": tensor("K", "N"), "c": tensor("M", "N", element="f32")}
    text = SYMBOLS + OWN_OPERAND.format(**types)
    assert not any("tile" in name or "_nn" in name for name in kernels_of(text, arch))
    v, b = whole(33), whole(50, 40)
    (got,) = interpret_host(entry(text, arch).planned[0], "main", [v, b])
    np.testing.assert_array_equal(got, -v.astype(np.float32)[:, None] * b.astype(np.float32).sum(0))


def test_an_operand_that_is_read_at_computed_positions_leaves_the_product_to_the_threads() -> None:
    """Rows in the reverse order: no tensor map moves those."""
    types = {"a": tensor("M", "K"), "b": tensor("K", "N"), "c": tensor("M", "N", element="f32")}
    product_ = GENERIC.format(left="%a", right="%b", **types)
    product_ = product_.replace("%a[i, k]", "%a at [M - 1 - i, k] else 0.0 : bf16")
    text = "{symbols}func.func @main(%a: {a}, %b: {b}) -> {c} {{ %r = {product} func.return %r : {c} }}"
    compiled = entry(text.format(symbols=SYMBOLS, product=product_, **types))
    assert not any("_tile" in site.kernel for site in compiled.plan.sites)
    a, b = whole(9, 5), whole(5, 11)
    (got,) = interpret_host(compiled.planned[0], "main", [a, b])
    np.testing.assert_array_equal(got, times(np.ascontiguousarray(a[::-1]), b).astype(np.float32))


def copied(name: str, source: Array, sizes: dict[str, int]) -> tuple[Array, Any]:
    """What a copy kernel makes of the left operand, and the simulator's report."""
    compiled = entry()
    lowered = compiled.lower(compiled.sites[f"main_0_{name}"])
    rows, columns = source.shape
    target = np.full((rows, -(-columns // 64) * 64), 77, source.dtype)
    memory = source.ravel(order="K")
    report = compile_kernel(lowered.kernel, "check", aliased=False).run(
        [Buffer(memory), Buffer(target.reshape(-1))],
        lowered.scalars(tuple(sizes.get(s, 0) for s in compiled.plan.symbols)),
        grid=compiled.sites[f"main_0_{name}"].grid.evaluate(sizes),
    )
    return target, report


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (67, 129), (40, 8), (16, 513)])
@pytest.mark.parametrize("kernel", ["pad0", "turn0"])
def test_copies_are_exact_and_stay_inside(kernel: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    turned = kernel == "turn0"
    source = np.asarray(whole(*shape), order="F" if turned else "C")
    strides = (1, rows) if turned else (columns, 1)
    sizes = {"M": rows, "K": columns, "a_s0": strides[0], "a_s1": strides[1]}
    target, report = copied(f"{kernel}/general32", source, sizes)
    assert not report.diagnostics
    np.testing.assert_array_equal(target[:, :columns], source)
    assert not target[:, columns:].any()


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 300, 9), (33, 257, 519), (16, 9, 777)])
def test_a_pair_of_copies_is_exact_and_stays_inside(m: int, k: int, n: int, width: int) -> None:
    compiled = entry()
    site = compiled.sites[f"main_0_pads/general{width}"]
    lowered = compiled.lower(site)
    sources = [whole(m, k), whole(k, n)]
    targets = [np.full((s.shape[0], -(-s.shape[1] // 64) * 64), 77, s.dtype) for s in sources]
    sizes = {"M": m, "K": k, "N": n, "a_s0": k, "a_s1": 1, "b_s0": n, "b_s1": 1}
    report = compile_kernel(lowered.kernel, "check", aliased=False).run(
        [Buffer(each.reshape(-1)) for each in (*sources, *targets)],
        lowered.scalars(tuple(sizes.get(s, 0) for s in compiled.plan.symbols)),
        grid=site.grid.evaluate(sizes),
    )
    assert not report.diagnostics
    for source, target in zip(sources, targets, strict=True):
        columns = source.shape[1]
        np.testing.assert_array_equal(target[:, :columns], source)
        assert not target[:, columns:].any()


@given(*(st.tuples(st.integers(1, 600), st.booleans()) for _ in range(3)), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_both_operands_are_paired_or_none(
    m: tuple[int, bool], n: tuple[int, bool], k: tuple[int, bool], more_a: int, more_b: int
) -> None:
    """The launch for both writes what both dispatches gave, scratch and never an operand."""
    rows, columns, depth = (8 * size if whole_ else size for size, whole_ in (m, n, k))
    a = Layout((rows, depth), (depth + more_a, 1), 4096)
    b = Layout((depth, columns), (columns + more_b, 1), 4096)
    decision, kernels = decide(a, b)
    plan = entry().plan
    first = plan.place(Slot("scratch", 0))
    assert ("pads" in kernels) == (all(each >= first for each in decision.chosen) and not {"pad0", "pad1"} & {*kernels})
    if "pads" in kernels:
        site = plan.sites[decision.launches[kernels.index("pads")].site]
        assert [plan.place(slot) for slot in site.tensors[2:]] == list(decision.chosen)
        assert len([each for each in decision.scratch if each is not None]) >= 2


def test_copies_touch_few_lines() -> None:
    rows, columns = 32, 513
    sizes = {"M": rows, "K": columns, "a_s0": columns, "a_s1": 1}
    compiled = entry()
    lowered = compiled.lower(compiled.sites["main_0_pad0/general32"])
    source, target = whole(rows, columns), np.zeros((rows, 576), ml_dtypes.bfloat16)
    program = compile_kernel(lowered.kernel, "count", aliased=False)
    scalars = lowered.scalars(tuple(sizes.get(s, 0) for s in compiled.plan.symbols))
    grid = compiled.sites["main_0_pad0/general32"].grid.evaluate(sizes)
    report = program.run([Buffer(source.reshape(-1)), Buffer(target.reshape(-1))], scalars, grid=grid)
    found = {
        site.op_name: counts for site, counts in report.counts.items() if site.op_name in ("simt.load", "simt.store")
    }
    # A store of 16 bytes a lane is 512 bytes: 16 sectors; the last 64 of a row's 576 elements take 4.
    assert found["simt.store"].requests == rows * 3
    assert found["simt.store"].sectors <= rows * (2 * 16 + 4)
    # Loads are two of such accesses, 16 bytes apart; at the row's two ends a lane or two read at most 8 elements each.
    assert found["simt.load"].sectors <= rows * (2 * 2 * 17 + 3 * 8)
    assert found["simt.load"].requests <= rows * (2 * 2 + 3 * 8)


@pytest.mark.nvrtc
@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_every_kernel_of_odd_sizes_compiles_without_spills(element: str) -> None:
    text = product(element=element)
    compiled = entry(text)
    sites: set[int] = set()
    for m, n, k in (
        (4095, 4097, 4093),
        (4096, 4096, 4093),
        (4095, 4097, 4096),
        (511, 4097, 4093),
        (1023, 1023, 1111),
        (127, 4097, 4093),
    ):
        for turned in (False, True):
            a, b = operand(m, k, turned=turned), operand(k, n, turned=turned)
            sites.update(launch.site for launch in compiled.plan.run([a, b], None).launches)
    names = {f"{compiled.plan.sites[n].kernel}/{compiled.plan.sites[n].variant}": n for n in sites}
    assert {name.split("/")[0].removeprefix("main_0_") for name in names} >= {
        "pad0", "pad1", "pads", "turn0", "turn1", "tile128x256", "tile64x128",
    }  # fmt: skip
    for name, number in names.items():
        made = compile_cubin(emit_kernel(compiled.lower(compiled.plan.sites[number]).kernel, "sm_90a"), "sm_90a")
        assert "C75" not in made.log, name
        (used,) = made.resources.values()
        assert (used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes) == (0, 0, 0), name


@pytest.mark.nvrtc
@pytest.mark.parametrize(("dtype", "precision"), [("bfloat16", "exact"), ("float32", "tf32")])
def test_fused_kernels_with_wide_indices_compile_without_spills(dtype: str, precision: str) -> None:
    m, n, k = tw.symbols("M N K")
    a, b, bias = tw.placeholder((m, k), dtype), tw.placeholder((k, n), dtype), tw.placeholder((n,), "float32")
    product_ = tw.matmul(a, b, precision=precision) if precision == "tf32" else tw.matmul(a, b)
    fused = tw.cast(tw.gelu(tw.cast(product_, "float32") + bias), "bfloat16")
    compiled = CompiledEntry(tw.build_module(fused), "main", "sm_90a")
    found = {
        f"{site.kernel}/{site.variant.partition('_')[0]}": site
        for site in compiled.plan.sites
        if "tile" in site.kernel and site.index_width == 64
    }
    assert {name.rpartition("/")[2] for name in found} == {"vector64", "rows64", "general64"}
    for name, site in found.items():
        made = compile_cubin(emit_kernel(compiled.lower(site).kernel, "sm_90a"), "sm_90a")
        assert "C75" not in made.log, name
        (used,) = made.resources.values()
        assert (used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes) == (0, 0, 0), name
