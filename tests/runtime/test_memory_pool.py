"""The caching allocator, over a device of a few MiB made of Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.memory_pool import Allocation, MemoryPool, OutOfDeviceMemory, rounded_size

MIB = 1 << 20


class FakeDevice:
    """Addresses that are never used twice, so that a block handed out again shows."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.blocks: dict[int, int] = {}
        self.next = 4096
        self.synchronized = 0

    def allocate(self, size: int) -> int:
        if sum(self.blocks.values()) + size > self.total:
            raise OutOfDeviceMemory
        self.next += 1 << 30
        self.blocks[self.next] = size
        return self.next

    def release(self, raw: int) -> None:
        del self.blocks[raw]

    def synchronize(self) -> None:
        self.synchronized += 1

    def free_bytes(self) -> tuple[int, int]:
        return self.total - sum(self.blocks.values()), self.total

    def pool(self) -> MemoryPool:
        return MemoryPool(self.allocate, self.release, self.synchronize, self.free_bytes)


def test_memory_is_used_again_on_its_stream_only() -> None:
    pool = FakeDevice(64 * MIB).pool()
    first = pool.allocate(1000, stream=7)
    address = first.pointer
    first.free()
    first.free()  # does nothing
    other = pool.allocate(1000, stream=8)
    assert other.pointer != address
    again = pool.allocate(900, stream=7)
    assert again.pointer == address
    assert pool.allocate(1000, stream=7).pointer != address


def test_retired_memory_waits_for_the_device() -> None:
    device = FakeDevice(16 * MIB)
    pool = device.pool()
    retired = pool.allocate(8 * MIB)
    address = retired.pointer
    retired.retire()
    assert pool.allocate(8 * MIB).pointer != address
    assert device.synchronized == 0
    pool.allocate(16 * MIB)
    assert device.synchronized == 1
    assert address not in device.blocks


def test_the_last_reference_gives_back_too() -> None:
    pool = FakeDevice(64 * MIB).pool()
    address = pool.allocate(1000).pointer
    assert pool.idle_bytes == 1024
    assert pool.allocate(1000).pointer == address


def test_a_large_block_is_not_spent_on_a_small_wish() -> None:
    pool = FakeDevice(64 * MIB).pool()
    pool.allocate(10 * MIB).free()
    assert pool.idle_bytes == 10 * MIB
    small = pool.allocate(1000)
    assert pool.idle_bytes == 10 * MIB
    small.free()
    pool.allocate(4 * MIB).free()
    assert pool.held_bytes == 14 * MIB + 1024
    pool.allocate(9 * MIB + 1)
    assert pool.held_bytes == 14 * MIB + 1024


def test_idle_memory_makes_room_before_it_is_an_error() -> None:
    device = FakeDevice(16 * MIB)
    pool = device.pool()
    kept = pool.allocate(4 * MIB)
    pool.allocate(8 * MIB, stream=3).free()
    large = pool.allocate(12 * MIB)
    assert device.synchronized == 1
    assert large.bytes == 12 * MIB
    with pytest.raises(TilewrightError, match=f"wanted {2 * MIB} bytes, 0 free of {16 * MIB}"):
        pool.allocate(2 * MIB)
    large.free()
    assert pool.trim() == 12 * MIB
    assert pool.trim() == 0
    assert list(device.blocks.values()) == [4 * MIB]
    assert kept.pointer in device.blocks
    assert pool.held_bytes == 4 * MIB


def test_no_bytes_need_no_memory() -> None:
    device = FakeDevice(0)
    assert device.pool().allocate(0).pointer == 0
    with pytest.raises(TilewrightError, match="at least 0 bytes, got -1"):
        device.pool().allocate(-1)


@given(st.integers(1, 1 << 40))
def test_rounding_is_up_and_by_little(wanted: int) -> None:
    rounded = rounded_size(wanted)
    assert wanted <= rounded
    assert rounded % 512 == 0
    assert rounded < wanted + (2 * MIB if wanted >= MIB else 512)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 2), st.booleans()), max_size=60))
def test_no_two_live_allocations_share_memory(steps: list[tuple[int, int, bool]]) -> None:
    device = FakeDevice(1 << 30)
    pool = device.pool()
    live: list[Allocation] = []
    for size, stream, drop in steps:
        if drop and live:
            live.pop(size % len(live)).free()
        else:
            live.append(pool.allocate(size, stream))
            assert live[-1].bytes == size <= device.blocks[live[-1].pointer]
    assert len({allocation.pointer for allocation in live}) == len(live)
    assert pool.held_bytes == sum(device.blocks.values())
