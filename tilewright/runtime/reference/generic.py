"""`lin.generic` on arrays: the iteration space is cut into blocks of bounded size, each computed as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from xdsl.ir import Block, SSAValue

from tilewright.dialects.lin.body import YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.runtime.numerics import Array
from tilewright.runtime.reference.bounded import Bounded, settle, with_overflow
from tilewright.runtime.reference.combining import Accumulator
from tilewright.runtime.reference.contraction import contract
from tilewright.runtime.reference.scalar_errors import evaluate_bounded

BLOCK_ELEMENTS = 1 << 20
"""Points of the iteration space that are computed at once: tens of MB with the arrays of a body's values."""


def evaluate_generic(op: GenericOp, operands: Sequence[Bounded], sizes: Sequence[int]) -> Bounded:
    """The result of `op`, not yet rounded to its type, for iteration dims of these sizes. Call it inside `quiet()`.

    An operand is an array of its tensor's shape, or of shape () for a scalar.
    """
    element_type = op.result.type.element_type
    if op.is_contraction:
        found = contract(op.operand_maps, op.out_map, operands, sizes, element_type)
        if found is not None:
            value = with_overflow(element_type, found.value)
            return Bounded(value, settle(element_type, value, found.error))
    order = (*op.out_map, *op.reduction_dims)
    views = [
        Bounded(_view(x.value, m, order, sizes), _view(np.broadcast_to(x.error, x.value.shape), m, order, sizes))
        for x, m in zip(operands, op.operand_maps, strict=True)
    ]
    space = [sizes[d] for d in order]
    rank = len(op.out_map)
    out_shape = space[:rank]
    combine = op.combine
    if combine is None:
        return _elementwise(op.body.block, views, out_shape)
    accumulator = Accumulator.start(combine, element_type, out_shape, prod(space[rank:]))
    for block in _blocks(space):
        shape = tuple(piece.stop - piece.start for piece in block)
        accumulator.add(block[:rank], _full(evaluate_body(op.body.block, _cut(views, block)), shape))
    return accumulator.finish()


def evaluate_body(block: Block, args: Sequence[Bounded]) -> Bounded:
    """The scalar that a body yields, for arguments of any shapes that broadcast."""
    values: dict[SSAValue, Bounded] = dict(zip(block.args, args, strict=True))
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, YieldOp):
            return operands[0]
        values[op.results[0]] = evaluate_bounded(op, operands)
    raise AssertionError("a verified body ends in lin.yield")


def _elementwise(body: Block, views: Sequence[Bounded], shape: Sequence[int]) -> Bounded:
    value: Array | None = None
    error = np.zeros(shape)
    for block in _blocks(shape):
        piece = evaluate_body(body, _cut(views, block))
        if value is None:
            value = np.zeros(shape, piece.value.dtype)
        value[block] = piece.value
        error[block] = piece.error
    if value is None:
        # An empty space: the body runs on nothing, for the dtype alone.
        empty = [Bounded(np.zeros((0,), v.value.dtype)) for v in views]
        value = np.zeros(shape, evaluate_body(body, empty).value.dtype)
    return Bounded(value, error)


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
