"""Counting wavefronts of shared-memory accesses. Plain arithmetic, no IR.

Shared memory has 32 banks of 4 bytes. A request of a warp is served in phases of 32, 16 or 8 lanes for accesses of up
to 4, 8 or 16 bytes; a phase takes as many wavefronts as the most distinct words that one bank must deliver (lanes that
read one word share it). Source: CUDA C++ Programming Guide, shared memory; the phase rule and the counts were checked
against hardware counters on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dialects.tile.types import AnyDistribution

BANKS = 32
WORD = 4
LANES = 32


def wavefronts(addresses: Sequence[int], access_bytes: int) -> int:
    """Wavefronts of one request: byte addresses of the active lanes in lane order, `access_bytes` bytes each."""
    lanes_a_phase = max(1, LANES * WORD // max(access_bytes, WORD))
    total = 0
    for first in range(0, len(addresses), lanes_a_phase):
        words: list[set[int]] = [set() for _ in range(BANKS)]
        for address in addresses[first : first + lanes_a_phase]:
            for word in range(address // WORD, (address + access_bytes - 1) // WORD + 1):
                words[word % BANKS].add(word)
        total += max(len(w) for w in words)
    return total


def tile_wavefronts(
    dims: Sequence[AnyDistribution], sizes: Sequence[int], strides: Sequence[int], element_bytes: int, width: int
) -> int:
    """Wavefronts of one request when a warp accesses a tile with these element strides, `width` elements a lane.

    Lane coordinates do not depend on the local index or the warp except by a constant, which rotates the banks: the
    first request of the first warp stands for all.
    """
    addresses = [
        sum(lane_place(lane, d, n) * s for d, n, s in zip(dims, sizes, strides, strict=True)) * element_bytes
        for lane in range(LANES)
    ]
    return wavefronts(addresses, element_bytes * width)


def lane_place(lane: int, dim: AnyDistribution, size: int) -> int:
    """Where the elements of a lane of the first warp begin in a dim of `size` elements."""
    place, weight = 0, 1
    for digit in dim.factors(size):
        if digit.is_thread:
            place += (lane // digit.stride) % digit.count * weight
        weight *= digit.count
    return place
