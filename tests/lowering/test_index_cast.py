"""Integers of a body as `index` values: the sign goes along when they become wider."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

TEXT = """
sym.symbol @N
func.func @main(%x : tensor<?xi32, #sym.dims<N>>) -> tensor<?xi64, #sym.dims<N>> {
  %y = lin.map ins(%x : tensor<?xi32, #sym.dims<N>>) -> tensor<?xi64, #sym.dims<N>> {
  ^bb0(%a : i32):
    %i = arith.index_cast %a : i32 to index
    %two = arith.constant 2 : index
    %j = arith.addi %i, %two : index
    %k = arith.index_cast %j : index to i64
    lin.yield %k : i64
  }
  func.return %y : tensor<?xi64, #sym.dims<N>>
}
"""


@pytest.mark.parametrize("target", ["reference", "sim", pytest.param("cpu", marks=pytest.mark.cxx)])
def test_a_negative_integer_stays_negative_as_an_index(target: str) -> None:
    x = np.array([-7, 3, -1, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(tw.compile(TEXT, target=target)(x), x.astype(np.int64) + 2)
