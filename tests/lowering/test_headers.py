"""Tables in the C++ that kernels are printed with, against the PTX ISA."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright
from tests.lowering.support import lowered
from tests.lowering.test_tile_to_simt import run
from tilewright.lowering.simt_to_cuda.fragment_maps import fragment_maps

HOPPER = Path(tilewright.__file__).parent / "lowering" / "tilewright_hopper.cuh"


def test_operands_of_wgmma_are_numbered_after_the_accumulators() -> None:
    """n columns have n / 2 accumulators a thread, operands %0 to %(n/2 - 1); five more follow one by one."""
    found = re.findall(r"TW_WGMMA\((\d+), TW_NAMES_(\d+), (\d+), (\d+), (\d+), (\d+), (\d+),", HOPPER.read_text())
    assert [int(n) for n, *_ in found] == [8, 16, 32, 64, 96, 128, 192, 256]
    for columns, *numbers in found:
        half = int(columns) // 2
        assert [int(n) for n in numbers] == [half, half, half + 1, half + 2, half + 3, half + 4], columns


def table(name: str) -> list[list[int]]:
    """The array of m16n8k16, by lane and register."""
    body = fragment_maps().partition("struct TwMma<16, 2> {")[2].partition("\n};\n")[0]
    (rows,) = re.findall(rf"unsigned char {name}\[32\]\[\d+\] = \{{(.*)\}};", body)
    return [[int(v) for v in row.split(",")] for row in re.findall(r"\{([\d,]+)\}", rows)]


def test_fragments_of_m16n8k16() -> None:
    """PTX ISA, matrix fragments for mma.m16n8k16: group = lane / 4 and t = lane mod 4; places in row-major matrices."""
    for lane in range(32):
        group, t = lane // 4, lane % 4
        a = [(group + 8 * (i // 2 % 2)) * 16 + 2 * t + i % 2 + 8 * (i // 4) for i in range(8)]
        b = [(2 * t + i % 2 + 8 * (i // 2)) * 8 + group for i in range(4)]
        c = [(group + 8 * (i // 2)) * 8 + 2 * t + i % 2 for i in range(4)]
        assert (table("a")[lane], table("b")[lane], table("c")[lane]) == (a, b, c)


REDUCTION = """
tile.kernel @reduce(%x: !tile.buf<[32], i1, global, #tile.strided<[1]>>, %y: !tile.buf<[1], i1, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 index_width 32 {{
  %zero = sym.apply 0
  %f = tile.alloc : !tile.buf<[32], i1, fragment, #tile.distributed<threads [32] strides [1] vector [1]>>
  tile.copy %x[%zero] to %f bounds [proved] via thread width 1
  %r = tile.alloc : !tile.buf<[1], i1, fragment, #tile.distributed<threads [1] strides [1] vector [1]>>
  tile.fill %r with {start}
  tile.reduce {combine} (d0, d1) %f[d0] into %r[d1]
  tile.copy %r to %y[%zero] bounds [proved] via thread width 1
}}
"""  # noqa: E501


@pytest.mark.parametrize(("combine", "start", "among"), [("min", "true", True), ("max", "false", False)])
def test_truth_values_count_as_unsigned(combine: str, start: str, among: bool) -> None:
    """One element that differs decides: false is less than true."""
    kernel = lowered(REDUCTION.format(combine=combine, start=start))
    for odd in (0, 13, 31):
        x, y = np.full(32, among), np.full(1, among)
        assert run(kernel, {}, [x, y]).diagnostics == []
        assert y[0] == among
        x[odd] = not among
        assert run(kernel, {}, [x, y]).diagnostics == []
        assert y[0] == (not among)
