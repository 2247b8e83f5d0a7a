"""Kernels compute what they say: masks, loops, barriers, shuffles, storage types, batches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.sim.buffers import Buffer

F32 = np.float32


def test_masked_saxpy_over_several_blocks(sim: Any) -> None:
    n = 301
    x, y = np.arange(n, dtype=F32), np.ones(n, F32)
    seen: list[tuple[int, int]] = []
    report = sim.run(
        """
  %t = simt.tid
  %b = simt.block_id x
  %w = arith.constant 64 : i32
  %b0 = arith.muli %b, %w : i32
  %i = arith.addi %b0, %t : i32
  %in = arith.cmpi slt, %i, %n : i32
  %r = simt.regs.alloc : !simt.regs<[2], f32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  simt.load %x[%i] into %r[%c0] width 1 if %in else 0.0 : f32
  simt.load %y[%i] into %r[%c1] width 1 if %in else 0.0 : f32
  %a = arith.constant 3.0 : f32
  %u = simt.regs.load %r[%c0]
  %v = simt.regs.load %r[%c1]
  %s = math.fma %a, %u, %v : f32
  simt.regs.store %s to %r[%c1]
  simt.store %r[%c1] to %y[%i] width 1 if %in
""",
        "%x : !simt.global<f32>, %y : !simt.global<f32>, %n : i32",
        [x, y],
        [n],
        threads=64,
        grid=5,
        batch=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert not report.diagnostics
    np.testing.assert_array_equal(y, 3 * np.arange(n, dtype=F32) + 1)
    assert seen == [(2, 5), (4, 5), (5, 5)]


def test_loop_with_carried_value_and_bounds_that_differ_by_thread(sim: Any) -> None:
    out = np.zeros(32, np.int32)
    # out[t] = 0 + 1 + ... + (t - 1)
    sim.run(
        """
  %t = simt.tid
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %i = %z to %t step %one iter_args(%acc = %z) -> (i32) : i32 {
    %next = arith.addi %acc, %i : i32
    scf.yield %next : i32
  }
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %sum to %r
  simt.store %r to %o[%t] width 1
""",
        "%o : !simt.global<i32>",
        [out],
    )
    t = np.arange(32)
    np.testing.assert_array_equal(out, t * (t - 1) // 2)


def test_branches_merge_and_mask_stores(sim: Any) -> None:
    out = np.full(32, -1, np.int32)
    sim.run(
        """
  %t = simt.tid
  %two = arith.constant 2 : i32
  %z = arith.constant 0 : i32
  %m = arith.remsi %t, %two : i32
  %even = arith.cmpi eq, %m, %z : i32
  %v = scf.if %even -> (i32) {
    %a = arith.muli %t, %two : i32
    scf.yield %a : i32
  } else {
    %b = arith.subi %z, %t : i32
    scf.yield %b : i32
  }
  %k = arith.constant 20 : i32
  %low = arith.cmpi slt, %t, %k : i32
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %v to %r
  scf.if %low {
    simt.store %r to %o[%t] width 1
  }
""",
        "%o : !simt.global<i32>",
        [out],
    )
    t = np.arange(32)
    np.testing.assert_array_equal(out, np.where(t < 20, np.where(t % 2 == 0, 2 * t, -t), -1))


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
  simt.store %r to %y[%i] width 1
"""


@pytest.mark.parametrize("batch", [1, 3, None])
def test_threads_exchange_through_shared_memory(sim: Any, batch: int | None) -> None:
    x, y = np.arange(256, dtype=F32), np.zeros(256, F32)
    arguments = "%x : !simt.global<f32>, %y : !simt.global<f32>"
    body = REVERSE.replace("BARRIER", "simt.barrier")
    report = sim.run(body, arguments, [x, y], threads=64, smem=256, grid=4, batch=batch)
    assert not report.diagnostics
    np.testing.assert_array_equal(y, x.reshape(4, 64)[:, ::-1].ravel())


@pytest.mark.parametrize(
    ("mode", "amount", "source"),
    [
        ("xor", 5, lambda lane: lane ^ 5),
        ("down", 7, lambda lane: np.where(lane + 7 < 32, lane + 7, lane)),
        ("index", 3, lambda lane: 0 * lane + 3),
    ],
)
def test_shuffles(sim: Any, mode: str, amount: int, source: Any) -> None:
    out = np.zeros(64, np.int32)
    sim.run(
        f"""
  %t = simt.tid
  %v = simt.shuffle {mode} %t, {amount}
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %v to %r
  simt.store %r to %o[%t] width 1
""",
        "%o : !simt.global<i32>",
        [out],
        threads=64,
    )
    t = np.arange(64)
    np.testing.assert_array_equal(out, t - t % 32 + source(t % 32))


@pytest.mark.parametrize(
    ("element", "dtype", "values"),
    [
        ("f16", np.float16, [1.5, -2.0, 65504.0, 0.1]),
        ("bf16", ml_dtypes.bfloat16, [1.5, -2.0, 3.0e38, 0.1]),
        ("f32", np.float32, [1.5, -2.0, 3.0e38, 0.1]),
        ("i32", np.int32, [1, -2, 2**31 - 1, 7]),
        ("i64", np.int64, [1, -2, 2**62, 7]),
        ("i1", np.bool_, [True, False, True, True]),
    ],
)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_elements_of_every_type_pass_through_shared_memory_unchanged(
    sim: Any, element: str, dtype: Any, values: list[Any], width: int
) -> None:
    x = np.tile(np.array(values, dtype), 32)
    y = np.zeros_like(x)
    body = f"""
  %t = simt.tid
  %w = arith.constant {width} : i32
  %c0 = arith.constant 0 : i32
  %i = arith.muli %t, %w : i32
  %s = simt.shared at 512 : !simt.smem<[{32 * width}], {element}>
  %r = simt.regs.alloc : !simt.regs<[4], {element}>
  simt.load %x[%i] into %r[%c0] width {width}
  simt.store %r[%c0] to %s[%i] width {width}
  simt.load %s[%i] into %r[%c0] width {width}
  simt.store %r[%c0] to %y[%i] width {width}
"""
    arguments = f"%x : !simt.global<{element}>, %y : !simt.global<{element}>"
    report = sim.run(body, arguments, [x, y], smem=2048)
    assert not report.diagnostics
    np.testing.assert_array_equal(y[: 32 * width], x[: 32 * width])
    assert not y[32 * width :].astype(bool).any()


def test_element_zero_may_sit_inside_the_allocation(sim: Any) -> None:
    data = np.arange(96, dtype=F32)
    body = """
  %t = simt.tid
  %z = arith.constant 0 : i32
  %i = arith.subi %z, %t : i32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%i] into %r width 1
  simt.store %r to %y[%t] width 1
"""
    y = np.zeros(32, F32)
    arguments = "%x : !simt.global<f32>, %y : !simt.global<f32>"
    assert not sim.run(body, arguments, [Buffer(data, offset=40), Buffer(y)]).diagnostics
    np.testing.assert_array_equal(y, 40 - np.arange(32))


def test_integer_arithmetic_wraps_like_the_hardware(sim: Any) -> None:
    out = np.zeros(32, np.int32)
    report = sim.run(
        """
  %t = simt.tid
  %big = arith.constant 2147483647 : i32
  %v = arith.addi %t, %big : i32
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %v to %r
  simt.store %r to %o[%t] width 1
""",
        "%o : !simt.global<i32>",
        [out],
    )
    # Data may wrap: only addresses may not.
    assert not report.diagnostics
    np.testing.assert_array_equal(out, (np.arange(32) + 2**31 - 1).astype(np.int64).astype(np.uint32).view(np.int32))


def test_below_level_check_an_access_outside_its_buffer_is_an_error_at_the_op(sim: Any) -> None:
    body = """
  %t = simt.tid
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%t] into %r width 1
"""
    for level in ("fast", "count"):
        with pytest.raises(TilewrightError, match=r"k\.mlir:4:3: error: simt\.load out of bounds: element 31 "):
            sim.run(body, "%x : !simt.global<f32>", [np.zeros(31, F32)], level=level)


def test_arguments_that_do_not_fit_are_refused(sim: Any) -> None:
    arguments = "%x : !simt.global<f32>, %n : i32"
    for buffers, scalars, message in [
        ([], [1], "expected 1 buffers, got 0"),
        ([np.zeros(4, np.float64)], [1], "expected elements of dtype float32, got float64"),
        ([np.zeros(4, F32)], [2**31], "expected scalar 0 to fit in 32 bits"),
        ([Buffer(np.zeros(4, F32), offset=2, high=3)], [1], "within the array's 4 elements"),
    ]:
        with pytest.raises(TilewrightError, match=message):
            sim.run("", arguments, buffers, scalars)


def test_empty_grid_and_empty_buffer(sim: Any) -> None:
    body = """
  %t = simt.tid
  %in = arith.cmpi slt, %t, %n : i32
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %x[%t] into %r width 1 if %in else 1.0 : f32
  simt.store %r to %x[%t] width 1 if %in
"""
    arguments = "%x : !simt.global<f32>, %n : i32"
    for grid in (0, 1):
        assert not sim.run(body, arguments, [np.zeros(0, F32)], [0], grid=grid).diagnostics


def test_registers_are_swapped_through_values(sim: Any) -> None:
    y = np.zeros(64, F32)
    sim.run(
        """
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %r = simt.regs.alloc : !simt.regs<[2], f32>
  simt.regs.store %one to %r[%c0]
  simt.regs.store %two to %r[%c1]
  %a = simt.regs.load %r[%c0]
  %b = simt.regs.load %r[%c1]
  simt.regs.store %b to %r[%c0]
  simt.regs.store %a to %r[%c1]
  simt.store %r[%c0] to %y[%t] width 1
  %t32 = arith.addi %t, %c32 : i32
  simt.store %r[%c1] to %y[%t32] width 1
""",
        "%y : !simt.global<f32>",
        [y],
    )
    np.testing.assert_array_equal(y, [2] * 32 + [1] * 32)


def test_a_branch_in_a_branch_is_taken_where_both_conditions_hold(sim: Any) -> None:
    y = np.zeros(32, np.int32)
    sim.run(
        """
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %low = arith.cmpi slt, %t, %c16 : i32
  %parity = arith.andi %t, %c1 : i32
  %even = arith.cmpi eq, %parity, %c0 : i32
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %c0 to %r
  scf.if %low {
    scf.if %even {
      simt.regs.store %c16 to %r
    } else {
      simt.regs.store %c1 to %r
    }
  }
  simt.store %r to %y[%t] width 1
""",
        "%y : !simt.global<i32>",
        [y],
    )
    t = np.arange(32)
    np.testing.assert_array_equal(y, np.where(t >= 16, 0, np.where(t % 2 == 0, 16, 1)))
