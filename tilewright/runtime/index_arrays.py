"""Index expressions on arrays: all points of an iteration space at once, in 64-bit integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from tilewright.dialects.sym.expr import Atom, Expr
from tilewright.runtime.numerics import Array


def evaluate(expr: Expr, values: Mapping[str, Array | int]) -> Array:
    """The expression where each symbol has the given integers; arrays broadcast. Divisors must not be zero."""
    result: Array = np.zeros((), np.int64)
    for monomial, coefficient in expr.terms:
        term: Array = np.asarray(coefficient, np.int64)
        for atom in monomial:
            term = term * _atom(atom, values)
        result = result + term
    return result


def _atom(atom: Atom, values: Mapping[str, Array | int]) -> Array:
    if atom.kind == "symbol":
        return np.asarray(values[atom.name], np.int64)
    args = [evaluate(a, values) for a in atom.args]
    if atom.kind == "floordiv":
        return args[0] // args[1]
    return reduce(np.minimum if atom.kind == "min" else np.maximum, args)


def axis(number: int, size: int, rank: int, start: int = 0) -> Array:
    """`start, start + 1, ...` along one of `rank` axes, the others of size 1."""
    return np.arange(start, start + size, dtype=np.int64).reshape([size if d == number else 1 for d in range(rank)])


def gather(array: Array, indices: Sequence[Array], shape: Sequence[int]) -> tuple[Array, Array]:
    """`array` at computed positions, and where all of them lie inside; element 0 stands for what lies outside.

    The results have `shape`, to which the indices broadcast. An array without elements gives zeros.
    """
    inside: Array = np.ones((), np.bool_)
    for index, size in zip(indices, array.shape, strict=True):
        inside = inside & (index >= 0) & (index < size)
    inside = np.broadcast_to(inside, shape)
    if array.size == 0:
        return np.zeros(shape, array.dtype), inside
    clamped = tuple(np.where(inside, index, 0) for index in indices)
    return np.broadcast_to(array[clamped], shape), inside
