"""Unaligned loads and stores: every start, window and element size, in the simulator and from the emitted source."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.support import assert_same_bits, built
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.cpu_unit import CpuKernel
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.sim.report import Report

pytestmark = pytest.mark.cxx

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "i8": np.int8,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "i64": np.int64,
}
WIDTHS = [("i8", 4), ("i8", 8), ("i8", 16), ("bf16", 2), ("bf16", 4), ("bf16", 8), ("f16", 8), ("f32", 4), ("i64", 2)]
COUNT = 64
"""Elements of an array, of which the threads read from the first 32 on."""
OTHER = 77


def text(element: str, width: int) -> str:
    """Each thread t reads `width` elements from t on, in the window [low, high), and stores them side by side."""
    other = f"{OTHER}.0" if "f" in element else OTHER
    return f"""
simt.kernel @k_{element}_{width}(%x: !simt.global<{element}>, %y: !simt.global<{element}>, %low: i32, %high: i32)
    threads 32 smem 0 grid [1] params [1, 1] {{
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %w = arith.constant {width} : i32
  %r = simt.regs.alloc : !simt.regs<[{width}], {element}>
  %before = arith.subi %t, %low : i32
  %after = arith.subi %high, %t : i32
  simt.load %x[%t] into %r[%c0] width {width} unaligned %before, %after else {other} : {element}
  %i = arith.muli %t, %w : i32
  simt.store %r[%c0] to %y[%i] width {width}
}}
"""


ROWS = """
simt.kernel @rows(%x: !simt.global<bf16>, %y: !simt.global<bf16>, %pitch: i32, %columns: i32)
    threads 32 smem 512 grid [1] params [1, 1] {
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %s = simt.shared at 0 : !simt.smem<[4, 64], bf16, swizzle 128>
  %r = simt.regs.alloc : !simt.regs<[8], bf16>
  %own = arith.muli %t, %c8 : i32
  simt.load %x[%own] into %r[%c0] width 8
  simt.store %r[%c0] to %s[%own] width 8
  simt.barrier
  %row = arith.divui %t, %c8 : i32
  %number = arith.remui %t, %c8 : i32
  %from = arith.muli %row, %c64 : i32
  %to = arith.muli %row, %pitch : i32
  %skip = simt.misaligned %y[%to] width 8
  %place = arith.muli %number, %c8 : i32
  %first = arith.subi %place, %skip : i32
  %left = arith.subi %columns, %first : i32
  %rest = arith.subi %c64, %first : i32
  %i = arith.addi %from, %first : i32
  %j = arith.addi %to, %first : i32
  %w = simt.regs.alloc : !simt.regs<[8], bf16>
  simt.load %s[%i] into %w[%c0] width 8 unaligned %first, %rest else 9.0 : bf16
  simt.store %w[%c0] to %y[%j] width 8 unaligned %first, %left
  %last = arith.subi %c64, %skip : i32
  %k = arith.addi %last, %number : i32
  %i2 = arith.addi %from, %k : i32
  %j2 = arith.addi %to, %k : i32
  %ragged = arith.cmpi slt, %number, %skip : i32
  %inside = arith.cmpi slt, %k, %columns : i32
  %both = arith.andi %ragged, %inside : i1
  %e = simt.regs.alloc : !simt.regs<[1], bf16>
  simt.load %s[%i2] into %e[%c0] width 1 if %both else 0.0 : bf16
  simt.store %e[%c0] to %y[%j2] width 1 if %both
}
"""
"""Four rows of 64 elements through swizzled shared memory to rows that begin anywhere."""


@cache
def kernels() -> dict[tuple[str, int], tuple[KernelOp, CpuKernel]]:
    module = parse_module("".join([*(text(*key) for key in WIDTHS), ROWS]), "k.mlir", make_context())
    module.verify()
    ops = [op for op in module.ops if isinstance(op, KernelOp)]
    return dict(zip([*WIDTHS, ("rows", 8)], zip(ops, built(ops), strict=True), strict=True))


def memory(element: str, offset: int) -> tuple[Array, Array]:
    """An array of random bits at an address `offset` elements past a multiple of 16 bytes, and what it lies in."""
    dtype = np.dtype(DTYPES[element])
    around = np.random.default_rng(7).integers(0, 256, (COUNT + 64) * dtype.itemsize, np.uint8)
    skip = -around.ctypes.data % 16 + offset * dtype.itemsize
    inside = around[skip : skip + COUNT * dtype.itemsize].view(dtype)
    if "f" in element:
        inside[:] = np.random.default_rng(7).integers(-100, 100, COUNT).astype(dtype)
    return inside, around


def simulated(kernel: KernelOp, x: Array, y: Array, low: int, high: int, address: int, level: Any = "check") -> Report:
    buffers = [Buffer(x, address=address), Buffer(y)]
    return compile_kernel(kernel, level, aliased=False).run(buffers, [low, high], grid=1)


def expected(x: Array, width: int, low: int, high: int) -> Array:
    places = np.arange(32)[:, None] + np.arange(width)
    inside = (low <= places) & (places < high)
    return np.where(inside, x[np.clip(places, 0, COUNT - 1)], np.asarray(OTHER).astype(x.dtype)).reshape(-1)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(WIDTHS), st.integers(0, 15), st.integers(0, 40), st.integers(0, COUNT))
@example(("bf16", 8), 1, 0, COUNT)  # words in front of the first element and behind the last
@example(("bf16", 8), 3, 0, 33)
@example(("bf16", 8), 0, 0, 8)  # one word, aligned
@example(("i8", 16), 7, 31, 0)  # an empty window
def test_elements_are_those_of_the_window(key: tuple[str, int], offset: int, low: int, high: int) -> None:
    element, width = key
    kernel, on_cpu = kernels()[key]
    x, _around = memory(element, offset)
    wanted = expected(x, width, low, high)
    first, second = (np.zeros(32 * width, x.dtype) for _ in range(2))
    report = simulated(kernel, x, first, low, high, offset * x.itemsize)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    assert_same_bits(first, wanted, "sim")
    on_cpu.launch([x.ctypes.data, second.ctypes.data], [low, high], 1)
    assert_same_bits(second, wanted, "cpu")


def counts(offset: int) -> tuple[int, int]:
    kernel, _ = kernels()["bf16", 8]
    x, y = memory("bf16", offset)[0], np.zeros(32 * 8, DTYPES["bf16"])
    report = simulated(kernel, x, y, 0, COUNT, 4096 + 2 * offset, "count")
    (found,) = [c for site, c in report.counts.items() if site.op_name == "simt.load"]
    return found.requests, found.sectors


def test_words_are_counted() -> None:
    # Threads 0 to 31 start in words 0 to 3; of these two sectors, then three, where a lane starts in the last.
    requests, sectors = counts(0)
    assert (requests, sectors) == (2, 2 + 3)
    # One element on, thread 0 would read what lies before the array: 8 single elements, half a sector.
    requests, sectors = counts(1)
    assert requests == 2 + 8
    assert sectors <= 2 + 3 + 8 * 2


@pytest.mark.parametrize(
    ("offset", "low", "high", "kinds"),
    [
        (1, 0, 24, []),
        (1, -1, 24, ["out-of-bounds"]),  # the word that thread 0 starts in begins before the array
        (0, 0, 25, ["out-of-bounds"]),  # the array ends at 24
    ],
)
def test_a_window_larger_than_the_buffer_is_out_of_bounds(offset: int, low: int, high: int, kinds: list[str]) -> None:
    kernel, _ = kernels()["bf16", 8]
    x, y = memory("bf16", offset)[0][:24], np.zeros(32 * 8, DTYPES["bf16"])
    report = simulated(kernel, x, y, low, high, 2 * offset)
    assert sorted({d.kind for d in report.diagnostics}) == kinds, [str(d) for d in report.diagnostics]


def test_a_window_from_arithmetic_that_wraps_is_reported() -> None:
    kernel, _ = kernels()["bf16", 8]
    x, y = memory("bf16", 0)[0], np.zeros(32 * 8, DTYPES["bf16"])
    report = simulated(kernel, x, y, -(2**31), COUNT, 0)
    assert "index-wrap" in {d.kind for d in report.diagnostics}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 7), st.integers(64, 81), st.integers(0, 64))
@example(1, 65, 64)
@example(0, 64, 64)
@example(5, 71, 3)
def test_rows_are_stored_from_any_element_on(offset: int, pitch: int, columns: int) -> None:
    kernel, on_cpu = kernels()["rows", 8]
    x = np.arange(1, 257).astype(DTYPES["bf16"])
    around = np.full(4 * 81 + 40, 5, x.dtype)
    start = -around.ctypes.data % 16 // 2 + offset
    size = 3 * pitch + columns
    wanted = around.copy()
    for row in range(4):
        at = start + row * pitch
        wanted[at : at + columns] = x[64 * row : 64 * row + columns]
    simulated_, ran = around.copy(), around.copy()
    buffers = [Buffer(x), Buffer(simulated_[start : start + size], address=2 * offset)]
    report = compile_kernel(kernel, "check", aliased=False).run(buffers, [pitch, columns], grid=1)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    assert_same_bits(simulated_, wanted, "sim")
    start = -ran.ctypes.data % 16 // 2 + offset
    on_cpu.launch([x.ctypes.data, ran.ctypes.data + 2 * start], [pitch, columns], 1)
    for row in range(4):
        at = start + row * pitch
        assert_same_bits(ran[at : at + columns], x[64 * row : 64 * row + columns], "cpu")
        ran[at : at + columns] = 5
    assert (ran == 5).all()


def test_whole_words_are_stored_at_once() -> None:
    kernel, _ = kernels()["rows", 8]
    x, y = np.ones(256, DTYPES["bf16"]), np.zeros(4 * 65, DTYPES["bf16"])
    report = compile_kernel(kernel, "count", aliased=False).run([Buffer(x), Buffer(y)], [65, 64], grid=1)
    stores = [c for site, c in report.counts.items() if site.op_name == "simt.store" and site.space == "global"]
    # One of 16 bytes a lane; rows 1 to 3 begin with 7, 6 and 5 elements of a word, one by one, and end with 1 to 3.
    assert [c.requests for c in stores] == [1 + 7, 1]


def test_a_store_past_the_buffer_is_out_of_bounds() -> None:
    kernel, _ = kernels()["rows", 8]
    x, y = np.ones(256, DTYPES["bf16"]), np.zeros(4 * 65 - 2, DTYPES["bf16"])
    report = compile_kernel(kernel, "check", aliased=False).run([Buffer(x), Buffer(y)], [65, 64], grid=1)
    assert {d.kind for d in report.diagnostics} == {"out-of-bounds"}
    assert not compile_kernel(kernel, "check", aliased=False).run([Buffer(x), Buffer(y)], [65, 63], grid=1).diagnostics


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_they_compile_without_spills(arch: str) -> None:
    for kernel, _ in kernels().values():
        (used,) = compile_cubin(emit_kernel(kernel, arch), arch).resources.values()
        assert (used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes) == (0, 0, 0), kernel.sym_name
