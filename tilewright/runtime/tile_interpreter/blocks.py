"""Which block computes what, and parts of fragments."""

from __future__ import annotations

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp, SliceOp
from tilewright.runtime.tile_interpreter.values import Frame


def run_block_count(frame: Frame, op: BlockCountOp) -> None:
    """How many blocks run."""
    frame.env[op.res] = frame.blocks


def run_raster(frame: Frame, op: RasterOp) -> None:
    """The tile at a place: groups of rows one after the other, each column by column."""
    rows, columns = (size.evaluate(frame.symbols) for size in op.sizes.data)
    place, height = frame.integer(op.place), op.group.value.data
    if not 0 <= place < rows * columns:
        raise TilewrightError(f"tile.raster: place {place} is outside {rows} x {columns} tiles", location_of(op))
    group, rest = divmod(place, height * columns)
    here = min(height, rows - group * height)
    frame.env[op.row] = group * height + rest % here
    frame.env[op.column] = rest // here


def run_slice(frame: Frame, op: SliceOp) -> None:
    """A view of a part."""
    source, part = frame.env[op.source], op.res.type
    offsets = [frame.integer(o) for o in op.offsets]
    for dim, (offset, size, whole) in enumerate(zip(offsets, part.sizes, source.shape, strict=True)):
        if offset % size or not 0 <= offset <= whole - size:
            raise TilewrightError(
                f"tile.slice: offset {offset} in dim {dim} is no multiple of {size} inside {whole}", location_of(op)
            )
    frame.env[op.res] = source[tuple(slice(o, o + n) for o, n in zip(offsets, part.sizes, strict=True))]
