"""Sectors and wavefronts against what the memory system's rules say they must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.counting import global_sectors, pieces, shared_wavefronts

LANES = np.arange(32, dtype=np.int64)


def test_global_sectors_of_regular_patterns() -> None:
    # 32 lanes of 4 bytes are 128 bytes: 4 sectors; each doubling of the stride doubles them up to one a lane.
    for stride, sectors in [(0, 1), (1, 4), (2, 8), (4, 16), (8, 32), (33, 32)]:
        assert global_sectors(LANES[None] * 4 * stride, 4, None) == (1, sectors)
    assert global_sectors(124 - LANES[None] * 4, 4, None) == (1, 4)
    assert global_sectors(LANES[None] * 16, 16, None) == (1, 16)
    # From a base 4 bytes off, 128 bytes reach into a fifth sector.
    assert global_sectors(LANES[None] * 4 + 4, 4, None) == (1, 5)
    # A permutation of the lanes changes nothing.
    assert global_sectors((LANES[None] ^ 21) * 4, 4, None) == (1, 4)


def test_global_sectors_count_active_lanes_only() -> None:
    active = np.array([LANES < 9, LANES < 0, LANES % 8 == 0])
    assert global_sectors(np.broadcast_to(LANES * 4, (3, 32)), 4, active) == (2, 2 + 4)


@pytest.mark.parametrize(
    ("width", "stride", "wavefronts"),
    [
        # Words of 4 bytes: the stride's common divisor with 32 is the conflict degree.
        (4, 0, 1),
        (4, 1, 1),
        (4, 2, 2),
        (4, 3, 1),
        (4, 32, 32),
        (4, 33, 1),
        # 8 bytes: two phases of 16 lanes.
        (8, 2, 2),
        (8, 4, 4),
        (8, 32, 32),
        # 16 bytes: four phases of 8 lanes.
        (16, 4, 4),
        (16, 32, 32),
        (16, 36, 4),
        # Two lanes share a word of 4 bytes.
        (2, 0.5, 1),
        (1, 0.25, 1),
        (2, 32, 32),
    ],
)
def test_shared_wavefronts_by_stride_in_words(width: int, stride: float, wavefronts: int) -> None:
    addresses = (LANES * 4 * stride).astype(np.int64)[None]
    assert shared_wavefronts(addresses, width, None) == (1, wavefronts)


def test_shared_wavefronts_count_active_lanes_only() -> None:
    addresses = np.broadcast_to(LANES * 128, (2, 32))
    assert shared_wavefronts(addresses, 4, np.array([LANES < 5, LANES < 0])) == (1, 5)


def test_wide_accesses_are_several_instructions() -> None:
    assert pieces(4) == [(0, 4)]
    assert pieces(64) == [(0, 16), (16, 16), (32, 16), (48, 16)]


def transpose(pitch: int) -> str:
    """One 32x32 tile a block, 8 rows of 32 threads; the tile is written by rows and read by columns."""
    return f"""
  %t = simt.tid
  %b = simt.block_id x
  %c32 = arith.constant 32 : i32
  %c8 = arith.constant 8 : i32
  %tile = arith.constant 1024 : i32
  %pitch = arith.constant {pitch} : i32
  %base = arith.muli %b, %tile : i32
  %x = arith.remsi %t, %c32 : i32
  %y = arith.divsi %t, %c32 : i32
  %s = simt.shared at 0 : !simt.smem<[32, {pitch}], f32>
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  simt.unroll %j < 4 {{
    %j8 = arith.muli %j, %c8 : i32
    %row = arith.addi %j8, %y : i32
    %g0 = arith.muli %row, %c32 : i32
    %g1 = arith.addi %g0, %x : i32
    %g = arith.addi %g1, %base : i32
    simt.load %p[%g] into %r[%j] width 1
    %s0 = arith.muli %row, %pitch : i32
    %si = arith.addi %s0, %x : i32
    simt.store %r[%j] to %s[%si] width 1
  }}
  simt.barrier
  simt.unroll %j < 4 {{
    %j8 = arith.muli %j, %c8 : i32
    %row = arith.addi %j8, %y : i32
    %s0 = arith.muli %x, %pitch : i32
    %si = arith.addi %s0, %row : i32
    simt.load %s[%si] into %r[%j] width 1
    %g0 = arith.muli %row, %c32 : i32
    %g1 = arith.addi %g0, %x : i32
    %g = arith.addi %g1, %base : i32
    simt.store %r[%j] to %q[%g] width 1
  }}
"""


@pytest.mark.parametrize(("pitch", "conflict"), [(32, 32), (33, 1)])
@pytest.mark.parametrize("vectorise", [True, False])
@pytest.mark.parametrize("level", ["count", "check"])
def test_transpose_reads_columns_without_conflict_when_padded(
    sim: Any, pitch: int, conflict: int, vectorise: bool, level: str
) -> None:
    blocks = 3
    x = np.arange(blocks * 1024, dtype=np.float32)
    y = np.zeros_like(x)
    arguments = "%p : !simt.global<f32>, %q : !simt.global<f32>"
    report = sim.run(
        transpose(pitch), arguments, [x, y], threads=256, smem=32 * pitch * 4, grid=blocks, level=level,
        vectorise=vectorise,
    )  # fmt: skip
    np.testing.assert_array_equal(y.reshape(-1, 32, 32), x.reshape(-1, 32, 32).transpose(0, 2, 1))
    assert not report.diagnostics
    # 8 warps, 4 iterations.
    requests = blocks * 8 * 4
    for name in ("simt.load", "simt.store"):
        counts = sim.counts(report, name, "global")
        assert (counts.requests, counts.sectors) == (requests, 4 * requests)
    assert sim.counts(report, "simt.store", "shared").wavefronts == requests
    read = sim.counts(report, "simt.load", "shared")
    assert (read.requests, read.wavefronts) == (requests, conflict * requests)
    assert read.wavefronts_per_request == conflict


def test_base_address_shifts_sectors(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%t] into %r width 1
"""
    for buffer, sectors in [
        (Buffer(np.zeros(64, np.float32)), 4),
        (Buffer(np.zeros(64, np.float32), offset=1), 5),
        (Buffer(np.zeros(64, np.float32), address=20), 5),
        (Buffer(np.zeros(64, np.float32), offset=8), 4),
    ]:
        report = sim.run(body, "%x : !simt.global<f32>", [buffer], level="count")
        assert sim.counts(report, "simt.load", "global").sectors == sectors


def test_an_access_that_does_not_depend_on_its_loop_counts_once_an_iteration(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[3], f32>
  simt.unroll %i < 3 {
    simt.load %x[%t] into %r[%i] width 1
  }
"""
    report = sim.run(body, "%x : !simt.global<f32>", [np.zeros(64, np.float32)], threads=64, grid=5)
    counts = sim.counts(report, "simt.load", "global")
    assert (counts.requests, counts.sectors) == (5 * 2 * 3, 4 * 5 * 2 * 3)


def test_vector_rows_in_shared_memory(sim: Any) -> None:
    # 32 lanes of float4, contiguous: 512 bytes are 4 passes of all 32 banks.
    body = """
  %t = simt.tid
  %four = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %i = arith.muli %t, %four : i32
  %z = arith.constant 0.0 : f32
  %s = simt.shared at 0 : !simt.smem<[32, 4], f32>
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  simt.unroll %k < 4 {
    simt.regs.store %z to %r[%k]
  }
  simt.store %r[%c0] to %s[%i] width 4
"""
    report = sim.run(body, smem=512)
    assert sim.counts(report, "simt.store", "shared").wavefronts == 4
    assert not report.diagnostics


@pytest.mark.parametrize(
    ("width", "places", "wavefronts"),
    [
        (8, LANES * 0, 1),
        (16, LANES * 0, 2),
        (8, LANES // 2 * 8, 1),
        (16, LANES // 2 * 16, 2),
        (16, LANES // 4 * 16, 2),
        (8, (LANES & 13) * 8, 1),
        (8, LANES * 8, 2),
        (16, LANES * 16, 4),
    ],
)
def test_lanes_that_load_one_place_share_phases(width: int, places: Any, wavefronts: int) -> None:
    """As an H200 counts (docs/counters.md); stores do not."""
    assert shared_wavefronts(places, width, None, loads=True) == (1, wavefronts)


def test_warps_share_phases_each_for_itself() -> None:
    places = np.concatenate([LANES // 2 * 8, LANES * 8])
    assert shared_wavefronts(places, 8, None, loads=True) == (2, 1 + 2)
