"""Derives the numbers in `tw_erf` (tilewright_intrinsics.cuh): `python -m tests.lowering.erf_coefficients` prints them.

erf(x) is x + x P(x^2) up to SEAM, and sign(x) (1 - 2^Q(|x|)) above. P has the least greatest error relative to erf, Q
that of the result. The seam is where the two are about as good: P gets worse above, and an error of 2^Q counts for
more below.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

SEAM = 0.75
NEAR_DEGREE, FAR_DEGREE = 4, 5
FAR_END = 3.9
"""From here on erf is 1 in f32."""
TURNS = 150


def fit(x: Vector, f: Vector, weight: Vector, degree: int) -> list[float]:
    """The coefficients of f32, constant first, of a polynomial with a small greatest weight |f - p|.

    Lawson's iteration fits all of them; then one after another is rounded, from the constant up, and the rest is fitted
    again, so that it makes up for the rounding.
    """
    rounded: list[float] = []
    left, scale = f.copy(), float(x.max())
    for first in range(degree + 1):
        powers = np.stack([(x / scale) ** n for n in range(first, degree + 1)], axis=1)
        share, least, best = np.full_like(x, 1 / x.size), math.inf, np.zeros(1)
        for _ in range(TURNS):
            root = np.sqrt(share) * weight
            found = np.linalg.lstsq(powers * root[:, None], left * root, rcond=None)[0]
            error = np.abs((powers @ found - left) * weight)
            if error.max() < least:
                least, best = float(error.max()), found
            share = share * error / np.sum(share * error)
        rounded.append(float(np.float32(best[0] / scale**first)))
        left = left - rounded[-1] * x**first
    return rounded


def _nodes(start: float, end: float, count: int = 200) -> Vector:
    """Points that are close together at both ends."""
    return start + (end - start) * (1 - np.cos(np.linspace(0, np.pi, count))) / 2


def derive() -> tuple[list[float], list[float]]:
    """The coefficients of P and Q, constant first."""
    x = _nodes(1e-3, SEAM)
    erf = np.array([math.erf(each) for each in x])
    near = fit(x * x, erf / x - 1, x / erf, NEAR_DEGREE)
    x = _nodes(SEAM, FAR_END)
    rest = np.array([math.erfc(each) for each in x])
    return near, fit(x, np.log2(rest), rest * math.log(2), FAR_DEGREE)


if __name__ == "__main__":
    for name, coefficients in zip(("near", "far"), derive(), strict=True):
        print(name, *(f"{np.float32(each):.9g}" for each in reversed(coefficients)))
