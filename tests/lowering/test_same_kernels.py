"""Kernels that differ in names alone are one: what counts as a name, what does not, and how many a product has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from benchmarks import variants
from tests.lowering.test_repack import whole
from tilewright.api.bench.shapes import random_shapes
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.lowering.pipelines import make_passes
from tilewright.lowering.same_kernels import canonical_form
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.variants import CompiledEntry

KERNEL = """
sym.symbol @{size} {{{facts}}}
sym.symbol @other
{more}
tile.kernel @{name}(%{x}: !tile.buf<[{size}], {dtype}, global, #tile.strided<[1]>>) grid (%i) = [{size}] {{
  %f = tile.alloc : !tile.buf<[1], {dtype}, fragment>
  tile.fill %f with 1.0 : {dtype}
  tile.copy %f to %{x}[%i] bounds [clip]
}}
"""


def form(**changed: str) -> tuple[str, tuple[str, ...]]:
    words = {"size": "M", "facts": "", "more": "", "name": "k", "x": "x", "dtype": "f32"} | changed
    return canonical_form(parse_module(KERNEL.format(**words), "k.mlir", make_context()))


def test_names_do_not_count() -> None:
    text, symbols = form()
    assert symbols == ("M",)
    assert form(size="rows", name="another", x="y") == (text, ("rows",))
    assert form(more="sym.require other >= 3") == (text, ("M",)), "nothing about the kernel's symbols"


@pytest.mark.parametrize(
    "changed",
    [
        {"facts": "min = 1"},
        {"facts": "multiple_of = 8"},
        {"dtype": "bf16"},
        {"more": "sym.require M >= 3"},
        {"more": "sym.require M <= other"},
        {"more": "sym.symbol @third\nsym.require M <= other\nsym.require other <= third"},
    ],
)
def test_what_is_known_counts(changed: dict[str, str]) -> None:
    assert form(**changed)[0] != form()[0]
    assert form(**changed, name="l")[0] == form(**changed)[0]


def test_a_symbol_may_be_called_like_a_word_of_the_language() -> None:
    assert form(size="f32")[0] != form()[0], "it keeps its name, and is compiled by itself"
    assert form(size="f32", dtype="bf16")[0] != form(size="bf16", dtype="f32")[0]


def test_copies_of_both_operands_and_sums_of_parts_share_their_code() -> None:
    m, n, k = tw.symbols("M N K")
    matmul = tw.compile(
        tw.matmul(tw.placeholder((m, k), "bfloat16"), tw.placeholder((k, n), "bfloat16")), target="sim", arch="sm_90a"
    )
    shapes = ((3, 250, 4099), (30, 250, 4099), (250, 2, 4099), (40, 30, 300), (30, 248, 4099), (30, 250, 4096))
    for rows, columns, depth in shapes:
        a, b = whole(rows, depth), whole(depth, columns)
        expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)
        np.testing.assert_array_equal(matmul(a, b), expected)
    stats: list[dict[str, Any]] = [each for each in matmul.stats()["kernels"] if each["compiled"]]
    code = {each["name"].removeprefix("main_0_"): each["code"] for each in stats}
    assert code["pad0"] == code["pad1"]
    assert code["thin_sum"] == code["split64x128_sum"] == code["split128x64_sum"] == code["split32x32_sum"]
    assert code["split64x128_parts"] != code["split128x64_parts"]


def test_a_product_of_random_sizes_wants_few_kernels() -> None:
    entry = variants.product("bf16", "sm_90a")
    used = {f"{s.kernel}/{s.variant}": s for shape in random_shapes() for s in variants.launched(entry, shape)}
    assert len({variants.form_of(entry, site) for site in used.values()}) <= 20
    assert len(entry.sites) <= 112


def test_plans_are_for_the_processors_of_the_device() -> None:
    m, n = tw.symbols("M N")
    module = tw.build_module(tw.matmul(tw.placeholder((m, 64), "bfloat16"), tw.placeholder((64, n), "bfloat16")))
    own, other = (CompiledEntry(module, "main", "sm_90a", processors) for processors in (None, 114))
    assert "ceildiv 132" in own.ir("host")
    assert "ceildiv 114" in other.ir("host")
    assert "ceildiv 132" not in other.ir("host")
    assert own.sites.keys() == other.sites.keys()
    product = tw.build_module(tw.matmul(tw.placeholder((m, n)), tw.placeholder((n, m))))
    assert f"{2 * 108} floordiv" in CompiledEntry(product, "main", "sm_80").ir("host")


def test_a_device_has_processors() -> None:
    module = parse_module("sym.symbol @M", "m.mlir", make_context())
    passes = make_passes(["lin-to-tile"], {"lin-to-tile": {"processors": 0}})
    with pytest.raises(TilewrightError, match="processors expected at least 1, got 0"):
        run_pipeline(module, make_context(), passes)
