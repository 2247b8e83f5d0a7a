"""Combination over reduction dims, block by block, with the error that any order of it may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tilewright.dialects.lin.combine import Combine, identity_value
from tilewright.runtime.numerics import Array, FloatFormat, float_format, integer_dtype
from tilewright.runtime.reference.bounded import Bounded, settle, with_overflow

_REDUCE: dict[Combine, Callable[..., Any]] = {
    Combine.SUM: np.add.reduce,
    Combine.PROD: np.multiply.reduce,
    Combine.MAX: np.maximum.reduce,
    Combine.MIN: np.minimum.reduce,
}
_PAIR: dict[Combine, Callable[[Array, Array], Array]] = {
    Combine.SUM: np.add,
    Combine.PROD: np.multiply,
    Combine.MAX: np.maximum,
    Combine.MIN: np.minimum,
}


def smallest(found: FloatFormat) -> float:
    """The least positive number of a format: what one operation may lose to underflow."""
    return 2.0 ** (found.min_exponent - found.precision + 1)


def summation_error(found: FloatFormat, length: int, magnitude: Array, finite: Array | None = None) -> Array:
    """How far a sum of `length` terms in this format, in any order, may be off; `magnitude` is the sum of |terms|,
    `finite` that of the finite terms alone where there are others.

    2 K u sum|x|: Higham, Accuracy and Stability of Numerical Algorithms, section 4.2, has (K - 1) u + O(u^2); the
    factor 2 covers the products of a contraction and the second order. inf where a partial sum of finite terms may
    overflow; else 0 where a term is infinite or NaN, as the sum then is what these make of it, in any order.
    """
    error = 2.0 * length * found.unit_roundoff * magnitude + length * smallest(found)
    error = np.where(magnitude >= found.overflow, np.inf, error)
    # An infinity beside finite terms that may overflow to the other one: NaN in some orders.
    beside = 0.0 if finite is None else np.where(finite >= found.overflow, np.inf, 0.0)
    return np.where(np.isfinite(magnitude), error, beside)


@dataclass(slots=True)
class Accumulator:
    """The running combination of one reduction, over an array of results.

    Floats are combined in float64, integers in int64, which wraps as the type does once it is narrowed.
    """

    combine: Combine
    element_type: Attribute
    length: int
    """Terms that each result combines."""
    value: Array
    error: Array
    """sum: of the terms' errors; max and min: the greatest of them; prod: the product of |x| + e."""
    magnitude: Array
    """sum: of |x| + e; prod: the product of |x|."""
    peak: Array
    """sum: of |x| + e where that is finite; prod: the product of all |x| + e above 1: what an order may come to."""

    @staticmethod
    def start(combine: Combine, element_type: Attribute, shape: Sequence[int], length: int) -> Accumulator:
        """Every result at the identity, as for an empty reduction."""
        is_float = float_format(element_type) is not None
        initial = identity_value(combine, element_type)
        value = np.full(shape, initial, np.float64 if is_float else np.int64)
        product_of_bounds = 1.0 if combine is Combine.PROD else 0.0
        error, magnitude, peak = (np.full(shape, product_of_bounds) for _ in range(3))
        return Accumulator(combine, element_type, length, value, error, magnitude, peak)

    def add(self, where: tuple[slice, ...], terms: Bounded) -> None:
        """Combine a block into the results at `where`; the trailing axes of `terms` are the reduced ones."""
        axes = tuple(range(len(where), terms.value.ndim))
        values = terms.value.astype(self.value.dtype, copy=False)
        self.value[where] = _PAIR[self.combine](self.value[where], _REDUCE[self.combine](values, axis=axes))
        if self.combine in (Combine.MAX, Combine.MIN):
            self.error[where] = np.maximum(self.error[where], np.maximum.reduce(terms.error, axis=axes))
            return
        size = np.abs(values.astype(np.float64, copy=False))
        if self.combine is Combine.SUM:
            self.error[where] += np.add.reduce(terms.error, axis=axes)
            bounds = size + terms.error
            self.magnitude[where] += np.add.reduce(bounds, axis=axes)
            self.peak[where] += np.add.reduce(np.where(np.isfinite(bounds), bounds, 0.0), axis=axes)
        else:
            self.peak[where] *= np.multiply.reduce(np.fmax(size + terms.error, 1.0), axis=axes)
            self.error[where] *= np.multiply.reduce(size + terms.error, axis=axes)
            self.magnitude[where] *= np.multiply.reduce(size, axis=axes)

    def finish(self) -> Bounded:
        """The results, not yet rounded to the type."""
        found = float_format(self.element_type)
        if found is None:
            return self._finish_integer()
        value = with_overflow(self.element_type, self.value)
        error = self.error
        if self.combine is Combine.SUM:
            peak = np.where(np.isnan(value), 0.0, self.peak)
            error = error + summation_error(found, self.length, self.magnitude, peak)
        elif self.combine is Combine.PROD:
            # Relative: (1 + u)^K of the product, and what the factors' errors make of it.
            error = (self.error - self.magnitude) + summation_error(found, self.length, self.error)
            # Factors that overflow before a zero is met make NaN of it.
            error = np.where((self.peak >= found.overflow) & ~np.isnan(value), np.inf, error)
        return Bounded(value, settle(self.element_type, value, error))

    def _finish_integer(self) -> Bounded:
        dtype = integer_dtype(self.element_type)
        value = (self.value & 1).astype(np.bool_) if dtype == np.bool_ else self.value.astype(dtype)
        error = self.error
        if self.combine is Combine.PROD:
            error = np.where(self.error == self.magnitude, 0.0, np.inf)
        return Bounded(value, error)
