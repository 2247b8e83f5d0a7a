"""A value with a bound on its error, and how rounding and overflow act on the pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Attribute

from tilewright.runtime.numerics import Array, float_format, integer_dtype, overflow_to_inf, round_to

NO_ERROR: Array = np.zeros(())
"""The bound of an exact value: broadcasts to any shape."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """`value` in exact mode's carriers, and `error`: |x - value| for every x that an honest execution may hold there.

    `error` is float64 and broadcasts to the shape of `value`; inf means that nothing is known.
    """

    value: Array
    error: Array = field(default_factory=lambda: NO_ERROR)

    @property
    def is_exact(self) -> bool:
        """Whether every element has the bound 0."""
        return not np.any(self.error)


def distance(left: Array, right: Array) -> Array:
    """|left - right|, 0 where both are the same infinity or both are NaN, inf where one of them is NaN."""
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    gap = np.abs(np.where(same, 0.0, left) - np.where(same, 0.0, right))
    return np.where(np.isnan(gap), np.inf, gap)


def monotone(fn: Callable[[Array], Array], x: Bounded, value: Array) -> Array:
    """The error of `fn` of `x` for a monotone `fn`: how far the ends of the interval around `x` are from `value`."""
    if x.is_exact:
        return NO_ERROR
    exact = x.error == 0
    low, high = (distance(fn(x.value + side * x.error), value) for side in (-1.0, 1.0))
    # Where nothing is known of x, it may be NaN, whatever the ends of its range give.
    return np.where(exact, 0.0, np.where(np.isinf(x.error), np.inf, np.maximum(low, high)))


def settle(element_type: Attribute, value: Array, error: Array) -> Array:
    """The bound of a float result, given what propagation made of it.

    A NaN bound becomes inf. A finite value that may as well have overflowed has the bound inf. An infinity or NaN has
    the bound 0, unless propagation says that nothing is known.
    """
    found = float_format(element_type)
    if found is None:
        return error
    error = np.where(np.isnan(error), np.inf, error)
    finite = np.isfinite(value)
    near_overflow = finite & (error > 0) & (np.abs(value) + error >= found.overflow)
    error = np.where(near_overflow, np.inf, error)
    return np.where(finite | np.isinf(error), error, 0.0)


def rounded(element_type: Attribute, x: Bounded) -> Bounded:
    """`x` rounded once to its type. Rounding is monotone, so the bound is exact: an exact value stays exact."""
    if float_format(element_type) is None:
        return Bounded(x.value.astype(integer_dtype(element_type), copy=False), x.error)
    value = round_to(element_type, x.value)
    error = monotone(lambda v: round_to(element_type, v), x, value)
    return Bounded(value, settle(element_type, value, error))


def with_overflow(element_type: Attribute, value: Array) -> Array:
    """A float64 result with what its type cannot hold replaced by inf; integers as they are."""
    return value if float_format(element_type) is None else overflow_to_inf(element_type, value)
