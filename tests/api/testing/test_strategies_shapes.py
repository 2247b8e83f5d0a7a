"""Sizes, layouts and element types that the strategies draw, and that they shrink to the least."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from tests.api.testing.draws import drawn
from tilewright.api.testing.execute import context
from tilewright.api.testing.shapes import BEYOND_GRID
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.sym import RequireOp, SymbolOp
from tilewright.dialects.verify import verify_module
from tilewright.testing import ViewLayout, dtypes, layouts, sizes, symbol_sizes

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("tile", [32, 128])
def test_the_sizes_around_a_tile_occur(tile: int) -> None:
    found = Counter(drawn(sizes(tile), 600))
    for size in (0, 1, 2, tile - 1, tile, tile + 1, 37, 101):
        assert found[size], size
    # Half of the sizes are small, where programs are quick and differences easy to read.
    assert 2 * sum(n for size, n in found.items() if size <= 33) >= found.total()


@given(st.integers(0, 40), st.integers(0, 200), st.integers(1, 9), st.data())
def test_sizes_keep_to_bounds_and_divisors(low: int, more: int, multiple: int, data: st.DataObject) -> None:
    high = low + more
    if high // multiple * multiple < low:
        with pytest.raises(TilewrightError, match=f"expected a multiple of {multiple} from {low} to {high}"):
            sizes(low=low, high=high, multiple_of=multiple)
        return
    size = data.draw(sizes(low=low, high=high, multiple_of=multiple))
    assert low <= size <= high
    assert size % multiple == 0


def test_sizes_shrink_to_the_least() -> None:
    quick = random.Random(0)
    assert find(sizes(), lambda n: n >= 6, random=quick) == 6
    assert find(sizes(), lambda n: n >= 33, random=quick) == 33
    assert find(sizes(multiple_of=8, low=9), lambda _: True, random=quick) == 16


def test_a_size_beyond_the_grid_comes_up_when_asked_for() -> None:
    assert BEYOND_GRID > 65535
    assert find(sizes(huge=True), lambda n: n > 65535, random=random.Random(0)) == BEYOND_GRID
    assert max(drawn(sizes(), 500)) < 1000


PROGRAM = """
sym.symbol @M {min = 2, max = 40}
sym.symbol @N {multiple_of = 4}
sym.symbol @K
sym.symbol @S
sym.require K == 2*M + 1
sym.require S <= N
func.func @f(%x: tensor<?x?xf32, #sym.dims<M, N>>, %y: tensor<?x?xf32, #sym.dims<K, S>>)
    -> tensor<?x?xf32, #sym.dims<N, M>> {
  %r = lin.transpose %x perm [1, 0] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<N, M>>
  func.return %r : tensor<?x?xf32, #sym.dims<N, M>>
}
"""


def test_sizes_of_symbols_satisfy_the_program() -> None:
    module = parse_module(PROGRAM, "p.mlir", context())
    verify_module(module)
    found = drawn(symbol_sizes(module, max_elements=500), 200)
    assert len({tuple(each.values()) for each in found}) > 50
    declared = {op.symbol: op for op in module.ops if isinstance(op, SymbolOp)}
    required = [op.relation.data for op in module.ops if isinstance(op, RequireOp)]
    assert len(required) == 2
    for each in found:
        assert each.keys() == declared.keys()
        assert all(relation.holds(each) for relation in required)
        assert 2 <= each["M"] <= 40
        assert each["N"] % 4 == 0
        assert each["M"] * each["N"] <= 500
        assert each["K"] * each["S"] <= 500
    assert {each["N"] for each in found} >= {0, 4, 32}


def test_sizes_of_symbols_shrink_to_the_least_that_is_allowed() -> None:
    module = parse_module(PROGRAM, "p.mlir", context())
    least = find(symbol_sizes(module), lambda _: True, random=random.Random(0))
    assert least == {"M": 2, "N": 0, "K": 5, "S": 0}


def test_a_function_that_is_not_there() -> None:
    module = parse_module(PROGRAM, "p.mlir", context())
    with pytest.raises(TilewrightError, match="expected a function @g in the module, got none"):
        symbol_sizes(module, "g")


@given(st.integers(0, 4).flatmap(lambda rank: layouts(rank)), st.data())
def test_a_layout_keeps_the_values(layout: ViewLayout, data: st.DataObject) -> None:
    shape = [data.draw(st.integers(0, 5)) for _ in layout.order]
    values = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    view = layout.of(values)
    expected = values
    for dim in layout.repeated_dims:
        expected = np.repeat(np.take(expected, [0], dim), shape[dim], dim) if shape[dim] else expected
    np.testing.assert_array_equal(view, expected)
    if values.size:
        for dim, stride in enumerate(view.strides):
            if dim in layout.repeated_dims:
                assert stride == 0
            elif shape[dim] > 1:
                assert (stride < 0) == (dim in layout.reversed_dims)
        if not layout.reversed_dims:
            assert view.ctypes.data % 256 == 4 * layout.offset


def test_every_kind_of_layout_occurs() -> None:
    found = drawn(layouts(3), 300)
    assert sum(layout.is_contiguous for layout in found) < 200
    for has in ("order", "padding", "reversed_dims", "repeated_dims", "offset"):
        plain = getattr(ViewLayout.contiguous(3), has)
        assert any(getattr(layout, has) != plain for layout in found), has
    assert not any(layout.repeated_dims for layout in drawn(layouts(3, repeated=False), 100))
    assert not any(layout.reversed_dims for layout in drawn(layouts(3, reversed_=False), 100))


def test_layouts_shrink_to_contiguous() -> None:
    assert find(layouts(3), lambda _: True, random=random.Random(0)).is_contiguous
    slanted = find(layouts(2), lambda layout: layout.order != (0, 1), random=random.Random(0))
    assert slanted == ViewLayout((1, 0), (0, 0))


def test_a_layout_of_another_rank_is_refused() -> None:
    with pytest.raises(TilewrightError, match="expected an array of rank 2, got 1"):
        ViewLayout.contiguous(2).of(np.zeros(3))


OP_OF_PLACE = {
    "product": "%r = lin.matmul %x, %x : !T, !T -> !T",
    "float": "%r = lin.softmax %x axis 0 : !T -> !T",
    "tensor": "%r = lin.transpose %x perm [1, 0] : !T -> !T",
    "ids": "%r = lin.gather %x, %x : !T, !T -> tensor<2x2x2x{e}>",
}


@pytest.mark.parametrize("place", list(OP_OF_PLACE))
def test_element_types_are_those_that_the_verifier_takes(place: str) -> None:
    """Of all that a person may try."""
    legal = set(drawn(dtypes(place), 50))  # pyright: ignore[reportArgumentType]
    for element in ("f64", "f32", "f16", "bf16", "f8E4M3FN", "i64", "i32", "i16", "i8", "i1"):
        kind = f"tensor<2x2x{element}>"
        text = OP_OF_PLACE[place].replace("!T", kind).replace("{e}", element)
        source = f"func.func @f(%x: {kind}) {{\n  {text}\n  func.return\n}}\n"
        try:
            verify_module(parse_module(source, "p.mlir", context()))
            accepted = True
        except TilewrightError:
            accepted = False
        assert accepted == (element in legal), element


def test_an_unknown_place_of_element_types_is_refused() -> None:
    with pytest.raises(TilewrightError, match="expected one of tensor, product, float, scalar, ids, got 'matmul'"):
        dtypes("matmul")  # pyright: ignore[reportArgumentType]


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hypothesis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def without_hypothesis(statement: str) -> subprocess.CompletedProcess[str]:
    script = f"{ABSENT}\n{statement}\n"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)


def test_without_hypothesis_the_error_names_what_to_install() -> None:
    done = without_hypothesis(
        "import tilewright.testing\n"
        "from tilewright.diagnostics import TilewrightError\n"
        "try:\n    tilewright.testing.lin_programs\nexcept TilewrightError as error:\n    print(error)\n"
    )
    assert done.stdout == "error: tilewright.testing needs hypothesis: pip install 'tilewright[testing]'\n"


def test_inputs_need_no_hypothesis() -> None:
    assert without_hypothesis("from tilewright.runtime.inputs import make_inputs").returncode == 0
