"""Contractions as one batched matrix product in float64 (int64 for integers)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import Attribute

from tilewright.dialects.lin.indexing import OperandMap
from tilewright.runtime.numerics import Array, float_format, integer_dtype
from tilewright.runtime.reference.bounded import NO_ERROR, Bounded
from tilewright.runtime.reference.combining import summation_error


def contract(
    operand_maps: Sequence[OperandMap],
    out_map: Sequence[int],
    operands: Sequence[Bounded],
    sizes: Sequence[int],
    element_type: Attribute,
) -> Bounded | None:
    """The sum of products over the dims that `out_map` lacks, not yet rounded to the type.

    None where an operand is no plain matrix of dims: a dim twice in it, a reduced dim that the other lacks, or truth
    values.
    """
    lhs, rhs = (tuple(d for d in m if d is not None) for m in operand_maps)
    out = set(out_map)
    reduced = [d for d in range(len(sizes)) if d not in out]
    if len(set(lhs)) != len(lhs) or len(set(rhs)) != len(rhs):
        return None
    if any(d not in lhs or d not in rhs for d in reduced):
        return None
    if any(x.value.dtype == np.bool_ for x in operands):
        # A truth value is -1 or 1 by how the body extends it.
        return None
    batch = [d for d in out_map if d in lhs and d in rhs]
    rows = [d for d in out_map if d in lhs and d not in rhs]
    columns = [d for d in out_map if d in rhs and d not in lhs]

    def matrix(array: Array, dims: OperandMap, order: Sequence[Sequence[int]]) -> Array:
        kept = array[tuple(0 if d is None else slice(None) for d in dims)]
        named = [d for d in dims if d is not None]
        arranged = kept.transpose([named.index(d) for group in order for d in group])
        return arranged.reshape([prod(sizes[d] for d in group) for group in order])

    def product(left: Array, right: Array) -> Array:
        return matrix(left, operand_maps[0], (batch, rows, reduced)) @ matrix(
            right, operand_maps[1], (batch, reduced, columns)
        )

    def arranged(result: Array) -> Array:
        current = [*batch, *rows, *columns]
        spread = result.reshape([sizes[d] for d in current])
        present = [d for d in out_map if d in current]
        spread = spread.transpose([current.index(d) for d in present])
        spread = spread.reshape([sizes[d] if d in current else 1 for d in out_map])
        return np.broadcast_to(spread, [sizes[d] for d in out_map])

    found = float_format(element_type)
    a, b = operands
    if found is None:
        wide = product(a.value.astype(np.int64), b.value.astype(np.int64))
        unknown = NO_ERROR if a.is_exact and b.is_exact else np.full((), np.inf)
        return Bounded(arranged(wide).astype(integer_dtype(element_type)), unknown)
    value = product(a.value, b.value)
    size_a, size_b = np.abs(a.value), np.abs(b.value)
    magnitude = product(size_a, size_b)
    spread_error: Array = NO_ERROR
    if not (a.is_exact and b.is_exact):
        error_a = np.broadcast_to(a.error, a.value.shape)
        error_b = np.broadcast_to(b.error, b.value.shape)
        spread_error = product(size_a, error_b) + product(error_a, size_b + error_b)
        magnitude = magnitude + spread_error
    length = prod(sizes[d] for d in reduced)
    finite: Array | None = None
    if not np.all(np.isfinite(magnitude)):
        left, right = (np.where(np.isfinite(size), size, 0.0) for size in (size_a, size_b))
        finite = np.where(np.isnan(value), 0.0, product(left, right))
    error = spread_error + summation_error(found, length, magnitude, finite)
    return Bounded(arranged(value), arranged(np.broadcast_to(error, value.shape)))
