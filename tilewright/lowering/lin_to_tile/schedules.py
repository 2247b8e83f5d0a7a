"""Which kernels a group gets: one or two schedules, each with the relations under which it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, TensorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.assembly import int_array
from tilewright.dialects.lin.shapes import scalar_type
from tilewright.dialects.sym import Expr, Facts, Relation, ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.sym.prove import Answer
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.host_variants import compare_costs, element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.candidates import CHEAPEST, LAST, NEVER, Candidate, Candidates
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, Kind
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter
from tilewright.lowering.lin_to_tile.repack import mapped_layouts, matrix_dims, operand_axes
from tilewright.lowering.lin_to_tile.split import Split, part_count, part_depth, write_split
from tilewright.lowering.lin_to_tile.tile_sizes import Bound, MatrixTile, SplitTile
from tilewright.lowering.targets.limits import Limits
from tilewright.passes.allocate_shared import shared_limit
from tilewright.passes.choose_mma import WARPGROUP_ARCH, multiplies_by_warps

LETTERS = "ntuvwxyz"
"""Names of layouts, by the dim along which an operand is contiguous, the last one first."""


@dataclass(frozen=True)
class Schedule:
    """A kernel and when it is chosen; no relations for the one that always serves."""

    name: str
    when: tuple[Relation, ...]
    kernel: KernelOp
    prefers: tuple[Relation, ...] = ()
    """Relations that only choose: they hold too when it runs, but its code does not rely on them."""
    mapped: tuple[SSAValue, ...] = ()
    """Inputs that tensor maps move, whose accesses no variant can widen."""
    split: Split | None = None
    """Two kernels in place of one, `kernel` being the first."""
    lets: tuple[tuple[str, Expr], ...] = ()
    """Symbols that the plan computes before it chooses, with their values."""
    widths: tuple[int, ...] | None = None
    """The index widths that it has variants of; None for all."""
    plain: bool = False
    """Whether no variant widens its accesses: for what others leave, which is seldom aligned."""


@dataclass(frozen=True)
class Request:
    """What a group's kernels are made from: its space, values with kernel argument types, what is known of sizes."""

    name: str
    space: GroupSpace
    inputs: Sequence[tuple[SSAValue, Attribute]]
    outputs: Sequence[tuple[SSAValue, BufType]]
    facts: Facts
    given: tuple[int, ...]
    origin: Operation
    """What the group was made from: where remarks point."""
    arch: str | None = None
    bases: Mapping[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The symbol of an input's or output's base address, where it has one."""
    declare: Callable[[str, int, int], str] | None = None
    """Declares a symbol that the plan computes: wanted name, least value, divisor. Without it nothing is split."""
    max_workspace: int | None = None
    """Bytes of scratch that a schedule may take; None for any number."""
    processors: int = Limits.processors
    """Those of the device, which compute a tile each at a time."""
    candidates: Candidates = field(default_factory=Candidates)
    """What is to be said of the tiles that a product chooses among."""

    def extent(self, dim: int) -> Bound:
        """What is known of a group dim's size."""
        return self.facts.range(self.space.extents[dim])[1]

    def writer(self, suffix: str, tiles: dict[int, int]) -> KernelWriter:
        """A writer for one kernel of the group."""
        name = f"{self.name}_{suffix}" if suffix else self.name
        return KernelWriter(name, self.space, self.inputs, self.outputs, tiles)

    def override(self, tiles: dict[int, int]) -> dict[int, int]:
        """`tiles` with the sizes that the user gave, in the order parallel dims then reduced dims."""
        order = [*self.space.parallel, *sorted(self.space.reduced)]
        if self.given and len(self.given) > len(order):
            raise TilewrightError(f"expected at most {len(order)} tile sizes, got {len(self.given)}")
        for size in self.given:
            if size < 1 or size & (size - 1):
                raise TilewrightError(f"expected tile sizes that are powers of two, got {size}")
        return {**tiles, **dict(zip(order, self.given, strict=False))}


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
    found_dims = matrix_dims(space)
    rows, columns, depth = found_dims.rows, found_dims.columns, found_dims.depth

    def tiles(sizes: tuple[int, int, int]) -> dict[int, int]:
        chosen = dict.fromkeys(range(len(space.extents)), 1)
        for dims, size in zip((rows, columns, depth), sizes, strict=True):
            if dims:
                chosen[dims[-1]] = size
        return chosen

    small = tiles(tile_sizes.SMALL_CONTRACTION)
    if request.given:
        return [Schedule("tiled", (), request.writer("", request.override(small)).write_contraction())]
    found: list[Schedule] = []
    matrix = takes_matrix_instructions(space, request.arch)
    if matrix:
        found += _matrix_splits(request)
        found += _matrix_contraction(request, tiles, rows, columns)
    if takes_warp_instructions(space, request.arch):
        return _warp_contraction(request, tiles, rows, columns)
    found += _small_split(request, matrix)
    elements = Expr.const(1)
    for dims in (rows, columns):
        if dims:
            elements = elements * space.extents[dims[-1]]
    enough = Relation(elements, ">=", Expr.const(tile_sizes.LARGE_FROM))
    answer = request.facts.prove(enough)
    others = "for operands that are not aligned, " if matrix else ""
    if answer is not Answer.DISPROVED:
        prefers = () if answer is Answer.PROVED else (enough,)
        verdict = f"{others}from {tile_sizes.LARGE_FROM} results on" if prefers else f"{others}always"
        _consider(request, "large", tile_sizes.LARGE_TILE, verdict, None if matrix else prefers)
        large = tiles(tile_sizes.LARGE_CONTRACTION)
        when = () if answer is Answer.PROVED else (enough,)
        found.append(Schedule("large", when, request.writer("large", large).write_contraction(), plain=matrix))
    if answer is not Answer.PROVED:
        _consider(request, "small", tile_sizes.SPLIT_SMALL, f"{others}where none before it is", None if matrix else ())
        found.append(Schedule("small", (), request.writer("small", small).write_contraction(), plain=matrix))
    return found


def takes_matrix_instructions(space: GroupSpace, arch: str | None) -> bool:
    """Whether a contraction may go to the matrix instructions of sm_90a: both operands are bf16 or f16, in tiles of
    memory, sums are f32, and there are rows, columns and a depth."""
    return arch == WARPGROUP_ARCH and _suits_matrix_instructions(space)


def takes_warp_instructions(space: GroupSpace, arch: str | None) -> bool:
    """The same for the matrix instructions of warps, which read operands wherever they lie."""
    return multiplies_by_warps(arch) and _suits_matrix_instructions(space)


def _suits_matrix_instructions(space: GroupSpace) -> bool:
    contraction, dims = space.contraction, matrix_dims(space)
    if not (dims.rows and dims.columns and dims.depth) or any(contraction.accesses):
        return False
    operands = {scalar_type(v.type) for v in contraction.ins}
    accumulator = scalar_type(contraction.result.type)
    return len(operands) == 1 and isinstance(operands.pop(), BFloat16Type | Float16Type) and accumulator == f32


def _matrix_contraction(
    request: Request,
    tiles: Callable[[tuple[int, int, int]], dict[int, int]],
    rows: Sequence[int],
    columns: Sequence[int],
) -> list[Schedule]:
    """Tiles for matrix instructions, for operands that tensor maps can move, contiguous along either of their dims.

    For each layout of the operands the first tile is taken that costs no more than any after it; remarks say it of
    tensors whose rows are aligned. What indices of 32 bits or contiguous rows of results do not serve goes to the first
    or the last of the tiles alone.
    """
    space = request.space
    mapped = tuple(dict.fromkeys(space.contraction.ins))
    made: list[tuple[str, tuple[Relation, ...], KernelOp]] = []
    numbers: list[int] = []
    family, known = tile_sizes.MATRIX_CONTRACTIONS, (Expr.const(tile_sizes.LINE),) * 2
    aligned = [_tile_cost(request, tile, rows[-1], columns[-1], known) for tile in family]
    lines, lets = _named(request, "line", tile_sizes.LINE, [_line_cost(request, n) for n in range(2)])
    ragged = _is_ragged(request)
    costs = [_tile_cost(request, tile, rows[-1], columns[-1], lines, ragged) for tile in family]
    named, of_tiles = _named(request, "cost", 0, costs)
    lets += of_tiles
    facts = request.facts.child()
    for line in lines:
        facts.add(Relation(line, ">=", Expr.const(tile_sizes.LINE)))
        facts.add(Relation(line, "<=", Expr.const(max(cost for _, cost in tile_sizes.LINE_ACROSS))))
    for number, tile in enumerate(family):
        answers = [compare_costs(Relation(costs[number], "<=", later), facts) for later in costs[number + 1 :]]
        counts = (_tile_count(request, rows[-1], columns[-1], later) for later in family[number + 1 :])
        if any(facts.prove(Relation(count, "<=", Expr.const(1))) is Answer.PROVED for count in counts):
            answers = [Answer.DISPROVED]  # a smaller tile is enough for everything
        wanted = [Relation(named[number], "<=", later) for later in named[number + 1 :]]
        name = tile.name
        if Answer.DISPROVED in answers:
            _consider(request, name, tile, NEVER, None)
            continue
        prefers = tuple(r for r, a in zip(wanted, answers, strict=True) if a is not Answer.PROVED)
        said = tuple(Relation(aligned[number], "<=", later) for later in aligned[number + 1 :])
        _consider(request, name, tile, CHEAPEST if prefers else LAST, said if prefers else ())
        kernel = request.writer(name, tiles((tile.rows, tile.columns, tile.depth))).write_contraction()
        if tile.cluster is not None:
            along = rows[-1] if tile.cluster == "rows" else columns[-1]
            kernel.properties["cluster"] = int_array(
                [tile_sizes.CLUSTER if d == along else 1 for d in request.space.parallel]
            )
        made.append((name, prefers, kernel))
        numbers.append(number)
        if not prefers:
            break
    layouts = _mapped_layouts(request)
    if len(made) == 1:
        ((name, _, kernel),) = made
        return [Schedule(f"{name}_{layout}", when, kernel, (), mapped) for layout, when in layouts]
    largest = (Relation(named[numbers[0]], "<=", named[numbers[-1]]),)
    wide = [(made[0][0], largest, made[0][2]), made[-1]]
    return [
        Schedule(
            f"{name}_{layout}{suffix}",
            when,
            kernel,
            prefers,
            mapped,
            lets=lets,
            widths=widths,
            plain=bool(suffix) and not prefers,
        )
        for suffix, widths, chosen in (("", (32,), made), ("_wide", (64,), wide))
        for layout, when in layouts
        for name, prefers, kernel in chosen
    ]


def _named(
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


def _matrix_splits(request: Request) -> list[Schedule]:
    """Parts on matrix instructions: for few rows, then in wide tiles where these are no more than high ones, else in
    high ones."""
    layouts = _mapped_layouts(request)
    if not layouts:
        return []
    own, axes = request.space.operand_dims(request.space.contraction, 0), operand_axes(request.space, 0)
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
    dims, inside = matrix_dims(space), {g.result for g in space.generics}
    if request.declare is None or not layouts or not (dims.rows and dims.columns and dims.depth):
        return []
    if any(v in inside for v in space.contraction.ins) or any(a is not None for a in space.contraction.accesses):
        return []
    depth, row, column = space.extents[dims.depth[-1]], dims.rows[-1], dims.columns[-1]
    if tile is tile_sizes.SPLIT_THIN:
        row, column = column, row
    value = part_count(_tile_count(request, row, column, tile), depth, tile, request.processors)
    matrix = tile is not tile_sizes.SPLIT_SMALL
    thin = facts.range(space.extents[row if tile.columns > tile.rows else column])[0]
    most = facts.range(value)[1]
    if most is not None and most < 2 and (not matrix or (thin is not None and thin > tile_sizes.SPLIT_THIN_UP_TO)):
        return []
    parts, chunk = request.declare("parts", 1, 1), request.declare("part_depth", 0, tile.depth)
    lets = ((parts, value), (chunk, part_depth(depth, Expr.symbol(parts), tile)))
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
    made = write_split(
        f"{request.name}_{name}", space, request.inputs, request.outputs, tile, axes[0], axes[1], (parts, chunk), facts
    )
    if request.max_workspace is not None:
        room = prod(made.scratch.memory_dims, start=Expr.const(4))
        prefers.append(Relation(room, "<=", Expr.const(request.max_workspace)))
    _consider_parts(request, name, tile, prefers, lets, _tile_count(request, row, column, tile))
    mapped = tuple(dict.fromkeys(space.contraction.ins)) if layouts[0][0] else ()
    return [
        Schedule(f"{name}_{layout}" if layout else name, when, made.first, tuple(prefers), mapped, made, lets)
        for layout, when in layouts
    ]


def _tile_count(request: Request, row: int, column: int, tile: MatrixTile | SplitTile) -> Expr:
    """How many tiles, or tiles of clusters, the results are, whose rows lie along the dim `row` and whose columns along
    `column`."""
    sizes = {row: tile.rows, column: tile.columns}
    if isinstance(tile, MatrixTile) and tile.cluster is not None:
        sizes[row if tile.cluster == "rows" else column] *= tile_sizes.CLUSTER
    return prod(
        (ceildiv(request.space.extents[d], sizes.get(d, 1)) for d in request.space.parallel), start=Expr.const(1)
    )


def _matrix_split_pays(
    request: Request, tile: SplitTile, parts: Expr, chunk: Expr, row: int, column: int
) -> list[Relation]:
    """When a product is cut into parts on matrix instructions: what it then takes, in nanoseconds, is no more than
    without, and there are two parts, or so few rows (columns) that even one pays. Wide tiles ask besides that they
    are no more than high ones."""
    space = request.space
    depth = space.extents[matrix_dims(space).depth[-1]]
    count = _tile_count(request, row, column, tile)
    sums = prod((space.extents[d] for d in space.parallel), start=parts)
    cost = tile_sizes.SPLIT_LAUNCH + floordiv(sums, tile_sizes.SPLIT_RATE)
    cost = cost + ceildiv(count * parts, request.processors) * tile.cost * ceildiv(chunk, tile.depth)
    whole = tile_sizes.WHOLE
    without = ceildiv(_tile_count(request, row, column, whole), request.processors) * whole.cost
    pays = Relation(cost, "<=", without * ceildiv(depth, whole.depth))
    if tile is tile_sizes.SPLIT_THIN:
        return [Relation(space.extents[column], "<=", Expr.const(tile.columns)), pays]
    wide = tile.columns > tile.rows
    thin = floordiv(Expr.const(tile_sizes.SPLIT_THIN_UP_TO), smax(1, space.extents[row if wide else column]))
    result = [Relation(parts + thin, ">=", Expr.const(2)), pays]
    if wide:
        result.insert(0, Relation(count, "<=", _tile_count(request, row, column, tile_sizes.SPLIT_MATRIX[1])))
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
    large, small = (_tile_cost(request, tile, row, column) for tile in sizes)
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
        kernel = request.writer(name, tiles((tile.rows, tile.columns, tile.depth))).write_contraction()
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
    step_bytes = tile.depth * (tile.rows + tile.columns) * element_bytes(elements[0])
    most = shared_limit(request.arch or "") // step_bytes
    slots = {"t": min(8, most), "w": min(4, most)}.get(name[0], min(8, most) if tile in _SPLITS else 1)
    threads = 128 * min(2, tile.rows // 64) if tile in _SPLITS else 256
    accumulators = tile.accumulators if isinstance(tile, MatrixTile) else tile.rows * tile.columns // threads
    if count is None:
        row, column = (found[-1] if found else -1 for found in (dims.rows, dims.columns))
        count = _tile_count(request, row, column, tile)
    at_a_time = request.processors * (tile.blocks if isinstance(tile, SplitTile) else 1)
    if isinstance(tile, MatrixTile) and tile.cluster is not None:
        at_a_time //= tile_sizes.CLUSTER
    if depth is None:
        depth = space.extents[dims.depth[-1]] if dims.depth else Expr.const(1)
    steps = prod((space.extents[d] for d in dims.depth[:-1]), start=ceildiv(depth, tile.depth))
    made = Candidate(
        name, (tile.rows, tile.columns, tile.depth), step_bytes, slots, accumulators, ceildiv(count, at_a_time), steps,
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


def _tile_cost(
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
    count, at_once = _tile_count(request, row, column, tile), request.processors
    if tile.cluster is not None:
        count, at_once = tile_sizes.CLUSTER * count, at_once // tile_sizes.CLUSTER * tile_sizes.CLUSTER
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


def _is_ragged(request: Request) -> Expr:
    """1 where rows of the first result begin at no multiple of 16 bytes, so that no tensor map stores them, else 0. Of
    its strides all but that of rows are 1, as a tensor map asks for as well."""
    result = request.outputs[0][1]
    pitch = prod((s for s in result.strides if s.constant != 1), start=Expr.const(1)) if result.strides else None
    bytes_ = (result.dims[-1] if pitch is None else pitch) * element_bytes(result.element)
    return smin(1, mod(bytes_, tile_sizes.MAP_BYTES))


def _line_cost(request: Request, number: int) -> Expr:
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
        axes = operand_axes(request.space, number)
        found = mapped_layouts(type_, request.bases.get(value, ""), axes, request.facts, alignment)
        choices.append([(LETTERS[axes.index(axis)], open_) for axis, open_ in found])
    return [(a + b, tuple(dict.fromkeys((*left, *right)))) for a, left in choices[0] for b, right in choices[1]]


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
