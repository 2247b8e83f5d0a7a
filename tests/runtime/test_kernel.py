"""Kernels from the outside: results, outputs, variants, statistics, backends. Numbers are NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.runtime.backends import sim
from tilewright.runtime.backends.select import choose
from tilewright.runtime.compile import compile_module
from tilewright.runtime.kernel import Kernel

BIAS = """
sym.symbol @M {min = 1}
sym.symbol @N
#mn = #sym.dims<M, N>
#n = #sym.dims<N>
func.func @main(%x : tensor<?x?xELT, #mn>, %b : tensor<?xELT, #n>) -> tensor<?x?xELT, #mn> {
  %r = lin.map ins(%x, %b : tensor<?x?xELT, #mn>, tensor<?xELT, #n>) -> tensor<?x?xELT, #mn> {
  ^bb0(%p: ELT, %q: ELT):
    %z = arith.addf %p, %q : ELT
    lin.yield %z : ELT
  }
  func.return %r : tensor<?x?xELT, #mn>
}
"""

TWO_STEPS = """
sym.symbol @M
sym.symbol @K
#mk = #sym.dims<M, K>
#k8 = #sym.dims<K, 8>
#m8 = #sym.dims<M, 8>
#m = #sym.dims<M>
func.func @main(%a : tensor<?x?xf32, #mk>, %b : tensor<?x8xf32, #k8>) -> (tensor<?x8xf32, #m8>, tensor<?xf32, #m>) {
  %c = lin.matmul %a, %b : tensor<?x?xf32, #mk>, tensor<?x8xf32, #k8> -> tensor<?x8xf32, #m8>
  %s = lin.reduce sum %c axes [1] : tensor<?x8xf32, #m8> -> tensor<?xf32, #m>
  func.return %c, %s : tensor<?x8xf32, #m8>, tensor<?xf32, #m>
}
"""


def compiled(text: str = BIAS, element: str = "f32", target: str = "sim", **options: Any) -> Kernel:
    module = parse_module(text.replace("ELT", element), "kernel.mlir", make_context())
    return compile_module(module, target, **options)


def integers(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Small whole numbers, so that sums are exact in every type."""
    count = int(np.prod(shape))
    return (np.arange(count) % 13 - 6).reshape(shape).astype(dtype)


@pytest.fixture(scope="module")
def bias() -> Kernel:
    return compiled()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (1, 64), (40, 132), (7, 0), (65, 1)])
def test_every_size_is_served_by_one_run_of_the_pipeline(bias: Kernel, shape: tuple[int, int]):
    x, b = integers(*shape), integers(shape[1])
    np.testing.assert_array_equal(bias(x, b), x + b)
    assert bias.stats()["pipeline_runs"] == 1
    assert bias.stats()["launches"] == (1 if x.size else 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2, ::3],
        lambda x: x[::-1, ::-1],
        lambda x: x.T[:20, :30],
        lambda x: np.broadcast_to(x[:1], (9, x.shape[1])),
        lambda x: np.broadcast_to(x[:, :1], (x.shape[0], 6)),
        lambda x: x[3:, 5:],
    ],
    ids=["steps", "backwards", "transposed", "broadcast-rows", "broadcast-columns", "offset"],
)
def test_strided_views_are_read_where_they_are(bias: Kernel, view: Any):
    x = view(integers(40, 50))
    b = integers(x.shape[1])
    np.testing.assert_array_equal(bias(x, b), x + b)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_other_element_types(dtype: Any):
    kernel = compiled(element={"float16": "f16", "bfloat16": "bf16"}[np.dtype(dtype).name])
    x, b = integers(5, 72, dtype=dtype), integers(72, dtype=dtype)
    result = kernel(x, b)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), (x + b).astype(np.float32))


def test_aligned_calls_take_the_vectorised_variant_and_others_the_general_one():
    kernel = compiled()

    def wanted() -> list[str]:
        return [k["variant"] for k in kernel.stats()["kernels"] if k["compiled"]]

    memory = np.zeros(4 * 64 + 16, np.float32)
    start = (-memory.ctypes.data // 4) % 4
    kernel(memory[start : start + 256].reshape(4, 64), integers(64)[:64].copy())
    first = wanted()
    kernel(memory[start + 1 : start + 257].reshape(4, 64), integers(64))
    assert "general32" not in first
    assert set(wanted()) == {*first, "general32"}


def test_large_tensors_take_64_bit_indices(monkeypatch: pytest.MonkeyPatch):
    """With the limit of 32 bits moved to where a small tensor passes it."""
    monkeypatch.setattr("tilewright.lowering.host_variants.INDEX_LIMIT", 20_000)
    kernel = compiled()
    for x in (integers(100, 200), integers(100, 203), integers(200, 100).T):
        np.testing.assert_array_equal(kernel(x, integers(x.shape[1])), x + integers(x.shape[1]))
    wanted = {k["variant"] for k in kernel.stats()["kernels"] if k["compiled"]}
    assert wanted <= {"vector64", "general64"}
    assert "general64" in wanted
    np.testing.assert_array_equal(kernel(integers(3, 5), integers(5)), integers(3, 5) + integers(5))
    assert "general32" in {k["variant"] for k in kernel.stats()["kernels"] if k["compiled"]}


@pytest.mark.parametrize("kind", ["torch", "dlpack"])
def test_results_come_in_the_kind_of_the_arguments(bias: Kernel, kind: str):
    if kind == "torch":
        torch = pytest.importorskip("torch")
        x, b = torch.from_numpy(integers(4, 6)), torch.from_numpy(integers(6))
        result = bias(x, b)
        assert isinstance(result, torch.Tensor)
        assert torch.equal(result, x + b)
        return

    class Shared:
        """A tensor that speaks DLPack and nothing else."""

        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    result = bias(Shared(integers(4, 6)), Shared(integers(6)))
    np.testing.assert_array_equal(result, integers(4, 6) + integers(6))


def test_a_variant_is_lowered_once():
    kernel = compiled()
    x, b = integers(3, 5), integers(5)
    kernel(x, b)
    spent = kernel.compile_seconds
    for rows in range(1, 6):
        kernel(integers(rows, 7), integers(7))
    assert kernel.compile_seconds == spent


def test_several_results_and_scratch_in_order():
    kernel = compiled(TWO_STEPS)
    a, b = integers(33, 20), integers(20, 8)
    c, s = kernel(a, b)
    np.testing.assert_array_equal(c, a @ b)
    np.testing.assert_array_equal(s, (a @ b).sum(axis=1))


def test_a_sum_over_nothing_is_zero():
    c, s = compiled(TWO_STEPS)(integers(3, 0), integers(0, 8))
    np.testing.assert_array_equal(c, np.zeros((3, 8)))
    np.testing.assert_array_equal(s, np.zeros(3))


def test_out_is_written_and_returned(bias: Kernel):
    x, b = integers(6, 9), integers(9)
    whole, wide = np.empty((6, 9), np.float32), np.empty((6, 20), np.float32)
    for out in (whole, np.empty((9, 6), np.float32).T, wide[:, 1:19:2]):
        assert bias(x, b, out=out) is out
        np.testing.assert_array_equal(out, x + b)


def test_out_of_several_results_is_a_tuple():
    a, b = integers(4, 3), integers(3, 8)
    out = (np.empty((4, 8), np.float32), np.empty(4, np.float32))
    returned = compiled(TWO_STEPS)(a, b, out=out)
    assert returned[0] is out[0]
    assert returned[1] is out[1]
    np.testing.assert_array_equal(out[1], (a @ b).sum(axis=1))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((6, 8), np.float32), r"result 0: expected shape \(6, 9\).*, got \(6, 8\)"),
        (np.empty(54, np.float32), "'out': expected 2 dims, got 1"),
        (np.empty((6, 9), np.float16), "'out': expected element type f32, got f16"),
        (np.broadcast_to(np.float32(1), (6, 9)), "'out': expected memory that can be written"),
        ((np.empty((6, 9), np.float32),) * 2, "expected 1 tensors, got 2"),
    ],
)
@pytest.mark.parametrize("target", ["sim", "reference"])
def test_out_that_does_not_fit(out: Any, message: str, target: str):
    with pytest.raises(TilewrightError, match=message):
        compiled(target=target)(integers(6, 9), integers(9), out=out)


def test_out_may_not_share_memory_with_an_input(bias: Kernel):
    x = integers(6, 9)
    with pytest.raises(TilewrightError, match="no memory in common with input 'x'"):
        bias(x, integers(9), out=x)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((integers(3, 5), integers(6)), "N = 5 from argument 0 dim 1, 6 from argument 1 dim 0"),
        ((integers(0, 5), integers(5)), "M: expected at least 1, got M = 0 from argument 0 dim 0"),
        ((integers(3, 5),), r"@main: expected 2 arguments \(x, b\), got 1"),
        ((integers(3, 5), integers(5, 1)), r"argument 1 \('b'\): expected 1 dims, got 2"),
        ((integers(3, 5, dtype=np.float64), integers(5)), r"argument 0 \('x'\): expected element type f32"),
        (([[1.0]], integers(5)), r"argument 0 \('x'\): expected a NumPy array"),
    ],
)
def test_arguments_that_do_not_fit(bias: Kernel, arrays: tuple[Any, ...], message: str):
    with pytest.raises(TilewrightError, match=message):
        bias(*arrays)


def test_the_levels_of_the_program_can_be_read():
    kernel = compiled()
    marks = {"tensor": "lin.group", "tile": "tile.kernel @main_0(", "scheduled": "via thread", "simt": "simt.kernel"}
    for level, mark in {**marks, "host": "host.dispatch"}.items():
        text = kernel.ir(level)
        assert mark in text
        parse_module(text, level, make_context())
    assert kernel.stats()["pipeline_runs"] == 1
    with pytest.raises(TilewrightError, match="expected one of tensor, tile, scheduled, simt, host, got 'ptx'"):
        kernel.ir("ptx")


def test_source_has_every_variant_of_the_plan():
    kernel = compiled()
    source = kernel.source
    assert list(source) == [f"main_0/{v}" for v in ("vector32", "general32", "vector64", "general64")]
    assert all("__global__" in text for text in source.values())
    assert all(k["compiled"] for k in kernel.stats()["kernels"])


def test_stats_have_the_promised_shape():
    kernel = compiled()
    kernel(integers(2, 4), integers(4))
    stats = kernel.stats()
    assert stats["backend"] == "sim"
    assert set(stats) == {"backend", "launches", "pipeline_runs", "kernels"}
    keys = {
        "name", "variant", "compiled", "code", "registers", "spill_bytes", "stack_bytes", "smem_bytes", "occupancy",
    }  # fmt: skip
    assert all(set(each) == keys for each in stats["kernels"])
    assert all(each["registers"] is None for each in stats["kernels"]), "the simulator has no registers to count"


def test_the_reference_lowers_nothing():
    kernel = compiled(target="reference")
    x, b = integers(3, 5), integers(5)
    np.testing.assert_array_equal(kernel(x, b), x + b)
    assert kernel.stats() == {"backend": "reference", "launches": 0, "pipeline_runs": 0, "kernels": []}


def test_auto_takes_the_simulator_without_a_gpu_and_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilewright.runtime.cuda_driver.cuda_unavailable_reason", lambda: "no GPU today")
    choice = choose("auto", None)
    assert (choice.backend, choice.arch, choice.reason) == ("auto", "sm_80", "no GPU: no GPU today")
    with pytest.raises(TilewrightError, match="target cuda: no GPU today"):
        choose("cuda", None)
    assert choose("auto", "sm_90a").arch == "sm_90a"


@pytest.mark.parametrize(
    ("target", "arch", "message"),
    [
        ("gpu", None, "expected one of auto, cuda, cpu, sim, reference, got 'gpu'"),
        ("sim", "sm_75", "expected sm_80 or later, got 'sm_75'"),
        ("sim", "hopper", "expected sm_<number>"),
    ],
)
def test_targets_that_are_refused(target: str, arch: str | None, message: str):
    with pytest.raises(TilewrightError, match=message):
        compiled(target=target, arch=arch)


def test_entries_are_chosen_by_name():
    second = BIAS[BIAS.index("func.func") :].replace("@main", "@other").replace("arith.addf", "arith.mulf")
    x, b = integers(2, 3), integers(3)
    with pytest.raises(TilewrightError, match=r"several entries \(main, other\)"):
        compiled(BIAS + second)
    np.testing.assert_array_equal(compiled(BIAS + second, entry="other")(x, b), x * b)
    with pytest.raises(TilewrightError, match="expected one of main, other, got 'third'"):
        compiled(BIAS + second, entry="third")
    with pytest.raises(TilewrightError, match="expected a public func"):
        compiled("sym.symbol @M")


def test_the_module_is_left_as_it_was():
    module = parse_module(BIAS.replace("ELT", "f32"), "kernel.mlir", make_context())
    before = str(module)
    compile_module(module, "sim")(integers(2, 3), integers(3))
    assert str(module) == before


def test_long_simulations_are_refused_unless_forced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    kernel = compiled()
    x, b = integers(16 * 40, 200), integers(200)
    monkeypatch.setattr(sim, "estimate_seconds", lambda *_, **__: 500.0)
    with pytest.raises(TilewrightError, match="would take about 500 s"):
        kernel(x, b)
    np.testing.assert_array_equal(kernel(x, b, force=True), x + b)
    assert "100%" in capsys.readouterr().err
