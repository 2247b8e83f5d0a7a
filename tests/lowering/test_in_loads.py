"""Operands that a product computes where it loads them: small products, and those that have no room for scratch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

from tests.lowering.test_repack import SYMBOLS, operand, tensor
from tests.passes.tile.support import Lowering
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.registry import make_context
from tilewright.lowering.pipelines import TENSOR, make_passes
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.plan import HostPlan
from tilewright.runtime.reference import compare, run_reference
from tilewright.runtime.tile_interpreter.host import interpret_host

B, M, N, K = tw.symbols("B M N K")


def single(*sizes: object, element: str = "float32") -> Tensor:
    return tw.placeholder(sizes, element)


def half(*sizes: object) -> Tensor:
    return tw.placeholder(sizes, "bfloat16")


PROGRAMS = {
    "relu": lambda: tw.matmul(tw.relu(half(M, K)), half(K, N)),
    "exp": lambda: tw.matmul(tw.exp(single(M, K)), single(K, N)),
    "reciprocals": lambda: tw.matmul(1.0 / single(M, K), 1.0 / single(K, N)),  # of the zeros past the end: inf * inf
    "scaled": lambda: tw.matmul(half(M, K) * half(K), half(K, N)),
    "turned": lambda: tw.matmul(tw.exp(tw.transpose(single(K, M), (1, 0))), single(K, N)),
    "right": lambda: tw.relu(tw.matmul(half(M, K), tw.exp(half(K, N))) + half(N)),
    "cast": lambda: tw.matmul(tw.cast(single(M, K), "bfloat16"), half(K, N)),
    "from integers": lambda: tw.matmul(tw.cast(single(M, K, element="int32"), "bfloat16"), half(K, N)),
    "integers": lambda: tw.matmul(single(M, K, element="int32") + 3, single(K, N, element="int32")),
    "batch": lambda: tw.matmul(tw.exp(single(B, M, K)), single(B, K, N)),
}
SIZES = [(5, 7, 9), (1, 1, 1), (0, 3, 4), (3, 4, 0), (3, 0, 4), (33, 65, 129), (64, 40, 128), (31, 33, 513)]


@cache
def lowering(name: str) -> Lowering:
    return Lowering(PROGRAMS[name](), arch="sm_90a")


def planned(name: str, arch: str | None = "sm_90a", **options: Any) -> tuple[Any, HostPlan, list[str]]:
    """A program at the tile level, its plan, and the remarks on the way."""
    module = build_module(PROGRAMS[name]())
    with collecting_remarks() as remarks:
        run_pipeline(module, make_context(), make_passes(TENSOR, {"lin-to-tile": {"arch": arch, **options}}))
    return module, HostPlan(next(op for op in module.ops if isinstance(op, FuncOp))), [r.message for r in remarks]


def launched(plan: HostPlan, *sizes: tuple[int, int]) -> list[str]:
    """The kernels that a call launches."""
    arguments = [operand(*each) for each in sizes]
    decision = plan.run(arguments, None)
    assert decision == plan.interpret(arguments, None)
    return [plan.sites[each.site].kernel for each in decision.launches]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_in_the_simulator(name: str, sizes: tuple[int, int, int]) -> None:
    call = lowering(name).assert_right({"B": 2, **dict(zip("MNK", sizes, strict=True))})
    assert all("_loads_" in kernel for kernel in call.kernels)


@pytest.mark.parametrize("name", ["exp", "scaled", "reciprocals"])
def test_values_of_strided_operands(name: str) -> None:
    lowering(name).assert_right({"M": 33, "N": 17, "K": 70}, strided=True)


def test_a_long_sum_is_cut_into_parts_of_which_each_computes_its_operand() -> None:
    call = lowering("exp").assert_right({"M": 5, "N": 33, "K": 700})
    assert call.kernels == ["main_1_loads_split32x32_parts", "main_1_loads_split32x32_sum"]


def test_a_scalar_goes_to_the_parts() -> None:
    x, w, y = tensor("M", "K", element="f32"), tensor("K", "N", element="f32"), tensor("M", "N", element="f32")
    text = f"""{SYMBOLS}
func.func @main(%x: {x}, %s: f32, %w: {w}) -> {y} {{
  %e = lin.map ins(%x, %s : {x}, f32) -> {x} {{
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    lin.yield %r : f32
  }}
  %m = lin.matmul %e, %w : {x}, {w} -> {y}
  %y = lin.map ins(%m, %s : {y}, f32) -> {y} {{
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    lin.yield %r : f32
  }}
  func.return %y : {y}
}}
"""
    made = Lowering(text, arch="sm_90a")
    for k, parts in ((700, 2), (70, 1)):
        assert len(made.assert_right({"M": 33, "N": 17, "K": k}).launches) == parts


def test_what_both_operands_are_is_made_once() -> None:
    x = tw.exp(single(M, K))
    made = Lowering(tw.matmul(x, tw.transpose(x, (1, 0))), arch="sm_90a")
    assert made.assert_right({"M": 33, "K": 17}).kernels[0] == "main_0"


def test_an_epilogue_that_reads_what_the_operand_is_made_from() -> None:
    x = single(M, M)
    made = Lowering(tw.matmul(tw.exp(x), single(M, M)) + x, arch="sm_90a")
    assert made.assert_right({"M": 37}).kernels == ["main_1_loads_small"]


def test_an_operand_for_all_of_a_batch() -> None:
    made = Lowering(tw.matmul(single(B, M, K), tw.exp(single(K, N))), arch="sm_90a")
    for sizes in ((3, 5, 7, 9), (2, 33, 17, 70), (0, 5, 7, 9)):
        kernels = made.assert_right(dict(zip("BMNK", sizes, strict=True))).kernels
        assert all("_loads_" in kernel for kernel in kernels)


@pytest.mark.parametrize("name", ["reciprocals", "scaled"])
def test_many_results_of_a_short_sum_take_large_tiles(name: str) -> None:
    (kernel,) = lowering(name).assert_right({"M": 724, "N": 725, "K": 9}).kernels
    assert kernel.endswith("_loads_large")


@pytest.mark.parametrize("name", ["exp", "reciprocals", "right"])
def test_values_on_the_cpu(name: str) -> None:
    kernel = tw_compile(name)
    module = build_module(PROGRAMS[name]())
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    for sizes in ((33, 65, 129), (3, 4, 0), (1, 1, 1)):
        named = dict(zip("MNK", sizes, strict=True))
        inputs = make_inputs(function, named, 3)
        (want,) = run_reference(module, "main", inputs, named)
        assert compare(np.asarray(kernel(*inputs)), want) is None


@cache
def tw_compile(name: str) -> Any:
    from tilewright.api.compile import compile as compile_program

    return compile_program(PROGRAMS[name](), target="cpu", arch="sm_90a")


def test_small_products_take_one_launch_and_no_scratch() -> None:
    _, plan, remarks = planned("relu")
    small, large = ([operand(n, n), operand(n, n)] for n in (160, 256))
    assert launched(plan, (160, 160), (160, 160)) == ["main_1_loads_small"]
    assert set(plan.run(small, None).scratch) == {None}
    assert launched(plan, (256, 256), (256, 256))[0] == "main_0"
    assert set(plan.run(large, None).scratch) == {None, (256, 256)}
    said = "%relu: computed where multiply-adds of threads load it: K*max(M, 32)*max(N, 32) - 10000000 <= 0"
    assert said in remarks


def test_both_operands_are_computed_or_none() -> None:
    _, plan, _ = planned("reciprocals")
    assert launched(plan, (40, 50), (50, 60)) == ["main_2_loads_small"]
    assert launched(plan, (1000, 1000), (1000, 1000)) == ["main_0", "main_1", "main_2_large"]


def test_an_operand_that_few_tiles_read_is_computed_there_without_matrix_instructions() -> None:
    _, plan, _ = planned("exp")
    assert launched(plan, (8192, 4096), (4096, 128)) == ["main_1_loads_large"]
    assert launched(plan, (8192, 4096), (4096, 129)) == ["main_0", "main_1_large"]
    _, plan, _ = planned("relu")
    assert launched(plan, (8192, 4096), (4096, 128))[0] == "main_0"


def test_warps_do_not_multiply_what_is_computed_in_the_loads() -> None:
    _, plan, remarks = planned("relu", "sm_80")
    assert launched(plan, (40, 40), (40, 40))[0] == "main_0"
    assert not any("where multiply-adds of threads load it" in text for text in remarks)


@pytest.mark.parametrize(("name", "size"), [("relu", 2), ("exp", 4)])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
def test_a_limit_on_scratch_counts_made_operands(name: str, size: int, arch: str) -> None:
    _, plan, _ = planned(name, arch, max_workspace=size * 1024 * 1024)
    assert launched(plan, (1024, 1024), (1024, 1024))[0] == "main_0"
    for m in (1025, 4096):
        decision = plan.run([operand(m, 1024), operand(1024, 1024)], None)
        assert [plan.sites[each.site].kernel for each in decision.launches] == ["main_1_loads_large"]
        assert set(decision.scratch) == {None}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("name", ["exp", "scaled", "cast", "integers"])
def test_values_where_there_is_no_room_for_scratch(name: str, arch: str) -> None:
    module, plan, _ = planned(name, arch, max_workspace=0)
    (function,) = (op for op in build_module(PROGRAMS[name]()).ops if isinstance(op, func.FuncOp))
    for sizes in ((33, 65, 129), (0, 3, 4), (5, 7, 700)):
        named = dict(zip("MNK", sizes, strict=True))
        inputs = make_inputs(function, named, 1)
        (got,) = interpret_host(module, "main", inputs)
        (want,) = run_reference(build_module(PROGRAMS[name]()), "main", inputs, named)
        assert compare(got, want) is None
    assert all("_loads_" in site.kernel or site.kernel == "main_0" or "main_1" in site.kernel for site in plan.sites)


def test_room_for_parts_is_what_the_made_operand_leaves() -> None:
    """64 x 64 x 16384 in parts: 2 MiB for the operand, and 16 KiB for each part."""
    made = 64 * 16384 * 2
    _, free, _ = planned("relu")
    _, tight, _ = planned("relu", max_workspace=made + 16 * 1024)
    sizes = [operand(64, 16384), operand(16384, 64)]
    assert len(free.run(sizes, None).launches) == 3
    assert len(tight.run(sizes, None).launches) == 2


def test_known_sizes_leave_one_way() -> None:
    small, large = (tw.matmul(tw.relu(half(n, n)), half(n, n)) for n in (64, 1024))
    kernels: list[set[str]] = []
    for program in (small, large):
        module = build_module(program)
        run_pipeline(module, make_context(), make_passes(TENSOR, {"lin-to-tile": {"arch": "sm_90a"}}))
        plan = HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))
        kernels.append({site.kernel for site in plan.sites})
    assert kernels[0] == {"main_1_loads_small"}
    assert "main_0" in kernels[1]
    assert not any("_loads_" in kernel for kernel in kernels[1])


def test_what_is_read_elsewhere_too_is_made_once() -> None:
    x = tw.relu(half(M, K))
    module = build_module([tw.matmul(x, half(K, N)), x])
    run_pipeline(module, make_context(), make_passes(TENSOR, {"lin-to-tile": {"arch": "sm_90a"}}))
    assert "_loads_" not in str(module)
