"""Contractions whose kernels reduce their result: which kernels run, with what scratch, and values at any sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

from tests.lowering.test_repack import operand
from tests.passes.support import CONTEXT
from tests.passes.tile.support import check_facts
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.api.testing.execute import PlannedCall, kernel_of
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.lowering import pipelines
from tilewright.lowering.lin_to_tile import LinToTilePass
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks
from tilewright.runtime.binding import Layout
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.plan import HostPlan
from tilewright.runtime.reference import compare, run_reference
from tilewright.runtime.tile_interpreter.host import interpret_host
from tilewright.runtime.variants import CompiledEntry

B, M, N, K = tw.symbols("B M N K")
Build = Callable[[], Tensor | Sequence[Tensor]]


def take(*sizes: Any, dtype: str = "bfloat16") -> Tensor:
    return tw.placeholder(sizes, dtype)


def activated() -> Tensor:
    return tw.relu(tw.matmul(take(M, K), take(K, N)) + take(N))


def rows() -> Tensor:
    return tw.sum(tw.cast(activated(), "float32"), 1)


def columns() -> Tensor:
    return tw.max(activated(), 0)


def result_and_rows() -> Sequence[Tensor]:
    result = activated()
    return [result, tw.sum(result, 1) * take(M)]


def several() -> Sequence[Tensor]:
    """Two reductions of rows, of what differs, and one of everything."""
    product = tw.matmul(take(M, K, dtype="float32"), take(K, N, dtype="float32")) + take(M, N, dtype="float32")
    return [tw.sum(product * product, 1) + tw.max(product, 1), tw.min(product)]


def centred() -> Tensor:
    result = activated()
    return result - tw.sum(result, 1, keepdims=True) * 0.5


def counted() -> Tensor:
    return tw.sum(tw.matmul(take(M, K, dtype="int32"), take(K, N, dtype="int32")), 0)


def batched() -> Sequence[Tensor]:
    product = tw.batch_matmul(take(B, M, K), take(B, K, N))
    return [tw.max(product, 2), tw.sum(tw.cast(product, "float32"), (0, 1))]


def turned() -> Tensor:
    return tw.sum(tw.einsum("ki,jk->ji", take(K, M), take(N, K)), 1)


PROGRAMS: dict[str, Build] = {
    f.__name__: f for f in (rows, columns, result_and_rows, several, counted, batched, turned)
}


@cache
def entry(name: str, arch: str = "sm_90a") -> CompiledEntry:
    return CompiledEntry(build_module(PROGRAMS[name]()), "main", arch)


def launched(name: str, m: int, n: int, k: int) -> tuple[list[str], list[tuple[int, ...]]]:
    """The kernels of a call, without the name of the group, and the shapes of its scratch."""
    vector = Layout((n,), (1,), 4096)
    plan = entry(name).plan
    arguments = [operand(m, k), operand(k, n), vector, Layout((m,), (1,), 4096)][: len(plan.arguments)]
    decision = plan.run(arguments, None)
    names = [plan.sites[each.site].kernel.removeprefix("main_0_") for each in decision.launches]
    return names, [s for s in decision.scratch if s is not None]


@pytest.mark.parametrize(
    ("name", "sizes", "kernels", "scratch"),
    [
        ("rows", (4096, 4096, 4096), ["tile128x256", "tile128x256_combine0"], [(16, 4096)]),
        ("columns", (4096, 4096, 4096), ["tile128x256", "tile128x256_combine0"], [(32, 4096)]),
        ("result_and_rows", (4096, 4096, 4096), ["tile128x256", "tile128x256_combine0"], [(16, 4096)]),
        ("rows", (31, 33, 64), ["small", "small_combine0"], [(2, 32)]),
    ],
)
def test_what_is_launched(
    name: str, sizes: tuple[int, int, int], kernels: list[str], scratch: list[tuple[int, ...]]
) -> None:
    assert launched(name, *sizes) == (kernels, scratch)


@pytest.mark.parametrize(("name", "own"), [("rows", [(256, 256)]), ("result_and_rows", [])])
def test_what_is_cut_along_the_sum_goes_through_memory(name: str, own: list[tuple[int, ...]]) -> None:
    """Its reductions are a kernel of their own."""
    kernels, scratch = launched(name, 256, 256, 16384)
    assert kernels[0].startswith("whole_split")
    assert [each.rpartition("_")[2] for each in kernels] == ["parts", "sum", "looping"]
    assert scratch[:-1] == own
    assert scratch[-1][1:] == (256, 256)


@cache
def planned(name: str, arch: str | None, tiles: tuple[int, ...] = (), room: int | None = None) -> Any:
    module = build_module(PROGRAMS[name]())
    lowered = module.clone()
    with collecting_remarks() as remarks:
        passes = [
            LinToTilePass(tiles, arch, room) if n == "lin-to-tile" else pipelines.make_passes([n])[0]
            for n in pipelines.TENSOR
        ]
        run_pipeline(lowered, CONTEXT, passes, verify_each=True, on_after=check_facts)
    return module, lowered, [r.message for r in remarks]


def sizes_of(name: str, m: int, n: int, k: int) -> dict[str, int]:
    sizes = {"M": m, "N": n, "K": k}
    return {"B": 1 + m % 3, **sizes} if name == "batched" else sizes


edges = st.sampled_from([0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 96, 130])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arch", [None, "sm_80", "sm_90a"])
@given(edges, edges, st.sampled_from([0, 1, 8, 17, 72, 200]), st.integers(0, 99))
@settings(max_examples=6, deadline=None)
def test_values_in_tiles(name: str, arch: str | None, m: int, n: int, k: int, seed: int) -> None:
    module, plan, _ = planned(name, arch)
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    sizes = sizes_of(name, m, n, k)
    inputs = make_inputs(function, sizes, seed)
    results = interpret_host(plan, "main", inputs)
    for got, want in zip(results, run_reference(module, "main", inputs, sizes), strict=True):
        assert compare(got, want) is None


SMALL = {"sm_90a": (64, 64, 64), "sm_80": (32, 64, 32), "sm_75": (16, 32, 16)}


@pytest.mark.parametrize("name", ["rows", "columns", "turned"])
@pytest.mark.parametrize("arch", SMALL)
@pytest.mark.parametrize(
    "sizes", [(65, 72, 24), (33, 130, 9), (0, 8, 8), (8, 0, 8), (8, 8, 0), (1, 1, 1), (64, 64, 64)]
)
def test_values_of_threads(name: str, arch: str, sizes: tuple[int, int, int]) -> None:
    """Small tiles in the simulator, with every access and barrier checked."""
    module, plan, _ = planned(name, arch, SMALL[arch])
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    inputs = make_inputs(function, sizes_of(name, *sizes), 3)
    call = PlannedCall(plan, inputs)
    results = call.simulate({each: kernel(name, arch, each) for each in call.sites})
    for got, want in zip(results, run_reference(module, "main", inputs, sizes_of(name, *sizes)), strict=True):
        assert compare(got, want) is None


@cache
def kernel(name: str, arch: str, site: str) -> Any:
    from tilewright.lowering.instantiate import instantiate

    _, plan, _ = planned(name, arch, SMALL[arch])
    host = HostPlan(next(op for op in plan.ops if isinstance(op, FuncOp)))
    (launch,) = (s.launch for s in host.sites if f"{s.kernel}_{s.variant}" == site)
    module = instantiate(plan, launch, arch)
    run_pipeline(module, CONTEXT, pipelines.make_passes(pipelines.TILE), verify_each=True)
    return kernel_of(module)


def test_the_same_call_gives_the_same_bits() -> None:
    _, plan, _ = planned("rows", "sm_80")
    (function,) = (op for op in build_module(rows()).ops if isinstance(op, func.FuncOp))
    inputs = make_inputs(function, {"M": 70, "N": 300, "K": 20}, 0)
    (first,), (second,) = (interpret_host(plan, "main", inputs) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_partial_results_keep_to_the_limit() -> None:
    """With the product as a result, its reductions can do without scratch; without it they need least where fused."""
    for room, fused in ((None, True), (1 << 20, True), (100, False), (0, False)):
        _, plan, _ = planned("result_and_rows", None, (), room)
        host = HostPlan(next(op for op in plan.ops if isinstance(op, FuncOp)))
        layouts = [operand(64, 32), operand(32, 64), Layout((64,), (1,), 4096), Layout((64,), (1,), 4096)]
        decision = host.run(layouts, None)
        names = [host.sites[each.site].kernel for each in decision.launches]
        assert names[1] == ("main_0_small_combine0" if fused else "main_0_reduce0_looping")
    _, plan, _ = planned("rows", None, (), 0)
    host = HostPlan(next(op for op in plan.ops if isinstance(op, FuncOp)))
    decision = host.run([operand(64, 32), operand(32, 64), Layout((64,), (1,), 4096)], None)
    assert [host.sites[each.site].kernel for each in decision.launches] == ["main_0_small", "main_0_small_combine0"]


def test_a_tile_that_has_whole_rows_needs_no_second_kernel() -> None:
    def build() -> Tensor:
        return tw.sum(tw.matmul(take(M, K), take(K, 48)), 1) * 2.0

    made = CompiledEntry(build_module(build()), "main", "sm_90a")
    decision = made.plan.run([operand(4096, 256), operand(256, 48)], None)
    names = [made.plan.sites[each.site].kernel for each in decision.launches]
    assert len(names) == 1, names
    assert "tile" in names[0]


@pytest.mark.parametrize(
    ("build", "groups"),
    [
        (rows, 1),
        (lambda: tw.softmax(tw.matmul(take(M, K), take(K, N))), 2),  # a kernel over rows reads the product once
        (lambda: tw.sum(tw.batch_matmul(take(B, M, K), take(B, K, N)), 0), 2),  # no tile has several batches
        (centred, 2),
    ],
)
def test_which_reductions_join(build: Build, groups: int) -> None:
    module = build_module(build())
    passes = pipelines.TENSOR[: pipelines.TENSOR.index("lin-to-tile")]
    run_pipeline(module, CONTEXT, pipelines.make_passes(passes), verify_each=True)
    found = [op for op in module.walk() if isinstance(op, GroupOp)]
    assert len(found) == groups


def test_remarks_say_what_becomes_of_a_reduction() -> None:
    _, _, said = planned("rows", "sm_90a")
    text = "@main_0_tile128x256 reduces its tiles: N ceildiv 256 x M partial results, combined by a second kernel"
    assert text in said


@pytest.mark.nvrtc
@pytest.mark.parametrize("name", ["rows", "columns"])
@pytest.mark.parametrize("tile", ["tile128x256", "tile64x64"])
def test_one_kernel_multiplies_and_reduces(name: str, tile: str) -> None:
    """Matrix instructions and the exchange of lanes in one cubin, which spills nothing and is not serialised."""
    made = entry(name)
    site = next(s for s in made.sites.values() if s.kernel == f"main_0_{tile}" and s.variant == "vector32")
    source = emit_kernel(made.lower(site).kernel, "sm_90a")
    assert "tw_wgmma_bf16" in source
    assert "tw_shuffle_xor(" in source.split('extern "C"')[1]
    log = compile_cubin(source, "sm_90a").log
    assert " 0 bytes spill stores, 0 bytes spill loads" in log
    assert "C75" not in log
