"""Unrolled loops as array axes: which loops qualify, and that the results are those of running them in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.dialects.simt.structure import UnrollOp
from tilewright.runtime.sim.vectorise import is_parallel

F32 = np.float32


def outer_loop(sim: Any, body: str, aliased: bool = False) -> bool:
    """Whether the first loop of a kernel is parallel."""
    kernel = sim.kernel(body, "%x : !simt.global<f32>, %y : !simt.global<f32>", 32, 1024)
    loop = next(op for op in kernel.walk() if isinstance(op, UnrollOp))
    return is_parallel(loop, aliased)


HEAD = """
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %z = arith.constant 1.0 : f32
  %a = simt.regs.alloc : !simt.regs<[8], f32>
  %b = simt.regs.alloc : !simt.regs<[8, 8], f32>
  %s = simt.shared at 0 : !simt.smem<[64], f32>
  %u = simt.shared at 256 : !simt.smem<[64], f32>
  %w = simt.shared at 128 : !simt.smem<[64], f32>
"""


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        # Each iteration has its own register.
        ("simt.unroll %i < 8 { %v = simt.regs.load %a[%i] simt.regs.store %v to %a[%i] }", True),
        # All iterations add into one register.
        ("simt.unroll %i < 8 { %v = simt.regs.load %a[%c0] simt.regs.store %v to %a[%c0] }", False),
        # Each reads what the one before wrote.
        (
            "simt.unroll %i < 7 { %v = simt.regs.load %a[%i] %j = arith.addi %i, %c1 : i32"
            " simt.regs.store %v to %a[%j] }",
            False,
        ),
        # Two iterations share a register: i / 2.
        ("simt.unroll %i < 8 { %j = arith.divsi %i, %c2 : i32 simt.regs.store %z to %a[%j] }", False),
        # The other half of the array is read.
        (
            "simt.unroll %i < 4 { %c4 = arith.constant 4 : i32 %j = arith.addi %i, %c4 : i32"
            " %v = simt.regs.load %a[%j] simt.regs.store %v to %a[%i] }",
            True,
        ),
        # The inner loop is along a row of its own.
        ("simt.unroll %i < 8 { simt.unroll %j < 8 { simt.regs.store %z to %b[%i, %j] } }", True),
        ("simt.unroll %i < 8 { simt.unroll %j < 8 { simt.regs.store %z to %b[%j, %j] } }", False),
        # A scratch register outside the loop is shared, inside it is private.
        ("simt.unroll %i < 8 { simt.load %x[%i] into %a[%c0] width 1 }", False),
        (
            "simt.unroll %i < 8 { %p = simt.regs.alloc : !simt.regs<[1], f32> simt.load %x[%i] into %p[%c0] width 1 }",
            True,
        ),
        # A vector access overlaps its neighbour's registers.
        ("simt.unroll %i < 7 { simt.load %x[%c0] into %a[%i] width 2 }", False),
        # Memory: two accesses to what is stored to.
        ("simt.unroll %i < 8 { simt.store %a[%i] to %s[%t] width 1 }", True),
        ("simt.unroll %i < 8 { simt.store %a[%i] to %s[%t] width 1 simt.store %a[%i] to %s[%i] width 1 }", False),
        ("simt.unroll %i < 8 { simt.load %s[%t] into %a[%i] width 1 simt.store %a[%i] to %s[%i] width 1 }", False),
        ("simt.unroll %i < 8 { simt.load %s[%t] into %a[%i] width 1 simt.store %a[%i] to %u[%i] width 1 }", True),
        ("simt.unroll %i < 8 { simt.load %s[%t] into %a[%i] width 1 simt.store %a[%i] to %w[%i] width 1 }", False),
        ("simt.unroll %i < 8 { simt.load %x[%t] into %a[%i] width 1 simt.store %a[%i] to %y[%i] width 1 }", True),
        ("simt.unroll %i < 8 { simt.barrier }", False),
    ],
)
def test_which_loops_are_parallel(sim: Any, loop: str, expected: bool) -> None:
    assert (
        outer_loop(sim, HEAD + loop.replace("}", "\n}").replace("{", "{\n").replace(" simt.", "\n simt.")) is expected
    )


def test_pointers_that_may_alias_keep_a_loop_sequential(sim: Any) -> None:
    loop = HEAD + "simt.unroll %i < 8 { simt.load %x[%t] into %a[%i] width 1\n simt.store %a[%i] to %y[%i] width 1\n }"
    assert outer_loop(sim, loop, aliased=False)
    assert not outer_loop(sim, loop, aliased=True)


@pytest.mark.parametrize("inputs", ["same", "apart"])
def test_a_loop_over_one_buffer_under_two_names(sim: Any, inputs: str) -> None:
    # y[64 + t + 32 * i] = x[t + 32 * i] for i = 0, 1, ... in turn: with one buffer, the first 64 elements repeat.
    body = """
  %t = simt.tid
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %r = simt.regs.alloc : !simt.regs<[4], f32>
  simt.unroll %i < 4 {
    %o = arith.muli %i, %c32 : i32
    %at = arith.addi %t, %o : i32
    %to = arith.addi %at, %c64 : i32
    simt.load %x[%at] into %r[%i] width 1
    simt.store %r[%i] to %y[%to] width 1
  }
"""
    x = np.arange(192, dtype=F32)
    y = x if inputs == "same" else np.zeros(192, F32)
    before = x.copy()
    sim.run(body, "%x : !simt.global<f32>, %y : !simt.global<f32>", [x, y], level="fast")
    expected = np.tile(before[:64], 2) if inputs == "same" else before[:128]
    np.testing.assert_array_equal(y[64:], expected)


@pytest.mark.parametrize("vectorise", [True, False])
def test_the_last_of_several_stores_to_an_element_stays(sim: Any, vectorise: bool) -> None:
    # Element 0 is written by (0, 0) and (1, 1), element 1 by (0, 1) and then (1, 0).
    body = """
  %t = simt.tid
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %r = simt.regs.alloc : !simt.regs<[2, 2], i32>
  simt.unroll %i < 2 {
    simt.unroll %j < 2 {
      %i2 = arith.muli %i, %c2 : i32
      %n = arith.addi %i2, %j : i32
      simt.regs.store %n to %r[%i, %j]
    }
  }
  simt.unroll %i < 2 {
    simt.unroll %j < 2 {
      %k = arith.xori %i, %j : i32
      %k32 = arith.muli %k, %c32 : i32
      %at = arith.addi %k32, %t : i32
      simt.store %r[%i, %j] to %y[%at] width 1
    }
  }
"""
    y = np.zeros(64, np.int32)
    sim.run(body, "%y : !simt.global<i32>", [y], vectorise=vectorise)
    np.testing.assert_array_equal(y, [3] * 32 + [2] * 32)


INDICES = ["%i", "%j", "%c0", "%c1", "%ij", "%half", "%next"]


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """The inside of two nested loops (4 x 4) over registers r[8, 8], q[8] and shared memory, with random indices."""
    index = st.sampled_from(INDICES)
    lines: list[str] = []
    values = ["%z", "%tf"]
    for n in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["load", "load", "store", "store", "memload", "memstore", "fma", "shuffle"]))
        array, rank = draw(st.sampled_from([("r", 2), ("q", 1)]))
        at = ", ".join(draw(index) for _ in range(rank))
        address = draw(st.sampled_from(["%t", "%ti", "%tj", "%tij"]))
        memory = draw(st.sampled_from(["s", "g"]))
        if kind == "load":
            lines.append(f"%v{n} = simt.regs.load %{array}[{at}]")
            values.append(f"%v{n}")
        elif kind == "store":
            lines.append(f"simt.regs.store {draw(st.sampled_from(values))} to %{array}[{at}]")
        elif kind == "memload":
            lines.append(f"simt.load %{memory}[{address}] into %{array}[{at}] width 1 if %even else 7.0 : f32")
        elif kind == "memstore":
            lines.append(f"simt.store %{array}[{at}] to %{memory}[{address}] width 1")
        else:
            x, y, w = (draw(st.sampled_from(values)) for _ in range(3))
            op = f"math.fma {x}, {y}, {w} : f32" if kind == "fma" else f"simt.shuffle down {x}, 3"
            lines.append(f"%v{n} = {op}")
            values.append(f"%v{n}")
    return "\n".join(lines)


@given(inner=bodies(), outer=bodies())
def test_results_are_those_of_running_iterations_in_turn(sim: Any, inner: str, outer: str) -> None:
    text = f"""
  %t = simt.tid
  %b = simt.block_id x
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %z = arith.constant 0.5 : f32
  %tf0 = arith.sitofp %t : i32 to f32
  %bf = arith.sitofp %b : i32 to f32
  %tf = arith.addf %tf0, %bf : f32
  %parity = arith.remsi %t, %c2 : i32
  %even = arith.cmpi eq, %parity, %c0 : i32
  %s = simt.shared at 0 : !simt.smem<[64], f32>
  %r = simt.regs.alloc : !simt.regs<[8, 8], f32>
  %q = simt.regs.alloc : !simt.regs<[8], f32>
  simt.unroll %i < 8 {{
    simt.regs.store %tf to %q[%i]
    simt.unroll %j < 8 {{
      simt.regs.store %tf0 to %r[%i, %j]
    }}
  }}
  simt.store %q[%c0] to %s[%t] width 1
  %t32 = arith.addi %t, %c64 : i32
  simt.unroll %i < 4 {{
    %next = arith.addi %i, %c1 : i32
    %half = arith.divsi %i, %c2 : i32
    %ij = arith.muli %i, %c2 : i32
    %ti = arith.addi %t, %i : i32
    %tj = arith.addi %ti, %c1 : i32
    %tij = arith.muli %i, %c2 : i32
    %j = arith.constant 2 : i32
    {outer}
  }}
  simt.unroll %i < 4 {{
    simt.unroll %j < 4 {{
      %next = arith.addi %j, %c1 : i32
      %half = arith.divsi %j, %c2 : i32
      %ij = arith.addi %i, %j : i32
      %ti = arith.addi %t, %i : i32
      %tj = arith.addi %t, %j : i32
      %tij = arith.addi %ti, %j : i32
      {inner}
    }}
  }}
  %c96 = arith.constant 96 : i32
  %block = arith.muli %b, %c64 : i32
  %base = arith.addi %block, %t : i32
  simt.unroll %i < 8 {{
    simt.unroll %j < 8 {{
      %e0 = arith.muli %i, %c64 : i32
      %e1 = arith.muli %e0, %c96 : i32
      %e2 = arith.muli %j, %c96 : i32
      %e3 = arith.addi %e1, %e2 : i32
      %e = arith.addi %e3, %base : i32
      simt.store %r[%i, %j] to %o[%e] width 1
    }}
  }}
"""
    found: list[np.ndarray[Any, Any]] = []
    for vectorise in (False, True):
        memory = [np.arange(64, dtype=F32), np.zeros(64 * 96 * 9, F32)]
        arguments = "%g : !simt.global<f32>, %o : !simt.global<f32>"
        sim.run(text, arguments, memory, smem=256, grid=2, level="fast", vectorise=vectorise)
        found.append(np.concatenate(memory))
    np.testing.assert_array_equal(found[1], found[0])
