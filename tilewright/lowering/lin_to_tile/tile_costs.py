"""What a tile of a product on matrix instructions costs, as expressions that the plan compares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from tilewright.dialects.sym import Expr, ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.repack import matrix_dims, operand_axes
from tilewright.lowering.lin_to_tile.tile_sizes import MatrixTile, SplitTile

if TYPE_CHECKING:
    from tilewright.lowering.lin_to_tile.request import Request


def tile_count(request: Request, row: int, column: int, tile: MatrixTile | SplitTile) -> Expr:
    """How many tiles, or tiles of clusters, the results are, whose rows lie along the dim `row` and whose columns along
    `column`."""
    sizes = {row: tile.rows, column: tile.columns}
    if isinstance(tile, MatrixTile) and tile.cluster is not None:
        sizes[row if tile.cluster == "rows" else column] *= tile_sizes.CLUSTER
    return prod(
        (ceildiv(request.space.extents[d], sizes.get(d, 1)) for d in request.space.parallel), start=Expr.const(1)
    )


def tile_cost(
    request: Request,
    tile: MatrixTile,
    row: int,
    column: int,
    lines: Sequence[Expr] = (Expr.const(0), Expr.const(0)),
    ragged: Expr | None = None,
) -> Expr:
    """What a step of the depth costs with a tile, in tenths of nanoseconds: rounds in which all processors compute one
    each, times its own cost, or that of fetching its operands, whose `lines` cost so much, where it is more. The last
    round may have few tiles, whose fetching costs as much less. `ragged` is 1 where no tensor map stores the results,
    else 0."""
    count, at_once = tile_count(request, row, column, tile), request.processors
    if tile.cluster is not None:
        count = tile_sizes.CLUSTER * count
        at_once = tile_sizes.CLUSTER * max(1, at_once // tile_sizes.CLUSTER)
    left, right = (n * line for n, line in zip(tile.fetched, lines, strict=True))
    fetching = left + right
    computing = Expr.const(10 * tile.cost)
    if ragged is not None:
        depth = request.space.extents[matrix_dims(request.space).depth[-1]]
        computing = computing + 10 * ragged * floordiv(tile.ragged, smax(tile.depth, depth))
    if fetching.constant is not None and fetching.constant <= 10 * tile.cost:
        return ceildiv(count, at_once) * computing
    rounds, rest = floordiv(count, at_once), mod(count, at_once)
    last = smax(smin(rest, 1) * computing, floordiv(rest * fetching, at_once))
    return rounds * smax(computing, fetching) + last


def is_ragged(request: Request) -> Expr:
    """1 where rows of the first result begin at no multiple of 16 bytes, so that no tensor map stores them, else 0. Of
    its strides all but that of rows are 1, as a tensor map asks for as well."""
    result = request.outputs[0][1]
    pitch = prod((s for s in result.strides if s.constant != 1), start=Expr.const(1)) if result.strides else None
    bytes_ = (result.dims[-1] if pitch is None else pitch) * element_bytes(result.element)
    return smin(1, mod(bytes_, tile_sizes.MAP_BYTES))


def line_cost(request: Request, number: int) -> Expr:
    """What fetching 128 bytes of a row of an operand (of a column, where these are contiguous) costs, in tenths of
    nanoseconds, by the largest power of two that divides the distance of rows.

    Of its two strides one is 1 where a tensor map moves it, and counts for nothing here.
    """
    type_ = dict(request.inputs).get(request.space.contraction.ins[number])
    cost = Expr.const(tile_sizes.LINE)
    if not isinstance(type_, BufType) or type_.strides is None:
        return cost
    for axis in operand_axes(request.space, number):
        more = Expr.const(0)
        for bytes_, whole in tile_sizes.LINE_ACROSS:
            odd = mod(floordiv(type_.strides[axis], bytes_ // element_bytes(type_.element)), 2)
            more = smax(more, (whole - tile_sizes.LINE) * odd)
        cost = cost + more
    return cost


def named(
    request: Request, name: str, least: int, values: Sequence[Expr]
) -> tuple[list[Expr], tuple[tuple[str, Expr], ...]]:
    """Values as symbols that the plan computes once, since they occur many times, and what these are; a constant stays
    one."""
    found, lets = list(values), list[tuple[str, Expr]]()
    for number, value in enumerate(values):
        if request.declare is not None and value.constant is None:
            symbol = request.declare(name, least, 1)
            found[number] = Expr.symbol(symbol)
            lets.append((symbol, value))
    return found, tuple(lets)
