"""Products with sides that are constants, or the same expression; reductions over a side of one tile."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.api.build import build_module
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.registry import make_context
from tilewright.lowering.pipelines import TENSOR, make_passes
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.tile_interpreter.host import interpret_host

Array = np.ndarray[Any, Any]


def whole(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("size", [4, 8, 12, 16])
@pytest.mark.parametrize("depth", [64, 1024])
def test_scratch_of_parts_may_be_square(size: int, depth: int) -> None:
    # The thin kernel of parts sees its scratch turned, which equal sizes do not show.
    _, k = tw.symbols("M K")
    product = tw.matmul(tw.placeholder((size, k), "bfloat16"), tw.placeholder((k, size), "bfloat16"))
    a, b = whole(size, depth), whole(depth, size)
    got = tw.compile(product, target="sim", arch="sm_90a")(a, b)
    np.testing.assert_array_equal(got, (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype))


def test_sides_may_be_the_same_expression() -> None:
    j, k = tw.symbols("J K")
    product = tw.matmul(tw.placeholder((4 * j, k), "bfloat16"), tw.placeholder((k, 4 * j), "bfloat16"))
    kernel = tw.compile(product, target="sim", arch="sm_90a")
    for rows in (4, 16, 64):
        a, b = whole(rows, 520), whole(520, rows)
        np.testing.assert_array_equal(kernel(a, b), (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype))


@pytest.mark.parametrize(("along", "axis"), [("columns", 1), ("rows", 0), (None, 0)])
def test_blocks_that_store_to_one_place_are_no_cluster(along: str | None, axis: int) -> None:
    # The block beyond the edge would store the reduction of nothing over the result.
    m, k = tw.symbols("M K")
    a, b = tw.placeholder((m if axis else 8, k), "bfloat16"), tw.placeholder((k, 8 if axis else m), "bfloat16")
    options: dict[str, dict[str, Any]] = {"lin-to-tile": {"arch": "sm_90a"}}
    if along is not None:
        options["form-clusters"] = {"along": along}
    module = build_module(tw.max(tw.matmul(a, b), axis))
    run_pipeline(module, make_context(), make_passes(TENSOR, options), verify_each=True)
    x = np.ones((70, 16) if axis else (8, 16), ml_dtypes.bfloat16)
    y = np.ones((16, 8) if axis else (16, 70), ml_dtypes.bfloat16)
    np.testing.assert_array_equal(interpret_host(module, "main", [x, y])[0].astype(np.float32), np.full(70, 16.0))


def lowered(**options: object) -> None:
    m, n, k = tw.symbols("M N K")
    module = build_module(tw.matmul(tw.placeholder((m, k), "bfloat16"), tw.placeholder((k, n), "bfloat16")))
    run_pipeline(module, make_context(), make_passes(TENSOR, {"lin-to-tile": {"arch": "sm_90a", **options}}))


def test_one_processor_is_enough() -> None:
    lowered(processors=1)


def test_a_workspace_has_no_negative_size() -> None:
    with pytest.raises(TilewrightError, match="max-workspace expected at least 0, got -1"):
        lowered(max_workspace=-1)
