"""Products that the pipelines lower to matrix instructions run in the simulator, checked, in both landings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.runtime.sim.ring_gemm import Gemm
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.memory import StoreOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType
from tilewright.dialects.simt.wgmma import WgmmaOp
from tilewright.runtime.backends.host import HostLaunch
from tilewright.runtime.backends.sim import SimBackend, buffer_of
from tilewright.runtime.binding import Layout
from tilewright.runtime.reference import run_reference
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import Program, compile_kernel
from tilewright.runtime.sim.report import Report
from tilewright.runtime.variants import CompiledEntry

BF16 = ml_dtypes.bfloat16
PROGRAM = """
!A = tensor<?x?xbf16, #sym.dims<M, K>>
!B = tensor<?x?xbf16, #sym.dims<K, N>>
!C = tensor<?x?xbf16, #sym.dims<M, N>>
sym.symbol @M {min = 0}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
func.func @f(%a: !A, %b: !B) -> !C {
  %c = lin.matmul %a, %b : !A, !B -> !C
  func.return %c : !C
}
"""
MODULE = parse_module(PROGRAM, "product.mlir", make_context())


class CheckedSim(SimBackend):
    """The backend at level `check`, with persistent kernels on few blocks."""

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self.reports: list[Report] = []
        self.by_matrix = 0
        self.options: dict[str, Any] = {}
        self.checked: dict[str, Program] = {}

    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        for each in launches:
            kernel = each.lowered.kernel
            program = self.checked.get(each.lowered.name)
            if program is None:
                program = self.checked[each.lowered.name] = compile_kernel(kernel, "check", aliased=False)
            self.by_matrix += any(isinstance(op, WgmmaOp) for op in kernel.walk())
            self.reports.append(
                program.run(
                    [buffer_of(tensor) for tensor in each.tensors],
                    each.scalars,
                    grid=each.grid if kernel.persistent is None else min(each.grid, self.persistent_blocks),
                    map_sizes=each.map_sizes,
                    **self.options,
                )
            )


ENTRY = CompiledEntry(MODULE, "f", "sm_90a")


def inputs(m: int, n: int, k: int) -> tuple[Any, Any]:
    random = np.random.default_rng(m + n + k)
    return random.standard_normal((m, k)).astype(BF16), random.standard_normal((k, n)).astype(BF16)


SIZES = [(64, 64, 64), (1, 8, 8), (1, 136, 72), (100, 72, 200), (130, 136, 8), (65, 200, 136), (37, 64, 0), (0, 8, 8)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("landing", ["latest", "earliest"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_products_agree_with_the_reference(m: int, n: int, k: int, landing: str, blocks: int) -> None:
    a, b = inputs(m, n, k)
    backend = CheckedSim(ENTRY)
    backend.options = {"landing": landing, "seed": m + n}
    backend.persistent_blocks = blocks
    (c,) = backend.call([a, b], None, None, False)
    for report in backend.reports:
        assert not report.diagnostics, [str(d) for d in report.diagnostics]
    (reference,) = run_reference(MODULE, "f", [a, b], {"M": m, "N": n, "K": k})
    error = np.abs(c.astype(np.float64) - reference.value)
    assert c.shape == (m, n)
    assert backend.by_matrix == (m * n * k > 0)  # empty sums have no operands that a tensor map could describe
    assert (error <= reference.bound).all()


@given(
    m=st.integers(0, 140),
    n=st.integers(1, 18).map(lambda x: 8 * x),
    k=st.integers(0, 34).map(lambda x: 8 * x),
    blocks=st.integers(1, 6),
    landing=st.sampled_from(["latest", "earliest"]),
    seed=st.none() | st.integers(0, 99),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_products_of_any_size(m: int, n: int, k: int, blocks: int, landing: str, seed: int | None) -> None:
    a, b = inputs(m, n, k)
    backend = CheckedSim(ENTRY)
    backend.options = {"landing": landing, "seed": seed}
    backend.persistent_blocks = blocks
    (c,) = backend.call([a, b], None, None, False)
    assert not [str(d) for report in backend.reports for d in report.diagnostics]
    (reference,) = run_reference(MODULE, "f", [a, b], {"M": m, "N": n, "K": k})
    assert (np.abs(c.astype(np.float64) - reference.value) <= reference.bound).all()


ODD_MODULE = parse_module(PROGRAM.replace("@N {min = 0, multiple_of = 8}", "@N {min = 0}"), "odd.mlir", make_context())
ODD = CompiledEntry(ODD_MODULE, "f", "sm_90a")


def within(m: int, n: int, start: int, gap: int, step: int = 1) -> tuple[Any, Any]:
    """A result whose rows begin anywhere: (the view, all of the memory that it lies in, filled with 77)."""
    memory = np.full(start + m * (step * n + gap) + 16, 77, BF16)
    strides = (2 * (step * n + gap), 2 * step)
    return np.lib.stride_tricks.as_strided(memory[start:], (m, n), strides), memory


@given(
    m=st.integers(1, 140),
    n=st.integers(1, 140),
    k=st.integers(1, 10).map(lambda x: 8 * x),
    start=st.integers(0, 9),
    gap=st.integers(0, 9),
    step=st.sampled_from([1, 1, 1, 2]),
)
@example(m=70, n=67, k=64, start=1, gap=0, step=1)
@example(m=3, n=129, k=8, start=0, gap=1, step=1)
@example(m=3, n=129, k=8, start=3, gap=0, step=2)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_results_with_odd_rows(m: int, n: int, k: int, start: int, gap: int, step: int) -> None:
    a, b = inputs(m, n, k)
    view, memory = within(m, n, start, gap, step)
    backend = CheckedSim(ODD)
    backend.persistent_blocks = 2
    # Columns of b are contiguous, so that nothing is copied.
    backend.call([a, np.asfortranarray(b)], [view], None, False)
    assert backend.by_matrix or n == 1  # one column has no stride that a tensor map could take
    assert not [str(d) for report in backend.reports for d in report.diagnostics]
    (reference,) = run_reference(ODD_MODULE, "f", [a, b], {"M": m, "N": n, "K": k})
    assert (np.abs(view.astype(np.float64) - reference.value) <= reference.bound).all()
    view[:] = 77
    assert (memory == 77).all()


def test_odd_rows_leave_in_words() -> None:
    m, n, k = 64, 67, 8
    decision = ODD.plan.run([Layout((m, k), (k, 1), 0), Layout((k, n), (1, k), 0)], None)
    (site,) = [ODD.plan.sites[each.site] for each in decision.launches]
    assert site.kernel.startswith("f_0_tile")
    assert site.variant.partition("_")[0] == "rows32"
    lowered = ODD.lower(site)
    words = [op for op in lowered.kernel.walk() if isinstance(op, StoreOp) and isinstance(op.memory.type, GlobalType)]
    assert [(op.width.value.data, op.reach is not None) for op in words] == [(8, True), (1, False)]


def test_the_backend_runs_a_product_for_sm_90a() -> None:
    a, b = inputs(200, 264, 136)
    (c,) = SimBackend(ENTRY).call([a, b], None, None, False)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c.astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()


def test_the_kernel_of_the_design_document() -> None:
    path = Path(__file__).parents[3] / "docs/design/ir/simt_gemm_hopper.mlir"
    module = parse_module(path.read_text(), path.name, make_context())
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    m, n, k, blocks = 200, 264, 136, 3
    a, b = inputs(m, n, k)
    down, across, steps = -(-m // 128), -(-n // 256), -(-k // 64)
    program = compile_kernel(kernel, "check", aliased=False)
    for landing in ("latest", "earliest"):
        c = np.zeros((m, n), BF16)
        report = program.run(
            [Buffer(x.reshape(-1)) for x in (a, b, c)],
            [down, across, down * across, steps, blocks],
            grid=blocks,
            map_sizes=[m, k, k, 1, k, n, n, 1, m, n, n, 1],
            landing=landing,
        )
        assert not report.diagnostics, [str(d) for d in report.diagnostics]
        exact = a.astype(np.float64) @ b.astype(np.float64)
        assert np.abs(c.astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()


def test_matrix_stores_have_no_bank_conflicts() -> None:
    gemm = Gemm(64, 64, 64)
    report = gemm.run(level="count")
    gemm.check()
    (counts,) = [c for site, c in report.counts.items() if site.op_name == "simt.stmatrix"]
    # Four warps store four times; each of four 8 x 8 matrices is a pass.
    assert (counts.requests, counts.wavefronts) == (16, 64)
