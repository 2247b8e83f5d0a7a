"""Operands that are computed before a product: made once, into rows that tensor maps can move, whatever the sizes."""

from __future__ import annotations

from functools import cache

import pytest
from xdsl.dialects import func

from tests.lowering.test_repack import SYMBOLS, operand, tensor
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.tile.copies import CopyOp
from tilewright.lowering.instantiate import instantiate
from tilewright.lowering.pipelines import TILE, make_passes
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.reference import compare, run_reference
from tilewright.runtime.tile_interpreter.host import interpret_host
from tilewright.runtime.variants import CompiledEntry

M, N, K = tw.symbols("M N K")


def half(*sizes: object) -> Tensor:
    return tw.placeholder(sizes, "bfloat16")


PROGRAMS = {
    "relu": lambda: tw.matmul(tw.relu(half(M, K)), half(K, N)),
    "scaled": lambda: tw.matmul(half(M, K) * half(K), half(K, N)),
    "cast": lambda: tw.matmul(tw.cast(tw.placeholder((M, K)), "bfloat16"), half(K, N)),
    "both": lambda: tw.matmul(tw.relu(half(M, K)), tw.exp(half(K, N))),
    "reduced": lambda: tw.sum(tw.matmul(tw.relu(half(M, K)), half(K, N)), 1),
}


@cache
def entry(name: str) -> CompiledEntry:
    return CompiledEntry(build_module(PROGRAMS[name]()), "main", "sm_90a")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sizes", [(5, 7, 9), (1, 1, 1), (0, 3, 4), (3, 4, 0), (33, 65, 129), (64, 72, 40)])
def test_values(name: str, sizes: tuple[int, int, int]) -> None:
    module = build_module(PROGRAMS[name]())
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    named = dict(zip("MNK", sizes, strict=True))
    inputs = make_inputs(function, named, 1)
    (got,) = interpret_host(entry(name).planned[0], "main", inputs)
    (want,) = run_reference(module, "main", inputs, named)
    assert compare(got, want) is None


@pytest.mark.parametrize("k", [4096, 4095])
def test_a_large_product_has_its_operand_made_and_no_copy_of_it(k: int) -> None:
    plan = entry("relu").plan
    decision = plan.run([operand(4096, k), operand(k, 4096)], None)
    names = [plan.sites[each.site].kernel for each in decision.launches]
    assert names[0] == "main_0"
    assert names[1].startswith("main_1_tile")
    (made,) = [s for s in decision.scratch if s is not None]
    assert made[1] * 2 % 32 == 0  # whole sectors


def test_rows_that_begin_anywhere_are_read_and_written_in_words() -> None:
    plan = entry("relu").plan
    decision = plan.run([operand(4096, 4095), operand(4095, 4096)], None)
    site = plan.sites[decision.launches[0].site]
    module = instantiate(entry("relu").planned[0], site.launch, "sm_90a")
    run_pipeline(module, make_context(), make_passes(TILE[: TILE.index("vectorise") + 1]))
    load, store = (op for op in module.walk() if isinstance(op, CopyOp))
    assert (load.widths[0], load.unaligned is not None) == (8, True)
    assert (store.widths[1], store.unaligned is not None) == (8, False)


def test_no_copies_are_planned_for_a_product_whose_operand_its_own_kernel_makes() -> None:
    """Matrix instructions cannot take it, so the other operand need not lie as tensor maps ask."""
    x, b, c = tensor("M"), tensor("K", "N"), tensor("M", "N", element="f32")
    text = f"""{SYMBOLS}
func.func @main(%x: {x}, %b: {b}) -> {c} {{
  %y = lin.group ins(%x, %b : {x}, {b}) -> {c} {{
  ^bb0(%v: {x}, %w: {b}):
    %r = lin.generic (i) ins(%v[i] : {x}) out[i] : {x} {{
    ^bb0(%p: bf16):
      %q = arith.negf %p : bf16
      lin.yield %q : bf16
    }}
    %c = lin.generic (i, j, k) ins(%r[i] : {x}, %w[k, j] : {b}) out[i, j] combine sum : {c} {{
    ^bb0(%p: bf16, %q: bf16):
      %d = arith.extf %p : bf16 to f32
      %e = arith.extf %q : bf16 to f32
      %f = arith.mulf %d, %e : f32
      lin.yield %f : f32
    }}
    lin.yield %c : {c}
  }}
  func.return %y : {c}
}}
"""
    made = CompiledEntry(parse_module(text, "made.mlir", make_context()), "main", "sm_90a")
    assert {site.kernel for site in made.sites.values()} == {"main_0_large", "main_0_small"}
