"""What the levels `count` and `check` do at each load and store, beside the access itself.

An observer is called with the element index (loop axes..., blocks or 1, threads or 1), legal where a lane is active,
and the active lanes (None: all).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerType

from tilewright.dialects.simt.async_copy import CpAsyncOp
from tilewright.dialects.simt.memory import LoadOp, SharedOp, StoreOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.tma import TmaStoreOp
from tilewright.dialects.simt.types import GlobalType, SharedType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.compiler import Compiler
from tilewright.runtime.sim.counting import MAX_ACCESS, global_sectors, pieces, shared_wavefronts
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State

Observer: TypeAlias = Callable[[State, Array, "Array | None"], None]

MEMO_ELEMENTS = 1 << 14
"""Accesses up to this size are looked up among those seen before."""


@dataclass(slots=True)
class Place:
    """An access as the observers see it."""

    site: Site
    argument: int
    """Number of the pointer argument; -1 for shared memory."""
    base: int
    """Byte offset of a shared array."""
    size: int
    """Bytes of an element."""
    width: int
    counts: tuple[int, ...]
    """Extents of the loop axes, innermost first."""
    swizzle: int = 0
    """Of a shared array, in bytes."""

    def all_axes(self, index: Array) -> Array:
        """The index with all loop axes (size 1 where it does not depend on the loop), so that one fits in front."""
        missing = len(self.counts) + 2 - index.ndim
        return index.reshape((1,) * missing + index.shape) if missing else index

    def addresses(self, state: State, index: Array) -> Array:
        """Byte addresses of the first elements: in the block's shared memory, or in global memory."""
        wide = np.broadcast_to(index, (*index.shape[:-1], state.threads)).astype(np.int64)
        if self.argument < 0:
            return swizzled_bytes(wide * self.size, self.swizzle) + self.base
        buffer = state.buffers[self.argument]
        return (wide + buffer.offset) * self.size + buffer.address


@dataclass(slots=True)
class Counter:
    """Counts requests and sectors or wavefronts. An index that is the same for all blocks is counted once."""

    place: Place
    memo: dict[tuple[bytes, bytes, int], tuple[int, int]] = field(
        default_factory=dict[tuple[bytes, bytes, int], tuple[int, int]]
    )

    def __call__(self, state: State, index: Array, active: Array | None) -> None:
        """Count one execution of the access."""
        place = self.place
        shape = index.shape if active is None else np.broadcast_shapes(index.shape, active.shape)
        seen = prod(shape[:-1])
        times = state.blocks * prod(place.counts) // seen
        addresses = place.addresses(state, index)
        if active is not None:
            active = np.broadcast_to(active, (*active.shape[:-1], state.threads))
        counts = state.report.counts[place.site]
        for at, width_bytes in pieces(place.size * place.width):
            requests, used = self._use(addresses + at if at else addresses, width_bytes, active)
            counts.requests += requests * times
            if place.argument < 0:
                counts.wavefronts += used * times
            else:
                counts.sectors += used * times

    def _use(self, addresses: Array, width_bytes: int, active: Array | None) -> tuple[int, int]:
        count = global_sectors
        if self.place.argument < 0:
            count = partial(shared_wavefronts, loads=self.place.site.op_name == LoadOp.name)
        if addresses.size > MEMO_ELEMENTS or (active is not None and active.size > MEMO_ELEMENTS):
            return count(addresses, width_bytes, active)
        key = (addresses.tobytes(), b"" if active is None else active.tobytes(), width_bytes)
        found = self.memo.get(key)
        if found is None:
            if len(self.memo) >= 4096:
                self.memo.clear()
            found = self.memo[key] = count(addresses, width_bytes, active)
        return found


def swizzled_bytes(places: Array, swizzle: int) -> Array:
    """Where the bytes at logical places of a shared array lie, both counted from its start (`simt.types.swizzled`)."""
    rows = max(swizzle // 16 - 1, 0)
    return places ^ ((places >> 7 & rows) << 4) if rows else places


def alignment_check(place: Place) -> Observer:
    """A vector access must be aligned to its size (16 bytes at most)."""
    unit = min(MAX_ACCESS, place.size * place.width)

    def check(state: State, index: Array, active: Array | None) -> None:
        where = place.addresses(state, index) % unit != 0
        if where.any():
            if active is not None:
                where = where & active
            state.fault("misaligned", place.site, where, f"the address is not a multiple of {unit} bytes", index)

    return check


def shared_check(place: Place, writes: bool, cell: int) -> Observer:
    """Hands each access to shared memory to the race model, in cells of `cell` bytes."""
    count = place.size * place.width // cell

    def check(state: State, index: Array, active: Array | None) -> None:
        cells = place.addresses(state, place.all_axes(index)) // cell
        cells = cells[None] + np.arange(count).reshape((count,) + (1,) * cells.ndim)
        assert state.races is not None
        handler = state.races.on_write if writes else state.races.on_read
        handler(state, place.site, cells, active)

    return check


def global_check(place: Place, writes: bool) -> Observer:
    """Hands each access to a buffer that the kernel stores to to the model of global order."""

    def check(state: State, index: Array, active: Array | None) -> None:
        buffer = state.buffers[place.argument]
        index = place.all_axes(index)
        elements = np.broadcast_to(index, (*index.shape[:-1], state.threads)).astype(np.int64) - buffer.first
        elements = elements[None] + np.arange(place.width).reshape((place.width,) + (1,) * elements.ndim)
        assert state.order is not None
        state.order.on_access(state, place.site, place.argument, elements, active, writes)

    return check


def report_wrap(state: State, slot: int, lanes: Array | None, access: Site) -> None:
    """Report the lanes in which the value in `slot`, used by this access, came from arithmetic that wrapped."""
    found = state.poisoned.get(slot)
    if found is not None:
        where, site = found
        if lanes is not None:
            where = where & lanes
        state.fault("index-wrap", site, where, f"32-bit arithmetic wraps on the way to the address of {access}")


def wrap_check(place: Place, index_slot: int, mask_slot: int | None) -> Observer:
    """Reports an address, or the mask of an access, that was computed with 32-bit arithmetic that wrapped."""

    def check(state: State, index: Array, active: Array | None) -> None:
        if not state.poisoned:
            return
        for slot, lanes in ((index_slot, active), (mask_slot, state.mask)):
            if slot is not None:
                report_wrap(state, slot, lanes, place.site)

    return check


def shared_cell(kernel: KernelOp, machine: bool) -> int:
    """Bytes of a cell of the race model: the smallest element in shared memory.

    In a kernel with asynchronous units (`machine`): the smallest access of a thread, at most the 16 bytes of a unit.
    """
    if not machine:
        sizes = [storage_dtype(op.res.type.element).itemsize for op in kernel.walk() if isinstance(op, SharedOp)]
        return min(sizes, default=4)
    # An ldmatrix reads rows of 16 bytes.
    accesses = [MAX_ACCESS]
    for op in kernel.walk():
        if isinstance(op, LoadOp | StoreOp) and isinstance(op.memory.type, SharedType):
            width = op.width.value.data if op.reach is None else 1
            accesses.append(storage_dtype(op.memory.type.element).itemsize * width)
        elif isinstance(op, CpAsyncOp):
            assert isinstance(op.target.type, SharedType)
            accesses.append(storage_dtype(op.target.type.element).itemsize * op.width.value.data)
    return min(accesses)


def written_pointers(kernel: KernelOp) -> set[int]:
    """Numbers of the pointers that a kernel stores to, by its threads or by tensor maps."""
    found: set[int] = set()
    for op in kernel.walk():
        if isinstance(op, StoreOp) and isinstance(op.memory.type, GlobalType):
            found.add(kernel.pointers.index(op.memory))
        elif isinstance(op, TmaStoreOp):
            found.add(kernel.tensor_maps.data[kernel.maps.index(op.map)].pointer.data)
    return found


def observers(
    compiler: Compiler, op: LoadOp | StoreOp, site: Site, argument: int, shared_offset: int, width: int
) -> tuple[Observer, ...]:
    """The functions that the compiler's level asks for at an access of `width` elements, in the order to call them."""
    if not compiler.counts:
        return ()
    memory = op.memory.type
    assert isinstance(memory, GlobalType | SharedType)
    size = storage_dtype(memory.element).itemsize
    swizzle = memory.swizzle.data if isinstance(memory, SharedType) else 0
    place = Place(site, argument, shared_offset, size, width, compiler.vector_counts, swizzle)
    compiler.access_sites.append(site)
    found: list[Observer] = [Counter(place)]
    if not compiler.checks:
        return tuple(found)
    writes = isinstance(op, StoreOp)
    if isinstance(op.index.type, IntegerType):
        found.append(wrap_check(place, compiler.slot(op.index), None if op.mask is None else compiler.slot(op.mask)))
    if place.width > 1:
        found.append(alignment_check(place))
    if argument < 0:
        found.append(shared_check(place, writes, compiler.cell))
    elif argument in written_pointers(compiler.kernel):
        found.append(global_check(place, writes))
    return tuple(found)
