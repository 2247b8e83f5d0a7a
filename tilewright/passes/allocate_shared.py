"""The pass `allocate-shared`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.tile.structure import AllocOp
from tilewright.dialects.tile.types import BufType
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of

ALIGNMENT = 16
"""Bytes: the widest access of a thread."""
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
        limit = shared_limit(self.arch) if self.limit is None else self.limit
        who = self.arch if self.limit is None else "the limit"
        for kernel in kernels_of(op):
            end, parts = 0, list[str]()
            for alloc in [o for o in kernel.walk() if isinstance(o, AllocOp)]:
                if alloc.type.space.data != "shared":
                    continue
                offset = -(-end // ALIGNMENT) * ALIGNMENT
                count, size = allocated_elements(alloc), bytes_of(alloc.type.element)
                alloc.properties["offset"] = i64_attr(offset)
                if offset > end:
                    parts.append(f"{offset - end} of padding")
                end = offset + count * size
                parts.append(f"{count} x {size}")
            if end > limit:
                raise error_at(
                    kernel,
                    f"@{kernel.sym_name.data} needs {' + '.join(parts)} = {end} bytes of shared memory, "
                    f"{who} allows {limit}",
                )
            if parts:
                remark(kernel, self.name, f"{end} bytes of shared memory")


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
