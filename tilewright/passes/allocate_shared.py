"""The pass `allocate-shared`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.assembly import i64_attr, int_array
from tilewright.dialects.tile.channels import ChannelOp
from tilewright.dialects.tile.structure import AllocOp
from tilewright.dialects.tile.types import BufType
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of

ALIGNMENT = 16
"""Bytes: the widest access of a thread."""
SWIZZLED_ALIGNMENT = 1024
"""Bytes after which the pattern of a swizzled buffer repeats."""
MBARRIER_BYTES = 8
KIB = 1024
SHARED_LIMITS = {
    "sm_80": 163 * KIB,
    "sm_86": 99 * KIB,
    "sm_87": 163 * KIB,
    "sm_89": 99 * KIB,
    "sm_90": 227 * KIB,
    "sm_90a": 227 * KIB,
    "sm_100": 227 * KIB,
    "sm_103": 227 * KIB,
    "sm_120": 99 * KIB,
}
"""Bytes of shared memory a block may have, by architecture (CUDA C++ Programming Guide, technical specifications)."""
SMALLEST_LIMIT = 99 * KIB


def shared_limit(arch: str) -> int:
    """Bytes of shared memory a block may have; of an architecture that is not known here, the least of the known."""
    return SHARED_LIMITS.get(arch, SMALLEST_LIMIT)


@dataclass(frozen=True)
class AllocateSharedPass(TilewrightPass):
    """Gives every shared buffer its byte offset, one after the other, within what `arch` allows a block.

    `limit`, in bytes, stands for what the architecture allows.
    Relies on the layouts of shared buffers. A kernel that needs more is an error that shows the sum.
    """

    name = "allocate-shared"
    level = "tile"
    arch: str = "sm_80"
    limit: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            arch = self.arch if kernel.arch is None else kernel.arch.data
            limit = shared_limit(arch) if self.limit is None else self.limit
            who = arch if self.limit is None else "the limit"
            room = _Room()
            for channel in [o for o in kernel.walk() if isinstance(o, ChannelOp)]:
                self._place_channel(channel, room)
            for alloc in [o for o in kernel.walk() if isinstance(o, AllocOp)]:
                if alloc.type.space.data == "shared":
                    alignment = ALIGNMENT if alloc.type.swizzle is None else SWIZZLED_ALIGNMENT
                    count = alloc.type.count if alloc.type.swizzle is not None else allocated_elements(alloc)
                    offset = room.take(count, bytes_of(alloc.type.element), alignment)
                    alloc.properties["offset"] = i64_attr(offset)
            for channel in [o for o in kernel.walk() if isinstance(o, ChannelOp) and o.is_loaded]:
                stages = channel.type.stages.data
                channel.properties["barriers"] = i64_attr(room.take(2 * stages, MBARRIER_BYTES, MBARRIER_BYTES))
            if room.end > limit:
                raise error_at(
                    kernel,
                    f"@{kernel.sym_name.data} needs {' + '.join(room.parts)} = {room.end} bytes of shared memory, "
                    f"{who} allows {limit}",
                )
            if room.parts:
                remark(kernel, self.name, f"{room.end} bytes of shared memory")

    def _place_channel(self, channel: ChannelOp, room: _Room) -> None:
        """A ring for each buffer of the slots, one after the other."""
        offsets: list[int] = []
        for part in channel.type.parts:
            if part.swizzle is None:
                raise error_at(channel, f"allocate-shared: expected slots with a swizzled layout, got {part}")
            size = bytes_of(part.element)
            if dense_bytes(part) % SWIZZLED_ALIGNMENT:
                raise error_at(
                    channel, f"allocate-shared: a slot of {part} is no multiple of {SWIZZLED_ALIGNMENT} bytes"
                )
            offsets.append(room.take(part.count * channel.type.stages.data, size, SWIZZLED_ALIGNMENT))
        channel.properties["offsets"] = int_array(offsets)


@dataclass
class _Room:
    """Shared memory as it is handed out; `parts` say what for."""

    end: int = 0
    parts: list[str] = field(default_factory=list[str])

    def take(self, count: int, size: int, alignment: int) -> int:
        """Bytes for `count` elements of `size` bytes; their offset."""
        offset = -(-self.end // alignment) * alignment
        if offset > self.end:
            self.parts.append(f"{offset - self.end} of padding")
        self.end = offset + count * size
        self.parts.append(f"{count} x {size}")
        return offset


def dense_bytes(type_: BufType) -> int:
    """Bytes of a buffer without gaps."""
    return type_.count * bytes_of(type_.element)


def allocated_elements(alloc: AllocOp) -> int:
    """Elements from the first to the last of a strided buffer, padding between rows included."""
    strides = strides_of(alloc)
    return 1 + sum((n - 1) * s for n, s in zip(alloc.type.sizes, strides, strict=True))


def strides_of(alloc: AllocOp) -> list[int]:
    """Constant strides of a shared buffer."""
    type_: BufType = alloc.type
    if type_.strides is None or any(s.constant is None for s in type_.strides):
        raise error_at(alloc, "allocate-shared: expected constant strides; run finish-schedule first")
    return [s.constant or 0 for s in type_.strides]
