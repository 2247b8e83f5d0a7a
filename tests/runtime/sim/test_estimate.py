"""The estimate follows the ops that a launch executes; its scale is a matter of the machine and is not tested."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.runtime.sim.estimate import estimate_seconds

LOOP = """
  %t = simt.tid
  %z = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %r = simt.regs.alloc : !simt.regs<[8], f32>
  %f = arith.sitofp %t : i32 to f32
  %half = arith.divsi %n, %two : i32
  scf.for %k = %z to %half step %two : i32 {
    simt.unroll %i < 8 {
      BODY
      simt.regs.store %v to %r[%i]
    }
  }
"""


def seconds(sim: Any, n: int, grid: int = 1000, body: str = "%v = arith.addf %f, %f : f32", **options: Any) -> float:
    kernel = sim.kernel(LOOP.replace("BODY", body), "%n : i32", 256, 0, "params [N]")
    return estimate_seconds(kernel, grid, [n], **options)


def test_grows_with_trip_count_and_grid(sim: Any) -> None:
    setup = seconds(sim, 0)
    one, hundred = seconds(sim, 4), seconds(sim, 400)
    assert hundred - setup == pytest.approx(100 * (one - setup))
    assert seconds(sim, 400, 4000, batch=100) == pytest.approx(4 * seconds(sim, 400, 1000, batch=100))
    assert seconds(sim, 400, 0) == 0


def test_smaller_batches_and_dearer_ops_cost_more(sim: Any) -> None:
    assert seconds(sim, 400, batch=1) > seconds(sim, 400, batch=100) > seconds(sim, 400, batch=1000)
    assert seconds(sim, 400, body="%v = math.erf %f : f32") > 10 * seconds(sim, 400)


def test_levels_cost_more_in_turn(sim: Any) -> None:
    kernel = sim.kernel(
        "%t = simt.tid\n%r = simt.regs.alloc : !simt.regs<[], f32>\nsimt.load %x[%t] into %r width 1",
        "%x : !simt.global<f32>",
    )
    fast, count, check = (estimate_seconds(kernel, 10, [], level=level) for level in ("fast", "count", "check"))
    assert fast < count < check
