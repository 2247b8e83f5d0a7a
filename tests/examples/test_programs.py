"""Every example, at sizes around its tiles, in every layout and element type, against the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import tilewright as tw
from examples import batch_matmul, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from examples.example import Example
from tests.examples import views
from tilewright.runtime import dtypes
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.reference import compare, run_reference

AROUND_32 = (0, 1, 2, 7, 31, 32, 33, 61)
"""Empty, single, one below and above an edge of 32, and primes."""


@dataclass(frozen=True)
class Case:
    """An example and the sizes to draw from, by symbol."""

    example: Example
    sizes: dict[str, Sequence[int]]


CASES = [
    # Tiles of 32 x 32; the summed dim is 512.
    Case(matmul_bias_relu.EXAMPLE, {"B": (0, 1, 2), "M": (0, 1, 2, 5, 31, 32, 33)}),
    # Rows are kept on chip up to 4096 elements, and taken in chunks of 1024 above.
    Case(row_softmax.EXAMPLE, {"M": (0, 1, 2, 3, 5), "N": (0, 1, 2, 31, 255, 256, 257, 1021, 4095, 4096, 4097, 5003)}),
    # Tiles of 32 x 32.
    Case(transpose.EXAMPLE, {"M": AROUND_32, "N": (*AROUND_32, 101)}),
    # Tiles of 32 x 32, and 16 along the summed dim.
    Case(batch_matmul.EXAMPLE, {"B": (0, 1, 2, 3), "M": AROUND_32, "N": AROUND_32, "K": (0, 1, 15, 16, 17, 37)}),
    # Tiles of 16 x 128.
    Case(elementwise_chain.EXAMPLE, {"M": (0, 1, 15, 16, 17, 23), "N": (0, 1, 2, 127, 128, 129, 257)}),
]


@cache
def compiled(build: Callable[..., tw.Tensor], dtype: str) -> tuple[ModuleOp, Kernel]:
    """The program over this element type, and its kernel in the simulator."""
    module = tw.build_module(build(dtype))
    return module, tw.compile(module, target="sim")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.example.name)
@given(data=st.data())
def test_results_are_within_the_bound_of_the_reference(case: Case, data: st.DataObject):
    dtype, element = data.draw(st.sampled_from([("float32", "f32"), ("float16", "f16"), ("bfloat16", "bf16")]), "dtype")
    module, kernel = compiled(case.example.build, dtype)
    sizes = {name: data.draw(st.sampled_from(choices), name) for name, choices in case.sizes.items()}
    kind = dtypes.element_type(element).numpy_dtype()
    values = [x.astype(kind) for x in case.example.inputs(np.random.default_rng(3), sizes)]
    arrays = [data.draw(views.inputs(x.ndim), f"layout of argument {n}").hold(x) for n, x in enumerate(values)]
    expected = run_reference(module, "main", arrays, sizes)[0]

    result = kernel(*arrays)
    assert (mismatch := compare(result, expected)) is None, str(mismatch)

    # The same into memory of the caller's: right, and nothing beside it touched.
    layout = data.draw(views.outputs(result.ndim), "layout of the result")
    view, memory = layout.place(result.shape, kind, 77.0)
    assert kernel(*arrays, out=view) is view
    assert (mismatch := compare(np.array(view), expected)) is None, str(mismatch)
    view[...] = np.array(77.0, kind)
    assert (memory == np.array(77.0, kind)).all(), "elements outside the result were written"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.example.name)
def test_one_run_of_the_pipeline_serves_all_sizes(case: Case):
    _, kernel = compiled(case.example.build, "float32")
    for sizes in case.example.sizes[1:]:
        kernel(*case.example.inputs(np.random.default_rng(4), sizes))
    assert kernel.stats()["pipeline_runs"] == 1


def test_targets_agree_on_shape_and_dtype_and_the_reference_lowers_nothing():
    x = np.ones((3, 5), np.float16)
    module, kernel = compiled(row_softmax.build, "float16")
    reference = tw.compile(module, target="reference")
    got: Any = reference(x)
    assert (got.shape, got.dtype) == ((3, 5), np.float16)
    assert (kernel(x).shape, kernel(x).dtype) == ((3, 5), np.float16)
    np.testing.assert_array_equal(got, np.full((3, 5), 0.2, np.float16))
    assert reference.stats()["kernels"] == []


@pytest.mark.parametrize(
    ("example", "sizes"),
    [
        (batch_matmul.EXAMPLE, {"B": 1, "M": 728, "N": 724, "K": 16}),
        (batch_matmul.EXAMPLE, {"B": 2, "M": 727, "N": 733, "K": 17}),
        (matmul_bias_relu.EXAMPLE, {"B": 1, "M": 2049}),
    ],
    ids=["whole vectors", "primes", "bias and relu"],
)
def test_products_large_enough_for_the_large_schedule(example: Example, sizes: dict[str, int]):
    module = tw.build_module(example.build())
    kernel = tw.compile(module, target="sim")
    arrays = example.inputs(np.random.default_rng(5), sizes)
    expected = run_reference(module, "main", arrays, sizes)[0]
    assert (mismatch := compare(kernel(*arrays), expected)) is None, str(mismatch)
    (used,) = [k for k in kernel.stats()["kernels"] if k["compiled"]]
    assert used["name"].endswith("_large")
