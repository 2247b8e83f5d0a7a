"""`tilewright.compile`: the three ways to give a program, and how arguments are ordered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

TEXT = """
sym.symbol @N
func.func @twice(%x : tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  %y = lin.map ins(%x : tensor<?xf32, #sym.dims<N>>) -> tensor<?xf32, #sym.dims<N>> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    lin.yield %b : f32
  }
  func.return %y : tensor<?xf32, #sym.dims<N>>
}
"""

ARRAY = np.array([1, 2, 3], np.float32)


def test_text_path_and_module_are_one_program(tmp_path: Path):
    path = tmp_path / "twice.mlir"
    path.write_text(TEXT)
    for program in (TEXT, path):
        kernel = tw.compile(program, target="sim")
        assert kernel.name == "twice"
        np.testing.assert_array_equal(kernel(ARRAY), 2 * ARRAY)


def test_tensors_take_their_arguments_in_the_order_of_placeholders_or_of_inputs():
    (n,) = tw.symbols("N")
    a, b = tw.placeholder((n,), name="a"), tw.placeholder((n,), name="b")
    other = ARRAY[::-1].copy()
    np.testing.assert_array_equal(tw.compile(b - a, target="sim")(ARRAY, other), other - ARRAY)
    np.testing.assert_array_equal(tw.compile(b - a, target="sim", inputs=[b, a])(ARRAY, other), ARRAY - other)


def test_several_outputs_come_as_a_tuple():
    x = tw.placeholder(tw.symbols("N"))
    plus, minus = tw.compile((x + 1, x - 1), target="sim")(ARRAY)
    np.testing.assert_array_equal(plus, ARRAY + 1)
    np.testing.assert_array_equal(minus, ARRAY - 1)


def test_scalars_go_by_value():
    x, factor = tw.placeholder(tw.symbols("N")), tw.placeholder((), "float32")
    kernel = tw.compile(x * factor, target="sim")
    np.testing.assert_array_equal(kernel(ARRAY, 2.5), ARRAY * np.float32(2.5))
    np.testing.assert_array_equal(kernel(ARRAY, np.float32(-1)), -ARRAY)


def test_errors_are_tilewright_errors(tmp_path: Path):
    with pytest.raises(tw.TilewrightError, match=r"<text>:1:\d+: error"):
        tw.compile("func.func @f(", target="sim")
    with pytest.raises(tw.TilewrightError, match="cannot read"):
        tw.compile(tmp_path / "none.mlir", target="sim")
    with pytest.raises(tw.TilewrightError, match="inputs orders the placeholders"):
        tw.compile(TEXT, inputs=[], target="sim")


@pytest.mark.parametrize("name", ["i", "k", "k0", "d0", "o0", "v0", "n", "zero"])
def test_a_size_may_have_any_name(name: str):
    (size,) = tw.symbols(name)
    x = tw.placeholder((3, size))
    ones = np.ones((3, 5), np.float32)
    np.testing.assert_array_equal(tw.compile(tw.sum(x, 1), target="sim")(ones), [5, 5, 5])
    np.testing.assert_array_equal(tw.compile(tw.reshape(x, (3 * size,)), target="sim")(ones), np.ones(15))
    np.testing.assert_array_equal(tw.compile(x[:, 1:] @ tw.transpose(x)[1:], target="sim")(ones), np.full((3, 3), 4))


def test_a_path_may_be_a_string(tmp_path: Path):
    path = tmp_path / "negate.mlir"
    path.write_text(str(tw.build_module(-tw.placeholder((3,)))))
    kernel = tw.compile(str(path), target="sim")
    assert kernel(np.array([1, 2, 3], np.float32)).tolist() == [-1, -2, -3]
    with pytest.raises(tw.TilewrightError, match="cannot read"):
        tw.compile("absent.mlir", target="sim")
