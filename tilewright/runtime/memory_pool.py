"""A small caching allocator for scratch and results, ordered by stream.

A block that is given back may still be in use by kernels queued on its stream. It is handed out again on that same
stream only, where whatever uses it next comes after them; so neither giving back nor taking again waits. Memory goes
back to the driver when it runs out, or by `trim`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.diagnostics import TilewrightError

SMALL_GRAIN, LARGE_GRAIN, LARGE_FROM = 512, 2 << 20, 1 << 20
"""Sizes are rounded up to 512 bytes, from 1 MiB on to 2 MiB (the driver's own page), so that blocks get used again."""


class OutOfDeviceMemory(Exception):
    """What the raw allocator raises when the device has no such block left."""


class Allocation:
    """Device memory that goes back to its pool with `free()` or with the last reference."""

    __slots__ = ("_block", "_pool", "bytes", "pointer", "stream")

    def __init__(self, pool: MemoryPool, block: _Block, wanted: int, stream: int) -> None:
        self._pool = pool
        self._block: _Block | None = block
        self.pointer: int = block.pointer
        """Device address, a multiple of 256 at least; 0 for no bytes."""
        self.bytes = wanted
        self.stream = stream

    def free(self) -> None:
        """Give the memory back, for work queued on the same stream from now on. A second call does nothing."""
        block, self._block = self._block, None
        if block is not None:
            self._pool.give_back(block, self.stream)

    def retire(self) -> None:
        """Give the memory back when others, on streams unknown here, may still be using it: it is not handed out
        again before the whole device has been waited for."""
        block, self._block = self._block, None
        if block is not None:
            self._pool.give_back(block, None)

    def __del__(self) -> None:
        if getattr(self, "_block", None) is not None:
            self.free()


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """One block of the raw allocator. `raw` keeps it allocated."""

    pointer: int
    bytes: int
    raw: Any


class MemoryPool:
    """Blocks by stream over a raw allocator.

    `allocate(bytes)` returns an object whose `int()` is the address and raises `OutOfDeviceMemory`; `release(raw)`
    gives it to the driver; `synchronize()` waits for the whole device; `free_bytes()` is what the driver has left.
    """

    def __init__(
        self,
        allocate: Callable[[int], Any],
        release: Callable[[Any], None],
        synchronize: Callable[[], None],
        free_bytes: Callable[[], tuple[int, int]],
    ) -> None:
        self._allocate = allocate
        self._release = release
        self._synchronize = synchronize
        self._free_bytes = free_bytes
        self._idle: dict[int | None, list[_Block]] = {}
        """By stream; under None what may be in use anywhere, and only `trim` gives on."""
        # Re-entrant: a collection inside a locked section may run an Allocation's __del__ in the same thread.
        self._lock = threading.RLock()
        self.held_bytes = 0
        """Bytes of all blocks, idle or not."""

    def allocate(self, wanted: int, stream: int = 0) -> Allocation:
        """Memory for work on `stream`. Raises `TilewrightError` with the bytes wanted and free when there is none."""
        if wanted < 0:
            raise TilewrightError(f"device memory: expected a size of at least 0 bytes, got {wanted}")
        if wanted == 0:
            return Allocation(self, _Block(0, 0, None), 0, stream)
        rounded = rounded_size(wanted)
        with self._lock:
            block = self._take(rounded, stream)
        return Allocation(self, block or self._fresh(rounded, wanted), wanted, stream)

    def give_back(self, block: _Block, stream: int | None) -> None:
        """Make a block idle on `stream`, or on none before the next `trim`; for `Allocation` alone."""
        if block.bytes:
            with self._lock:
                self._idle.setdefault(stream, []).append(block)

    @property
    def idle_bytes(self) -> int:
        """Bytes of blocks that nobody holds."""
        with self._lock:
            return sum(block.bytes for blocks in self._idle.values() for block in blocks)

    def trim(self) -> int:
        """Give all idle blocks to the driver, once the device has done its work; how many bytes."""
        with self._lock:
            idle = [block for blocks in self._idle.values() for block in blocks]
            self._idle.clear()
        if not idle:
            return 0
        self._synchronize()
        for block in idle:
            self._release(block.raw)
        freed = sum(block.bytes for block in idle)
        with self._lock:
            self.held_bytes -= freed
        return freed

    def _take(self, rounded: int, stream: int) -> _Block | None:
        """The smallest idle block of the stream that fits and wastes no more than half of itself."""
        blocks = self._idle.get(stream, [])
        fitting = [block for block in blocks if rounded <= block.bytes <= 2 * rounded]
        if not fitting:
            return None
        best = min(fitting, key=lambda block: block.bytes)
        blocks.remove(best)
        return best

    def _fresh(self, rounded: int, wanted: int) -> _Block:
        try:
            raw = self._allocate(rounded)
        except OutOfDeviceMemory:
            self.trim()
            try:
                raw = self._allocate(rounded)
            except OutOfDeviceMemory:
                free, total = self._free_bytes()
                raise TilewrightError(
                    f"CUDA: out of memory: wanted {wanted} bytes, {free} free of {total} "
                    f"({self.held_bytes} held by Tilewright)"
                ) from None
        with self._lock:
            self.held_bytes += rounded
        return _Block(int(raw), rounded, raw)


def rounded_size(wanted: int) -> int:
    """The size of block that `wanted` bytes are served from."""
    grain = LARGE_GRAIN if wanted >= LARGE_FROM else SMALL_GRAIN
    return -(-wanted // grain) * grain
