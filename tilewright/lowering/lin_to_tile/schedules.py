"""Which kernels a group gets: one or two schedules, each with the relations under which it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import TensorType

from tilewright.dialects.assembly import int_array
from tilewright.dialects.lin.shapes import scalar_type
from tilewright.dialects.sym import Expr, Relation, ceildiv, floordiv, smax
from tilewright.dialects.sym.prove import Answer
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.host_variants import Serves, compare_costs, element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.candidates import CHEAPEST, LAST, NEVER, Candidate
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, Kind
from tilewright.lowering.lin_to_tile.repack import (
    mapped_layouts,
    matrix_dims,
    operand_axes,
    step_depth,
    suits_matrix_instructions,
    through_registers,
)
from tilewright.lowering.lin_to_tile.request import Request, Schedule
from tilewright.lowering.lin_to_tile.split import part_count, part_depth, write_split
from tilewright.lowering.lin_to_tile.tile_costs import is_ragged, line_cost, named, tile_cost, tile_count
from tilewright.lowering.lin_to_tile.tile_sizes import MatrixTile, SplitTile
from tilewright.passes.allocate_shared import shared_limit
from tilewright.passes.choose_mma import WARPGROUP_ARCH, multiplies_by_warps

WIDE_SUMS = 64
"""Sums that a thread of a kernel with 64-bit indices keeps at most."""
LETTERS = "ntuvwxyz"
"""Names of layouts, by the dim along which an operand is contiguous, the last one first."""


def schedules(request: Request) -> list[Schedule]:
    """The schedules of a group, in the order in which they are tried."""
    kind = request.space.kind
    if kind is Kind.ELEMENTWISE:
        return [_elementwise(request)]
    if kind is Kind.CONTRACTION:
        found = _contraction(request)
        request.candidates.say(request.origin)
        return found
    assert kind is Kind.REDUCTION  # what shares no iteration space is lowered one by one
    return _reduction(request)


def _contiguous_dims(request: Request) -> list[int]:
    """For each read of a tensor input the group dim along which it is contiguous in a row-major tensor."""
    found: list[int] = []
    inputs = {value for value, _ in request.inputs}
    for generic in request.space.generics:
        for n, operand in enumerate(generic.ins):
            if operand in inputs and isinstance(operand.type, TensorType) and generic.accesses[n] is None:
                dims = [d for d in request.space.operand_dims(generic, n) if d is not None]
                if dims:
                    found.append(dims[-1])
    return found


def _elementwise(request: Request) -> Schedule:
    order = request.space.parallel
    extents = {d: request.extent(d) for d in order}
    crossed = next((d for d in _contiguous_dims(request) if order and d != order[-1] and _is_crossed(request, d)), None)
    tiles = request.override(tile_sizes.elementwise(order, extents, crossed))
    return Schedule("tiled", (), request.writer("", tiles).write_elementwise())


def _is_crossed(request: Request, dim: int) -> bool:
    """Whether some input that moves along both `dim` and the result's last dim is contiguous along `dim`."""
    last = request.space.parallel[-1]
    for generic in request.space.generics:
        for n in range(len(generic.ins)):
            if generic.accesses[n] is not None:
                continue
            dims = [d for d in request.space.operand_dims(generic, n) if d is not None]
            if dims and dims[-1] == dim and last in dims:
                return True
    return False


def _contraction(request: Request) -> list[Schedule]:
    space = request.space
    rows, columns = matrix_dims(space).rows, matrix_dims(space).columns
    tiles = _tiles_of(space)
    if request.given:
        small = tiles(tile_sizes.SMALL_CONTRACTION)
        return [Schedule("tiled", (), request.writer("", request.override(small)).write_contraction())]
    found: list[Schedule] = []
    matrix = takes_matrix_instructions(space, request.arch)
    if matrix:
        found += _matrix_splits(request)
        found += _matrix_contraction(request, tiles, rows, columns)
    if takes_warp_instructions(space, request.arch):
        return _warp_contraction(request, tiles, rows, columns)
    return found + _thread_contraction(request, tiles, plain=matrix)


def loading_schedules(request: Request) -> list[Schedule]:
    """The schedules of a product that makes an operand itself, where its kernel loads it: multiply-adds of threads. The
    last one always serves."""
    return _thread_contraction(request, _tiles_of(request.space), plain=False)


def _tiles_of(space: GroupSpace) -> Callable[[tuple[int, int, int]], dict[int, int]]:
    """What gives sizes of rows, columns and depth to the group dims that a product's tiles run along."""
    found = matrix_dims(space)

    def tiles(sizes: tuple[int, int, int]) -> dict[int, int]:
        chosen = dict.fromkeys(range(len(space.extents)), 1)
        for dims, size in zip((found.rows, found.columns, found.depth), sizes, strict=True):
            if dims:
                chosen[dims[-1]] = size
        return chosen

    return tiles


def _thread_contraction(
    request: Request, tiles: Callable[[tuple[int, int, int]], dict[int, int]], *, plain: bool
) -> list[Schedule]:
    """Multiply-adds of threads; `plain` ones are left the operands that matrix instructions do not take."""
    found, sides = _small_split(request, plain), matrix_dims(request.space)
    elements = Expr.const(1)
    for dims in (sides.rows, sides.columns):
        if dims:
            elements = elements * request.space.extents[dims[-1]]
    enough = Relation(elements, ">=", Expr.const(tile_sizes.LARGE_FROM))
    answer = request.facts.prove(enough)
    others = "for operands that are not aligned, " if plain else ""
    if answer is not Answer.DISPROVED:
        prefers = () if answer is Answer.PROVED else (enough,)
        verdict = f"{others}from {tile_sizes.LARGE_FROM} results on" if prefers else f"{others}always"
        _consider(request, "large", tile_sizes.LARGE_TILE, verdict, None if plain else prefers)
        large = tiles(tile_sizes.LARGE_CONTRACTION)
        when = () if answer is Answer.PROVED else (enough,)
        found.append(Schedule("large", when, request.writer("large", large).write_contraction(), plain=plain))
    if answer is not Answer.PROVED:
        _consider(request, "small", tile_sizes.SPLIT_SMALL, f"{others}where none before it is", None if plain else ())
        small = tiles(tile_sizes.SMALL_CONTRACTION)
        found.append(Schedule("small", (), request.writer("small", small).write_contraction(), plain=plain))
    return found


def takes_matrix_instructions(space: GroupSpace, arch: str | None) -> bool:
    """Whether a contraction may go to the matrix instructions of sm_90a: both operands are bf16 or f16, or f32 that may
    be tf32, in tiles of memory, sums are f32, and there are rows, columns and a depth."""
    return arch == WARPGROUP_ARCH and suits_matrix_instructions(space)


def takes_warp_instructions(space: GroupSpace, arch: str | None) -> bool:
    """The same for the matrix instructions of warps, which read operands wherever they lie."""
    return multiplies_by_warps(arch) and suits_matrix_instructions(space)


def _matrix_contraction(
    request: Request,
    tiles: Callable[[tuple[int, int, int]], dict[int, int]],
    rows: Sequence[int],
    columns: Sequence[int],
) -> list[Schedule]:
    """Tiles for matrix instructions, for operands that tensor maps can move, contiguous along either of their dims.

    For each layout of the operands the first tile is taken that costs no more than any after it; remarks say it of
    tensors whose rows are aligned. Where results have rows that begin anywhere, clusters are left out, which never cost
    least then. What indices of 32 bits or contiguous rows of results do not serve goes to the first tile of few sums a
    thread or to the last alone.
    """
    layouts: dict[bool, list[tuple[str, tuple[Relation, ...]]]] = {}
    for layout in _mapped_layouts(request):
        layouts.setdefault(_through_registers(request, layout[0])[1], []).append(layout)
    return [
        schedule
        for turned, found in layouts.items()
        for schedule in _matrix_tiles(request, tiles, rows, columns, found, turned=turned)
    ]


def _matrix_tiles(
    request: Request,
    tiles: Callable[[tuple[int, int, int]], dict[int, int]],
    rows: Sequence[int],
    columns: Sequence[int],
    layouts: Sequence[tuple[str, tuple[Relation, ...]]],
    *,
    turned: bool,
) -> list[Schedule]:
    """The tiles for some layouts of the operands; `turned` ones have their rows along the product's columns."""
    mapped = tuple(dict.fromkeys(request.space.contraction.ins))
    made: list[tuple[str, tuple[Relation, ...], KernelOp]] = []
    numbers: list[int] = []
    family, known = tile_sizes.MATRIX_CONTRACTIONS, (Expr.const(tile_sizes.LINE),) * 2
    if turned:
        family = tuple(replace(t, rows=t.columns, columns=t.rows) for t in family if t.cluster is None)
    aligned = [tile_cost(request, tile, rows[-1], columns[-1], known) for tile in family]
    lines, lets = named(request, "line", tile_sizes.LINE, [line_cost(request, n) for n in range(2)])
    ragged = is_ragged(request)
    costs = [tile_cost(request, tile, rows[-1], columns[-1], lines, ragged) for tile in family]
    symbols, of_tiles = named(request, "cost", 0, costs)
    lets += of_tiles
    facts = request.facts.child()
    for line in lines:
        facts.add(Relation(line, ">=", Expr.const(tile_sizes.LINE)))
        facts.add(Relation(line, "<=", Expr.const(max(cost for _, cost in tile_sizes.LINE_ACROSS))))
    for number, tile in enumerate(family):
        answers = [compare_costs(Relation(costs[number], "<=", later), facts) for later in costs[number + 1 :]]
        counts = (tile_count(request, rows[-1], columns[-1], later) for later in family[number + 1 :])
        if any(facts.prove(Relation(count, "<=", Expr.const(1))) is Answer.PROVED for count in counts):
            answers = [Answer.DISPROVED]  # a smaller tile is enough for everything
        wanted = [Relation(symbols[number], "<=", later) for later in symbols[number + 1 :]]
        name = tile.name + ("_turned" if turned else "")
        if Answer.DISPROVED in answers:
            _consider(request, name, tile, NEVER, None)
            continue
        prefers = tuple(r for r, a in zip(wanted, answers, strict=True) if a is not Answer.PROVED)
        said = tuple(Relation(aligned[number], "<=", later) for later in aligned[number + 1 :])
        _consider(request, name, tile, CHEAPEST if prefers else LAST, said if prefers else ())
        kernel = request.writer(
            name, tiles((tile.rows, tile.columns, step_depth(request.space, tile)))
        ).write_contraction()
        if tile.cluster is not None:
            along = rows[-1] if tile.cluster == "rows" else columns[-1]
            kernel.properties["cluster"] = int_array(
                [tile_sizes.CLUSTER if d == along else 1 for d in request.space.parallel]
            )
        made.append((name, prefers, kernel))
        numbers.append(number)
        if not prefers:
            break
    if len(made) == 1:
        ((name, _, kernel),) = made
        return [Schedule(f"{name}_{layout}", when, kernel, (), mapped) for layout, when in layouts]
    # With 128 sums a thread no registers are left for 64-bit addresses of results that lie anywhere.
    fitting = (n for n, f in enumerate(numbers) if family[f].accumulators <= WIDE_SUMS and family[f].cluster is None)
    first = next(fitting, len(numbers) - 1)
    wide = [made[-1]]
    if first < len(numbers) - 1:
        larger = (Relation(symbols[numbers[first]], "<=", symbols[numbers[-1]]),)
        wide.insert(0, (made[first][0], larger, made[first][2]))
    in_clusters = {symbols[n] for n in numbers if family[n].cluster is not None}
    alone = [
        (name, tuple(r for r in prefers if r.rhs not in in_clusters), kernel)
        for number, (name, prefers, kernel) in zip(numbers, made, strict=True)
        if family[number].cluster is None
    ]
    if family[numbers[-1]].cluster is not None:
        alone = made  # nothing else always serves
    passes: tuple[tuple[Serves, str, list[tuple[str, tuple[Relation, ...], KernelOp]]], ...] = (
        ("aligned", "", made),
        ("rows", "_any", alone),
        ("wide", "_wide", wide),
    )
    return [
        Schedule(
            f"{name}_{layout}{suffix}",
            when,
            kernel,
            prefers,
            mapped,
            lets=lets,
            serves=serves,
            plain=serves == "wide" and not prefers,
        )
        for serves, suffix, chosen in passes
        for layout, when in layouts
        for name, prefers, kernel in chosen
    ]


def _matrix_splits(request: Request) -> list[Schedule]:
    """Parts on matrix instructions: for few rows, then in wide tiles where these are no more than high ones, else in
    high ones."""
    layouts = _mapped_layouts(request)
    if not layouts:
        return []
    own, axes = request.space.operand_dims(request.space.contraction, 0), operand_axes(request.space, 0, request.arch)
    summed = {LETTERS[n] for n, axis in enumerate(axes) if own[axis] in request.space.reduced}
    along = [layout for layout in layouts if layout[0][0] in summed]
    found = _split(request, "thin", tile_sizes.SPLIT_THIN, along)
    for tile in tile_sizes.SPLIT_MATRIX:
        found += _split(request, f"split{tile.rows}x{tile.columns}", tile, layouts)
    return found


def _small_split(request: Request, plain: bool) -> list[Schedule]:
    """Parts on multiply-adds of threads, which take any operands."""
    found = _split(request, "split32x32", tile_sizes.SPLIT_SMALL, [("", ())])
    return [replace(schedule, plain=plain) for schedule in found]


def _split(
    request: Request, name: str, tile: SplitTile, layouts: Sequence[tuple[str, tuple[Relation, ...]]]
) -> list[Schedule]:
    """The schedules of a product in parts, one for each layout of its operands that `layouts` lists."""
    space, facts = request.space, request.facts
    dims = matrix_dims(space)
    if request.declare is None or not layouts or not (dims.rows and dims.columns and dims.depth):
        return []
    made = [g for g in space.generics if g.result in space.contraction.ins]
    if not all(space.runs_along_sum(g) for g in made) or any(a is not None for a in space.contraction.accesses):
        return []
    depth, row, column = space.extents[dims.depth[-1]], dims.rows[-1], dims.columns[-1]
    if tile is tile_sizes.SPLIT_THIN:
        row, column = column, row
    fitted = replace(tile, depth=step_depth(request.space, tile))
    value = part_count(tile_count(request, row, column, tile), depth, fitted, request.processors)
    matrix = tile is not tile_sizes.SPLIT_SMALL
    thin = facts.range(space.extents[row if tile.columns > tile.rows else column])[0]
    most = facts.range(value)[1]
    if most is not None and most < 2 and (not matrix or (thin is not None and thin > tile_sizes.SPLIT_THIN_UP_TO)):
        return []
    parts, chunk = request.declare("parts", 1, 1), request.declare("part_depth", 0, fitted.depth)
    lets = ((parts, value), (chunk, part_depth(depth, Expr.symbol(parts), fitted)))
    if matrix:
        prefers = _matrix_split_pays(request, tile, Expr.symbol(parts), Expr.symbol(chunk), row, column)
    else:
        prefers = [
            Relation(Expr.symbol(parts), ">=", Expr.const(2)),
            Relation(depth, ">=", Expr.const(tile_sizes.SPLIT_DEPTH)),
        ]
    if any(facts.prove(r) is Answer.DISPROVED for r in prefers):
        return []
    axes = [space.dims_of_value[space.contraction.result].index(d) for d in (row, column)]
    split = write_split(
        f"{request.name}_{name}",
        space,
        request.inputs,
        request.outputs,
        fitted,
        axes[0],
        axes[1],
        (parts, chunk),
        facts,
    )
    if request.max_workspace is not None:
        room = request.held + prod(split.scratch.memory_dims, start=Expr.const(4))
        prefers.append(Relation(room, "<=", Expr.const(request.max_workspace)))
    _consider_parts(request, name, tile, prefers, lets, tile_count(request, row, column, tile))
    mapped = tuple(dict.fromkeys(space.contraction.ins)) if layouts[0][0] else ()
    return [
        Schedule(f"{name}_{layout}" if layout else name, when, split.first, tuple(prefers), mapped, split, lets)
        for layout, when in layouts
    ]


def _matrix_split_pays(
    request: Request, tile: SplitTile, parts: Expr, chunk: Expr, row: int, column: int
) -> list[Relation]:
    """When a product is cut into parts on matrix instructions: what it then takes, in nanoseconds, is no more than
    without, and there are two parts, or so few rows (columns) that even one pays. Wide tiles ask besides that they
    are no more than high ones."""
    space = request.space
    depth = space.extents[matrix_dims(space).depth[-1]]
    count = tile_count(request, row, column, tile)
    sums = prod((space.extents[d] for d in space.parallel), start=parts)
    cost = tile_sizes.SPLIT_LAUNCH + floordiv(sums, tile_sizes.SPLIT_RATE)
    cost = cost + ceildiv(count * parts, request.processors) * tile.cost * ceildiv(
        chunk, step_depth(request.space, tile)
    )
    whole = tile_sizes.WHOLE
    without = ceildiv(tile_count(request, row, column, whole), request.processors) * whole.cost
    pays = Relation(cost, "<=", without * ceildiv(depth, step_depth(request.space, whole)))
    if tile is tile_sizes.SPLIT_THIN:
        return [Relation(space.extents[column], "<=", Expr.const(tile.columns)), pays]
    wide = tile.columns > tile.rows
    thin = floordiv(Expr.const(tile_sizes.SPLIT_THIN_UP_TO), smax(1, space.extents[row if wide else column]))
    result = [Relation(parts + thin, ">=", Expr.const(2)), pays]
    if wide:
        result.insert(0, Relation(count, "<=", tile_count(request, row, column, tile_sizes.SPLIT_MATRIX[1])))
    return result


def _warp_contraction(
    request: Request,
    tiles: Callable[[tuple[int, int, int]], dict[int, int]],
    rows: Sequence[int],
    columns: Sequence[int],
) -> list[Schedule]:
    """Tiles for matrix instructions of warps: first for operands that asynchronous copies of 16 bytes can move, which
    ask for what tensor maps do, and dense results; then for operands that those of 4 bytes can; then for any. The last
    schedule always serves."""
    mapped = tuple(dict.fromkeys(request.space.contraction.ins))
    dense = _dense_results(request)
    layouts = [(name, (*when, *dense)) for name, when in _mapped_layouts(request)]
    pairs = _mapped_layouts(request, tile_sizes.PAIR_BYTES)
    aligned, others = (
        _warp_kernels(request, suffix, sizes, tiles, rows[-1], columns[-1])
        for suffix, sizes in (("", tile_sizes.WARP_CONTRACTIONS), ("_any", tile_sizes.WARP_CONTRACTIONS_ANY))
    )
    found = [
        Schedule(f"{name}_{layout}", when, kernel, prefers, mapped)
        for layout, when in layouts
        for name, prefers, kernel in aligned
    ]
    if all(when for _, when in layouts):
        found += [
            Schedule(f"{name}_{layout}_pairs", when, kernel, prefers, mapped)
            for layout, when in pairs
            for name, prefers, kernel in others
        ]
    if all(when for _, when in pairs):
        found += [Schedule(name, (), kernel, prefers) for name, prefers, kernel in others]
    return found


def _dense_results(request: Request) -> list[Relation]:
    """What makes results contiguous along their last dims, beyond the facts.

    With 128 accumulators a thread there are no registers left for 64-bit multiples of a stride that may be anything.
    """
    relations = [Relation(t.strides[-1], "==", Expr.const(1)) for _, t in request.outputs if t.strides]
    return [r for r in relations if request.facts.prove(r) is not Answer.PROVED]


def _warp_kernels(
    request: Request,
    suffix: str,
    sizes: tuple[MatrixTile, MatrixTile],
    tiles: Callable[[tuple[int, int, int]], dict[int, int]],
    row: int,
    column: int,
) -> list[tuple[str, tuple[Relation, ...], KernelOp]]:
    """A kernel in the large tile where that costs no more than the small one, and one in the small tile: names, when
    they are preferred, kernels."""
    large, small = (tile_cost(request, tile, row, column) for tile in sizes)
    cheaper = Relation(large, "<=", small)
    answer = compare_costs(cheaper, request.facts)
    made: list[tuple[str, tuple[Relation, ...], KernelOp]] = []
    for tile, never in zip(sizes, (Answer.DISPROVED, Answer.PROVED), strict=True):
        name = f"warps{tile.rows}x{tile.columns}{suffix}"
        if answer is never:
            _consider(request, name, tile, NEVER, None)
            continue
        prefers = (cheaper,) if answer is Answer.UNKNOWN and tile is sizes[0] else ()
        _consider(request, name, tile, CHEAPEST if tile is sizes[0] else LAST, None if suffix else prefers)
        kernel = request.writer(
            name, tiles((tile.rows, tile.columns, step_depth(request.space, tile)))
        ).write_contraction()
        made.append((name, prefers, kernel))
    return made


def _consider(
    request: Request,
    name: str,
    tile: MatrixTile | SplitTile,
    verdict: str,
    prefers: Sequence[Relation] | None,
    *,
    count: Expr | None = None,
    depth: Expr | None = None,
    beside: Expr | int = 0,
    beside_text: str = "",
    lets: tuple[tuple[str, Expr], ...] = (),
) -> None:
    """Keep what is to be said of a tile: what it takes, and when it is chosen. `count` is how many there are, and
    `depth` the sum of each, where the product is cut."""
    dims, space = matrix_dims(request.space), request.space
    elements = [scalar_type(v.type) for v in space.contraction.ins]
    step = step_depth(request.space, tile)
    step_bytes = step * (tile.rows + tile.columns) * element_bytes(elements[0])
    most = shared_limit(request.arch or "") // step_bytes
    slots = {"t": min(8, most), "w": min(4, most)}.get(name[0], min(8, most) if tile in _SPLITS else 1)
    threads = 128 * min(2, tile.rows // 64) if tile in _SPLITS else 256
    accumulators = tile.accumulators if isinstance(tile, MatrixTile) else tile.rows * tile.columns // threads
    if count is None:
        row, column = (found[-1] if found else -1 for found in (dims.rows, dims.columns))
        count = tile_count(request, row, column, tile)
    at_a_time = request.processors * (tile.blocks if isinstance(tile, SplitTile) else 1)
    if isinstance(tile, MatrixTile) and tile.cluster is not None:
        at_a_time = max(1, at_a_time // tile_sizes.CLUSTER)
    if depth is None:
        depth = space.extents[dims.depth[-1]] if dims.depth else Expr.const(1)
    steps = prod((space.extents[d] for d in dims.depth[:-1]), start=ceildiv(depth, step))
    made = Candidate(
        name, (tile.rows, tile.columns, step), step_bytes, slots, accumulators, ceildiv(count, at_a_time), steps,
        tile.cost, verdict, None if prefers is None else tuple(prefers), Expr.const(0) + beside, beside_text, lets,
    )  # fmt: skip
    request.candidates.add(made)


def _consider_parts(
    request: Request,
    name: str,
    tile: SplitTile,
    prefers: Sequence[Relation],
    lets: tuple[tuple[str, Expr], ...],
    count: Expr,
) -> None:
    """The same of a product in parts, of whose result there are `count` tiles."""
    parts, chunk = (Expr.symbol(symbol) for symbol, _ in lets)
    sums = prod((request.space.extents[d] for d in request.space.parallel), start=parts)
    verdict = "where these cost less than whole sums"
    if tile is tile_sizes.SPLIT_SMALL:
        verdict = f"where there are several and {prefers[1]}"
    _consider(
        request,
        name,
        tile,
        verdict,
        prefers,
        count=count * parts,
        depth=chunk,
        beside=floordiv(sums, tile_sizes.SPLIT_RATE) + tile_sizes.SPLIT_LAUNCH,
        beside_text=f"{tile_sizes.SPLIT_LAUNCH / 1000:g} us + {sums}/{tile_sizes.SPLIT_RATE} ns",
        lets=lets,
    )


_SPLITS = (tile_sizes.SPLIT_THIN, *tile_sizes.SPLIT_MATRIX)


def _mapped_layouts(request: Request, alignment: int = tile_sizes.MAP_BYTES) -> list[tuple[str, tuple[Relation, ...]]]:
    """The layouts of the two operands that tensor maps can move, by name, with what they ask for; or of an alignment.

    `n` stands for an operand that is contiguous along the last dim that its tiles run along, `t` for the one before,
    and so on; `nn` comes first.
    """
    contraction, types = request.space.contraction, dict(request.inputs)
    choices: list[list[tuple[str, tuple[Relation, ...]]]] = []
    for number, value in enumerate(contraction.ins):
        type_ = types.get(value)
        if not isinstance(type_, BufType) or type_.strides is None or contraction.accesses[number] is not None:
            return []
        axes = operand_axes(request.space, number, request.arch)
        found = mapped_layouts(type_, request.bases.get(value, ""), axes, request.facts, alignment)
        choices.append([(LETTERS[axes.index(axis)], open_) for axis, open_ in found])
    found = [(a + b, tuple(dict.fromkeys((*left, *right)))) for a, left in choices[0] for b, right in choices[1]]
    return [x for x in found if not all(_through_registers(request, x[0]))]


def _through_registers(request: Request, layout: str) -> list[bool]:
    """For each operand whether it must go through registers where it lies as a layout says, by its letters."""
    axes = [operand_axes(request.space, n, request.arch)[LETTERS.index(letter)] for n, letter in enumerate(layout)]
    return [through_registers(request.space, n, axis, request.arch) for n, axis in enumerate(axes)]


def _reduction(request: Request) -> list[Schedule]:
    space = request.space
    extents = {d: request.extent(d) for d in range(len(space.extents))}
    reads = _contiguous_dims(request)
    contiguous = reads[0] if reads else next(iter(space.reduced))
    reduced = sorted(space.reduced)
    chosen = tile_sizes.rows(space.parallel, reduced, contiguous, extents, tile_sizes.ROW_CHUNK)
    looping = request.writer("looping", request.override(chosen))
    moving = [d for d in reduced if space.extents[d].constant != 1]
    wide = any(set(space.dims_of_value[v]) & space.reduced for v in space.results)
    if not wide or len(moving) != 1 or request.given:
        return [Schedule("looping", (), looping.write_looping_reduction())]
    row = moving[0]
    capacity = tile_sizes.fit(tile_sizes.ON_CHIP_CAPACITY, extents[row])
    short = Relation(space.extents[row], "<=", Expr.const(capacity))
    tiles = {**dict.fromkeys(range(len(space.extents)), 1), row: capacity}
    left = tile_sizes.ROW_CHUNK // capacity
    if left > 1 and space.parallel:
        tiles[space.parallel[-1]] = tile_sizes.fit(left, extents[space.parallel[-1]])
    answer = request.facts.prove(short)
    if answer is Answer.DISPROVED:
        return [Schedule("looping", (), looping.write_looping_reduction())]
    on_chip = request.writer("on_chip", tiles).write_on_chip_reduction()
    if answer is Answer.PROVED:
        return [Schedule("on_chip", (), on_chip)]
    return [Schedule("on_chip", (short,), on_chip), Schedule("looping", (), looping.write_looping_reduction())]
