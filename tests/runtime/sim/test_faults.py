"""Each fault that level `check` promises to find is planted here, beside the same kernel without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.report import Report

F32 = np.float32
IO = "%x : !simt.global<f32>, %y : !simt.global<f32>"

REVERSE = """
  %t = simt.tid
  %b = simt.block_id x
  %w = arith.constant 64 : i32
  %last = arith.constant 63 : i32
  %b0 = arith.muli %b, %w : i32
  %i = arith.addi %b0, %t : i32
  %s = simt.shared at 0 : !simt.smem<[64], f32>
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%i] into %r width 1
  simt.store %r to %s[%t] width 1
  BARRIER
  %q = arith.subi %last, %t : i32
  simt.load %s[%q] into %r width 1
  AGAIN
  simt.store %r to %y[%i] width 1
"""


def reverse(sim: Any, barrier: str, again: str = "", batch: int | None = None) -> Report:
    x, y = np.arange(256, dtype=F32), np.zeros(256, F32)
    body = REVERSE.replace("BARRIER", barrier).replace("AGAIN", again)
    return sim.run(body, IO, [x, y], threads=64, smem=256, grid=4, batch=batch)


def only(report: Report, kind: str) -> str:
    """The one fault, which is of this kind, as text."""
    assert [d.kind for d in report.diagnostics] == [kind], [str(d) for d in report.diagnostics]
    return str(report.diagnostics[0])


def test_dropped_barrier_is_a_race_named_by_op_block_and_threads(sim: Any) -> None:
    assert not reverse(sim, "simt.barrier").diagnostics
    text = only(reverse(sim, ""), "race")
    # Every thread reads what its mirror wrote: 4 blocks of 64.
    assert text == (
        "k.mlir:14:3: simt.load: race: read of what thread 63 writes, without a barrier between; "
        "block 0, thread 0 (256 in all)"
    )


def test_write_after_read_without_barrier_is_a_race(sim: Any) -> None:
    again = "simt.store %r to %s[%t] width 1"
    assert not reverse(sim, "simt.barrier", "simt.barrier\n  " + again).diagnostics
    assert "write to what thread 63 reads" in only(reverse(sim, "simt.barrier", again), "race")


def test_a_thread_that_writes_what_it_and_others_read_races(sim: Any) -> None:
    body = """
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c31 = arith.constant 31 : i32
  %z = arith.constant 0.0 : f32
  %first = arith.cmpi eq, %t, %c0 : i32
  %last = arith.cmpi eq, %t, %c31 : i32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.regs.store %z to %r
  %s = simt.shared at 0 : !simt.smem<[1], f32>
  simt.store %r to %s[%c0] width 1 if %first
  simt.barrier
  simt.load %s[%c0] into %r width 1 READERS
  simt.store %r to %s[%c0] width 1 if %last
"""
    assert "write to what several threads read" in only(sim.run(body.replace("READERS", ""), smem=4), "race")
    assert not sim.run(body.replace("READERS", "if %last else 0.0 : f32"), smem=4).diagnostics


def test_two_threads_writing_one_element_race_even_in_one_store(sim: Any) -> None:
    body = """
  %t = simt.tid
  %two = arith.constant 2 : i32
  %h = arith.divsi %t, %two : i32
  %z = arith.constant 0.0 : f32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.regs.store %z to %r
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  simt.store %r to %s[%h] width 1
"""
    report = sim.run(body, smem=128)
    assert "writes too" in only(report, "race")
    # One of each pair sees the other's write.
    assert report.diagnostics[0].count == 16


def test_races_are_found_between_arrays_that_share_bytes(sim: Any) -> None:
    body = """
  %t = simt.tid
  %z = arith.constant 0.0 : f32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  %h = simt.regs.alloc : !simt.regs<[], f16>
  simt.regs.store %z to %r
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  %u = simt.shared at OFFSET : !simt.smem<[32], f16>
  simt.store %r to %s[%t] width 1
  simt.load %u[%t] into %h width 1
"""
    report = sim.run(body.replace("OFFSET", "64"), smem=192)
    assert len(report.of_kind("race")) == 1
    report = sim.run(body.replace("OFFSET", "128"), smem=192)
    assert not report.of_kind("race")
    assert len(report.of_kind("uninitialised-shared")) == 1


def test_a_barrier_in_a_block_of_its_own_orders_only_that_block(sim: Any) -> None:
    # Blocks 0 and 1 pass one barrier each in the loop, blocks 2 and 3 none: they race.
    body = REVERSE.replace(
        "BARRIER",
        """%two = arith.constant 2 : i32
  %early = arith.cmpi slt, %b, %two : i32
  scf.if %early {
    simt.barrier
  }""",
    ).replace("AGAIN", "")
    x, y = np.arange(256, dtype=F32), np.zeros(256, F32)
    report = sim.run(body, IO, [x, y], threads=64, smem=256, grid=4)
    assert "block 2, thread 0 (128 in all)" in only(report, "race")


def test_out_of_bounds_names_thread_and_index_and_goes_on(sim: Any) -> None:
    x, y = np.arange(200, dtype=F32), np.zeros(256, F32)
    body = REVERSE.replace("BARRIER", "simt.barrier").replace("AGAIN", "")
    report = sim.run(body, IO, [x, y], threads=64, smem=256, grid=4)
    text = only(report, "out-of-bounds")
    assert text.startswith("k.mlir:10:3: simt.load: out-of-bounds: elements 0..199 exist; block 3, thread 8, index 200")
    assert report.diagnostics[0].count == 56
    np.testing.assert_array_equal(y[:192], x[:192].reshape(3, 64)[:, ::-1].ravel())


@pytest.mark.parametrize("index", ["%minus", "%end"])
def test_shared_out_of_bounds(sim: Any, index: str) -> None:
    body = f"""
  %t = simt.tid
  %one = arith.constant 1 : i32
  %minus = arith.subi %t, %one : i32
  %end = arith.addi %t, %one : i32
  %z = arith.constant 0.0 : f32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.regs.store %z to %r
  %s = simt.shared at 128 : !simt.smem<[32], f32>
  simt.store %r to %s[{index}] width 1
"""
    report = sim.run(body, smem=512)
    thread, at = (0, -1) if index == "%minus" else (31, 32)
    assert only(report, "out-of-bounds").endswith(f"block 0, thread {thread}, index {at}")


def test_vector_access_must_fit_and_be_aligned(sim: Any) -> None:
    body = """
  %t = simt.tid
  %four = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %i = arith.muli %t, %four : i32
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  simt.load %x[%i] into %r[%c0] width 4
"""
    x = "%x : !simt.global<f32>"
    assert not sim.run(body, x, [np.zeros(128, F32)]).diagnostics
    assert only(sim.run(body, x, [np.zeros(126, F32)]), "out-of-bounds").endswith("thread 31, index 124")
    text = only(sim.run(body, x, [Buffer(np.zeros(130, F32), offset=2)]), "misaligned")
    assert text.endswith("not a multiple of 16 bytes; block 0, thread 0, index 0 (32 in all)")


def test_uninitialised_shared_memory(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[], f32>
  %z = arith.constant 0.0 : f32
  %half = arith.constant 16 : i32
  %low = arith.cmpi slt, %t, %half : i32
  simt.regs.store %z to %r
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  simt.store %r to %s[%t] width 1 if %low
  simt.load %s[%t] into %r width 1
"""
    assert only(sim.run(body, smem=128), "uninitialised-shared").endswith("block 0, thread 16 (16 in all)")


def test_uninitialised_registers(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  %z = arith.constant 1.0 : f32
  %c3 = arith.constant 3 : i32
  simt.unroll %i < COUNT {
    simt.regs.store %z to %r[%i]
  }
  %v = simt.regs.load %r[%c3]
  simt.store %r[%c3] to %x[%t] width 1
"""
    x = "%x : !simt.global<f32>"
    assert not sim.run(body.replace("COUNT", "4"), x, [np.zeros(32, F32)]).diagnostics
    report = sim.run(body.replace("COUNT", "3"), x, [np.zeros(32, F32)])
    assert [(d.kind, d.site.op_name, d.count) for d in report.diagnostics] == [
        ("uninitialised-register", "simt.regs.load", 32),
        ("uninitialised-register", "simt.store", 32),
    ]


def test_registers_written_under_a_mask_are_uninitialised_elsewhere(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[], f32>
  %z = arith.constant 1.0 : f32
  %half = arith.constant 16 : i32
  %low = arith.cmpi slt, %t, %half : i32
  scf.if %low {
    simt.regs.store %z to %r
  }
  simt.store %r to %x[%t] width 1 MASK
"""
    x = "%x : !simt.global<f32>"
    assert not sim.run(body.replace("MASK", "if %low"), x, [np.zeros(32, F32)]).diagnostics
    report = sim.run(body.replace("MASK", ""), x, [np.zeros(32, F32)])
    assert only(report, "uninitialised-register").endswith("block 0, thread 16 (16 in all)")


@pytest.mark.parametrize(("limit", "diverges"), [("%half", True), ("%all", False)])
def test_barrier_that_part_of_a_block_reaches(sim: Any, limit: str, diverges: bool) -> None:
    body = f"""
  %t = simt.tid
  %half = arith.constant 16 : i32
  %all = arith.constant 32 : i32
  %c = arith.cmpi slt, %t, {limit} : i32
  scf.if %c {{
    simt.barrier
  }}
"""
    report = sim.run(body)
    if diverges:
        assert only(report, "barrier-divergence").endswith("block 0, thread 16 (16 in all)")
    else:
        assert not report.diagnostics


def test_barrier_in_a_loop_whose_trip_count_differs_by_thread(sim: Any) -> None:
    body = """
  %t = simt.tid
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %half = arith.constant 16 : i32
  %n = arith.divsi %t, %half : i32
  scf.for %i = %z to %n step %one : i32 {
    simt.barrier
  }
"""
    assert only(sim.run(body), "barrier-divergence").endswith("block 0, thread 0 (16 in all)")


WRAP = """
  %t = simt.tid
  %big = arith.constant 2000000000 : i32
  %c10 = arith.constant 10 : i32
  %over = arith.addi %big, %t : i32
  %twice = arith.addi %over, %over : i32
  %c31 = arith.constant 31 : i32
  %i = arith.andi %twice, %c31 : i32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  %none = arith.constant false
  %in = arith.cmpi slt, %t, %c10 : i32
  simt.load %x[%i] into %r width 1 MASK
"""


def test_wrapped_address_arithmetic_is_reported_at_the_op_that_wraps(sim: Any) -> None:
    report = sim.run(WRAP.replace("MASK", "if %in else 0.0 : f32"), "%x : !simt.global<f32>", [np.zeros(32, F32)])
    text = only(report, "index-wrap")
    assert text.startswith("k.mlir:6:3: arith.addi: index-wrap: 32-bit arithmetic wraps on the way to the address of ")
    # Only the lanes that load.
    assert text.endswith("block 0, thread 0 (10 in all)")


@pytest.mark.parametrize(
    ("op", "wraps"),
    [
        ("arith.addi %big, %t : i32", False),
        ("arith.addi %big, %big : i32", True),
        ("arith.subi %minus, %big : i32", True),
        ("arith.muli %big, %four : i32", True),
        ("arith.muli %t, %four : i32", False),
        ("arith.shli %big, %four : i32", True),
        ("arith.shli %t, %four : i32", False),
        ("arith.trunci %wide : i64 to i32", True),
    ],
)
def test_which_address_arithmetic_wraps(sim: Any, op: str, wraps: bool) -> None:
    body = f"""
  %t = simt.tid
  %big = arith.constant 2000000000 : i32
  %minus = arith.constant -2000000000 : i32
  %four = arith.constant 4 : i32
  %wide = arith.constant 5000000000 : i64
  %v = {op}
  %c31 = arith.constant 31 : i32
  %i = arith.andi %v, %c31 : i32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%i] into %r width 1
"""
    report = sim.run(body, "%x : !simt.global<f32>", [np.zeros(32, F32)])
    assert [d.kind for d in report.diagnostics] == (["index-wrap"] if wraps else [])


def test_wrapped_values_are_followed_through_loops_and_branches(sim: Any) -> None:
    body = """
  %t = simt.tid
  %big = arith.constant 1000000000 : i32
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant COUNT : i32
  %sum = scf.for %k = %z to %n step %one iter_args(%acc = %t) -> (i32) : i32 {
    %next = arith.addi %acc, %big : i32
    scf.yield %next : i32
  }
  %c31 = arith.constant 31 : i32
  %i = arith.andi %sum, %c31 : i32
  %low = arith.cmpi slt, %t, %one : i32
  %at = scf.if %low -> (i32) {
    scf.yield %i : i32
  } else {
    scf.yield %z : i32
  }
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%at] into %r width 1
"""
    x = "%x : !simt.global<f32>"
    assert not sim.run(body.replace("COUNT", "2"), x, [np.zeros(32, F32)]).diagnostics
    text = only(sim.run(body.replace("COUNT", "3"), x, [np.zeros(32, F32)]), "index-wrap")
    assert text.startswith("k.mlir:8:5: arith.addi")


def test_wrapped_address_that_is_masked_off_is_no_fault(sim: Any) -> None:
    x = [np.zeros(32, F32)]
    assert not sim.run(WRAP.replace("MASK", "if %none else 0.0 : f32"), "%x : !simt.global<f32>", x).diagnostics


def test_two_blocks_writing_one_element(sim: Any) -> None:
    body = """
  %t = simt.tid
  %z = arith.constant 1.0 : f32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.regs.store %z to %r
  simt.store %r to %y[%t] width 1
"""
    y = "%y : !simt.global<f32>"
    assert not sim.run(body, y, [np.zeros(32, F32)], grid=1).diagnostics
    for batch in (1, 2, None):
        report = sim.run(body, y, [np.zeros(32, F32)], grid=2, batch=batch)
        assert "writes too, with nothing to order the two" in only(report, "global-race")
        assert report.diagnostics[0].count == 32


def test_global_memory_written_and_read_within_a_block_needs_a_barrier(sim: Any) -> None:
    body = """
  %t = simt.tid
  %last = arith.constant 31 : i32
  %z = arith.constant 1.0 : f32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.regs.store %z to %r
  simt.store %r to %y[%t] width 1
  BARRIER
  %q = arith.subi %last, %t : i32
  simt.load %y[%q] into %r width 1
"""
    y = "%y : !simt.global<f32>"
    assert not sim.run(body.replace("BARRIER", "simt.barrier"), y, [np.zeros(32, F32)]).diagnostics
    assert "read of what block 0, thread 31" in only(
        sim.run(body.replace("BARRIER", ""), y, [np.zeros(32, F32)]), "global-race"
    )


def test_shuffle_without_all_lanes(sim: Any) -> None:
    body = """
  %t = simt.tid
  %half = arith.constant 16 : i32
  %c = arith.cmpi slt, %t, %half : i32
  scf.if %c {
    %v = simt.shuffle xor %t, 1
  }
"""
    assert only(sim.run(body), "barrier-divergence").endswith("block 0, thread 16 (16 in all)")
