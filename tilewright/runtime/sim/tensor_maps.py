"""Tensor maps in the simulator: a tensor in global memory, boxes of it, and how a box lies in shared memory.

The rules are those of the driver (CUDA driver API, cuTensorMapEncodeTiled) and of the hardware: addresses and strides
are multiples of 16 bytes, what is outside the tensor reads as zero and is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import TmapType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.virtual import VirtualMemory

CHUNK = 16


@dataclass(frozen=True, slots=True)
class MapSpec:
    """What a kernel says of a tensor map: the pointer it is made of, the box, and the swizzle in bytes."""

    name: str
    pointer: int
    element: Attribute
    box: tuple[int, ...]
    swizzle: int

    @property
    def bytes(self) -> int:
        """Bytes of the box."""
        return int(np.prod(self.box)) * storage_dtype(self.element).itemsize


def map_specs(kernel: KernelOp) -> tuple[MapSpec, ...]:
    """The tensor maps of a kernel; TilewrightError for one that the hardware does not have, or is not known here."""
    found: list[MapSpec] = []
    for number, (argument, made) in enumerate(zip(kernel.maps, kernel.tensor_maps.data, strict=True)):
        assert isinstance(argument.type, TmapType)
        name = f"tensor map {number}"
        spec = MapSpec(name, made.pointer.data, argument.type.element, argument.type.box, made.swizzle.data)
        row = spec.box[-1] * storage_dtype(spec.element).itemsize
        if row % CHUNK:
            raise TilewrightError(
                f"{name}: expected an inner box of a multiple of 16 bytes, got {row}", location_of(kernel)
            )
        if spec.swizzle and row != spec.swizzle:
            # A narrower box is legal; how the hardware lays it out has not been measured.
            raise TilewrightError(
                f"{name}: expected an inner box of {spec.swizzle} bytes for a swizzle of that many, got {row}",
                location_of(kernel),
            )
        found.append(spec)
    return tuple(found)


@dataclass(slots=True)
class TensorMap:
    """A map made for a launch: sizes and strides in elements, outermost dim first."""

    spec: MapSpec
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: Buffer
    view: Array | None
    """The tensor; None when it has no elements."""
    places: dict[int, Array] = field(default_factory=dict[int, Array])
    """By chunk number modulo 64 of a box in shared memory: where its chunks lie, counted from the 1024 bytes' start."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the tensor."""
        return self.dims[-1] * storage_dtype(self.spec.element).itemsize

    def box_chunks(self, first: int) -> Array:
        """Chunk numbers in a block's shared memory of a box that begins at chunk `first`, in row-major order."""
        low = first % 64
        found = self.places.get(low)
        if found is None:
            found = self.places[low] = swizzled_chunks(low + np.arange(self.spec.bytes // CHUNK), self.spec.swizzle)
        return found + (first - low)

    def _range(self, coordinates: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """(part of the tensor, part of the box) where both are."""
        outside: list[slice] = []
        inside: list[slice] = []
        for at, size, box in zip(coordinates, self.dims, self.spec.box, strict=True):
            low, high = min(max(at, 0), size), max(min(at + box, size), 0)
            high = max(low, high)
            outside.append(slice(low, high))
            inside.append(slice(low - at, high - at))
        return tuple(outside), tuple(inside)

    def read(self, coordinates: Sequence[int]) -> Array:
        """The bytes of a box as chunks."""
        dtype = storage_dtype(self.spec.element)
        box = np.zeros(self.spec.box, dtype)
        if self.view is not None:
            outside, inside = self._range(coordinates)
            if all(s.stop > s.start for s in outside):
                box[inside] = self.view[outside]
        return box.reshape(-1).view(np.complex128)

    def write(self, coordinates: Sequence[int], chunks: Array) -> None:
        """Write the part of a box that is inside the tensor."""
        if self.view is not None:
            outside, inside = self._range(coordinates)
            if all(s.stop > s.start for s in outside):
                self.view[outside] = chunks.view(storage_dtype(self.spec.element)).reshape(self.spec.box)[inside]

    def elements(self, coordinates: Sequence[int]) -> Array:
        """The elements of the buffer, counted from its first legal one, that a box is about."""
        outside, _ = self._range(coordinates)
        total = np.zeros([1] * len(self.dims), np.int64)
        for axis, (part, stride) in enumerate(zip(outside, self.strides, strict=True)):
            steps = np.arange(part.start, part.stop, dtype=np.int64) * stride
            total = total + steps.reshape([-1 if i == axis else 1 for i in range(len(self.dims))])
        return total.reshape(-1) - self.buffer.first


def swizzled_chunks(chunks: Array, swizzle: int) -> Array:
    """Where 16-byte chunks lie, given where they would without swizzle, both counted from a multiple of 1024 bytes."""
    rows = max(swizzle // CHUNK - 1, 0)
    return chunks ^ (chunks >> 3 & rows) if rows else chunks


def make_maps(name: str, specs: Sequence[MapSpec], buffers: Sequence[Buffer], sizes: Sequence[int]) -> list[TensorMap]:
    """The maps of a launch; `sizes` has the sizes, then the strides, of one after the other.

    Raises TilewrightError for what the driver would refuse, and for a tensor that leaves its buffer.
    """
    expected = sum(2 * len(spec.box) for spec in specs)
    if len(sizes) != expected:
        raise TilewrightError(f"{name}: expected {expected} sizes and strides of tensor maps, got {len(sizes)}")
    found: list[TensorMap] = []
    at = 0
    for spec in specs:
        rank = len(spec.box)
        dims, strides = tuple(sizes[at : at + rank]), tuple(sizes[at + rank : at + 2 * rank])
        at += 2 * rank
        found.append(TensorMap(spec, dims, strides, buffers[spec.pointer], None))
        if 0 not in dims:
            found[-1].view = _view(f"{name}: {spec.name}", spec, buffers[spec.pointer], dims, strides)
    return found


def _view(name: str, spec: MapSpec, buffer: Buffer, dims: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    width = storage_dtype(spec.element).itemsize
    if isinstance(buffer.data, VirtualMemory):
        raise TilewrightError(f"{name}: expected memory of its own, got virtual memory")
    if any(n < 0 for n in dims) or strides[-1] != 1:
        raise TilewrightError(f"{name}: expected sizes of at least 0 and a last stride of 1, got {dims}, {strides}")
    address = buffer.address + buffer.offset * width
    if address % CHUNK:
        raise TilewrightError(f"{name}: expected an address that 16 divides, got {address}")
    for size, stride in zip(dims[:-1], strides[:-1], strict=True):
        if size > 1 and (stride * width % CHUNK or stride < 0):
            raise TilewrightError(f"{name}: expected strides of multiples of 16 bytes, got {stride * width}")
    last = sum((n - 1) * s for n, s in zip(dims, strides, strict=True))
    if not buffer.first <= 0 <= last < buffer.end:
        raise TilewrightError(
            f"{name}: the tensor's elements 0..{last} are not all of {buffer.first}..{buffer.end - 1}"
        )
    start = buffer.data[buffer.offset :]
    return as_strided(start, dims, [s * width for s in strides])
