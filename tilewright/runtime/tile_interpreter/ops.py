"""What each op of the tile level does to buffers, as its docstring in the dialect says. Layouts play no part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Attribute, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.combine import Combine, identity_value
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import index as coordinate
from tilewright.dialects.sym.ops import ApplyOp
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp, SliceOp
from tilewright.dialects.tile.channels import ChannelOp, PublishOp, ReceiveOp, ReleaseOp
from tilewright.dialects.tile.compute import IndexOp, MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, SyncOp
from tilewright.dialects.tile.types import BufType, buffer_type
from tilewright.runtime import index_arrays
from tilewright.runtime.numerics import Array, float_format, fma_f32, round_to, storage_dtype
from tilewright.runtime.scalar_ops import SCALAR_OPS, carrier_dtype
from tilewright.runtime.tile_interpreter.blocks import run_block_count, run_raster, run_slice
from tilewright.runtime.tile_interpreter.channels import run_channel, run_publish, run_release
from tilewright.runtime.tile_interpreter.values import (
    Frame,
    constant,
    in_iteration,
    root,
    run_scalar,
    undefined,
    valid_mask,
)

Run: TypeAlias = Callable[[Frame, Any], None]


def _sizes(op: MapOp | ReduceOp | MmaOp) -> list[int]:
    """The static extents of the iteration dims, all of which a verified op has."""
    return [0 if n is None else n for n in op.sizes]


def run_alloc(frame: Frame, op: AllocOp) -> None:
    """A new buffer, undefined."""
    frame.env[op.res] = undefined(op.type)


def run_apply(frame: Frame, op: ApplyOp) -> None:
    """An index expression."""
    values: dict[str, Array | int] = dict(frame.symbols)
    values |= {name: frame.env[value] for name, value in op.where.items()}
    found = index_arrays.evaluate(op.expr.data, values)
    # In the body of a map an index may differ from element to element.
    frame.env[op.result] = found if found.ndim else int(found)


def run_fill(frame: Frame, op: FillOp) -> None:
    """A constant in every element."""
    frame.write(op, op.target)[...] = constant(op.value, buffer_type(op.target).element)


def _window(
    op: CopyOp, buffer: Array, offsets: Sequence[int], tile: Sequence[int], is_global: bool
) -> tuple[slice, ...]:
    """The part of the tile that lies inside a buffer: what `clip` leaves, all of it where `proved`."""
    inside: list[slice] = []
    for dim, (offset, n, size) in enumerate(zip(offsets, tile, buffer.shape, strict=True)):
        if offset < 0:
            raise TilewrightError(f"tile.copy: offset {offset} in dim {dim} is negative", location_of(op))
        fits = max(0, min(n, size - offset))
        if fits < n and not (is_global and op.bound_words[dim] == "clip"):
            kind = "bound proved" if is_global else "shared memory"
            raise TilewrightError(
                f"tile.copy: elements {offset}..{offset + n - 1} in dim {dim} exceed size {size} ({kind})",
                location_of(op),
            )
        inside.append(slice(0, fits))
    return tuple(inside)


def run_copy(frame: Frame, op: CopyOp) -> None:
    """A rectangle from one buffer to another; clipped elements are filled on the way in and dropped on the way out."""
    tile = op.tile_type.sizes
    source, target = frame.read(op, op.source), frame.write(op, op.target)
    source_space, target_space = op.spaces
    from_offsets = [frame.integer(o) for o in op.source_offsets] or [0] * len(tile)
    to_offsets = [frame.integer(o) for o in op.target_offsets] or [0] * len(tile)
    if op.multicast is not None:
        frame.shared.append((op, tuple(from_offsets)))
    readable = _window(op, source, from_offsets, tile, source_space == "global")
    writable = _window(op, target, to_offsets, tile, target_space == "global")
    element = buffer_type(op.source).element
    values = np.empty(tile, carrier_dtype(element, "typed"))
    read = tuple(slice(o, o + r.stop) for o, r in zip(from_offsets, readable, strict=True))
    if any(r.stop < n for r, n in zip(readable, tile, strict=True)):
        values[...] = constant(op.other, element)
    values[readable] = source[read]
    written = tuple(slice(o, o + w.stop) for o, w in zip(to_offsets, writable, strict=True))
    target[written] = values[writable].astype(target.dtype, copy=False)


def run_map(frame: Frame, op: MapOp) -> None:
    """The body on all elements at once."""
    sizes = _sizes(op)
    limits = {d: frame.integer(v) for d, v in op.valid_limits.items()}
    for (value, dims), argument in zip(op.mapped_inputs, op.body.block.args, strict=True):
        # A copy: an output that is also an input is read before it is written.
        if isinstance(value.type, BufType):
            frame.env[argument] = in_iteration(frame.read(op, value), dims, sizes).copy()
        else:
            frame.env[argument] = np.asarray(frame.env[value])
    results = frame.run_block(frame, op.body.block)
    values = [np.broadcast_to(np.asarray(frame.env[r]), sizes).copy() for r in results]
    mask = valid_mask(limits, sizes)
    for value, (output, dims) in zip(values, op.mapped_outputs, strict=True):
        buffer = frame.write(op, output)
        target = in_iteration(buffer, dims, sizes)
        _expect_view(op, target, buffer)
        missing = [d for d in range(len(sizes)) if d not in dims and sizes[d] > 1]
        where = np.ones(sizes, np.bool_) if mask is None else np.broadcast_to(mask, sizes)
        if missing:
            _keep_last(target, value, where, missing)
        elif mask is None:
            target[...] = value
        else:
            np.copyto(target, value, where=where)


def run_gather(frame: Frame, op: GatherOp) -> None:
    """Each element from its computed position."""
    sizes = op.tile_type.sizes
    values: dict[str, Array | int] = dict(frame.symbols)
    values |= {coordinate.name_of(coordinate.dim(d)): index_arrays.axis(d, n, len(sizes)) for d, n in enumerate(sizes)}
    values |= {coordinate.name_of(coordinate.offset(n)): frame.integer(v) for n, v in enumerate(op.offsets)}
    for n, (fragment, own) in enumerate(op.mapped_values):
        values[coordinate.name_of(coordinate.value(n))] = in_iteration(frame.read(op, fragment), own, sizes)
    source = frame.read(op, op.source)
    indices = [np.broadcast_to(index_arrays.evaluate(e, values), sizes) for e in op.exprs]
    mask = valid_mask({d: frame.integer(v) for d, v in op.valid_limits.items()}, sizes)
    valid = np.ones(sizes, np.bool_) if mask is None else np.broadcast_to(mask, sizes)
    for d, (word, index) in enumerate(zip(op.bound_words, indices, strict=True)):
        outside = valid & ((index < 0) | (index >= source.shape[d]))
        if word != "clip" and outside.any():
            raise TilewrightError(
                f"tile.gather: index {int(index[outside][0])} of dim {d} is outside size {source.shape[d]}"
                f" (bound {word})",
                location_of(op),
            )
    read, inside = index_arrays.gather(source, indices, sizes)
    target = frame.write(op, op.target)
    found = np.where(inside & valid, read, constant(op.other, buffer_type(op.source).element).astype(read.dtype))
    target[...] = found.astype(target.dtype, copy=False)


def run_index(frame: Frame, op: IndexOp) -> None:
    """The places along an iteration dim of the map around."""
    owner = op.parent_op()
    assert isinstance(owner, MapOp)
    sizes = _sizes(owner)
    frame.env[op.result] = index_arrays.axis(op.dim, sizes[op.dim], len(sizes))


def _expect_view(op: Operation, view: Array, buffer: Array) -> None:
    if not np.may_share_memory(view, buffer) or not view.flags.writeable:
        raise TilewrightError(f"{op.name}: an output's map uses an iteration dim twice", location_of(op))


def _keep_last(target: Array, values: Array, where: Array, missing: Sequence[int]) -> None:
    """Write where several iterations share an element: the last one that is valid stays."""
    extents = [range(values.shape[d]) for d in missing]
    for position in product(*extents):
        at: list[slice] = [slice(None)] * values.ndim
        for d, i in zip(missing, position, strict=True):
            at[d] = slice(i, i + 1)
        np.copyto(target, values[tuple(at)], where=where[tuple(at)])


_COMBINE: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_COMBINE_I1: dict[str, np.ufunc] = {
    "sum": np.logical_xor,
    "prod": np.logical_and,
    "max": np.logical_or,
    "min": np.logical_and,
}


def run_reduce(frame: Frame, op: ReduceOp) -> None:
    """The combination with what the target holds.

    The order in which threads combine is open: sums and products of floats are made in float64 and rounded once.
    """
    sizes = _sizes(op)
    element = buffer_type(op.target).element
    limits = {d: frame.integer(v) for d, v in op.valid_limits.items()}
    source = in_iteration(frame.read(op, op.source), op.source_map, sizes)
    source = np.broadcast_to(source, sizes)
    buffer = frame.write(op, op.target)
    target = in_iteration(buffer, op.target_map, sizes)
    _expect_view(op, target, buffer)
    is_float = float_format(element) is not None
    if is_float:
        source = source.astype(np.float64)
    combine = (_COMBINE_I1 if source.dtype == np.bool_ else _COMBINE)[op.combine.data]
    identity = np.asarray(identity_value(Combine.of(op.combine), element)).astype(source.dtype)
    mask = valid_mask(limits, sizes)
    if mask is not None:
        source = np.where(mask, source, identity)
    axes = op.reduced_dims
    if axes:
        reduced = combine.reduce(source, axis=axes, keepdims=True, initial=identity, dtype=source.dtype)
    else:
        reduced = source
    result = combine(target.astype(source.dtype), reduced)
    target[...] = round_to(element, result).astype(target.dtype) if is_float else result


def run_mma(frame: Frame, op: MmaOp) -> None:
    """acc += lhs * rhs: by fused multiply-adds along the summed dims in increasing order, or by matrix instructions.

    The order in which a matrix instruction adds is open: the sum of one is made in float64 and rounded once. That of a
    warpgroup runs on until the slots that it reads are released, and nothing but further ones may touch `acc`.
    """
    sizes = _sizes(op)
    acc_type: Attribute = buffer_type(op.acc).element
    inst = "fma" if op.inst is None else op.inst.data
    on_matrix, runs_on = inst != "fma", inst == "wgmma"
    dtype = np.dtype(np.float64) if on_matrix else carrier_dtype(acc_type, "typed")
    lhs, rhs = (
        in_iteration(frame.read(op, value), dims, sizes).astype(dtype)
        for value, dims in zip((op.lhs, op.rhs), op.operand_dims, strict=False)
    )
    if on_matrix and op.precision is not None:
        lhs, rhs = (_without_low_bits(x) for x in (lhs, rhs))
    buffer: Array = frame.env[op.acc] if runs_on else frame.read(op, op.acc)
    acc = in_iteration(buffer, op.operand_dims[2], sizes)
    _expect_view(op, acc, buffer)
    if on_matrix:
        total = _product(lhs, rhs, op.reduced_dims) + acc.astype(np.float64)
        acc[...] = round_to(acc_type, total).astype(acc.dtype)
    if runs_on:
        slots = {id(frame.env[v]) for v in (op.lhs, op.rhs) if isinstance(v.owner, ReceiveOp)}
        frame.in_flight.setdefault(root(buffer), set()).update(slots)
    if on_matrix:
        return
    step = _fused(acc_type)
    for position in product(*(range(sizes[d]) for d in op.reduced_dims)):
        at = dict(zip(op.reduced_dims, position, strict=True))
        acc[...] = step(_slice(lhs, at), _slice(rhs, at), acc)


def _without_low_bits(x: Array) -> Array:
    """Values of f32 as matrix instructions read tf32: without the 13 lowest bits of the fraction."""
    bits = x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(x.dtype)


def _product(lhs: Array, rhs: Array, summed: Sequence[int]) -> Array:
    """The sum of products along some axes, which stay with size 1; axes of size 1 meet any size."""
    axes = range(lhs.ndim)
    own = [[d for d in axes if operand.shape[d] > 1] for operand in (lhs, rhs)]
    kept = [d for d in axes if d not in summed and (d in own[0] or d in own[1])]
    found = np.einsum(lhs.squeeze(), own[0], rhs.squeeze(), own[1], kept)
    shape = [max(lhs.shape[d], rhs.shape[d]) if d in kept else 1 for d in axes]
    return np.asarray(found).reshape(shape)


def _slice(operand: Array, at: dict[int, int]) -> Array:
    """One position along some axes, which stay with size 1."""
    index: list[slice] = [slice(None)] * operand.ndim
    for axis, i in at.items():
        if operand.shape[axis] > 1:
            index[axis] = slice(i, i + 1)
    return operand[tuple(index)]


def _fused(acc_type: Attribute) -> Callable[[Array, Array, Array], Array]:
    """Multiply-add in the accumulator's type."""
    if isinstance(acc_type, Float32Type):
        return fma_f32
    if isinstance(acc_type, IntegerType):
        return lambda a, b, c: (a & b) ^ c if c.dtype == np.bool_ else a * b + c
    dtype = storage_dtype(acc_type)

    def fma(a: Array, b: Array, c: Array) -> Array:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return wide if dtype == np.float64 else round_to(acc_type, wide).astype(np.float32)

    return fma


def run_sync(frame: Frame, op: SyncOp) -> None:
    """Nothing: there is one thread of control."""
    del frame, op


TILE_OPS: dict[type[Operation], Run] = {
    **dict.fromkeys(SCALAR_OPS, run_scalar),
    AllocOp: run_alloc,
    ApplyOp: run_apply,
    BlockCountOp: run_block_count,
    ChannelOp: run_channel,
    CopyOp: run_copy,
    FillOp: run_fill,
    GatherOp: run_gather,
    IndexOp: run_index,
    MapOp: run_map,
    MmaOp: run_mma,
    PublishOp: run_publish,
    RasterOp: run_raster,
    ReduceOp: run_reduce,
    ReleaseOp: run_release,
    SliceOp: run_slice,
    SyncOp: run_sync,
}
"""One entry for each op of a tile kernel that neither holds others nor waits; those are in `flow.py`."""
