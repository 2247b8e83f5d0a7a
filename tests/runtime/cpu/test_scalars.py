"""Every scalar op of every type, compiled for the CPU from the source for the GPU, in one translation unit."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

from tests.lowering.scalar_cases import CASES, Case, kernel_text
from tests.lowering.scalar_inputs import DTYPES, EXACT, THREADS, assert_near, expected, operands
from tests.lowering.support import parsed
from tests.runtime.cpu.support import assert_same_bits, launch, on_simulator, ulps_apart
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda import emit_kernel, emit_module
from tilewright.runtime.cpu_unit import CpuKernel, CpuSource, build
from tilewright.runtime.scalar_ops import SCALAR_OPS

pytestmark = pytest.mark.cxx

OPEN_ZEROS = ("arith.maxnumf", "arith.minnumf")
"""Which of 0.0 and -0.0 is the greater is open."""


@pytest.fixture(scope="module")
def kernels() -> list[tuple[Case, KernelOp, CpuKernel]]:
    module = parsed("".join(kernel_text(i, case) for i, case in enumerate(CASES)))
    ops = [op for op in module.ops if isinstance(op, KernelOp)]
    text = emit_module(module)
    return list(zip(CASES, ops, build([CpuSource(op, text) for op in ops]), strict=True))


def results(case: Case, kernel: CpuKernel) -> np.ndarray:
    x, y = operands(case), np.zeros(THREADS, DTYPES[case.result])
    launch(kernel, [x, y], [], 1)
    return y


def op_of(kernel: KernelOp, case: Case) -> Operation:
    return next(op for op in kernel.walk() if op.name == case.op)


def test_results_are_those_of_mathematics(kernels: list[tuple[Case, KernelOp, CpuKernel]]) -> None:
    problems: list[str] = []
    for case, op, kernel in kernels:
        try:
            assert_near(case, results(case, kernel), expected(case, op, operands(case)))
        except AssertionError as problem:
            problems.append(f"{case.name}: {problem}")
    assert problems == []


def test_results_are_the_simulators(kernels: list[tuple[Case, KernelOp, CpuKernel]]) -> None:
    """Bits; one unit in the last place for functions that are computed in f64 and rounded."""
    compared = 0
    problems: list[str] = []
    for case, op, kernel in kernels:
        # The simulator does not know all ops, and fuses no f64.
        if type(op_of(op, case)) not in SCALAR_OPS or (case.op, case.source) == ("math.fma", "f64"):
            continue
        compared += 1
        x, simulated, got = operands(case), np.zeros(THREADS, DTYPES[case.result]), results(case, kernel)
        on_simulator(op, [x, simulated], [], 1)
        if case.op in OPEN_ZEROS:
            simulated[simulated == 0] = got[got == 0] = 0
        try:
            if case.op.startswith(EXACT) or case.op == "math.sqrt" or case.result.startswith("i"):
                assert_same_bits(got, simulated, case.name)
            else:
                # f64 itself has no wider type to be computed in: two libraries, each within one unit.
                assert ulps_apart(got, simulated).max() <= (2 if case.source == "f64" else 1), case.name
        except AssertionError as problem:
            problems.append(str(problem))
    assert problems == []
    assert compared > 250


def test_division_by_zero_ends_no_process_and_is_zero() -> None:
    """Lanes beyond the end of a tensor divide what they are filled with; the processor would trap."""
    cases = [
        Case(f"arith.{name}", f"arith.{name} %a, %b : {t}", t, t)
        for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
        for t in ("i1", "i8", "i32", "i64")
    ]
    module = parsed("".join(kernel_text(i, case) for i, case in enumerate(cases)))
    ops = [op for op in module.ops if isinstance(op, KernelOp)]
    for case, op, kernel in zip(cases, ops, build([CpuSource(o, emit_module(module)) for o in ops]), strict=True):
        dtype = DTYPES[case.source]
        x = np.zeros(3 * THREADS, dtype)
        x[:4] = 1
        if case.source != "i1":
            # By zero, and the least number by -1.
            x[1], x[THREADS + 1] = np.iinfo(dtype).min, -1
        y, simulated = np.ones(THREADS, dtype), np.ones(THREADS, dtype)
        launch(kernel, [x, y], [], 1)
        on_simulator(op, [x, simulated], [], 1)
        assert y[0] == 0, case.name
        np.testing.assert_array_equal(y, simulated, case.name)


@pytest.mark.parametrize(("kind", "rtol"), [("f16", 2e-3), ("bf16", 2e-2), ("f32", 1e-6), ("f64", 1e-14)])
def test_a_float_to_an_integer_power(kind: str, rtol: float) -> None:
    """To the power of the thread's number, 0 to 63, which the simulator does not know."""
    case = Case("math.fpowi", f"math.fpowi %a, %t : {kind}, i32", kind, kind)
    (op,) = (op for op in parsed(kernel_text(0, case)).ops if isinstance(op, KernelOp))
    (kernel,) = build([CpuSource(op, emit_kernel(op, "sm_80"))])
    x = np.random.default_rng(3).uniform(0.9, 1.1, 3 * THREADS).astype(DTYPES[kind])
    x[:4] = [0, -2, -2, -2]
    y = np.zeros(THREADS, DTYPES[kind])
    launch(kernel, [x, y], [], 1)
    wanted = x[:THREADS].astype(np.float64) ** np.arange(THREADS)
    assert wanted[:4].tolist() == [1, -2, 4, -8]
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol)


def test_fused_multiply_adds_round_once() -> None:
    """Random bits; products halfway between two floats with a sum that decides; results below the normal range."""
    random = np.random.default_rng(7)
    any_bits = random.integers(0, 1 << 32, (3, 4096), np.uint64).astype(np.uint32).view(np.float32)
    halfway = [random.integers(1 << low, 1 << (low + 1), 4096) | 1 for low in (11, 12)]
    ties = np.array([*halfway, random.choice([-1.0, 1.0], 4096) * 2.0 ** random.integers(-60, -20, 4096)], np.float32)
    small = random.standard_normal((3, 4096)) * 2.0 ** np.stack(
        [*random.integers(-76, -60, (2, 4096)), random.integers(-149, -120, 4096)]
    )
    case = Case("math.fma", "math.fma %a, %b, %c : f32", "f32", "f32")
    (op,) = (op for op in parsed(kernel_text(0, case)).ops if isinstance(op, KernelOp))
    (kernel,) = build([CpuSource(op, emit_kernel(op, "sm_80"))])
    for triples in (any_bits, ties, small.astype(np.float32)):
        for first in range(0, 4096, THREADS):
            x = np.ascontiguousarray(triples[:, first : first + THREADS]).ravel()
            y, simulated = np.zeros(THREADS, np.float32), np.zeros(THREADS, np.float32)
            launch(kernel, [x, y], [], 1)
            on_simulator(op, [x, simulated], [], 1)
            assert_same_bits(simulated, y, "math.fma")
