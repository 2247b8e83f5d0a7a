"""Boxes of tensor maps: what is outside reads as zero and is not written; what the driver or the hardware refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.sim.report import Report
from tilewright.runtime.sim.tensor_maps import MapSpec, make_maps

F32 = np.float32

# Copies a box of 4 x 8 at (%i, %j) of x to the same place of y, and by threads to z as it lies in shared memory.
COPY = """
simt.kernel @copy(%tx: !simt.tmap<[4, 8], f32>, %ty: !simt.tmap<[4, 8], f32>,
                  %x: !simt.global<f32>, %y: !simt.global<f32>, %z: !simt.global<f32>, %i: i32, %j: i32)
    threads 32 smem 1152 grid [1] params [0, 0]
    maps [#simt.tensor_map<0, dims [5, 10], strides [16, 1], swizzle 32>,
          #simt.tensor_map<1, dims [5, 10], strides [16, 1], swizzle 32>] {
  %s = simt.shared at 0 : !simt.smem<[8, 8], f32, swizzle 32>
  %full = simt.mbar at 1024 : !simt.mbar<1>
  %c0 = arith.constant 0 : i32
  %tid = simt.tid
  simt.elect block {
    simt.mbar.init %full arrivals 1
    simt.fence mbarrier_init
    simt.mbar.expect %full[%c0] bytes 128
    simt.tma.load %tx[%i, %j] to %s[PLACE] signal %full[%c0]
  }
  simt.barrier
  simt.mbar.wait %full[%c0] parity %c0
  %r = simt.regs.alloc : !simt.regs<[], f32>
  simt.load %s[%tid] into %r width 1
  simt.store %r to %z[%tid] width 1
  simt.elect block {
    simt.tma.store %s[%c0] to %ty[%i, %j]
    simt.bulk.commit
    simt.bulk.wait 0
  }
}
"""


def copy(
    i: int, j: int, *, place: str = "%c0", columns: int = 12, stride: int = 16, landing: Any = "latest", offset: int = 0
) -> tuple[Any, Any, Any, Report]:
    module = parse_module(COPY.replace("PLACE", place), "copy.mlir", make_context())
    module.verify()
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    x = np.arange(1, 5 * stride + 17, dtype=F32)
    y, z = np.zeros(5 * stride, F32), np.zeros(32, F32)
    sizes = [5, columns, stride, 1]
    report = compile_kernel(kernel, "check", aliased=False).run(
        [Buffer(x, offset=offset), Buffer(y), Buffer(z)], [i, j], grid=1, map_sizes=sizes * 2, landing=landing
    )
    inside = np.zeros((5, stride), F32)
    inside[:, :columns] = x[offset : offset + 5 * stride].reshape(5, stride)[:, :columns]
    return inside, y.reshape(5, stride), z.reshape(4, 8), report


@pytest.mark.parametrize("landing", ["latest", "earliest"])
@pytest.mark.parametrize(("i", "j"), [(0, 0), (2, 4), (4, 8), (-2, -4), (9, 0), (0, 16), (-8, 0)])
def test_boxes_at_the_edges(i: int, j: int, landing: Any) -> None:
    x, y, z, report = copy(i, j, landing=landing)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    wide = np.zeros((40, 60), F32)
    wide[10:15, 20 : 20 + 16] = x
    assert np.array_equal(z, wide[10 + i : 14 + i, 20 + j : 28 + j])
    expected = np.zeros_like(y)
    rows, columns = slice(max(0, i), max(0, i + 4)), slice(max(0, j), max(0, min(12, j + 8)))
    expected[rows, columns] = x[rows, columns]
    assert np.array_equal(y, expected)


def kinds(report: Report) -> set[tuple[str, str]]:
    return {(d.kind, d.site.op_name) for d in report.diagnostics}


def test_a_row_of_a_part_of_16_bytes_may_not_be_stored() -> None:
    *_, report = copy(0, 0, columns=10)
    assert kinds(report) == {("tensor-map", "simt.tma.store")}
    assert "40 bytes" in str(report.diagnostics[0])


def test_an_inner_coordinate_is_a_multiple_of_16_bytes() -> None:
    *_, report = copy(0, 1)
    assert ("misaligned", "simt.tma.load") in kinds(report)


def test_a_box_in_shared_memory_is_aligned_and_inside() -> None:
    text = COPY.replace(
        "%tid = simt.tid", "%tid = simt.tid\n  %c8 = arith.constant 8 : i32\n  %c64 = arith.constant 64 : i32"
    )
    for place, kind in (("%c8", "misaligned"), ("%c64", "out-of-bounds")):
        module = parse_module(text.replace("PLACE", place), "copy.mlir", make_context())
        (kernel,) = module.body.block.ops
        assert isinstance(kernel, KernelOp)
        buffers = [Buffer(np.zeros(n, F32)) for n in (96, 96, 32)]
        report = compile_kernel(kernel, "check").run(buffers, [0, 0], grid=1, map_sizes=[5, 12, 16, 1] * 2)
        assert (kind, "simt.tma.load") in kinds(report)


def test_maps_that_the_driver_refuses() -> None:
    with pytest.raises(TilewrightError, match="expected strides of multiples of 16 bytes, got 60"):
        copy(0, 0, stride=15)
    with pytest.raises(TilewrightError, match="expected an address that 16 divides, got 4"):
        copy(0, 0, offset=1)
    module = parse_module(COPY.replace("PLACE", "%c0"), "copy.mlir", make_context())
    (kernel,) = module.body.block.ops
    assert isinstance(kernel, KernelOp)
    with pytest.raises(TilewrightError, match="expected 8 sizes and strides of tensor maps, got 0"):
        compile_kernel(kernel).run([Buffer(np.zeros(96, F32)) for _ in range(3)], [0, 0], grid=1)


@pytest.mark.parametrize("swizzle", [0, 32])
def test_boxes_of_three_dims(swizzle: int) -> None:
    spec = MapSpec("map", 0, f32, (2, 3, 8), swizzle)
    x = np.arange(4 * 5 * 16, dtype=F32)
    (tensor,) = make_maps("k", [spec], [Buffer(x)], [4, 5, 12, 5 * 16, 16, 1])
    wide = np.zeros((24, 25, 36), F32)
    wide[10:14, 10:15, 10:22] = x.reshape(4, 5, 16)[:, :, :12]
    for at in ((0, 0, 0), (-1, 3, 8), (3, -2, -4), (5, 0, 0)):
        i, j, k = (10 + n for n in at)
        chunks = tensor.read(at)
        assert np.array_equal(chunks.view(F32).reshape(2, 3, 8), wide[i : i + 2, j : j + 3, k : k + 8])
        before = x.copy()
        tensor.write(at, np.full(2 * 3 * 8, -1, F32).view(np.complex128))
        changed = np.flatnonzero(x != before)
        assert sorted(tensor.elements(at).tolist()) == changed.tolist()
        x[:] = before
    # Chunks of a box that begins at chunk 8, which is row 4: pairs change places in rows 4 to 7 of each eight.
    places = tensor.box_chunks(8).tolist()
    assert places == [8 + (n ^ (1 if swizzle and (8 + n) // 8 % 2 else 0)) for n in range(12)]
