"""Sectors and wavefronts of whole kernels, counted exactly by the simulator, against what the hardware rules allow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.passes.support import CONTEXT, parse
from tests.passes.tile.programs import CASES
from tests.passes.tile.support import Lowering, to_simt, without
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.types import DimDistribution
from tilewright.lowering import pipelines
from tilewright.passes.bank_conflicts import wavefronts
from tilewright.passes.finish_schedule import row_major
from tilewright.passes.pad_shared import Access, static_trips
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import collecting_remarks
from tilewright.runtime.sim.report import SiteCounts

SQUARE = {"M": 64, "N": 96}
PRODUCT = {"M": 64, "N": 64, "K": 128}


def sectors(counts: list[SiteCounts]) -> list[float]:
    return [c.sectors_per_request for c in counts]


@pytest.mark.parametrize(("passes", "expected"), [(without("pad-shared"), 32.0), (without(), 1.0)])
def test_a_column_of_a_transposed_tile(passes: tuple[str, ...], expected: float) -> None:
    # 32 lanes read words 32 apart, all in one bank; a pitch of 33 puts each in a bank of its own.
    lowering = Lowering(CASES["transpose"].build(), tile=passes)
    (launch,) = lowering.assert_right(SQUARE, "general32").launches
    (column,) = launch.accesses("simt.load", "shared")
    (row,) = launch.accesses("simt.store", "shared")
    assert column.requests == row.requests == 64 * 96 // 32
    assert column.wavefronts_per_request == expected
    assert row.wavefronts_per_request == 1.0


def test_a_transpose_is_coalesced_on_both_sides() -> None:
    # A request of 32 lanes for f32 moves 128 bytes: 4 sectors of 32 bytes.
    (launch,) = Lowering(CASES["transpose"].build()).assert_right(SQUARE, "general32").launches
    assert sectors(launch.accesses("simt.load", "global")) == [4.0]
    assert sectors(launch.accesses("simt.store", "global")) == [4.0]


def test_without_staging_a_transpose_reads_or_writes_a_sector_a_lane() -> None:
    lowering = Lowering(CASES["transpose"].build(), tile=without("promote-to-shared"))
    (launch,) = lowering.assert_right(SQUARE, "general32").launches
    both = sectors(launch.accesses("simt.load", "global")) + sectors(launch.accesses("simt.store", "global"))
    assert max(both) == 32.0


@pytest.mark.parametrize("name", ["matmul_bias_relu", "einsum_ki_kj", "einsum_ij_kj"])
def test_operands_of_a_product_are_coalesced(name: str) -> None:
    (launch,) = Lowering(CASES[name].build()).assert_right(PRODUCT, "general32").launches
    loads = [c for c in launch.accesses("simt.load", "global") if c.requests > 32]
    assert sectors(loads)[:2] == [4.0, 4.0]
    assert sectors(launch.accesses("simt.store", "global")) == [4.0]


def test_vectorised_operands_need_a_quarter_of_the_requests() -> None:
    lowering = Lowering(CASES["matmul_bias_relu"].build())
    general, vector = (
        lowering.assert_right(PRODUCT, variant).launches[0].accesses("simt.load", "global")
        for variant in ("general32", "vector32")
    )
    for one, four in zip(general[:2], vector[:2], strict=True):
        assert (one.requests, one.sectors) == (4 * four.requests, four.sectors)


@pytest.mark.parametrize("variant", ["vector32", "general32", "vector64", "general64"])
@pytest.mark.parametrize("kernel", ["main_0_large", "main_0_small"])
def test_a_symbolic_matmul_kernel_is_small(kernel: str, variant: str) -> None:
    lowering = Lowering(CASES["matmul_bias_relu"].build())
    program, _ = lowering.program(lowering.sites[f"{kernel}/{variant}"])
    assert sum(1 for _ in program.kernel.walk()) <= 400


def test_softmax_reads_its_rows_once_and_coalesced() -> None:
    (launch,) = Lowering(CASES["softmax"].build()).assert_right({"M": 4, "N": 1024}, "general32").launches
    (load,) = launch.accesses("simt.load", "global")
    assert (load.requests, load.sectors) == (4 * 1024 // 32, 4 * 1024 * 4 // 32)


def staged(sizes: Sequence[int], read: str) -> str:
    """A kernel of one warp that stages a tile in shared memory row by row, and reads it in the layout `read`."""
    rank, strides = len(sizes), row_major(tuple(sizes))
    memory = f"!tile.buf<{list(sizes)}, f32, global, #tile.strided<{strides}>>"
    alone = [1] * (rank - 1)
    rows = f"#tile.distributed<threads {[*alone, 32]} strides {[1] * rank} vector {[1] * rank}>"
    at, bounds = ", ".join(["%zero"] * rank), ", ".join(["proved"] * rank)
    return f"""
tile.kernel @k(%x: {memory}, %y: {memory}) grid (%i) = [1] threads 32 index_width 32 {{
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<{list(sizes)}, f32, shared>
  tile.copy %x[{at}] to %s bounds [{bounds}] dist {rows}
  tile.sync
  %f = tile.alloc : !tile.buf<{list(sizes)}, f32, fragment, #tile.distributed<{read}>>
  tile.copy %s to %f
  tile.copy %f to %y[{at}] bounds [{bounds}]
}}
"""


TAIL = ("pad-shared", "finish-schedule", "allocate-shared", "tile-to-simt")


def pad_shared_says(sizes: Sequence[int], read: str) -> str:
    """What pad-shared remarks on the tile of `staged`."""
    _, remarks = to_simt(parse(staged(sizes, read)), TAIL)
    (message,) = (r.message for r in remarks if r.pass_name == "pad-shared")
    return message


def test_a_tile_that_is_read_by_broadcast_is_not_padded() -> None:
    # All 32 lanes read one word at a time: one wavefront whatever the pitch.
    message = pad_shared_says((4, 32), "threads [1, 1] strides [32, 32] vector [1, 1]")
    assert message == "strides [32, 1] are free of conflicts"


def test_an_operand_tile_of_a_product_is_not_padded() -> None:
    # Half a warp reads each row of the right operand, the other half the same words.
    lowering = Lowering(CASES["matmul_bias_relu"].build())
    lowering.program(lowering.sites["main_0_small/general32"])
    messages = [r.message for r in lowering.remarks["main_0_small/general32"] if r.pass_name == "pad-shared"]
    assert "strides [32, 1] are free of conflicts" in messages


def test_a_column_read_is_padded() -> None:
    message = pad_shared_says((32, 32), "threads [32, 1] strides [1, 32] vector [1, 1]")
    assert message.startswith("strides [33, 1] for [32, 32]")


def test_where_no_pitch_helps_a_remark_says_so() -> None:
    # Lanes run along the first of three dims; its stride is 32 times the pitch, so that all lanes meet in one bank:
    # 32 x 32 x 32 words, 31 wavefronts too many for each 32 of them.
    message = pad_shared_says((32, 32, 32), "threads [32, 1, 1] strides [1, 32, 32] vector [1, 1, 1]")
    assert message == f"no pitch helps: {32 * 32 * 31} extra wavefronts a tile remain at strides [1024, 32, 1]"


@pytest.mark.parametrize(
    ("strides", "expected"),
    [((40, 1), 4), ((36, 1), 4), ((34, 1), 2), ((33, 1), 1), ((1, 32), 1), ((132, 33, 1), 1), ((66, 36, 1), 2)],
)
def test_an_access_is_as_wide_as_every_stride_allows(strides: tuple[int, ...], expected: int) -> None:
    """Whichever row it is in, four f32 that are read at once begin at a multiple of 16 bytes."""
    along = len(strides) - 1
    dims = tuple(DimDistribution(1, 1, 4 if d == along else 1) for d in range(len(strides)))
    access = Access(None, dims, (32,) * len(strides), along, 1, (32,) * len(strides))  # pyright: ignore[reportArgumentType]  # the copy is not asked
    assert access.width(strides, 4) == expected


LOOPS = """
tile.kernel @k(%x: !tile.buf<[64], f32, global, #tile.strided<[1]>>, %y: !tile.buf<[64], f32, global, #tile.strided<[1]>>) grid (%i) = [1] threads 32 index_width 32 {
  %t = tile.alloc : !tile.buf<[4], f32, fragment>
  tile.for %k = 0 to 10 step 4 {
    tile.for %l = 1 to 6 step 1 {
      tile.copy %x[%k] to %t bounds [proved]
    }
    tile.for %l = 3 to 3 step 1 {
      tile.copy %t to %y[%k] bounds [proved]
    }
  }
}
"""  # noqa: E501


def test_how_often_loops_run_a_copy() -> None:
    """What never runs counts once, so that it has a price at all."""
    copies = [op for op in parse(LOOPS).walk() if isinstance(op, CopyOp)]
    assert [static_trips(copy) for copy in copies] == [len(range(0, 10, 4)) * len(range(1, 6)), len(range(0, 10, 4))]


WHOLE = """
sym.symbol @S {source = "stride"}
tile.kernel @k(%x: !tile.buf<[4, 1, 32], f32, global, #tile.strided<[32, S, 1]>>, %y: !tile.buf<[4, 1, 32], f32, global, #tile.strided<[32, S, 1]>>) grid (%i) = [1] threads 32 index_width 32 {
  %f = tile.alloc : !tile.buf<[4, 1, 32], f32, fragment, #tile.distributed<threads [4, 1, 8] strides [8, 32, 1] vector [1, 1, 4]>>
  tile.copy %x to %f bounds [clip, clip, clip]
  tile.copy %f to %y bounds [clip, clip, clip]
}
"""  # noqa: E501


def test_a_copy_of_a_whole_buffer_has_no_masks() -> None:
    module = parse(WHOLE)
    run_pipeline(module, CONTEXT, pipelines.make_passes(("prove-bounds",)))
    copies = [op for op in module.walk() if isinstance(op, CopyOp)]
    assert [op.bound_words for op in copies] == [("proved",) * 3] * 2


ROWS = """
sym.symbol @M
sym.symbol @N
tile.kernel @k(%x: !tile.buf<[M, N], f32, global, #tile.strided<[N, 1]>>, %y: !tile.buf<[M, N], bf16, global, #tile.strided<[N, 1]>>) grid (%i, %j) = [M ceildiv 16, N ceildiv 128] threads 256 index_width 32 {
  %m0 = sym.apply 16*i where i = %i
  %n0 = sym.apply 128*i where i = %j
  %t = tile.alloc : !tile.buf<[16, 128], f32, fragment>
  tile.copy %x[%m0, %n0] to %t bounds [clip, clip] other 0.0 : f32
  %f = tile.alloc : !tile.buf<[16, 128], bf16, fragment>
  tile.map (d0, d1) ins(%t[d0, d1]) outs(%f[d0, d1]) {
  ^bb0(%p: f32):
    %q = arith.truncf %p : f32 to bf16
    tile.yield %q
  }
  tile.copy %f to %y[%m0, %n0] bounds [clip, clip]
}
"""  # noqa: E501


def test_threads_run_along_the_dim_of_most_bytes_and_a_remark_counts_them() -> None:
    module = parse(ROWS)
    with collecting_remarks() as remarks:
        run_pipeline(module, CONTEXT, pipelines.make_passes(("map-threads", "coalesce")))
    messages = [r.message for r in remarks if r.pass_name == "coalesce"]
    assert messages == [f"threads run along iteration dim 1: {16 * 128 * (4 + 2)} bytes a tile"]


@pytest.mark.parametrize(
    ("step", "size", "expected"),
    [(4, 4, 1), (0, 4, 1), (128, 4, 32), (8, 4, 2), (132, 4, 1), (2, 2, 1), (8, 8, 2), (16, 16, 4), (64, 16, 16)],
)
def test_wavefronts_of_a_stride(step: int, size: int, expected: int) -> None:
    """Lanes `step` bytes apart, `size` bytes each: CUDA C++ Programming Guide, shared memory."""
    assert wavefronts([lane * step for lane in range(32)], size) == expected
