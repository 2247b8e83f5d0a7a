"""Layouts that matrix instructions ask for: which thread holds which accumulator."""

from __future__ import annotations

from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.tile.blocks import SliceOp
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import Factor, MixedDistribution, mixed
from tilewright.passes.choose_mma import ROWS, WARP_TILE, left_in_registers, product_dims, warp_grid
from tilewright.passes.core import error_at
from tilewright.passes.layout_rewrite import set_type
from tilewright.passes.thread_layout import WARP
from tilewright.passes.tile_analysis import IterationDims, buf


def accumulator_rows(rows: int, threads: int) -> MixedDistribution:
    """Rows of wgmma accumulators: row 16*w + 8*i + g of 64 lies in lanes 4*g to 4*g + 3 of warp w (PTX ISA, wgmma).

    Warpgroups take 64 rows each in turn.
    """
    groups = threads // WARPGROUP
    digits = (Factor(8, 4), Factor(2, 0), Factor(4, 32), Factor(groups, WARPGROUP), Factor(rows // ROWS // groups, 0))
    return MixedDistribution(tuple(f for f in digits if f.count > 1))


def paired_rows(rows: int, threads: int) -> MixedDistribution:
    """Rows of wgmma accumulators where the left operand goes through registers: rows 8*i + g of an instruction may then
    be any, and are such that a lane loads two neighbours at a time, and that no bank is met twice.

    Lane 4*g + t of warp w has for i = 0 and 1 two neighbours. The bits of g count 2, 16 and 4 of the 64 rows, those of
    w 8 and 32: 16 lanes read 8 chunks of 16 bytes in whole, where swizzles move chunks by t.
    """
    groups = threads // WARPGROUP
    inside = (Factor(2, 0), Factor(2, 4), Factor(2, 16), Factor(2, 32), Factor(2, 8), Factor(2, 64))
    digits = (*inside, Factor(groups, WARPGROUP), Factor(rows // ROWS // groups, 0))
    return MixedDistribution(tuple(f for f in digits if f.count > 1))


def accumulator_columns(columns: int) -> MixedDistribution:
    """Columns of wgmma accumulators: column 8*j + 2*t + c lies in lanes with lane mod 4 = t."""
    return MixedDistribution((Factor(2, 0), Factor(4, 1), Factor(columns // 8, 0)))


def warp_rows(rows: int, warps: int) -> MixedDistribution:
    """Rows of mma.sync accumulators: row 8*h + g of 16 lies in lanes 4*g to 4*g + 3 (PTX ISA, mma.m16n8k16).

    Warps, neighbours in number, take 16 rows each in turn.
    """
    digits = (Factor(8, 4), Factor(2, 0), Factor(warps, WARP), Factor(rows // WARP_TILE // warps, 0))
    return MixedDistribution(tuple(f for f in digits if f.count > 1))


def warp_columns(columns: int, warps: int, stride: int) -> MixedDistribution:
    """Columns of mma.sync accumulators: columns 2*t and 2*t + 1 of 8 lie in lanes with lane mod 4 = t.

    Each of `warps` warps, whose threads are `stride` apart, has neighbouring columns.
    """
    digits = (Factor(2, 0), Factor(4, 1), Factor(columns // 8 // warps, 0), Factor(warps, stride))
    return MixedDistribution(tuple(f for f in digits if f.count > 1))


def spread_accumulators(kernel: KernelOp, dims: IterationDims, mma: MmaOp) -> None:
    """Give every fragment of a kernel on matrix instructions the layout of the rows and columns that it runs along.

    TilewrightError for a fragment with another dim of more than one element: it meets no accumulator.
    """
    own, threads = product_dims(mma), kernel.threads
    if own is None or threads is None:
        raise error_at(mma, "map-threads: expected a product that choose-mma gave matrix instructions to")
    acc = mma.operand_dims[2]
    by_warps = mma.inst is not None and mma.inst.data == "mma.sync"
    down, across = warp_grid(mma.sizes[own[0]] or 0, mma.sizes[own[1]] or 0) if by_warps else (0, 0)
    rows = {dims.dims[mma.acc][acc.index(own[0])]}
    columns = {dims.dims[mma.acc][acc.index(own[1])]}
    _follow_slices(dims, rows, columns)
    for fragment, classes in dims.dims.items():
        layout: list[MixedDistribution] = []
        for d, size in zip(classes, buf(fragment).sizes, strict=True):
            if size == 1:
                layout.append(MixedDistribution(()))
            elif d in rows:
                by_row = paired_rows if left_in_registers(mma) else accumulator_rows
                layout.append(warp_rows(size, down) if by_warps else by_row(size, threads.value.data))
            elif d in columns:
                by_column = warp_columns(size, across, down * WARP) if by_warps else accumulator_columns(size)
                layout.append(by_column)
            else:
                raise error_at(
                    mma, f"map-threads: a fragment of {list(buf(fragment).sizes)} has a dim that the product lacks"
                )
        set_type(fragment, buf(fragment).with_layout(mixed(layout)))


def _follow_slices(dims: IterationDims, rows: set[int | None], columns: set[int | None]) -> None:
    """Dims of a part of a fragment and of the whole are of one kind."""
    pairs = [
        (whole, own)
        for fragment in dims.fragments()
        for use in fragment.uses
        if isinstance(use.operation, SliceOp)
        for whole, own in zip(dims.dims[fragment], dims.dims[use.operation.res], strict=True)
    ]
    for kind in (rows, columns):
        before = 0
        while len(kind) != before:
            before = len(kind)
            for pair in pairs:
                if not kind.isdisjoint(pair):
                    kind.update(pair)
