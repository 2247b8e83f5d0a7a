"""Memory without storage: values by function, stores kept, chosen blocks; as real memory where both can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import batches
from tilewright.runtime.sim.virtual import VirtualMemory

# y[64*b + t] = x[64*b + t] + y[0], 64-bit indices.
SHIFT = """
  %t = simt.tid
  %b = simt.block_id x
  %w = arith.constant 64 : i64
  %t64 = arith.extsi %t : i32 to i64
  %b64 = arith.extsi %b : i32 to i64
  %b0 = arith.muli %b64, %w : i64
  %i = arith.addi %b0, %t64 : i64
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%i] into %r width 1
  simt.store %r to %y[%i] width 1
"""
IO = "%x : !simt.global<f32>, %y : !simt.global<f32>"


def ramp(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return positions % 1013


def virtual(size: int) -> VirtualMemory:
    return VirtualMemory(size, np.float32, ramp)


@pytest.mark.parametrize("level", ["fast", "count", "check"])
def test_chosen_blocks_store_what_they_would_on_real_memory(sim: Any, level: str):
    real = [np.arange(640, dtype=np.float32) % 1013, np.zeros(640, np.float32)]
    sim.run(SHIFT, IO, real, threads=64, grid=10, level=level)
    for grid, blocks in ((10, [9, 0, 5, 5]), (1 << 26, [0, (1 << 26) - 1])):
        x, y = virtual(64 * grid), virtual(64 * grid)
        report = sim.run(SHIFT, IO, [Buffer(x), Buffer(y)], threads=64, grid=grid, blocks=blocks, level=level)
        assert not report.diagnostics
        assert report.blocks == len(set(blocks))
        positions = [64 * b + t for b in sorted(set(blocks)) for t in range(64)]
        assert sorted(y.stored) == positions
        assert [y.stored[p] for p in positions] == [p % 1013 for p in positions]
        assert x.stored == {}
        if grid == 10:
            assert [real[1][p] for p in positions] == [y.stored[p] for p in positions]


def test_only_the_chosen_blocks_of_real_memory_are_written(sim: Any):
    y = np.zeros(640, np.float32)
    sim.run(SHIFT, IO, [np.ones(640, np.float32), y], threads=64, grid=10, blocks=[3, 4, 9])
    np.testing.assert_array_equal(y.reshape(10, 64).sum(1), [0, 0, 0, 64, 64, 0, 0, 0, 0, 64])


def test_what_was_stored_is_read_back():
    memory = virtual(1 << 40)
    places = np.array([[5, 1 << 39], [5, 7]])
    memory[places] = np.array([[1.0, 2.0], [3.0, 4.5]])
    np.testing.assert_array_equal(memory.take(np.array([5, 6, 7, 1 << 39])), np.array([3.0, 6.0, 4.5, 2.0], np.float32))
    assert memory.take(places).dtype == np.float32


def test_an_access_outside_the_extent_is_found_as_on_real_memory(sim: Any):
    for buffers in ([Buffer(virtual(600)), Buffer(virtual(640))], [np.ones(600, np.float32), np.ones(640, np.float32)]):
        report = sim.run(SHIFT, IO, buffers, threads=64, grid=10, blocks=[0, 9])
        assert [d.kind for d in report.diagnostics] == ["out-of-bounds"]
        assert report.diagnostics[0].message == "elements 0..599 exist"
        with pytest.raises(TilewrightError, match="element 600 of a global array"):
            sim.run(SHIFT, IO, buffers, threads=64, grid=10, blocks=[0, 9], level="fast")


def test_blocks_that_write_the_same_virtual_element_race(sim: Any):
    body = SHIFT.replace("arith.constant 64", "arith.constant 32")
    x, y = virtual(1 << 33), virtual(1 << 33)
    assert not sim.run(body, IO, [Buffer(x), Buffer(y)], threads=64, grid=1 << 20, blocks=[0, 2, 9000]).diagnostics
    report = sim.run(body, IO, [Buffer(x), Buffer(y)], threads=64, grid=1 << 20, blocks=[9000, 9001])
    assert [d.kind for d in report.diagnostics] == ["global-race"]


def test_virtual_memory_overlaps_only_itself(sim: Any):
    memory = virtual(640)
    report = sim.run(SHIFT, IO, [Buffer(memory, offset=0), Buffer(memory)], threads=64, grid=10, level="fast")
    assert not report.diagnostics
    assert len(memory.stored) == 640


@pytest.mark.parametrize("blocks", [[-1], [0, 10]])
def test_a_block_outside_the_grid_is_refused(sim: Any, blocks: list[int]):
    with pytest.raises(TilewrightError, match=rf"expected blocks of a grid of 10, got block {blocks[-1]}"):
        sim.run(SHIFT, IO, [np.ones(640, np.float32)] * 2, threads=64, grid=10, blocks=blocks)


def test_wrong_values_and_sizes_are_refused():
    with pytest.raises(TilewrightError, match="at least 0 elements, got -1"):
        virtual(-1)
    with pytest.raises(TilewrightError, match=r"expected shape \(2,\), got \(1,\)"):
        VirtualMemory(4, np.float32, lambda positions: np.zeros(1)).take(np.array([0, 1]))
    with pytest.raises(IndexError):
        virtual(4).take(np.array([4]))
    with pytest.raises(TilewrightError, match="expected elements of dtype float32, got float64"):
        Buffer(VirtualMemory(4, np.float64, ramp)).check(f32, "x")


def test_neighbouring_blocks_run_together():
    assert list(batches(7, None, 3)) == [(0, 3), (3, 3), (6, 1)]
    assert list(batches(100, [9, 3, 4, 5, 6, 4], 3)) == [(3, 3), (6, 1), (9, 1)]
    assert list(batches(100, [], 3)) == []
