"""`cp.async` in the simulator: values whenever the copies land, counters, and planted faults, found either way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.matrix_kernels import kernel_of, pipeline_inputs, text_of, without
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.sim.async_copies import LANDINGS
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel, simulate
from tilewright.runtime.sim.report import Report

BLOCKS, TILES, MISSING = 2, 4, 301

landings = pytest.mark.parametrize("landing", LANDINGS)


def run(text: str, landing: Any, level: Any = "check", batch: int | None = None) -> tuple[Report, bool]:
    """(the report, whether the sums are right)."""
    x, y, expected = pipeline_inputs(BLOCKS, TILES, MISSING)
    program = compile_kernel(kernel_of(text), level, aliased=False)
    report = program.run([Buffer(x), Buffer(y)], [x.size, TILES], grid=BLOCKS, batch=batch, landing=landing)
    # Sixteen numbers of magnitude 1 to 4, summed in f32.
    return report, bool((abs(y - expected) < 1e-5).all())


@landings
@pytest.mark.parametrize("level", ["fast", "count", "check"])
def test_a_pipeline_of_two_stages(landing: Any, level: str) -> None:
    for batch in (None, 1):
        report, right = run(text_of("pipeline"), landing, level, batch)
        assert right
        assert not report.diagnostics


def test_counters() -> None:
    report, _ = run(text_of("pipeline"), "latest", "count")
    copies = [c for site, c in report.counts.items() if site.op_name == "simt.cp_async"]
    # 2 blocks of 2 warps: tiles of 64 rows of 16 bytes, 32 bytes a sector; each row of 8 lanes is one wavefront.
    assert (copies[0].requests, copies[0].sectors, copies[0].wavefronts) == (4, 4 * 16, 4 * 4)
    # The last tile of the last block lacks 301 of 256 elements, so all of it and 45 of the one before.
    sectors = 3 * 2 * 32 - 32 - 45 // 8
    assert (copies[1].requests, copies[1].sectors, copies[1].wavefronts) == (12, sectors, 12 * 4)


def faults(report: Report) -> set[tuple[str, str]]:
    return {(d.kind, d.site.op_name) for d in report.diagnostics}


WAIT = "simt.cp_async_wait pending 1"


@landings
def test_a_missing_wait(landing: Any) -> None:
    report, right = run(without(text_of("pipeline"), WAIT), landing)
    assert ("in-flight", "simt.load") in faults(report)
    assert ("unfinished-copy", "simt.cp_async") in faults(report)
    assert "asynchronous copy of thread 63 may still be writing" in report.of_kind("in-flight")[0].message
    assert right == (landing == "earliest")


@landings
def test_a_wait_that_is_too_weak(landing: Any) -> None:
    report, right = run(text_of("pipeline").replace(WAIT, "simt.cp_async_wait pending 2"), landing)
    assert ("in-flight", "simt.load") in faults(report)
    # A copy into a slot that an earlier one still goes to.
    assert ("in-flight", "simt.cp_async") in faults(report)
    assert right == (landing == "earliest")


@landings
def test_a_copy_that_is_in_no_group(landing: Any) -> None:
    report, _ = run(without(text_of("pipeline"), "simt.cp_async_commit", 1), landing)
    assert ("in-flight", "simt.load") in faults(report)


@landings
def test_a_missing_barrier_after_the_wait(landing: Any) -> None:
    report, _ = run(without(text_of("pipeline"), "simt.barrier"), landing)
    assert faults(report) == {("race", "simt.load")}
    assert "read of what thread 63 writes, without a barrier between" in report.diagnostics[0].message


@landings
def test_a_slot_that_is_overwritten_too_early(landing: Any) -> None:
    report, _ = run(without(text_of("pipeline"), "simt.barrier", 1), landing)
    assert ("race", "simt.cp_async") in faults(report)
    assert "asynchronous copy to what thread 63 reads, without a barrier between" in report.of_kind("race")[0].message


@landings
def test_the_copying_thread_must_wait_too(landing: Any) -> None:
    """Even for what it copied itself, and for a write of its own to the same place."""
    body = """
simt.kernel @k(%x : !simt.global<f32>) threads 32 smem 128 grid [1] {
  %t = simt.tid
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.cp_async %x[%t] to %s[%t] width 1
  simt.cp_async_commit
  FIRST
  simt.load %s[%t] into %r width 1
  simt.store %r to %s[%t] width 1
  SECOND
}
"""
    for first, second, expected in [
        ("simt.cp_async_wait pending 0", "", set[tuple[str, str]]()),
        ("", "simt.cp_async_wait pending 0", {("in-flight", "simt.load"), ("in-flight", "simt.store")}),
    ]:
        kernel = kernel_of(body.replace("FIRST", first).replace("SECOND", second))
        report = simulate(kernel, [Buffer(np.ones(32, np.float32))], [], grid=1, level="check", landing=landing)
        assert faults(report) == expected


SOURCE = """
simt.kernel @k(%x : !simt.global<f32>) threads 32 smem 128 grid [1] {
  %t = simt.tid
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  %r = simt.regs.alloc : !simt.regs<[], f32>
  %one = arith.constant 1.0 : f32
  simt.regs.store %one to %r
  simt.cp_async %x[%t] to %s[%t] width 1
  simt.cp_async_commit
  EARLY
  simt.cp_async_wait pending 0
  LATE
}
"""


@landings
def test_a_source_that_changes_before_the_wait(landing: Any) -> None:
    store = "simt.store %r to %x[%t] width 1"
    for early, late, expected in [(store, "", {("source-changed", "simt.cp_async")}), ("", store, set[Any]())]:
        kernel = kernel_of(SOURCE.replace("EARLY", early).replace("LATE", late))
        report = simulate(kernel, [Buffer(np.zeros(32, np.float32))], [], grid=1, level="check", landing=landing)
        assert faults(report) == expected


EDGES = """
simt.kernel @k(%x : !simt.global<f16>, %y : !simt.global<f16>, %n : i32, %from : i32, %to : i32) threads 32 smem 512 grid [1] params [n, f, t] {
  %t = simt.tid
  %zero = arith.constant 0 : i32
  %width = arith.constant WIDTH : i32
  %s = simt.shared at 0 : !simt.smem<[256], f16>
  %r = simt.regs.alloc : !simt.regs<[WIDTH], f16>
  %i = arith.muli %t, %width : i32
  %a = arith.addi %i, %from : i32
  %b = arith.addi %i, %to : i32
  simt.cp_async %x[%a] to %s[%b] width WIDTH valid %n
  simt.cp_async_commit
  simt.cp_async_wait pending 0
  simt.load %s[%i] into %r[%zero] width WIDTH
  simt.store %r[%zero] to %y[%i] width WIDTH
}
"""  # noqa: E501


def edges(width: int, valid: int, source: int = 0, target: int = 0, level: Any = "check") -> tuple[Report, Any]:
    x, y = np.arange(1, 32 * width + 1, dtype=np.float16), np.full(32 * width, 9, np.float16)
    kernel = kernel_of(EDGES.replace("WIDTH", str(width)))
    return simulate(kernel, [Buffer(x), Buffer(y)], [valid, source, target], grid=1, level=level), y


@pytest.mark.parametrize("width", [2, 4, 8])
def test_zeros_beyond_the_valid_elements(width: int) -> None:
    for valid in range(width + 1):
        # With none valid the address does not matter.
        report, y = edges(width, valid, 0 if valid else 1 << 20)
        assert not report.diagnostics
        expected = np.arange(1, 32 * width + 1).reshape(32, width).copy()
        expected[:, valid:] = 0
        np.testing.assert_array_equal(y.reshape(32, width), expected)


@pytest.mark.parametrize(
    ("valid", "source", "target", "kind"),
    [(8, 8, 0, "out-of-bounds"), (8, 0, 8, "out-of-bounds"), (9, 0, 0, "out-of-bounds"), (-1, 0, 0, "out-of-bounds"),
     (4, 4, 0, "misaligned"), (8, -4, 0, "misaligned"), (0, 1, 0, None)],
)  # fmt: skip
def test_addresses_and_sizes_that_are_wrong(valid: int, source: int, target: int, kind: str | None) -> None:
    report, _ = edges(8, valid, source, target)
    assert (kind in {d.kind for d in report.diagnostics}) if kind else not report.diagnostics
    if kind == "out-of-bounds":
        with pytest.raises(TilewrightError, match=r"simt.cp_async out of bounds"):
            edges(8, valid, source, target, "count")


def test_groups_are_counted_for_each_thread() -> None:
    """Threads that commit an empty group in a branch wait for more with the same number pending."""
    body = """
simt.kernel @k(%x : !simt.global<f32>) threads 32 smem 128 grid [1] {
  %t = simt.tid
  %half = arith.constant 16 : i32
  %low = arith.cmpi slt, %t, %half : i32
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.cp_async %x[%t] to %s[%t] width 1
  simt.cp_async_commit
  scf.if %low {
    simt.cp_async_commit
  }
  simt.cp_async_wait pending 1
  simt.load %s[%t] into %r width 1
  simt.cp_async_wait pending 0
}
"""
    report = simulate(kernel_of(body), [Buffer(np.ones(32, np.float32))], [], grid=1, level="check")
    (fault,) = report.diagnostics
    assert (fault.kind, fault.thread, fault.count) == ("in-flight", 16, 16)


@pytest.mark.parametrize("index", ["source", "target", "valid"])
def test_an_address_from_arithmetic_that_wraps(index: str) -> None:
    body = """
simt.kernel @k(%x : !simt.global<f32>) threads 32 smem 128 grid [1] {
  %t = simt.tid
  %s = simt.shared at 0 : !simt.smem<[32], f32>
  %far = arith.constant 1073741824 : i32
  %four = arith.constant 4 : i32
  %big = arith.muli %t, %far : i32
  %wrapped = arith.muli %big, %four : i32
  simt.cp_async %x[SOURCE] to %s[TARGET] width 1 valid VALID
  simt.cp_async_commit
  simt.cp_async_wait pending 0
}
"""
    places = {"source": "%t", "target": "%t", "valid": "%one", index: "%wrapped"}
    for name, value in places.items():
        body = body.replace(name.upper(), value)
    body = body.replace("  %four =", "  %one = arith.constant 1 : i32\n  %four =")
    report = simulate(kernel_of(body), [Buffer(np.ones(32, np.float32))], [], grid=1, level="check")
    assert "index-wrap" in {d.kind for d in report.diagnostics}


def test_a_landing_that_is_none() -> None:
    with pytest.raises(TilewrightError, match="expected copies to land latest or earliest, got 'soon'"):
        run(text_of("pipeline"), "soon")
