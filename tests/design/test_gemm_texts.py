"""The texts of a product on sm_90a and on sm_80 are what the passes make, one from the other, and compute the same."""

from __future__ import annotations

from math import erf
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.opt.pipeline import make_pipeline
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.verify import verify_module
from tilewright.lowering import pipelines
from tilewright.runtime.tile_interpreter.kernel import interpret

FOLDER = Path(__file__).parents[2] / "docs" / "design" / "ir"
CONTEXT = make_context()
PLAIN = "tile_gemm_0_plain"
CHOSEN, PIPELINED, SPECIALISED = (f"tile_gemm_hopper_{s}" for s in ("1_chosen", "2_pipelined", "3_specialised"))
CHOSEN_WARPS, PIPELINED_WARPS = (f"tile_gemm_warps_{s}" for s in ("1_chosen", "2_pipelined"))


def between(first: str, last: str) -> str:
    """Passes of the tile pipeline, both ends included."""
    names = pipelines.TILE
    return ",".join(names[names.index(first) : names.index(last) + 1])


STEPS = {
    CHOSEN: (
        PLAIN,
        'host-plan,instantiate-variants{only="gemm_0/vector32" arch=sm_90a},'
        + between("interchange-loops", "prove-bounds"),
    ),
    PIPELINED: (CHOSEN, between("make-persistent", "pipeline-copies")),
    SPECIALISED: (PIPELINED, between("specialise-warps", "allocate-shared")),
    CHOSEN_WARPS: (
        PLAIN,
        'host-plan,instantiate-variants{only="gemm_0/vector32" arch=sm_80},'
        + between("interchange-loops", "prove-bounds"),
    ),
    PIPELINED_WARPS: (CHOSEN_WARPS, between("make-persistent", "allocate-shared")),
}
"""Text -> (the one before, the passes that lead from there)."""


def read(name: str) -> ModuleOp:
    module = parse_module((FOLDER / f"{name}.mlir").read_text(encoding="utf-8"), f"{name}.mlir", CONTEXT)
    verify_module(module)
    return module


@pytest.mark.parametrize("name", STEPS)
def test_the_text_is_what_the_passes_make(name: str) -> None:
    before, passes = STEPS[name]
    text = (FOLDER / f"{name}.mlir").read_text(encoding="utf-8")
    assert f"-p '{passes}'" in text.replace("\n// ", ""), "the head of the text says how it is made"
    module = read(before)
    for step in make_pipeline(passes):
        step.module_pass.apply(CONTEXT, module)  # type: ignore[union-attr]  # pipelines of text hold passes
    assert str(module) == str(read(name))


@pytest.mark.parametrize("sizes", [(1, 8, 8), (130, 264, 72), (128, 256, 0)])
def test_all_compute_gelu_of_the_product_plus_bias(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(5)
    a, b, bias = (rng.integers(-4, 5, s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n), (n,)))
    z = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    expected = z / 2 * (1 + np.vectorize(erf, otypes=[np.float64])(z / np.sqrt(2)))
    symbols = {"M": m, "N": n, "K": k}
    for name in (PLAIN, *STEPS):
        (kernel,) = (op for op in read(name).ops if isinstance(op, KernelOp))
        out = np.full((m, n), np.nan, ml_dtypes.bfloat16)
        interpret(kernel, [a, b, bias, out], symbols=symbols)
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol=2**-7, atol=2**-7, err_msg=name)
