"""`tw_erf` of the intrinsics: its steps in f32, with the numbers that stand in the header, against erf in float64."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.lowering.erf_coefficients import FAR_DEGREE, NEAR_DEGREE, SEAM, derive
from tilewright.lowering.simt_to_cuda.target import intrinsics_header
from tilewright.runtime.erf import erf

EXP2_ERROR = 2.0**-22.5
"""Relative error of ex2.approx.ftz.f32 (PTX ISA, ex2)."""
ULPS = 3.0
"""What the result may be off; the reference grants 4 (`runtime/reference/scalar_errors.py`)."""


def written() -> tuple[list[np.float32], list[np.float32]]:
    """The coefficients of the header, constant first."""
    header = intrinsics_header()
    body = header[header.index("TW_DEVICE float tw_erf") :].partition("#else")[0]
    assert re.search(rf"t < {SEAM}f \? near : far", body)
    found: list[list[np.float32]] = []
    for name, variable in (("near", "s"), ("far", "t")):
        number = r"(-?[\d.]+(?:e-?\d+)?)f"
        (first,) = re.findall(rf"float {name} = fmaf\({number}, {variable}, {number}\);", body)
        rest = re.findall(rf"{name} = fmaf\({name}, {variable}, {number}\);", body)
        found.append([np.float32(each) for each in reversed([*first, *rest])])
    return found[0], found[1]


def fma(a: NDArray[np.float32], b: NDArray[np.float32], c: NDArray[np.float32] | np.float32) -> NDArray[np.float32]:
    """In float64 the product is exact."""
    return (a.astype(np.float64) * b + np.asarray(c, np.float64)).astype(np.float32)


def computed(x: NDArray[np.float32], off: float) -> NDArray[np.float32]:
    """The steps of `tw_erf`, its exponential off by a relative error."""
    near_numbers, far_numbers = written()
    t, s = np.abs(x), x * x
    near, far = np.full_like(x, near_numbers[-1]), np.full_like(x, far_numbers[-1])
    for each in near_numbers[-2::-1]:
        near = fma(near, s, each)
    for each in far_numbers[-2::-1]:
        far = fma(far, t, each)
    rest = (np.exp2(far.astype(np.float64)) * (1 + off)).astype(np.float32)
    return np.where(t < np.float32(SEAM), fma(near, x, x), np.copysign(np.float32(1) - rest, x))


# Overflow, and infinities that cancel, where the other side counts.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("off", [0.0, EXP2_ERROR, -EXP2_ERROR])
def test_within_three_units_of_the_last_place(off: float) -> None:
    bits = np.arange(0, 0x7F800001, 1009, dtype=np.uint32)
    seam = np.arange(-1000, 1000) + np.float32(SEAM).view(np.int32)
    dense = np.arange(0x3E000000, 0x40900000, 61, dtype=np.uint32)
    x = np.concatenate([bits, seam.astype(np.uint32), dense]).view(np.float32)
    x = np.concatenate([x, -x])
    got, wanted = computed(x, off), erf(x.astype(np.float64))
    unit = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    assert (np.abs(got - wanted) / unit).max() <= ULPS


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)
    got = computed(x, 0.0)
    np.testing.assert_array_equal(got, np.array([0.0, -0.0, 1, -1, np.nan, 1e-45, -1e-45, 1], np.float32))
    assert list(np.signbit(got[:2])) == [False, True]


def test_the_numbers_are_those_derived() -> None:
    for numbers, wanted, degree in zip(written(), derive(), (NEAR_DEGREE, FAR_DEGREE), strict=True):
        assert len(numbers) == degree + 1
        # Least squares end a little elsewhere with another linear algebra library.
        np.testing.assert_allclose(numbers, wanted, rtol=1e-2)
