"""Roles with their own threads, elected threads, named barriers; and what a deadlock report says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

I32 = np.int32

WHO = """
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = simt.regs.alloc : !simt.regs<[], i32>
  %tid = simt.tid
  %early = arith.muli %tid, %c2 : i32
  simt.roles {
  role left warpgroups [0, 1] {
    simt.regs.store %early to %r[]
    simt.store %r to %y[%tid] width 1
  }
  role right warpgroups [1, 3] {
    %t = simt.tid
    %d = simt.shuffle xor %t, 1
    simt.regs.store %d to %r[]
    simt.store %r to %y[%t] width 1
    simt.elect SCOPE {
      %grid = simt.grid_dim
      %big = arith.constant 1000 : i32
      %v = arith.addi %grid, %big : i32
      simt.regs.store %v to %r[]
      simt.store %r to %y[%t] width 1
    }
  }
  }
"""


def test_each_role_runs_its_threads(sim: Any) -> None:
    for scope, threads in {
        "warp": range(128, 384, 32), "warpgroup": (128, 256), "role": (128,), "block": (),
    }.items():  # fmt: skip
        y = np.zeros(384, I32)
        report = sim.run(WHO.replace("SCOPE", scope), "%y : !simt.global<i32>", [y], threads=384, grid=1)
        assert not report.diagnostics, [str(d) for d in report.diagnostics]
        t = np.arange(384)
        expected = np.where(t < 128, 2 * t, t ^ 1)
        expected[list(threads)] = 1001
        assert np.array_equal(y, expected)


EXCHANGE = """
  %s = simt.shared at 0 : !simt.smem<[256], i32>
  %r = simt.regs.alloc : !simt.regs<[], i32>
  %c255 = arith.constant 255 : i32
  %tid = simt.tid
  %back = arith.subi %c255, %tid : i32
  simt.roles {
  role left warpgroups [0, 1] {
    simt.regs.store %tid to %r[]
    simt.store %r to %s[%tid] width 1
    BARRIER
    simt.load %s[%back] into %r width 1
    simt.store %r to %y[%tid] width 1
  }
  role right warpgroups [1, 2] {
    simt.regs.store %tid to %r[]
    simt.store %r to %s[%tid] width 1
    simt.named_barrier 3 threads 256
    simt.load %s[%back] into %r width 1
    simt.store %r to %y[%tid] width 1
  }
  }
"""


def exchange(sim: Any, barrier: str) -> tuple[Any, Any]:
    y = np.zeros(256, I32)
    body = EXCHANGE.replace("BARRIER", barrier)
    return y, sim.run(body, "%y : !simt.global<i32>", [y], threads=256, smem=1024)


def test_roles_meet_at_a_named_barrier(sim: Any) -> None:
    y, report = exchange(sim, "simt.named_barrier 3 threads 256")
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    assert np.array_equal(y, 255 - np.arange(256))


def test_a_named_barrier_that_nobody_else_comes_to(sim: Any) -> None:
    _, report = exchange(sim, "")
    deadlock = str(report.of_kind("deadlock")[0])
    assert "simt.named_barrier" in deadlock
    assert "role right of 1 left waits for named barrier 3, at which 128 of 256 threads are" in deadlock
    assert "read of what" not in deadlock
    _, report = exchange(sim, "simt.named_barrier 2 threads 128")
    assert "deadlock" in {d.kind for d in report.diagnostics}


def test_a_named_barrier_takes_the_same_number_of_threads_from_all(sim: Any) -> None:
    _, report = exchange(sim, "simt.named_barrier 3 threads 192")
    (fault,) = report.of_kind("named-barrier")
    assert "of 192 threads for some and of 256 for others" in fault.message
    body = EXCHANGE.replace("BARRIER", "simt.named_barrier 3 threads 192").replace("threads 256", "threads 192")
    report = sim.run(body, "%y : !simt.global<i32>", [np.zeros(256, I32)], threads=256, smem=1024)
    assert "more threads come to a named barrier than its 192" in report.of_kind("named-barrier")[0].message


def test_a_race_between_roles_names_the_warp(sim: Any) -> None:
    y = np.zeros(256, I32)
    body = EXCHANGE.replace("BARRIER", "").replace("simt.named_barrier 3 threads 256", "")
    report = sim.run(body, "%y : !simt.global<i32>", [y], threads=256, smem=1024)
    (race,) = [d for d in report.of_kind("race") if d.site.op_name == "simt.load"]
    assert "read of what warp 3 writes, with nothing to order the two" in race.message


def test_a_deadlock_at_an_mbarrier_says_what_is_missing(sim: Any) -> None:
    body = """
  %full = simt.mbar at 0 : !simt.mbar<2>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  simt.elect block {
    simt.mbar.init %full arrivals 4
    simt.fence mbarrier_init
  }
  simt.barrier
  simt.elect warp {
    simt.mbar.arrive %full[%c1]
  }
  simt.elect block {
    simt.mbar.expect %full[%c1] bytes 48
  }
  simt.mbar.wait %full[%c1] parity %c0
"""
    report = sim.run(body, threads=64, smem=16)
    (deadlock,) = report.of_kind("deadlock")
    assert deadlock.site.location is not None
    assert deadlock.site.location.line == 16
    assert (
        "waits for phase 0 (parity 0) of %full[1] in block 0 of the batch: 1 of 4 arrivals and 48 bytes are missing"
        in deadlock.message
    )


COPY = """
  %s = simt.shared at 0 : !simt.smem<[256], f32SWIZZLE>
  %full = simt.mbar at 1024 : !simt.mbar<1>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  %tid = simt.tid
  simt.elect block {
    simt.mbar.init %full arrivals 4
    simt.fence mbarrier_init
  }
  simt.barrier
  simt.roles {
  role producer warpgroups [0, 1] {
    simt.unroll %i < 2 {
      %o = arith.muli %i, %c128 : i32
      %at = arith.addi %o, %tid : i32
      simt.cp_async %x[%at] to %s[%at] width 1
    }
    simt.cp_async_commit
    WAIT
    simt.elect warp {
      simt.mbar.arrive %full[%c0]
    }
    LAST
  }
  role consumer warpgroups [1, 2] {
    simt.mbar.wait %full[%c0] parity %c0
    %r = simt.regs.alloc : !simt.regs<[4], f32>
    %t = arith.subi %tid, %c128 : i32
    %row = arith.muli %t, %c4 : i32
    %there = arith.cmpi slt, %t, %c32 : i32
    scf.if %there {
      simt.ldmatrix x4 %s[%row] into %r[%c0]
      simt.store %r[%c0] to %y[%row] width 4
    }
  }
  }
"""


@pytest.mark.parametrize("landing", ["latest", "earliest"])
@pytest.mark.parametrize("swizzle", ["", ", swizzle 64"])
def test_copies_of_threads_between_roles(sim: Any, landing: Any, swizzle: str) -> None:
    x = np.arange(256, dtype=np.float32)

    def run(wait: str, last: str = "") -> tuple[Any, Any]:
        body = COPY.replace("WAIT", wait).replace("LAST", last).replace("SWIZZLE", swizzle)
        body = body.replace("%c128 =", "%c32 = arith.constant 32 : i32\n  %c128 =")
        y = np.zeros(128, np.float32)
        arguments = "%x : !simt.global<f32>, %y : !simt.global<f32>"
        return y, sim.run(body, arguments, [x, y], threads=256, smem=1040, landing=landing)

    y, report = run("simt.cp_async_wait pending 0")
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    # Matrix m, row r is elements 32 m + 4 r ..; lane l has element l mod 4 of row l / 4 of each.
    lane, matrix = np.indices((32, 4))
    assert np.array_equal(y.reshape(32, 4), 32 * matrix + 4 * (lane // 4) + lane % 4)
    _, report = run("", "simt.cp_async_wait pending 0")
    assert {d.site.op_name for d in report.of_kind("race")} >= {"simt.ldmatrix"}
    _, report = run("")
    assert "an asynchronous copy of warp 0, which was not waited for" in report.of_kind("race")[0].message
    assert {d.site.op_name for d in report.of_kind("unfinished-copy")} == {"simt.cp_async"}
