"""Copies between global and shared memory: each side's accesses are as wide as that side's layout and facts allow."""

from __future__ import annotations

import pytest

from tests.regressions.support import parsed
from tilewright.api.testing.execute import (
    SCHEDULE,
    Backend,
    PlannedCall,
    arguments_of,
    context,
    execute,
    oracle,
    parse,
    planned,
)
from tilewright.api.testing.program import Program
from tilewright.dialects.tile.structure import KernelOp
from tilewright.passes.pad_shared import PadSharedPass
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.tile_analysis import copies, kernels_of
from tilewright.runtime.reference import compare
from tilewright.runtime.variants import CompiledEntry

TENSOR = "tensor<?x?xf32, #sym.dims<M, N>>"
MEANING = f"""sym.symbol @M
sym.symbol @N {{multiple_of = 4}}
func.func @main(%x0: {TENSOR}) -> {TENSOR} {{
  %y0 = lin.generic (i, j) ins(%x0[i, j] : {TENSOR}) out[i, j] : {TENSOR} {{
  ^bb0(%p: f32):
    lin.yield %p : f32
  }}
  func.return %y0 : {TENSOR}
}}
"""
BACKENDS: tuple[Backend, ...] = ("tile", "sim")
DIST = "#tile.distributed<threads [8, 4] strides [4, 1] vector [1, 4]>"


def program(shared: str, out: str, into: str, back: str) -> str:
    """@main copies its argument through a shared buffer of 16 x 32 elements with layout `shared`; `out` are the
    result's strides; `into` and `back` what stands on the copies."""
    sides = [("x0", "N, 1"), ("y0", out)]
    symbols = [f'sym.symbol @{n}_s{d} {{source = "stride"}}' for n, _ in sides for d in (0, 1)]
    symbols += [f'sym.symbol @{n}_base {{source = "base"}}' for n, _ in sides]
    kinds = [f"%{n}: !tile.buf<[M, N], f32, global, #tile.strided<[{s}]>>" for n, s in sides]
    lines = "\n".join(symbols)
    return f"""{lines}
sym.symbol @M
sym.symbol @N {{multiple_of = 4}}
tile.kernel @main_0({", ".join(kinds)}) grid (%i, %j) = [M ceildiv 16, N ceildiv 32] bases [x0_base, y0_base] {{
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 32*i where i = %j
  %s = tile.alloc : !tile.buf<[16, 32], f32, shared{shared}>
  tile.copy %x0[%m0, %n0] to %s bounds [clip, clip] other 0.0 : f32{into}
  tile.copy %s to %y0[%m0, %n0] bounds [clip, clip]{back}
}}
host.func @main(%x0: {TENSOR}) -> ({TENSOR}) {{
  host.bind %x0 strides [x0_s0, x0_s1] base x0_base
  %y0 = host.output 0 : {TENSOR}
  host.bind %y0 strides [y0_s0, y0_s1] base y0_base
  host.launch @main_0(%x0, %y0)
}}
"""


def layout(first: int, second: int) -> str:
    """A shared layout by hand."""
    return f", #tile.strided<[{first}, {second}]>"


def widths(text: str, m: int, n: int) -> list[tuple[int, int]]:
    """Elements an access of load and store of each copy, as the simulator ran them to the right results."""
    sizes = {"M": m, "N": n}
    drawn = Program(text, sizes, level="tile", meaning=MEANING)
    module = parse(drawn)
    inputs = arguments_of(drawn, module)
    wanted = oracle(parse(Program(MEANING)), inputs, sizes)
    for backend in BACKENDS:
        for got, want in zip(execute(module, drawn, backend), wanted, strict=True):
            assert compare(got, want) is None, backend
    call = PlannedCall(planned(module), inputs)
    (name,) = call.sites
    kernel = call.lowered(name, SCHEDULE)
    assert isinstance(kernel, KernelOp)
    return [copy.widths for copy in copies(kernel)]


@pytest.mark.parametrize(
    ("shared", "width"),
    [
        (layout(32, 1), 4),
        (layout(36, 1), 4),
        (layout(34, 1), 2),
        (layout(33, 1), 1),
        (layout(1, 16), 1),
        (layout(64, 2), 1),
    ],
)
@pytest.mark.parametrize(("m", "n"), [(16, 32), (5, 36), (33, 4)])
def test_a_buffer_laid_out_by_hand(shared: str, width: int, m: int, n: int) -> None:
    """16 bytes of global memory an access, of shared memory what divides a row of its own."""
    assert widths(program(shared, "N, 1", "", ""), m, n) == [(4, width), (width, 4)]


def test_pad_shared_widens_the_shared_side_alone() -> None:
    """An author wrote that the global side moves one element at a time, of each copy in another way."""
    text = program("", "y0_s0, y0_s1", f" width 1 dist {DIST}", f" via thread width 1 dist {DIST}")
    module = parse(Program(text))
    run_pipeline(module, context(), [PadSharedPass()])
    (kernel,) = kernels_of(module)
    assert [copy.widths for copy in copies(kernel)] == [(1, 4), (4, 1)]


def test_a_swizzled_slot_is_read_in_chunks_along_its_rows_alone() -> None:
    """A product whose result is a column, contiguous along the other dim than a slot's rows."""
    left, right = "tensor<?x?xf16, #sym.dims<M, K>>", "tensor<?x1xf16, #sym.dims<K, 1>>"
    out = "tensor<?x1xf16, #sym.dims<M, 1>>"
    text = f"""func.func @main(%x: {left}, %y: {right}) -> {out} {{
  %r = lin.matmul %x, %y : {left}, {right} -> {out}
  func.return %r : {out}
}}
"""
    entry = CompiledEntry(parsed(text, "M", "K"), "main", "sm_90a")
    assert len(entry.sites) > 4
    for site in entry.sites.values():
        entry.lower(site)
