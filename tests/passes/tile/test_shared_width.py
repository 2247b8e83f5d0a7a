"""vectorise: how wide the shared side of a copy is accessed where its layout is given."""

from __future__ import annotations

import pytest

from tests.passes.support import parse, run
from tilewright.dialects.tile.copies import CopyOp

GLOBAL = "!tile.buf<[64, 128], f32, global, #tile.strided<[128, 1]>>"


@pytest.mark.parametrize(
    ("rows", "pitch", "width"),
    [
        # A second row would begin at 4 * 129 bytes, no multiple of 16 or 8; one row alone begins at 0, whatever the
        # pitch.
        (2, 128, 4),
        (2, 130, 2),
        (2, 129, 1),
        (1, 129, 4),
        (1, 130, 4),
    ],
)
def test_the_pitch_of_rows_counts_where_there_are_several(rows: int, pitch: int, width: int) -> None:
    module = parse(
        'sym.symbol @b {source = "base"}\n'
        f"tile.kernel @k(%x: {GLOBAL}) grid (%i) = [1] threads 32 assumes [b mod 16 == 0] bases [b] {{\n"
        "  %zero = sym.apply 0\n"
        f"  %s = tile.alloc : !tile.buf<[{rows}, 128], f32, shared, #tile.strided<[{pitch}, 1]>>\n"
        "  tile.copy %x[%zero, %zero] to %s bounds [proved, proved] via thread"
        " dist #tile.distributed<threads [1, 32] strides [32, 1] vector [1, 1]>\n"
        "}\n"
    )
    (copy,) = (op for op in run(module, "vectorise").walk() if isinstance(op, CopyOp))
    assert copy.width is not None
    assert copy.store_width is not None
    assert (copy.width.value.data, copy.store_width.value.data) == (4, width)
