"""`ldmatrix` and `mma.sync` in the simulator: values against NumPy, wavefronts against the rules, planted faults."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.matrix_kernels import kernel_of, matmul_inputs, text_of, tiles_inputs
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.structure import UnrollOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel, simulate
from tilewright.runtime.sim.report import Report
from tilewright.runtime.sim.vectorise import is_parallel

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


def run(text: str, arrays: list[Any], grid: int = 1, level: Any = "check") -> Report:
    return simulate(kernel_of(text), [Buffer(a.reshape(-1)) for a in arrays], [], grid=grid, level=level)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("level", ["fast", "count", "check"])
def test_a_product_of_one_warp(dtype: str, level: str) -> None:
    a, b, c = matmul_inputs(3, TYPES[dtype])
    report = run(text_of("warp_matmul").replace("bf16", dtype), [a, b, c], 3, level)
    assert not report.diagnostics
    # 16 products and 16 sums in f32.
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bound = 17 * 2.0**-24 * (abs(a.astype(np.float64)) @ abs(b.astype(np.float64)))
    assert (abs(c - expected) <= bound).all()


@pytest.mark.parametrize("vectorise", [True, False])
@pytest.mark.parametrize("level", ["fast", "check"])
@pytest.mark.parametrize("landing", ["latest", "earliest"])
def test_tiles_of_one_warp(vectorise: bool, level: Any, landing: Any) -> None:
    """Iterations of unrolled loops at once or one after the other: the same bits, the same counts."""
    blocks, depth = 3, 32
    a, bt, c = tiles_inputs(blocks)
    kernel = kernel_of(text_of("warp_tiles"))
    memory = [Buffer(x.reshape(-1)) for x in (a, bt, c)]
    program = compile_kernel(kernel, level, aliased=False, vectorise=vectorise)
    report = program.run(memory, [depth], grid=blocks, landing=landing)
    assert not report.diagnostics
    left, right = a.astype(np.float32), bt.astype(np.float32).transpose(0, 2, 1)
    expected = np.zeros_like(c)
    for k in range(depth):
        expected = expected + left[:, :, k : k + 1] * right[:, k : k + 1]
    np.testing.assert_array_equal(c, expected)
    if level == "check":
        counts = [c for site, c in report.counts.items() if site.op_name == "simt.ldmatrix"]
        # Two steps along k; rows 80 bytes apart: one wavefront a matrix.
        assert [(c.requests, c.wavefronts) for c in counts] == [(blocks * 2, blocks * 8), (blocks * 4, blocks * 16)]


def test_products_of_unrolled_loops_run_at_once() -> None:
    kernel = kernel_of(text_of("warp_tiles"))
    loops = [op for op in kernel.walk() if isinstance(op, UnrollOp)]
    holding = [op for op in loops if any(isinstance(i, LdmatrixOp | MmaSyncOp) for i in op.walk())]
    assert len(holding) == 3
    assert all(is_parallel(op, False) for op in holding)
    # Not where each adds to the same sum.
    summing = text_of("warp_tiles").replace("into %acc[%i, %j, %c0]", "into %acc[%i, %c0, %c0]")
    loops = [op for op in kernel_of(summing).walk() if isinstance(op, UnrollOp)]
    (inner,) = (op for op in loops if any(isinstance(i, MmaSyncOp) for i in op.body.block.ops))
    assert not is_parallel(inner, False)


FRAGMENTS = """
simt.kernel @k(%a : !simt.global<TYPE>, %b : !simt.global<TYPE>, %c : !simt.global<f32>) threads 32 smem 0 grid [1] {
  %t = simt.tid
  %zero = arith.constant 0 : i32
  %na = arith.constant A : i32
  %nb = arith.constant B : i32
  %nc = arith.constant 4 : i32
  %ra = simt.regs.alloc : !simt.regs<[A], TYPE>
  %rb = simt.regs.alloc : !simt.regs<[B], TYPE>
  %rc = simt.regs.alloc : !simt.regs<[4], f32>
  %ia = arith.muli %t, %na : i32
  %ib = arith.muli %t, %nb : i32
  %ic = arith.muli %t, %nc : i32
  simt.load %a[%ia] into %ra[%zero] width A
  simt.load %b[%ib] into %rb[%zero] width B
  simt.load %c[%ic] into %rc[%zero] width 4
  simt.mma_sync SHAPE %ra[%zero], %rb[%zero] into %rc[%zero]
  simt.store %rc[%zero] to %c[%ic] width 4
}
"""


def fragments_text(shape: str, dtype: str, a_count: int, b_count: int) -> str:
    """A kernel that reads fragments as lanes hold them, multiplies, and writes C back."""
    text = FRAGMENTS.replace("TYPE", dtype).replace("SHAPE", shape)
    for name, count in (("A", a_count), ("B", b_count)):
        text = text.replace(f"constant {name} ", f"constant {count} ").replace(f"width {name}", f"width {count}")
        text = text.replace(f"[{name}]", f"[{count}]")
    return text


@pytest.mark.parametrize(
    ("shape", "dtype", "k"), [("m16n8k16", "bf16", 16), ("m16n8k16", "f16", 16), ("m16n8k8", "bf16", 8),
                              ("m16n8k8", "f16", 8), ("m16n8k8", "f32", 8)],
)  # fmt: skip
def test_every_shape_sums_k_ascending_in_f32(shape: str, dtype: str, k: int) -> None:
    a, b, _ = matmul_inputs(1, TYPES[dtype], k)
    c = np.random.default_rng(9).standard_normal((16, 8)).astype(np.float32)
    lanes = np.arange(32)
    g, t, per = lanes // 4, lanes % 4, 1 if dtype == "f32" else 2

    def along_k(register: int) -> Any:
        return per * t + register % per

    # Fragments as the PTX ISA has them, made by hand: A[lane, register], B[lane, register], C[lane, register].
    halves = k // (4 * per)
    fa = np.stack(
        [a[0][g + 8 * half, along_k(r) + 4 * per * j] for j in range(halves) for half in (0, 1) for r in range(per)], 1
    )
    fb = np.stack([b[0][along_k(r) + 4 * per * j, g] for j in range(halves) for r in range(per)], 1)
    fc = np.stack([c[g + 8 * half, 2 * t + i] for half in (0, 1) for i in (0, 1)], 1)
    text = fragments_text(shape, dtype, fa.shape[1], fb.shape[1])
    assert not run(text, [fa, fb, fc]).diagnostics
    left, right = a[0].astype(np.float32), b[0].astype(np.float32)
    if dtype == "f32":
        left, right = tf32(left), tf32(right)
    total = c.copy()
    for i in range(k):
        total = total + left[:, i : i + 1] * right[i : i + 1]
    np.testing.assert_array_equal(fc, np.stack([total[g + 8 * h, 2 * t + i] for h in (0, 1) for i in (0, 1)], 1))


def tf32(x: Any) -> Any:
    """Cut to 10 bits of fraction, by arithmetic: the unit of a number is 2^-10 of its power of two."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(fraction, 11)), exponent - 11).astype(np.float32)


LDMATRIX = """
simt.kernel @k(ARGUMENTS) threads 64 smem BYTES grid [1] {
  %t = simt.tid
  %zero = arith.constant 0 : i32
  %per = arith.constant PER : i32
  %width = arith.constant WIDTH : i32
  %s = simt.shared at 0 : !simt.smem<[COUNT], TYPE>
  %r = simt.regs.alloc : !simt.regs<[PER], TYPE>
  %f = simt.regs.alloc : !simt.regs<[WIDTH], TYPE>
  %a = simt.regs.alloc : !simt.regs<[], i32>
  %i = arith.muli %t, %per : i32
  simt.load %x[%i] into %r[%zero] width PER
  simt.store %r[%zero] to %s[%i] width PER
  simt.barrier
  simt.load %at[%t] into %a width 1
  %row = simt.regs.load %a
  simt.ldmatrix KIND %s[%row] into %f[%zero]
  %o = arith.muli %t, %width : i32
  simt.store %f[%zero] to %y[%o] width WIDTH
}
"""


def ldmatrix_text(dtype: str, size: int, kind: str, count: int = 1024) -> tuple[str, int]:
    """(the kernel, registers a lane) of a load from an array of `count` elements, of which 1024 are set."""
    width = int(kind[1]) * 4 // size
    text = LDMATRIX.replace("ARGUMENTS", "%x : !simt.global<TYPE>, %y : !simt.global<TYPE>, %at : !simt.global<i32>")
    text = text.replace("TYPE", dtype).replace("KIND", kind).replace("PER", "16").replace("WIDTH", str(width))
    return text.replace("COUNT", str(count)).replace("BYTES", str(count * size)), width


KINDS = ("x1", "x2", "x4", "x1 trans", "x2 trans", "x4 trans")
ELEMENTS = {"f16": np.float16, "i16": np.int16, "f32": np.float32, "i8": np.int8}


@pytest.mark.parametrize(
    ("dtype", "kind"), [(t, k) for t in ELEMENTS for k in KINDS if t in ("f16", "i16") or "trans" not in k]
)
def test_ldmatrix(dtype: str, kind: str) -> None:
    numpy = ELEMENTS[dtype]
    size = np.dtype(numpy).itemsize
    text, width = ldmatrix_text(dtype, size, kind)
    matrices, columns = int(kind[1]), 16 // size
    x = np.random.default_rng(1).permutation(1024).astype(numpy)
    rows = np.random.default_rng(2).permutation(1024 // columns)[:64].astype(np.int32) * columns
    # Lanes that name no row may hold anything.
    used = np.where(np.arange(64) % 32 < 8 * matrices, rows, 1 << 20).astype(np.int32)
    y = np.zeros((64, width), numpy)
    report = run(text, [x, y, used])
    assert not report.diagnostics
    for warp in range(2):
        for m in range(matrices):
            named = rows[32 * warp + 8 * m :][:8]
            matrix = x[named[:, None] + np.arange(columns)]
            matrix = matrix.T if "trans" in kind else matrix
            per = 4 // size
            # By lane: word l % 4 of row l // 4.
            got = y[32 * warp :][:32, m * per : (m + 1) * per].reshape(8, 4 * per)
            np.testing.assert_array_equal(got, matrix)


@pytest.mark.parametrize(
    ("pitch", "swizzle", "wavefronts"),
    # Rows of a 16 x 16 tile: 8 rows of 16 bytes are one wavefront where they fall on all 32 banks.
    [(128, 0, 32), (64, 0, 16), (32, 0, 8), (144, 0, 4), (80, 0, 4), (128, 7, 4)],
)
def test_wavefronts_of_ldmatrix(pitch: int, swizzle: int, wavefronts: int) -> None:
    text, width = ldmatrix_text("f16", 2, "x4", 2048)
    lanes = np.arange(64)
    row, chunk = lanes % 16, lanes % 32 // 16
    at = (row * pitch + 16 * (chunk ^ (row & swizzle))) // 2
    x = np.zeros(1024, np.float16)
    report = run(text, [x, np.zeros((64, width), np.float16), at.astype(np.int32)], level="count")
    (counts,) = (c for site, c in report.counts.items() if site.op_name == "simt.ldmatrix")
    assert (counts.requests, counts.wavefronts) == (2, 2 * wavefronts)


def kinds(report: Report) -> list[str]:
    return [d.kind for d in report.diagnostics]


def ldmatrix_at(at: Any, level: str = "check") -> Report:
    text, width = ldmatrix_text("f16", 2, "x1")
    return run(text, [np.zeros(1024, np.float16), np.zeros((64, width), np.float16), at], level=level)


def test_a_misaligned_row_is_reported() -> None:
    at = np.zeros(64, np.int32)
    assert not ldmatrix_at(at).diagnostics
    at[3] = 12
    (fault,) = ldmatrix_at(at).diagnostics
    assert (fault.kind, fault.thread, fault.index) == ("misaligned", 3, 12)
    # Lane 9 names no row of one matrix.
    at[3], at[9] = 0, 12
    assert not ldmatrix_at(at).diagnostics


def test_a_row_outside_the_array_is_reported() -> None:
    at = np.zeros(64, np.int32)
    at[34] = 1024
    (fault,) = ldmatrix_at(at).diagnostics
    assert (fault.kind, fault.thread, fault.index) == ("out-of-bounds", 34, 1024)
    with pytest.raises(TilewrightError, match=r"simt.ldmatrix out of bounds: a row at element 1024"):
        ldmatrix_at(at, "fast")


def test_ldmatrix_without_a_barrier_is_a_race_between_lanes() -> None:
    text, width = ldmatrix_text("f16", 2, "x1")
    arrays = [np.zeros(1024, np.float16), np.zeros((64, width), np.float16), np.arange(64, dtype=np.int32) * 16]
    assert not kinds(run(text, arrays))
    report = run(text.replace("  simt.barrier\n", ""), arrays)
    assert kinds(report) == ["race"]
    assert "thread 0 writes, without a barrier between" in report.diagnostics[0].message


DIVERGENT = """
  %half = arith.constant 16 : i32
  %some = arith.cmpi slt, %t, %half : i32
  scf.if %some {
    OP
  }
"""


@pytest.mark.parametrize("name", ["simt.ldmatrix x4", "simt.mma_sync"])
def test_a_warp_that_diverges_is_reported(name: str) -> None:
    text = text_of("warp_matmul")
    (line,) = (each for each in text.splitlines() if each.strip().startswith(name))
    arrays = [*matmul_inputs(1)]
    report = run(text.replace(line, DIVERGENT.replace("OP", line.strip())), arrays)
    assert "barrier-divergence" in kinds(report)
    fault = report.of_kind("barrier-divergence")[0]
    assert fault.site.op_name == name.split(" ")[0]
    assert fault.thread == 16
    # The whole of a warp may leave.
    everyone = DIVERGENT.replace("constant 16", "constant 32")
    assert not run(text.replace(line, everyone.replace("OP", line.strip())), [*matmul_inputs(1)]).diagnostics


def test_a_fragment_that_nobody_wrote_is_reported() -> None:
    text = text_of("warp_matmul")
    (line,) = (each for each in text.splitlines() if "simt.ldmatrix x4" in each)
    report = run(text.replace(line, ""), [*matmul_inputs(1)])
    assert kinds(report) == ["uninitialised-register"]
    assert report.diagnostics[0].site.op_name == "simt.mma_sync"
