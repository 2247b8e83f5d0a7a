"""The hand-written kernels and the examples: the simulator runs the IR, the CPU the source; the bits are the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from examples import batch_matmul, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from tests.examples import views
from tests.examples.test_programs import CASES, Case
from tests.lowering.support import NAMES, kernel_text, lowered
from tests.runtime.cpu.support import Array, assert_same_bits, built, launch, on_simulator
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime import dtypes
from tilewright.runtime.cpu_unit import CpuKernel
from tilewright.runtime.kernel import Kernel

pytestmark = pytest.mark.cxx

M, N, K = 70, 67, 37


def arguments(name: str) -> tuple[dict[str, int], list[Array], list[Any]]:
    """Sizes by symbol, memory, and numbers by value of a kernel: odd sizes, and strides that are not the least."""
    random = np.random.default_rng(11)

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    if name == "transpose":
        return {"M": M, "N": N, "x_s0": N + 5, "x_s1": 1}, [normal(M * (N + 5)), np.zeros(M * N, np.float32)], []
    if name == "matmul":
        symbols = {"M": M, "N": N, "K": K, "a_s0": 2 * K + 1, "a_s1": 2}
        return symbols, [normal(M * (2 * K + 1)), normal(K * N), normal(N), np.zeros(M * N, np.float32)], []
    if name in ("row_sum", "column_max"):
        # Several rounds through shared memory.
        rows, columns = (M, 301) if name == "row_sum" else (301, N)
        x, y = normal(rows * columns), np.zeros(min(rows, columns), np.float32)
        x[::17] = -0.0
        return {"R": rows, "C": columns}, [x, y], []
    if name == "cast":
        # An even size: the kernel assumes it.
        x = np.concatenate(
            [normal(5 * N), np.array([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e38, 1.00390625], np.float32)]
        )
        return {"N": x.size}, [x, np.zeros(x.size, ml_dtypes.bfloat16)], []
    if name == "scale":
        return {"N": 1000}, [normal(1000), np.zeros(1000, np.float32)], [0.3, 700]
    if name == "integer_matmul":
        a, b = (random.integers(-128, 128, size, np.int8) for size in (3 * 33 * 17, 3 * 17 * 29))
        return {"B": 3, "M": 33, "N": 29, "K": 17}, [a, b, np.zeros(3 * 33 * 29, np.int32)], []
    if name == "odd_rows":
        rows = random.integers(-100, 100, M * (N + 4)).astype(ml_dtypes.bfloat16)
        return {"M": M, "N": N, "x_s0": N + 4}, [rows, np.zeros(M * (N + 5), rows.dtype)], []
    assert name == "staging"
    return {"M": M, "N": N}, [normal(M * N), np.zeros(M * N, np.float32)], []


@pytest.fixture(scope="module")
def kernels() -> dict[tuple[str, int], tuple[KernelOp, CpuKernel]]:
    ops = {(name, width): lowered(kernel_text(name, width)) for name in NAMES for width in (32, 64)}
    return dict(zip(ops, zip(ops.values(), built(list(ops.values())), strict=True), strict=True))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", NAMES)
def test_kernels(kernels: dict[tuple[str, int], tuple[KernelOp, CpuKernel]], name: str, width: int) -> None:
    op, kernel = kernels[name, width]
    symbols, arrays, values = arguments(name)
    scalars, grid = [*values, *(p.data.evaluate(symbols) for p in op.params.data)], op.grid.data.evaluate(symbols)
    expected = [a.copy() for a in arrays]
    on_simulator(op, expected, scalars, grid)
    assert any((a != b).any() for a, b in zip(arrays, expected, strict=True))
    for options in ({"workers": 1}, {"workers": 3}, {"seed": 1}, {"seed": 2}):
        got = [a.copy() for a in arrays]
        launch(kernel, got, scalars, grid, **options)
        for one, other in zip(got, expected, strict=True):
            assert_same_bits(one, other, f"{name} {options}")


def test_the_portable_context_switch() -> None:
    """What machines other than x86-64 and aarch64 take."""
    op = lowered(kernel_text("row_sum"))
    (kernel,) = built([op], ("-DTW_CPU_UCONTEXT",))
    symbols, arrays, _ = arguments("row_sum")
    scalars, grid = [p.data.evaluate(symbols) for p in op.params.data], op.grid.data.evaluate(symbols)
    expected = [a.copy() for a in arrays]
    on_simulator(op, expected, scalars, grid)
    launch(kernel, arrays, scalars, grid)
    assert_same_bits(arrays[1], expected[1])


DTYPES = {
    matmul_bias_relu.EXAMPLE.name: ("float32",),
    row_softmax.EXAMPLE.name: ("float32", "float16"),
    transpose.EXAMPLE.name: ("float32", "bfloat16"),
    batch_matmul.EXAMPLE.name: ("float32", "bfloat16"),
    elementwise_chain.EXAMPLE.name: ("float32", "float16"),
}


@cache
def compiled(build: Callable[..., tw.Tensor], dtype: str) -> tuple[Kernel, Kernel]:
    module = tw.build_module(build(dtype))
    return tw.compile(module, target="sim"), tw.compile(module, target="cpu")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.example.name)
@given(data=st.data())
def test_examples_in_any_layout(case: Case, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES[case.example.name]), "dtype")
    sim, cpu = compiled(case.example.build, dtype)
    sizes = {name: data.draw(st.sampled_from(choices), name) for name, choices in case.sizes.items()}
    kind = {
        "float32": np.float32, "float16": np.float16, "bfloat16": dtypes.element_type("bf16").numpy_dtype(),
    }[dtype]  # fmt: skip
    values = [x.astype(kind) for x in case.example.inputs(np.random.default_rng(3), sizes)]
    arrays = [data.draw(views.inputs(x.ndim), f"layout of argument {n}").hold(x) for n, x in enumerate(values)]
    expected = sim(*arrays)
    assert_same_bits(cpu(*arrays), expected)
    # Another layout of the result may be another variant, which sums in another order.
    layout = data.draw(views.outputs(expected.ndim), "layout of the result")
    view, memory = layout.place(expected.shape, kind, 77.0)
    simulated, _ = layout.place(expected.shape, kind, 77.0)
    assert cpu(*arrays, out=view) is view
    assert_same_bits(np.array(view), np.array(sim(*arrays, out=simulated)))
    view[...] = np.array(77.0, kind)
    assert (memory == np.array(77.0, kind)).all(), "elements outside the result were written"
