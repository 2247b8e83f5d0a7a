"""Plans of products in tf32: which operand goes through registers, what is copied, and that results are right."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tests.lowering.test_repack import decide, entry, operand, product
from tilewright.api.testing.layouts import ViewLayout, layouts
from tilewright.runtime.binding import Layout
from tilewright.runtime.reference import compare, run_reference

Array = np.ndarray[Any, Any]
TF32 = product(element="f32").replace("%a, %b :", "%a, %b precision tf32 :")


def kernels_of(a: Layout, b: Layout, text: str = TF32) -> list[str]:
    """The kernels of a call; the product itself by its tile's kind: `tile`, `turned`, `parts`, or multiply-adds."""
    _, kernels = decide(a, b, text)
    found: list[str] = []
    for name in kernels:
        if name.endswith("_turned"):
            found.append("turned")
        elif name.startswith("tile"):
            found.append("tile")
        elif not name.endswith("_sum"):
            found.append("parts" if name.endswith("_parts") else name)
    return found


@pytest.mark.parametrize(
    ("sizes", "turned", "offset", "kernels"),
    [
        ((4096, 4096, 4096), (False, False), 0, ["turned"]),  # B is the left operand, through registers
        ((4096, 4096, 4096), (False, True), 0, ["tile"]),  # both are contiguous along the sum
        ((4096, 4096, 4096), (True, True), 0, ["tile"]),  # A is the left one, through registers
        ((4096, 4096, 4096), (True, False), 0, ["turn1", "tile"]),  # one of them must be along the sum
        ((4095, 4097, 4093), (False, False), 0, ["pads", "turned"]),  # padded rows as they lie
        ((4096, 4096, 4096), (False, False), 4, ["pad0", "turned"]),
        ((4096, 4098, 4096), (False, False), 0, ["turn1", "tile"]),  # rows of 4098 are no multiple of 16 bytes
        ((64, 64, 64), (False, False), 0, ["turned"]),
        ((16, 4096, 4096), (False, False), 0, ["parts"]),
        ((4096, 16, 4096), (False, False), 0, ["parts"]),
        ((256, 256, 16384), (False, False), 0, ["parts"]),
        ((3, 5, 7), (False, False), 0, ["small"]),
    ],
)  # fmt: skip
def test_what_becomes_of_operands(
    sizes: tuple[int, int, int], turned: tuple[bool, bool], offset: int, kernels: list[str]
) -> None:
    m, n, k = sizes
    assert kernels_of(operand(m, k, turned=turned[0], offset=offset), operand(k, n, turned=turned[1])) == kernels


def test_without_precision_products_of_f32_stay_exact() -> None:
    assert kernels_of(operand(512, 512), operand(512, 512), product(element="f32")) == ["small"]


def test_copies_that_are_turned_are_contiguous_along_the_sum() -> None:
    decision, _ = decide(operand(4092, 4096, turned=True), operand(4096, 4088), TF32)
    values = dict(zip(entry(TF32).plan.symbols, decision.symbols, strict=True))
    assert (values["a_used_s0"], values["a_used_s1"]) == (1, 4092)
    assert values["b_used_s0"] == 1
    assert values["b_used_s1"] >= 4096
    assert values["b_used_s1"] % 32 == 0


M, N, K = tw.symbols("M N K", min=0)


@cache
def kernel(arch: str) -> tuple[tw.Kernel, Any]:
    """A product for an architecture in the simulator, and its module."""
    program = tw.relu(tw.matmul(tw.placeholder((M, K)), tw.placeholder((K, N)), precision="tf32"))
    return tw.compile(program, target="sim", arch=arch), tw.build_module(program)


@settings(max_examples=12, deadline=None)
@given(
    arch=st.sampled_from(["sm_80", "sm_90a"]),
    sizes=st.tuples(st.integers(0, 140), st.integers(0, 140), st.sampled_from([0, 1, 8, 31, 64, 100, 260])),
    a=layouts(2),
    b=layouts(2),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_sizes_in_any_layout(
    arch: str, sizes: tuple[int, int, int], a: ViewLayout, b: ViewLayout, seed: int
) -> None:
    m, n, k = sizes
    compiled, module = kernel(arch)
    rng = np.random.default_rng(seed)
    x = a.of(rng.standard_normal((m, k)).astype(np.float32))
    y = b.of(rng.standard_normal((k, n)).astype(np.float32))
    (entry,) = [op.sym_name.data for op in module.ops if op.name == "func.func"]
    (expected,) = run_reference(module, entry, [x, y], {"M": m, "N": n, "K": k})
    assert compare(compiled(x, y), expected) is None
