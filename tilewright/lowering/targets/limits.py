"""What a device can take: the numbers that schedules must keep within."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.passes.allocate_shared import shared_limit
from tilewright.passes.thread_layout import MAX_THREADS

PROCESSORS = {"sm_80": 108, "sm_90": 132, "sm_90a": 132}
"""Multiprocessors of an A100, and of an H100 SXM and an H200."""
DTYPES = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
"""Every scalar type that kernels may hold."""


@dataclass(frozen=True)
class Limits:
    """A device's limits. The defaults are those that all CUDA devices from compute capability 8.0 on share
    (CUDA C++ Programming Guide, technical specifications per compute capability)."""

    threads: int = 1024
    """Threads of a block, at most."""
    warp: int = 32
    """Threads that run in step. Shuffles in IR are over 32 lanes: a target with another number must say in its emitters
    how 32 lanes exchange values, or have no entry for `simt.shuffle`."""
    shared_bytes: int = 99 * 1024
    """Shared memory of a block, when a launch asks for all it can get."""
    shared_bytes_unasked: int = 48 * 1024
    """Shared memory that a block gets without being asked for specially."""
    registers: int = 255
    """Registers of 32 bits that a thread can have; what needs more is spilled by the compiler behind."""
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    """Blocks along x, y and z. Launch plans use x alone, and guard that a grid fits the default."""
    processors: int = 132
    """Multiprocessors, which compute a tile each at a time: what the costs of schedules are reckoned for. No limit: a
    device with others runs the same code."""
    access_bytes: int = 16
    """The widest access of one thread to memory: 8 or 16."""
    dtypes: tuple[str, ...] = DTYPES
    """Scalar types that the device computes with and keeps in memory."""

    def __post_init__(self) -> None:
        if not 32 <= self.threads <= 1024:
            raise ValueError(f"limits: expected 32 to 1024 threads a block, got {self.threads}")
        if self.processors < 1:
            raise ValueError(f"limits: expected at least 1 processor, got {self.processors}")
        if self.access_bytes not in (8, 16):
            raise ValueError(f"limits: expected access_bytes to be 8 or 16, got {self.access_bytes}")
        unknown = [name for name in self.dtypes if name not in DTYPES]
        if unknown:
            raise ValueError(f"limits: expected dtypes of {', '.join(DTYPES)}, got {unknown[0]}")

    def pass_options(self) -> dict[str, dict[str, Any]]:
        """Options of the pipelines' passes that keep schedules within the limits, by the name of the pass."""
        return {
            "lin-to-tile": {"processors": self.processors},
            # A power of two; fewer than a block may have, where more would leave a thread too little to do.
            "map-threads": {"threads": min(MAX_THREADS, 1 << (self.threads.bit_length() - 1))},
            "vectorise": {"access_bytes": self.access_bytes},
            "pad-shared": {"access_bytes": self.access_bytes},
            "allocate-shared": {"limit": self.shared_bytes},
        }


def cuda_limits(arch: str) -> Limits:
    """Those of a CUDA architecture such as `sm_90a`; architectures differ in shared memory, and in the processors of a
    device that has them."""
    return Limits(shared_bytes=shared_limit(arch), processors=PROCESSORS.get(arch, Limits.processors))
