"""How large a tile one block computes, from what is known of the extents. Plain arithmetic, no IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

LARGE_CONTRACTION = (128, 128, 16)
"""Rows, columns and depth of a block's tile: 8 x 8 accumulators for each of 256 threads."""
SMALL_CONTRACTION = (32, 32, 64)
LARGE_FROM = 1 << 19
"""Result elements from which the large contraction tile fills the processors of current GPUs (32 tiles and up)."""
MAP_BYTES = 16
"""What strides and addresses of tensors are multiples of for tensor maps."""
ROW_BYTES = 128
"""What rows of scratch that tensor maps read are multiples of: a line of the caches. Each 128 bytes of a box lie in one
line then, not in two: where rows were multiples of 16 or 32 bytes products were bound by the L2 cache, the more so the
smaller their tiles (4112^3, rows of 257 x 32 bytes, takes 378 us in tiles of 64 x 128, 4096^3 takes 210; H200)."""
COPY_LAUNCH = 10_000_000
COPY_BYTE = 7
"""What copying operands for matrix instructions costs, in multiply-adds of threads that are done in the same time: the
launch (1.5 us at 7 tera multiply-adds a second, as a cold small product has them), and each byte (1 ps)."""
FEW = 128
"""Columns (rows) of a product up to which one tile of multiply-adds, or a few small ones, read an element of the left
(right) operand: computing it where it is loaded costs less than writing it and reading it again."""
COPY_ROWS = (16, 256)
"""Tile of such a copy along rows: 16 elements for each of 256 threads."""
COPY_TURNED = (64, 64)
"""The same from columns to rows, turned in shared memory: 128 bytes of 16-bit elements on either side."""
ROW_CHUNK = 1024
"""Elements of a row that a block takes at a time when rows are walked."""
ON_CHIP_CAPACITY = 4096
"""Longest row that a block keeps in registers: 16 elements for each of 256 threads."""
ELEMENTS = 2048
"""Elements of an elementwise tile: 8 for each of 256 threads."""
TRANSPOSE_EDGE = 32


CLUSTER = 2
"""Blocks of a cluster."""


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A block's tile of a product on matrix instructions of sm_90a: operands of 16 bits, in panels of 128 bytes along
    the depth."""

    rows: int
    columns: int
    slowness: int
    """Percent of the time that an element of the largest tile takes, as measured on one H200 at sizes that fill it."""
    depth: int = 64
    ragged: int = 0
    """What is added to the cost, times the depth of the sum, where no tensor map stores the results."""
    cluster: str | None = None
    """Along which side of a result two blocks are a cluster, which fetches the other side's operand together: `rows`
    or `columns`."""

    @property
    def name(self) -> str:
        """What its schedule is called."""
        return f"tile{self.rows}x{self.columns}" + (f"_{self.cluster}" if self.cluster else "")

    @property
    def fetched(self) -> tuple[int, int]:
        """Rows of the left operand and columns of the right one that a block fetches for a step."""
        shared = {"rows": (1, CLUSTER), "columns": (CLUSTER, 1)}.get(self.cluster or "", (1, 1))
        return self.rows // shared[0], self.columns // shared[1]

    @property
    def cost(self) -> int:
        """What the tile costs: its elements, in units of 4096, times its slowness."""
        return self.rows * self.columns * self.slowness // 4096

    @property
    def accumulators(self) -> int:
        """Sums that a thread keeps: warpgroups of 128 threads have 64 rows each, and at most two multiply."""
        return self.rows * self.columns // (128 * min(2, self.rows // 64))


MATRIX_CONTRACTIONS = (
    MatrixTile(128, 256, 100, ragged=118_000),
    MatrixTile(128, 256, 102, ragged=118_000, cluster="rows"),
    MatrixTile(128, 128, 104, ragged=39_000),
    MatrixTile(128, 128, 106, ragged=39_000, cluster="rows"),
    MatrixTile(64, 128, 105, ragged=104_000),
    MatrixTile(64, 128, 118, ragged=104_000, cluster="rows"),
    MatrixTile(64, 64, 187, ragged=60_000),
)
"""The tiles among which a call chooses; of two that cost the same the first. Instructions of few columns read their
rows too often: 128 x 64 and 256 x 64 take 138 where 64 x 128 takes 105 (4096^3, H200). Blocks of a cluster wait for
each other, which costs 2 percent, and 12 where one warpgroup computes; they pay where operands are fetched too
slowly."""
LINE = 11
LINE_ACROSS = ((16, 23), (32, 16), (64, 14))
"""What fetching 128 bytes of a row of an operand costs, in tenths of a tile's cost, where rows lie multiples of 128
bytes apart; and where they are odd multiples of so many bytes apart, so that most lie across two lines of the cache.
Tiles of 128 x 256, 128 x 128 and 64 x 128 took 242, 323 and 467 us at 4088^3 (16 bytes), and 256, 243 and 378 us at
4112^3 (32 bytes): 23 and 16 give that to a twentieth, for blocks alone and in clusters."""

WARP_CONTRACTIONS = (MatrixTile(128, 128, 100, 32), MatrixTile(64, 64, 150, 32))
"""A large and a small tile on matrix instructions of warps, in panels of 64 bytes along the depth."""
WARP_CONTRACTIONS_ANY = (MatrixTile(128, 64, 100, 32), MatrixTile(64, 64, 120, 32))
"""The same for operands that lie less aligned: in pairs, or not at all, so that they go through registers on their way
to shared memory, an element at a time."""
PAIR_BYTES = 4
"""What strides and addresses are multiples of for the narrowest asynchronous copies: of pairs of 16-bit elements."""


@dataclass(frozen=True, slots=True)
class SplitTile:
    """A block's tile of a product that is cut into parts along the sum."""

    rows: int
    columns: int
    depth: int
    cost: int
    """Nanoseconds that one step of `depth` takes, with all processors at work."""
    least_steps: int
    """Steps from which a part is worth a block."""
    blocks: int = 1
    """Blocks that one processor runs at a time."""


SPLIT_THIN = SplitTile(128, 16, 64, 250, 4)
"""On matrix instructions for products with up to 16 rows, which are the tile's columns: a step moves 16 KiB of the
large operand. The small one has to be contiguous along the sum."""
SPLIT_MATRIX = (SplitTile(64, 128, 64, 200, 4), SplitTile(128, 64, 64, 250, 4))
"""On matrix instructions: a wide tile, and a high one."""
WHOLE = SplitTile(64, 64, 64, 180, 4)
"""What a product that is not cut takes: rounds of such tiles."""
SPLIT_SMALL = SplitTile(32, 32, 64, 1500, 1, blocks=2)
"""On multiply-adds of threads, which wait for their operands at each step."""
LARGE_TILE = SplitTile(*LARGE_CONTRACTION, 1700, 1)
"""The large tile of multiply-adds; 41 TFLOP/s at 4096^3 on an H200."""
SPLIT_SUMS = (4, 8, 32)
"""Parts, rows and columns of partial sums that a block of the second kernel adds at a time: rows of 128 bytes. One
kernel for all sizes; with few columns most of its threads rest."""
SPLIT_LAUNCH = 2500
"""Nanoseconds that the second kernel takes before it has read anything."""
SPLIT_RATE = 375
"""Partial sums that are written and read again in a nanosecond: 8 bytes each at 3 TB/s."""
SPLIT_DEPTH = 192
"""Summed elements from which multiply-adds of threads are cut into parts."""
SPLIT_THIN_UP_TO = SPLIT_THIN.columns
"""Rows or columns of a thin product."""


Bound: TypeAlias = int | None
"""The largest size that a dim can have, as far as it is known."""


def covering_power(n: int, limit: int) -> int:
    """The least power of two that is at least `n`, at most `limit` (a power of two); 1 for n <= 1."""
    p = 1
    while p < n and p < limit:
        p *= 2
    return p


def fit(wanted: int, upper: Bound) -> int:
    """`wanted` (a power of two), or less where the dim is known to be smaller."""
    return wanted if upper is None else covering_power(upper, wanted)


def elementwise(order: Sequence[int], extents: Mapping[int, Bound], crossed: int | None) -> dict[int, int]:
    """Tile of an elementwise kernel whose result has the dims `order` (last is contiguous).

    `crossed` is another dim along which some operand is contiguous, if there is one: then the tile is square, so that
    it can be turned in shared memory.
    """
    sizes = dict.fromkeys(order, 1)
    if not order:
        return sizes
    last = order[-1]
    if crossed is not None and crossed != last:
        sizes[last] = fit(TRANSPOSE_EDGE, extents[last])
        sizes[crossed] = fit(TRANSPOSE_EDGE, extents[crossed])
        return sizes
    if len(order) == 1:
        sizes[last] = fit(ELEMENTS, extents[last])
        return sizes
    sizes[last] = fit(128, extents[last])
    left = ELEMENTS // sizes[last]
    for d in reversed(order[:-1]):
        sizes[d] = fit(left, extents[d])
        left //= sizes[d]
        if extents[d] is None or left <= 1:
            break
    return sizes


def rows(
    parallel: Sequence[int], reduced: Sequence[int], contiguous: int, extents: Mapping[int, Bound], chunk: int
) -> dict[int, int]:
    """Tile of a reduction: `chunk` elements along the contiguous reduced dim.

    Where the contiguous dim is kept: a strip of 128 kept columns by `chunk` / 128 reduced rows.
    """
    sizes = dict.fromkeys([*parallel, *reduced], 1)
    if contiguous in reduced:
        sizes[contiguous] = fit(chunk, extents[contiguous])
        left = chunk // sizes[contiguous]
        if parallel and left > 1:
            sizes[parallel[-1]] = fit(left, extents[parallel[-1]])
        return sizes
    sizes[contiguous] = fit(128, extents[contiguous])
    sizes[reduced[-1]] = fit(max(1, chunk // sizes[contiguous]), extents[reduced[-1]])
    return sizes
