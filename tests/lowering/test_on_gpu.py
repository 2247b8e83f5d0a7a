"""The emitted source on a GPU: every scalar op against the simulator, the hand-written kernels against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.lowering.scalar_cases import CASES
from tests.lowering.scalar_cases import kernel_text as case_text
from tests.lowering.scalar_inputs import DTYPES, THREADS, assert_near, expected, operands
from tests.lowering.support import kernel_text, lowered, parsed
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType
from tilewright.lowering.simt_to_cuda import emit_kernel, emit_module, kernel_symbol
from tilewright.runtime.cuda_driver import Device, device
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.parameters import ParameterLayout

pytestmark = [pytest.mark.gpu, pytest.mark.nvrtc]


@pytest.fixture(scope="module")
def gpu() -> Device:
    return device()


def launch(
    gpu: Device, cubin: bytes, kernel: KernelOp, grid: int, arrays: Sequence[np.ndarray], scalars: Sequence[Any]
) -> None:
    """Run a kernel on copies of flat arrays, and read them back in place."""
    kinds = ["ptr" if isinstance(a.type, GlobalType) else str(a.type) for a in kernel.body.block.args]
    function = gpu.load_module(cubin).function(kernel_symbol(kernel), ParameterLayout.of(kinds))
    memories = [gpu.allocate(max(1, a.nbytes)) for a in arrays]
    for array, memory in zip(arrays, memories, strict=True):
        gpu.copy_to_device(memory.pointer, array.ctypes.data, array.nbytes)
    arguments = [*(m.pointer for m in memories), *scalars]
    function.launch((grid, 1, 1), kernel.threads.value.data, kernel.smem.value.data, arguments)
    for array, memory in zip(arrays, memories, strict=True):
        gpu.copy_to_host(array.ctypes.data, memory.pointer, array.nbytes)
    gpu.synchronize()


def test_scalar_ops(gpu: Device) -> None:
    module = parsed("".join(case_text(i, case) for i, case in enumerate(CASES)))
    cubin = compile_cubin(emit_module(module, gpu.info.arch), gpu.info.arch).cubin
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    problems: list[str] = []
    for case, kernel in zip(CASES, kernels, strict=True):
        x, y = operands(case), np.zeros(THREADS, DTYPES[case.result])
        launch(gpu, cubin, kernel, 1, [x, y], [])
        try:
            assert_near(case, y, expected(case, kernel, x))
        except AssertionError as problem:
            problems.append(f"{case.name}: {problem}")
    assert problems == []


def run(
    gpu: Device, text: str, symbols: dict[str, int], arrays: Sequence[np.ndarray], values: Sequence[Any] = ()
) -> None:
    """Lower, emit, compile and run a hand-written kernel."""
    kernel = lowered(text)
    cubin = compile_cubin(emit_kernel(kernel, gpu.info.arch), gpu.info.arch).cubin
    scalars = [*values, *(p.data.evaluate(symbols) for p in kernel.params.data)]
    launch(gpu, cubin, kernel, kernel.grid.data.evaluate(symbols), arrays, scalars)


@pytest.mark.parametrize("width", [32, 64])
def test_kernels(gpu: Device, width: int) -> None:
    generator = np.random.default_rng(0)

    def numbers(*shape: int) -> np.ndarray:
        return generator.integers(-8, 9, shape).astype(np.float32)

    m, n, k = 301, 203, 77
    x, y = numbers(m, n), np.zeros(m * n, np.float32)
    run(gpu, kernel_text("transpose", width), {"M": m, "N": n, "x_s0": n, "x_s1": 1}, [x.ravel(), y])
    np.testing.assert_array_equal(y.reshape(n, m), x.T)

    a, b, bias, c = numbers(m, k), numbers(k, n), numbers(n), np.zeros(m * n, np.float32)
    symbols = {"M": m, "N": n, "K": k, "a_s0": k, "a_s1": 1}
    run(gpu, kernel_text("matmul", width), symbols, [a.ravel(), b.ravel(), bias, c])
    np.testing.assert_array_equal(c.reshape(m, n), np.maximum(a @ b + bias, 0))

    y = np.zeros(m, np.float32)
    run(gpu, kernel_text("row_sum", width), {"R": m, "C": n}, [x.ravel(), y])
    np.testing.assert_array_equal(y, x.sum(axis=1))

    y = np.zeros(n, np.float32)
    run(gpu, kernel_text("column_max", width), {"R": m, "C": n}, [x.ravel(), y])
    np.testing.assert_array_equal(y, x.max(axis=0))

    r = generator.standard_normal(5 * n + 1).astype(np.float32)
    y = np.zeros(r.size, ml_dtypes.bfloat16)
    run(gpu, kernel_text("cast", width), {"N": r.size}, [r, y])
    np.testing.assert_array_equal(y.view(np.uint16), r.astype(ml_dtypes.bfloat16).view(np.uint16))

    v, y = numbers(1000), np.zeros(1000, np.float32)
    run(gpu, kernel_text("scale", width), {"N": 1000}, [v, y], [0.5, 700])
    np.testing.assert_array_equal(y, np.where(np.arange(1000) < 700, v * np.float32(0.5), v))

    p, q = (generator.integers(-128, 128, s, np.int8) for s in ((3, 33, 17), (3, 17, 29)))
    z = np.zeros(3 * 33 * 29, np.int32)
    run(gpu, kernel_text("integer_matmul", width), {"B": 3, "M": 33, "N": 29, "K": 17}, [p.ravel(), q.ravel(), z])
    np.testing.assert_array_equal(z.reshape(3, 33, 29), p.astype(np.int32) @ q.astype(np.int32))

    x, y = numbers(302, n), np.zeros(302 * n, np.float32)
    run(gpu, kernel_text("staging", width), {"M": 302, "N": n}, [x.ravel(), y])
    np.testing.assert_array_equal(y.reshape(n, 302), x.T)

    rows = generator.integers(-100, 100, (m, n + 2)).astype(ml_dtypes.bfloat16)
    padded = np.full((m, -(-n // 8) * 8), 7, rows.dtype)
    run(gpu, kernel_text("odd_rows", width), {"M": m, "N": n, "x_s0": n + 2}, [rows.ravel(), padded.reshape(-1)])
    np.testing.assert_array_equal(padded[:, :n], rows[:, :n])
    assert not padded[:, n:].any()
