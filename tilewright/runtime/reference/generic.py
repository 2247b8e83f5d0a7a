"""`lin.generic` on arrays: the iteration space is cut into blocks of bounded size, each computed as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Block, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.body import IndexOp, YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import ApplyOp
from tilewright.dialects.sym.index import dim, name_of
from tilewright.dialects.sym.index import value as index_value
from tilewright.runtime.index_arrays import axis, evaluate, gather
from tilewright.runtime.numerics import Array
from tilewright.runtime.reference.bounded import Bounded, settle, with_overflow
from tilewright.runtime.reference.combining import Accumulator
from tilewright.runtime.reference.contraction import contract
from tilewright.runtime.reference.scalar_errors import evaluate_bounded

TF32_LOSS = 2.0**-10
"""Of a factor in f32 what the 13 lowest bits of its fraction come to at most."""
SMALLEST_NORMAL = 2.0**-126
BLOCK_ELEMENTS = 1 << 20
"""Points of the iteration space that are computed at once: tens of MB with the arrays of a body's values."""


def evaluate_generic(
    op: GenericOp, operands: Sequence[Bounded], sizes: Sequence[int], symbols: Mapping[str, int]
) -> Bounded:
    """The result of `op`, not yet rounded to its type, for iteration dims of these sizes. Call it inside `quiet()`.

    An operand is an array of its tensor's shape, or of shape () for a scalar. TilewrightError where an index without
    `else` lies outside its operand.
    """
    element_type = op.result.type.element_type
    # What is read at computed positions becomes an operand that runs along the iteration dims it depends on.
    operands, maps = read_accesses(op, operands, sizes, symbols)
    if op.precision is not None:
        operands = [_as_tf32(x) for x in operands]
    if op.is_contraction:
        found = contract(maps, op.out_map, operands, sizes, element_type)
        if found is not None:
            value = with_overflow(element_type, found.value)
            return Bounded(value, settle(element_type, value, found.error))
    order = (*op.out_map, *op.reduction_dims)
    views = [
        Bounded(_view(x.value, m, order, sizes), _view(np.broadcast_to(x.error, x.value.shape), m, order, sizes))
        for x, m in zip(operands, maps, strict=True)
    ]
    space = [sizes[d] for d in order]
    rank = len(op.out_map)
    out_shape = space[:rank]
    combine = op.combine
    body = Body(op.body.block, order, symbols)
    if combine is None:
        return _elementwise(body, views, out_shape)
    accumulator = Accumulator.start(combine, element_type, out_shape, prod(space[rank:]))
    for block in _blocks(space):
        shape = tuple(piece.stop - piece.start for piece in block)
        accumulator.add(block[:rank], _full(body.evaluate(_cut(views, block), block), shape))
    return accumulator.finish()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a generic, the order of its iteration dims on the axes of arrays, and the symbols' values."""

    block: Block
    order: Sequence[int]
    symbols: Mapping[str, int]

    def evaluate(self, args: Sequence[Bounded], where: Sequence[slice]) -> Bounded:
        """The scalar that the body yields, for arguments that broadcast to the points `where`, a slice an axis."""
        values: dict[SSAValue, Bounded] = dict(zip(self.block.args, args, strict=True))
        for op in self.block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, YieldOp):
                return operands[0]
            if isinstance(op, IndexOp):
                number = self.order.index(op.dim)
                piece = where[number]
                place = axis(number, piece.stop - piece.start, len(where), piece.start)
                values[op.result] = Bounded(place)
            elif isinstance(op, ApplyOp):
                named = {name: x.value for name, x in zip(op.where, operands, strict=True)}
                values[op.result] = Bounded(evaluate(op.expr.data, {**self.symbols, **named}))
            else:
                values[op.results[0]] = evaluate_bounded(op, operands)
        raise AssertionError("a verified body ends in lin.yield")


def _elementwise(body: Body, views: Sequence[Bounded], shape: Sequence[int]) -> Bounded:
    value: Array | None = None
    error = np.zeros(shape)
    for block in _blocks(shape):
        piece = body.evaluate(_cut(views, block), block)
        if value is None:
            value = np.zeros(shape, piece.value.dtype)
        value[block] = piece.value
        error[block] = piece.error
    if value is None:
        # An empty space: the body runs on nothing, for the dtype alone.
        empty = [Bounded(np.zeros((0,) * len(shape), v.value.dtype)) for v in views]
        value = np.zeros(shape, body.evaluate(empty, [slice(0, 0)] * len(shape)).value.dtype)
    return Bounded(value, error)


def read_accesses(
    op: GenericOp, operands: Sequence[Bounded], sizes: Sequence[int], symbols: Mapping[str, int]
) -> tuple[list[Bounded], list[OperandMap]]:
    """The operands with those at computed positions read, and the iteration dims of each operand's dims then."""
    found, maps = list(operands), list(op.operand_maps)
    for position, access in enumerate(op.accesses):
        if access is None:
            continue
        dims = op.dims_read(position)
        place = {d: n for n, d in enumerate(dims)}
        shape = [sizes[d] for d in dims]
        values: dict[str, Array | int] = dict(symbols)
        for d in access.dims:
            values[name_of(dim(d))] = axis(place[d], sizes[d], len(dims))
        for v in access.values:
            values[name_of(index_value(v))] = _view(found[v].value, maps[v], dims, sizes)
        x = operands[position]
        indices = [np.broadcast_to(evaluate(e, values), shape) for e in access.indices]
        read, inside = gather(x.value, indices, shape)
        error = gather(np.broadcast_to(x.error, x.value.shape), indices, shape)[0]
        # An index that no empty dim moves has a value although nothing is read at it.
        if not inside.all() and 0 not in sizes:
            if access.fill is None:
                raise _outside(op, position, indices, x.value.shape, inside)
            fill = cast("FloatAttr[AnyFloat] | IntegerAttr[IntegerType]", access.fill).value.data
            read, error = np.where(inside, read, np.asarray(fill).astype(read.dtype)), np.where(inside, error, 0.0)
        found[position], maps[position] = Bounded(read, error), dims
    return found, maps


def _as_tf32(x: Bounded) -> Bounded:
    """A factor as `precision tf32` lets it be read: without bits of its fraction, and zero below the normal numbers."""
    size = np.abs(x.value)
    moved = np.where(np.isfinite(size) & (size > 0), TF32_LOSS * size + SMALLEST_NORMAL, 0.0)
    return Bounded(x.value, x.error + moved)


def _outside(
    op: GenericOp, position: int, indices: Sequence[Array], shape: Sequence[int], inside: Array
) -> TilewrightError:
    first = tuple(int(i) for i in np.argwhere(~inside)[0])
    at = [int(index[first]) for index in indices]
    return TilewrightError(
        f"lin.generic: expected indices inside {list(shape)} for operand {position}, got {at}", location_of(op)
    )


def _full(x: Bounded, shape: tuple[int, ...]) -> Bounded:
    return Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.error, shape))


def _view(array: Array, dims: OperandMap, order: Sequence[int], sizes: Sequence[int]) -> Array:
    """`array` with one axis for each dim of `order`, of size 1 where the operand does not have the dim."""
    kept = array[tuple(0 if d is None else slice(None) for d in dims)]
    named = [d for d in dims if d is not None]
    distinct = list(dict.fromkeys(named))
    if len(distinct) != len(named):
        # The same dim twice reads a diagonal; einsum gives it as a view.
        kept = np.einsum(kept, named, distinct)
    present = [d for d in order if d in distinct]
    arranged = kept.transpose([distinct.index(d) for d in present])
    return arranged.reshape([sizes[d] if d in distinct else 1 for d in order])


def _cut(views: Sequence[Bounded], block: tuple[slice, ...]) -> list[Bounded]:
    return [Bounded(_cut_one(v.value, block), _cut_one(v.error, block)) for v in views]


def _cut_one(array: Array, block: tuple[slice, ...]) -> Array:
    return array[tuple(slice(0, 1) if size == 1 else piece for size, piece in zip(array.shape, block, strict=True))]


def _blocks(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Slices that cover `shape`, each of at most `BLOCK_ELEMENTS` points; inner dims stay whole. None if empty."""
    if 0 in shape:
        return
    steps: list[int] = []
    room = BLOCK_ELEMENTS
    for size in reversed(shape):
        step = max(1, min(size, room))
        steps.insert(0, step)
        room //= step
    cuts = [
        [slice(start, min(start + step, size)) for start in range(0, size, step)]
        for size, step in zip(shape, steps, strict=True)
    ]
    yield from product(*cuts)
