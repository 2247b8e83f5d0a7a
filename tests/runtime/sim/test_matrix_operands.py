"""Matrix instructions find operands by address, swizzle and byte offsets, as tensor maps left them; stmatrix."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.sim.report import Report

BYTES = {"bf16": 2, "f16": 2, "f32": 4}
DTYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


def operand(
    name: str, element: str, rows: int, depth: int, major: str, swizzle: int, offset: int
) -> tuple[str, str, int]:
    """(map argument's type and map, ops that load the whole operand, bytes): panels of `swizzle` bytes a row."""
    size = BYTES[element]
    span = swizzle // size
    lines, width, height = depth, rows, depth
    if major == "k":
        lines, width, height = rows, depth, rows
    panels = -(-width // span)
    loads = ""
    for p in range(panels):
        loads += f"""
        %{name}_i{p} = arith.constant {p * lines * span} : i32
        %{name}_c{p} = arith.constant {p * span} : i32
        simt.tma.load %t{name}[%c0, %{name}_c{p}] to %s{name}[%{name}_i{p}] signal %full[%c0]"""
    argument = f"!simt.tmap<[{lines}, {span}], {element}>"
    array = (
        f"%s{name} = simt.shared at {offset} : !simt.smem<[{panels}, {lines}, {span}], {element}, swizzle {swizzle}>"
    )
    return argument, array + "\nLOADS" + loads, panels * height * swizzle


LEFT = """
  %left = simt.regs.alloc : !simt.regs<[{steps}, 4], f32>
  %k = arith.constant {k} : i32
  simt.unroll %s < {steps} {{
    simt.unroll %half < 2 {{
      simt.unroll %lower < 2 {{
        %l0 = arith.muli %warp, %c16 : i32
        %l1 = arith.muli %lower, %c8 : i32
        %l2 = arith.addi %l0, %l1 : i32
        %l3 = arith.addi %l2, %down : i32
        %l4 = arith.muli %l3, %k : i32
        %k0 = arith.muli %s, %c8 : i32
        %k1 = arith.muli %half, %c4 : i32
        %k2 = arith.addi %k0, %k1 : i32
        %k3 = arith.addi %k2, %across : i32
        %from = arith.addi %l4, %k3 : i32
        %r0r = arith.muli %half, %c2 : i32
        %r1r = arith.addi %r0r, %lower : i32
        simt.load %a[%from] into %left[%s, %r1r] width 1
      }}
    }}
  }}
"""
"""The left operand in registers: of step %s row 16 w + g + 8 i, column 8 %s + t + 4 h at register 2 h + i."""


def product(
    a: np.ndarray[Any, Any],
    b: np.ndarray[Any, Any],
    element: str,
    majors: tuple[str, str],
    swizzles: tuple[int, int],
    landing: Any = "latest",
    *,
    registers: bool = False,
    turned: bool = False,
    lines: dict[str, str] | None = None,
) -> tuple[np.ndarray[Any, Any], Report]:
    """a (64, k) times b (k, n) on one warpgroup; accumulators are stored by what the dialect says of their places.

    With `registers` each thread loads its elements of a, by what the dialect says of these; `turned` accumulators lie
    in an array with the columns first; `lines` replaces lines of the kernel.
    """
    k, n = b.shape
    step = 32 // BYTES[element]
    left = a if majors[0] == "k" else a.T
    right = b.T if majors[1] == "k" else b
    type_a, text_a, bytes_a = operand("a", element, 64, k, majors[0], swizzles[0], 1024)
    second = 1024 + -(-bytes_a // 1024) * 1024
    type_b, text_b, bytes_b = operand("b", element, n, k, majors[1], swizzles[1], second)
    array_a, loads_a = text_a.split("\nLOADS")
    array_b, loads_b = text_b.split("\nLOADS")
    wgmmas = ""
    for s in range(k // step):
        starts, encodings = [], []
        for major, swizzle, rows in zip(majors, swizzles, (64, n), strict=True):
            span = swizzle // BYTES[element]
            if major == "k":
                each = span // step
                starts.append(s // each * rows * span + s % each * step)
                encodings.append(f"k lbo 16 sbo {8 * swizzle}")
            else:
                starts.append(s * step * span)
                encodings.append(f"mn lbo {k * swizzle} sbo {8 * swizzle}")
        wgmmas += f"""
  %pa{s} = arith.constant {starts[0]} : i32
  %pb{s} = arith.constant {starts[1]} : i32
  simt.wgmma m64n{n}k{step} %sa[%pa{s}] {encodings[0]}, %sb[%pb{s}] {encodings[1]} into %acc[%c0, %c0]"""
    if registers:
        wgmmas, each = "", swizzles[1] // 4 // step
        for s in range(k // step):
            wgmmas += f"""
  %pb{s} = arith.constant {s // each * n * each * step + s % each * step} : i32
  %s{s} = arith.constant {s} : i32
  simt.wgmma.regs m64n{n}k{step} %left[%s{s}, %c0], %sb[%pb{s}] k lbo 16 sbo {8 * swizzles[1]} into %acc[%c0, %c0]"""
            wgmmas += " turned" if turned else ""
    dims = ", ".join(
        f"#simt.tensor_map<{i}, dims [{x.shape[0]}, {x.shape[1]}], strides [{x.shape[1]}, 1], swizzle {swizzles[i]}>"
        for i, x in enumerate((left, right))
    )
    smem = second + bytes_b
    text = f"""
simt.kernel @k(%ta: {type_a}, %tb: {type_b}, %a: !simt.global<{element}>, %b: !simt.global<{element}>,
               %c: !simt.global<f32>) threads 128 smem {smem} grid [1] maps [{dims}] {{
  {array_a}
  {array_b}
  %full = simt.mbar at 0 : !simt.mbar<1>
  %c0 = arith.constant 0 : i32
  simt.elect block {{
    simt.mbar.init %full arrivals 1
    simt.fence mbarrier_init
  }}
  simt.barrier
  simt.elect block {{
    simt.mbar.expect %full[%c0] bytes {bytes_a + bytes_b}
    {loads_a}
    {loads_b}
  }}
  simt.mbar.wait %full[%c0] parity %c0
  %acc = simt.regs.alloc : !simt.regs<{[n // 4, 2] if turned else [2, n // 4]}, f32>
  %zero = arith.constant 0.0 : f32
  simt.unroll %i < 2 {{
    simt.unroll %j < {n // 4} {{
      simt.regs.store %zero to %acc[{"%j, %i" if turned else "%i, %j"}]
    }}
  }}
  %tid = simt.tid
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %n = arith.constant {n} : i32
  %warp = arith.divui %tid, %c32 : i32
  %lane = arith.remui %tid, %c32 : i32
  %down = arith.divui %lane, %c4 : i32
  %across = arith.remui %lane, %c4 : i32
  {LEFT.format(k=k, steps=k // step) if registers else ""}
  simt.wgmma.fence{wgmmas}
  simt.wgmma.commit
  simt.wgmma.wait 0 of %acc{", %left" if registers else ""}
  simt.unroll %i < 2 {{
    simt.unroll %j < {n // 8} {{
      simt.unroll %e < 2 {{
        %r0 = arith.muli %warp, %c16 : i32
        %r1 = arith.muli %i, %c8 : i32
        %r2 = arith.addi %r0, %r1 : i32
        %row = arith.addi %r2, %down : i32
        %q0 = arith.muli %j, %c8 : i32
        %q1 = arith.muli %across, %c2 : i32
        %q2 = arith.addi %q0, %q1 : i32
        %column = arith.addi %q2, %e : i32
        %at0 = arith.muli %row, %n : i32
        %at = arith.addi %at0, %column : i32
        %g0 = arith.muli %j, %c2 : i32
        %g = arith.addi %g0, %e : i32
        simt.store %acc[{"%g, %i" if turned else "%i, %g"}] to %c[%at] width 1
      }}
    }}
  }}
}}
"""
    for old, new in (lines or {}).items():
        assert old in text
        text = text.replace(old, new)
    module = parse_module(text, "k.mlir", make_context())
    module.verify()
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    c = np.full((64, n), np.nan, np.float32)
    memory = [Buffer(np.ascontiguousarray(x).reshape(-1)) for x in (left, right)]
    sizes = [s for x in (left, right) for s in (*x.shape, x.shape[1], 1)]
    report = compile_kernel(kernel, "check", aliased=False).run(
        [*memory, Buffer(c.reshape(-1))], [], grid=1, map_sizes=sizes, landing=landing
    )
    return c, report


LAYOUTS = [
    # element, k, n, majors, swizzles
    ("bf16", 64, 64, ("k", "k"), (128, 128)),
    ("bf16", 64, 256, ("k", "mn"), (128, 128)),
    ("bf16", 128, 128, ("k", "mn"), (128, 128)),
    ("bf16", 64, 64, ("mn", "mn"), (128, 128)),
    ("bf16", 64, 96, ("mn", "k"), (128, 64)),
    ("bf16", 32, 32, ("k", "mn"), (64, 64)),
    ("bf16", 16, 8, ("k", "k"), (32, 32)),
    ("f16", 64, 192, ("k", "mn"), (128, 128)),
    ("f16", 32, 16, ("mn", "mn"), (64, 32)),
    ("f32", 32, 64, ("k", "k"), (128, 128)),
    ("f32", 16, 24, ("k", "k"), (64, 32)),
]


@pytest.mark.parametrize(("element", "k", "n", "majors", "swizzles"), LAYOUTS)
def test_products_of_every_layout(element: str, k: int, n: int, majors: Any, swizzles: Any) -> None:
    # Small integers: products and sums are exact in any order, and tf32 loses nothing.
    random = np.random.default_rng(n + k)
    a, b = (random.integers(-8, 9, shape).astype(DTYPES[element]) for shape in ((64, k), (k, n)))
    for landing in ("latest", "earliest"):
        c, report = product(a, b, element, majors, swizzles, landing)
        assert not report.diagnostics, [str(d) for d in report.diagnostics]
        assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_f32_operands_lose_the_last_13_bits() -> None:
    a, b = np.zeros((64, 8), np.float32), np.zeros((8, 8), np.float32)
    a[0, 0], b[0, 0] = np.float32(1 + 2**-10 + 2**-11), np.float32(1)
    c, report = product(a, b, "f32", ("k", "k"), (32, 32))
    assert not report.diagnostics
    assert c[0, 0] == np.float32(1 + 2**-10)


REGISTERS = [(32, 64, 128), (16, 24, 64), (8, 8, 32), (64, 256, 128)]
"""k, n and the swizzle of the right operand."""


@pytest.mark.parametrize(("k", "n", "swizzle"), REGISTERS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_left_operand_from_registers(k: int, n: int, swizzle: int, turned: bool) -> None:
    random = np.random.default_rng(n + k)
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((64, k), (k, n)))
    for landing in ("latest", "earliest"):
        c, report = product(a, b, "f32", ("k", "k"), (32, swizzle), landing, registers=True, turned=turned)
        assert not report.diagnostics, [str(d) for d in report.diagnostics]
        assert np.array_equal(c, a @ b)


def test_registers_lose_the_last_13_bits_too() -> None:
    a, b = np.zeros((64, 8), np.float32), np.zeros((8, 8), np.float32)
    a[0, 0], b[0, 0] = np.float32(1 + 2**-10 + 2**-11), np.float32(1)
    c, report = product(a, b, "f32", ("k", "k"), (32, 32), registers=True)
    assert not report.diagnostics
    assert c[0, 0] == np.float32(1 + 2**-10)


WAIT = "simt.wgmma.wait 0 of %acc, %left"
WRITE = "%nought = arith.constant 0.0 : f32\n simt.regs.store %nought to %left[%c0, %c0]\n"
FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "written before the wait": ({WAIT: WRITE + WAIT}, "accumulator-in-flight"),
    "the wait does not name them": ({WAIT: WAIT.replace(", %left", "") + "\n" + WRITE}, "accumulator-in-flight"),
    "no fence": ({"simt.wgmma.fence": ""}, "wgmma"),
    "not written": ({"simt.load %a[%from] into %left[%s, %r1r] width 1": ""}, "uninitialised-register"),
}
"""What is done to the registers of a left operand, and what the simulator says."""


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_left_operand_in_registers(fault: str) -> None:
    lines, kind = FAULTS[fault]
    a, b = np.ones((64, 8), np.float32), np.ones((8, 8), np.float32)
    _, report = product(a, b, "f32", ("k", "k"), (32, 32), registers=True, lines=lines)
    assert {d.kind for d in report.diagnostics} == {kind}


STMATRIX = """
  %s = simt.shared at 0 : !simt.smem<[64, 8], f16SWIZZLE>
  %r = simt.regs.alloc : !simt.regs<[8], f16>
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  simt.unroll %i < 8 {
    %v0 = arith.muli %t, %c8 : i32
    %v1 = arith.addi %v0, %i : i32
    %v = arith.sitofp %v1 : i32 to f16
    simt.regs.store %v to %r[%i]
  }
  %at = arith.muli %t, %c8 : i32
  simt.stmatrix %r[%c0] to %s[%at]TRANS
  simt.barrier
  %q = simt.regs.alloc : !simt.regs<[8], f16>
  simt.load %s[%at] into %q[%c0] width 8
  simt.store %q[%c0] to %y[%at] width 8
"""


@pytest.mark.parametrize("swizzle", ["", ", swizzle 64"])
@pytest.mark.parametrize("trans", [False, True])
def test_stmatrix_lays_four_matrices(sim: Any, trans: bool, swizzle: str) -> None:
    y = np.zeros(512, np.float16)
    body = STMATRIX.replace("SWIZZLE", swizzle).replace("TRANS", " trans" if trans else "")
    report = sim.run(body, "%y : !simt.global<f16>", [y], threads=64, smem=1024)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    for warp in range(2):
        for matrix in range(4):
            for row in range(8):
                for column in range(8):
                    i, j = (column, row) if trans else (row, column)
                    holder = 32 * warp + 4 * i + j // 2
                    assert y[(32 * warp + 8 * matrix + row) * 8 + column] == 8 * holder + 2 * matrix + j % 2


def test_columns_of_a_swizzled_array_have_no_bank_conflicts(sim: Any) -> None:
    body = """
  %s = simt.shared at 0 : !simt.smem<[32, 64], f16SWIZZLE>
  %r = simt.regs.alloc : !simt.regs<[8], f16>
  %t = simt.tid
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0.0 : f16
  simt.unroll %i < 8 {
    simt.regs.store %zero to %r[%i]
  }
  %at = arith.muli %t, %c64 : i32
  simt.store %r[%c0] to %s[%at] width 8
"""
    plain = sim.run(body.replace("SWIZZLE", ""), smem=4096, level="count")
    swizzled = sim.run(body.replace("SWIZZLE", ", swizzle 128"), smem=4096, level="count")
    # Rows of 128 bytes: the first chunk of every row is in the same four banks, unless rows are permuted.
    assert sim.counts(plain, "simt.store", "shared").wavefronts == 32
    assert sim.counts(swizzled, "simt.store", "shared").wavefronts == 4
