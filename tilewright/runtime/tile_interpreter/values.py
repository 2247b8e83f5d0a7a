"""Buffers and scalars of a running tile kernel, and how operands meet in an iteration space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.tile.channels import AcquireOp, ReceiveOp
from tilewright.dialects.tile.types import BufType
from tilewright.runtime.numerics import Array, round_to
from tilewright.runtime.scalar_ops import SCALAR_OPS, carrier_dtype

if TYPE_CHECKING:
    from tilewright.runtime.tile_interpreter.channels import Ring

POISON = 0xA5A5A5A5A5A5A5A5
"""Its low bits are what integers hold before they are written; floats hold NaN."""


@dataclass
class Frame:
    """One block of a kernel while it runs."""

    symbols: Mapping[str, int]
    run_block: Callable[[Frame, Block], Sequence[SSAValue]]
    """Runs the ops of a block in order and returns the operands of its terminator."""
    blocks: int = 1
    """How many blocks run the kernel."""
    env: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    """Buffers: arrays of the buffer's sizes. Index values: Python integers. Scalars: arrays of rank 0."""
    rings: list[Ring] = field(default_factory=list["Ring"])
    """The channels of the block."""
    turns: int = 0
    """Steps that channels have taken: where no role can take one, none ever will."""
    shared: list[tuple[Operation, tuple[int, ...]]] = field(default_factory=list["tuple[Operation, tuple[int, ...]]"])
    """The copies that blocks of its cluster share, in turn, and where they begin in global memory."""
    in_flight: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Accumulators of matrix instructions -> the buffers of slots that these still read."""

    def integer(self, value: SSAValue) -> int:
        """An index value."""
        return int(self.env[value])

    def read(self, op: Operation, value: SSAValue) -> Array:
        """A buffer that `op` reads; not one of a slot that has yet to be received, nor accumulators in flight."""
        if isinstance(value.owner, AcquireOp):
            raise TilewrightError(f"{op.name}: reads a slot through what tile.acquire gave to write", location_of(op))
        return self._still(op, value)

    def write(self, op: Operation, value: SSAValue) -> Array:
        """A buffer that `op` writes; of a slot only what was acquired and is not yet published."""
        if isinstance(value.owner, ReceiveOp):
            raise TilewrightError(f"{op.name}: writes a slot through what tile.receive gave to read", location_of(op))
        array = self._still(op, value)
        if isinstance(value.owner, AcquireOp) and not array.flags.writeable:
            raise TilewrightError(f"{op.name}: writes a slot that has been published", location_of(op))
        return array

    def _still(self, op: Operation, value: SSAValue) -> Array:
        """A buffer that no matrix instruction is writing."""
        array: Array = self.env[value]
        if self.in_flight.get(root(array)):
            raise TilewrightError(
                f"{op.name}: touches accumulators before the slots that they are made of are released", location_of(op)
            )
        return array

    def landed(self, buffers: Iterable[Array]) -> None:
        """Matrix instructions that read these buffers are through."""
        done = {id(b) for b in buffers}
        for reading in self.in_flight.values():
            reading -= done


def root(array: Array) -> int:
    """The identity of the memory that a view lies in."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


def undefined(type_: BufType) -> Array:
    """A shared buffer or fragment before anything is written, in the carrier dtype of its element type."""
    dtype = carrier_dtype(type_.element, "typed")
    if dtype.kind == "f":
        return np.full(type_.sizes, np.nan, dtype)
    if dtype.kind == "b":
        return np.ones(type_.sizes, dtype)
    return np.full(type_.sizes, np.uint64(POISON).astype(f"u{dtype.itemsize}").view(dtype), dtype)


def constant(value: Attribute | None, element: Attribute) -> Array:
    """A constant of an element type as an array of rank 0; no attribute is zero."""
    dtype = carrier_dtype(element, "typed")
    if value is None:
        return np.zeros((), dtype)
    if isinstance(value, FloatAttr):
        return round_to(element, np.asarray(value.value.data)).astype(dtype)
    if isinstance(value, IntegerAttr):
        return np.asarray(value.value.data).astype(dtype)
    raise TilewrightError(f"expected a number of type {element}, got {value}")


def in_iteration(buffer: Array, dims: Sequence[int], sizes: Sequence[int]) -> Array:
    """A view of a buffer with one axis an iteration dim, of size 1 where the buffer lacks the dim.

    `dims` is the iteration dim of each buffer dim; -1 is a dim of size 1 that does not move. A dim that occurs twice
    takes the diagonal.
    """
    named: list[int] = []
    for axis in reversed(range(buffer.ndim)):
        if dims[axis] < 0:
            buffer = buffer.squeeze(axis)
        else:
            named.insert(0, dims[axis])
    for dim in sorted(set(named)):
        while named.count(dim) > 1:
            first = named.index(dim)
            second = named.index(dim, first + 1)
            # The diagonal becomes the last axis.
            buffer = buffer.diagonal(axis1=first, axis2=second)
            named = [d for i, d in enumerate(named) if i not in (first, second)] + [dim]
    order = sorted(range(len(named)), key=named.__getitem__)
    present = set(named)
    return buffer.transpose(order).reshape([n if d in present else 1 for d, n in enumerate(sizes)])


def valid_mask(limits: Mapping[int, int], sizes: Sequence[int]) -> Array | None:
    """Where each limited iteration dim is below its limit, with one axis a dim; None without limits."""
    mask: Array | None = None
    for dim, limit in limits.items():
        shape = [-1 if d == dim else 1 for d in range(len(sizes))]
        below = (np.arange(sizes[dim]) < limit).reshape(shape)
        mask = below if mask is None else mask & below
    return mask


def run_scalar(frame: Frame, op: Operation) -> None:
    """One arith or math op, on scalars of the kernel or on arrays of a `tile.map` body."""
    fn = SCALAR_OPS.get(type(op))
    if fn is None:
        raise TilewrightError(f"the tile interpreter does not know {op.name}", location_of(op))
    result = fn(op, [np.asarray(frame.env[o]) for o in op.operands], "typed")
    is_index = isinstance(op.results[0].type, IndexType) and result.ndim == 0
    frame.env[op.results[0]] = int(result) if is_index else result
