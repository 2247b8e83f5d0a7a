"""How much of the memory system one access uses: sectors of global memory, wavefronts of shared memory.

Plain functions on byte addresses, without IR. Rules: a warp's request to global memory moves each distinct 32-byte
sector once. Shared memory has 32 banks of 4 bytes; a request is served in phases of 32, 16 or 8 lanes for accesses of
up to 4, of 8 and of 16 bytes a lane, and a phase takes as many wavefronts as the bank with most distinct words has. A
load of 8 or 16 bytes a lane in which lanes n and n xor 1 (or n and n xor 2) read the same place, for all n, has phases
of twice as many lanes. `docs/counters.md` holds all of this to an H200's counters.
"""

from __future__ import annotations

import numpy as np

from tilewright.runtime.numerics import Array

WARP = 32
SECTOR = 32
WORD = 4
BANKS = 32
MAX_ACCESS = 16
"""Widest access of one lane in one instruction, in bytes."""


def _by_warp(addresses: Array, active: Array | None) -> tuple[Array, Array | None]:
    """Rows of 32 lanes."""
    shape = addresses.shape if active is None else np.broadcast_shapes(addresses.shape, active.shape)
    rows = np.broadcast_to(addresses, shape).reshape(-1, WARP)
    return rows, None if active is None else np.broadcast_to(active, shape).reshape(-1, WARP)


def pieces(width_bytes: int) -> list[tuple[int, int]]:
    """The instructions that an access of so many bytes a lane takes: (byte offset, bytes) of each."""
    return [(at, min(MAX_ACCESS, width_bytes - at)) for at in range(0, width_bytes, MAX_ACCESS)]


def global_sectors(addresses: Array, width_bytes: int, active: Array | None) -> tuple[int, int]:
    """(requests, sectors) of an access of at most 16 bytes a lane.

    `addresses` are byte addresses (..., threads), threads a multiple of 32; `active` broadcasts to them, None is all.
    """
    rows, lanes = _by_warp(addresses, active)
    if lanes is not None:
        busy = lanes.any(1)
        rows, lanes = rows[busy], lanes[busy]
        if not len(rows):
            return 0, 0
        if lanes.all():
            lanes = None
    first = rows // SECTOR
    last = (rows + (width_bytes - 1)) // SECTOR
    if not np.array_equal(first, last):
        first = np.concatenate([first, last], 1)
        if lanes is not None:
            lanes = np.concatenate([lanes, lanes], 1)
    idle = 0
    if lanes is not None:
        idle = int(np.count_nonzero(~lanes.all(1)))
        # Sectors are counted as distinct values; idle lanes share one of their own.
        first = np.where(lanes, first, np.iinfo(np.int64).min)
    steps = np.diff(first, axis=1)
    if (steps < 0).any():
        steps = np.diff(np.sort(first, axis=1), axis=1)
    return len(rows), len(rows) + int(np.count_nonzero(steps)) - idle


def shared_wavefronts(
    addresses: Array, width_bytes: int, active: Array | None, *, loads: bool = False
) -> tuple[int, int]:
    """(requests, wavefronts) of an access of at most 16 bytes a lane; operands as in `global_sectors`.

    `loads` says that it reads, so that lanes which read the same place share phases.
    """
    rows, lanes = _by_warp(addresses, active)
    if lanes is not None:
        busy = lanes.any(1)
        rows, lanes = rows[busy], lanes[busy]
    requests = len(rows)
    if not requests:
        return 0, 0
    phase = WARP if width_bytes <= 4 else 16 if width_bytes <= 8 else 8
    if loads and phase < WARP:
        merged = _merges(rows, lanes)
        if merged.any() and not merged.all():
            parts = [
                shared_wavefronts(rows[which], width_bytes, None if lanes is None else lanes[which], loads=True)
                for which in (merged, ~merged)
            ]
            return requests, sum(wavefronts for _, wavefronts in parts)
        if merged.all():
            phase *= 2
    first = rows.reshape(-1, phase) // WORD
    words = max(1, width_bytes // WORD)
    if words > 1:
        first = (first[:, :, None] + np.arange(words)).reshape(len(first), -1)
    if lanes is not None:
        busy_lanes = np.repeat(lanes.reshape(-1, phase), words, axis=1)
        first = np.where(busy_lanes, first, -1)
    ordered = np.sort(first, axis=1)
    distinct = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=distinct[:, 1:])
    distinct &= ordered >= 0
    row, column = np.nonzero(distinct)
    bank = ordered[row, column] % BANKS
    per_bank = np.bincount(row * BANKS + bank, minlength=len(ordered) * BANKS)
    return requests, int(per_bank.reshape(-1, BANKS).max(1).sum())


def _merges(rows: Array, lanes: Array | None) -> Array:
    """For each warp whether lanes n and n xor 1, or n and n xor 2, read the same place for all n."""
    found = np.zeros(len(rows), np.bool_)
    for bit in (1, 2):
        partner = np.arange(WARP) ^ bit
        same = rows == rows[:, partner]
        if lanes is not None:
            same |= ~(lanes & lanes[:, partner])
        found |= same.all(1)
    return found
