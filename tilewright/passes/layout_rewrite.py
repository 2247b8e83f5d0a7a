"""Setting layouts in types: one distribution an iteration dim of a kernel, of which a fragment takes its dims'."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, DimDistribution, MixedDistribution, distributed
from tilewright.passes.tile_analysis import IterationDims, buf

ALONE = DimDistribution(1, 1, 1)
"""A dim that is not spread over threads: each thread has all of it."""


def set_type(value: SSAValue, type_: BufType) -> None:
    """Gives a value another type: another value takes its place, and `value` has no uses any more."""
    if value.type != type_:
        Rewriter.replace_value_with_new_type(value, type_)


def spread_fragments(dims: IterationDims, spread: Sequence[DimDistribution]) -> None:
    """Writes the layout of every fragment from one distribution an iteration dim.

    Copies of a fragment that gets another layout lose their widths, which went by the old one.
    """
    for fragment, own in dims.dims.items():
        layout = distributed([ALONE if d is None else _fitting(spread[d], dims.sizes[d]) for d in own])
        if buf(fragment).layout != layout:
            # Before the type changes, since that makes another value, and leaves this one without uses.
            for use in fragment.uses:
                if isinstance(use.operation, CopyOp):
                    drop_widths(use.operation)
            set_type(fragment, buf(fragment).with_layout(layout))


def set_dist(copy: CopyOp | GatherOp, dims: Sequence[DimDistribution]) -> None:
    """Writes which thread moves what; widths that went by another distribution go."""
    layout = distributed(dims)
    if copy.dist != layout:
        copy.properties["dist"] = layout
        if isinstance(copy, CopyOp):
            drop_widths(copy)


def drop_widths(copy: CopyOp) -> None:
    """Leaves open how wide a copy's accesses are."""
    for word in ("width", "along", "store_width", "unaligned"):
        copy.properties.pop(word, None)


def _fitting(dim: DimDistribution, size: int) -> DimDistribution:
    return dim if size % (dim.threads * dim.vector) == 0 else ALONE


def spread_of(dims: IterationDims) -> list[DimDistribution] | None:
    """The distribution of each iteration dim, read back from the fragments.

    None while some fragment has no layout, and where an instruction asks for one in mixed radix, which stays.
    """
    spread: list[DimDistribution] = [ALONE] * len(dims.sizes)
    for fragment, own in dims.dims.items():
        distribution = buf(fragment).distribution
        if distribution is None:
            return None
        for d, entry in zip(own, distribution, strict=True):
            if isinstance(entry, MixedDistribution):
                return None
            if d is not None:
                spread[d] = entry
    return spread


def thread_count(kernel: KernelOp) -> int | None:
    """Threads of the block, if decided."""
    return None if kernel.threads is None else kernel.threads.value.data
