"""clamp in the simulator against the reference, over shapes, dtypes and bounds."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import tilewright as tw
from tilewright.api.tensor import ELEMENT_TYPES, FLOATS
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.numerics import storage_dtype
from tilewright.runtime.reference import compare, run_reference

SYMBOLS = tw.symbols("A B C")
SIZES = st.sampled_from([0, 1, 3, 8, 31, 32, 33])
BOUNDS = [(-0.1, 0.3), (0.0, 0.0), (-3.4e38, 70000)]
"""Numbers that f16 and bf16 round, one number alone, and numbers that f16 does not reach."""
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0]


@cache
def program(dtype: str, rank: int, low: float, high: float) -> tuple[ModuleOp, Kernel]:
    module = tw.build_module(tw.clamp(tw.placeholder(SYMBOLS[:rank], dtype), low, high))
    return module, tw.compile(module.clone(), target="sim")


@pytest.mark.parametrize("dtype", FLOATS)
@given(shape=st.lists(SIZES, max_size=3), bounds=st.sampled_from(BOUNDS), seed=st.integers(0, 2**32 - 1))
def test_the_simulator_meets_the_reference(
    dtype: str, shape: list[int], bounds: tuple[float, float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x: np.ndarray[Any, Any] = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    x = np.where(rng.random(shape) < 0.2, rng.choice([*SPECIAL, *bounds], shape), x)
    with np.errstate(over="ignore"):
        x = x.astype(storage_dtype(ELEMENT_TYPES[dtype]))
    module, kernel = program(dtype, len(shape), *bounds)
    (expected,) = run_reference(module, "main", [x], {})
    got = np.asarray(kernel(x))
    mismatch = compare(got, expected)
    assert mismatch is None, str(mismatch)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
