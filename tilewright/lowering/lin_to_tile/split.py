"""Split K: a product with few tiles and a long sum is cut along the sum into parts that run side by side.

One kernel adds up each part into scratch of its own, [parts, rows, columns] in f32 or i32; a second one adds the parts
and goes on with what follows the product. How many parts there are the plan computes (`host.let`), so that one pair of
kernels serves all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.host.ops import AllocOp
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Expr, Facts, ceildiv, dims_of, floordiv, smax, smin
from tilewright.dialects.sym.attributes import symbolic_tensor
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, analyse
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter, Part
from tilewright.lowering.lin_to_tile.tile_sizes import SplitTile

PITCH = 4
"""Elements that rows of partial sums are a multiple of: 16 bytes, the widest access of a thread."""


@dataclass(frozen=True)
class Split:
    """Two kernels that run one after the other, and what lies between them."""

    scratch: AllocOp
    """The partial sums, as a template of the op that the plan gets."""
    first: KernelOp
    second: KernelOp
    read_first: tuple[SSAValue, ...]
    """Values of the group that the first kernel takes, followed by the scratch."""
    read_second: tuple[SSAValue, ...]
    """Values of the group that the second one takes after the scratch: read, written, scalars."""
    scalars_first: tuple[SSAValue, ...] = ()
    """Those that the first one takes after the scratch."""


def part_count(count: Expr, depth: Expr, tile: SplitTile, processors: int) -> Expr:
    """How many parts fill the processors when a product has `count` tiles; each part has some steps to do, and there is
    one at least."""
    most = ceildiv(depth, tile.depth * tile.least_steps)
    return smax(1, smin(floordiv(Expr.const(processors * tile.blocks), smax(1, count)), most))


def part_depth(depth: Expr, parts: Expr, tile: SplitTile) -> Expr:
    """Summed elements of a part, a multiple of the tile's depth."""
    return tile.depth * ceildiv(depth, tile.depth * parts)


def partial_product(contraction: GenericOp, parts: Expr, order: Sequence[int] | None = None) -> GenericOp:
    """The contraction with a result for each part, whose dims are the part's own and the result's, in this order of
    them."""
    order = range(len(contraction.out_map)) if order is None else order
    maps = [tuple(None if d is None else d + 1 for d in own) for own in contraction.operand_maps]
    out_map = [0, *(contraction.out_map[axis] + 1 for axis in order)]
    sizes = dims_of(contraction.result.type)
    type_ = symbolic_tensor(contraction.result.type.element_type, [parts, *(sizes[axis] for axis in order)])
    made = GenericOp.build_around(
        list(contraction.ins), maps, out_map, Combine.SUM, type_, contraction.body.clone(), contraction.accesses
    )
    made.precision = contraction.precision
    made.result.name_hint = "partial"
    return made


def sum_of_parts(partial: SSAValue, contraction: GenericOp) -> GenericOp:
    """What adds the parts: the contraction's result."""
    read = tuple(range(len(contraction.out_map) + 1))
    made = GenericOp.build_from(
        [partial], [read], read[1:], Combine.SUM, contraction.result.type, lambda _, args: args[0]
    )
    made.result.name_hint = contraction.result.name_hint
    return made


def write_split(
    name: str,
    space: GroupSpace,
    inputs: Sequence[tuple[SSAValue, Attribute]],
    outputs: Sequence[tuple[SSAValue, BufType]],
    tile: SplitTile,
    row: int,
    column: int,
    symbols: tuple[str, str],
    facts: Facts,
) -> Split:
    """The kernels of a contraction group, cut into parts.

    `row` and `column` are the axes of the contraction's result along which the tile has its rows and its columns (the
    first kernel sees the scratch in their order, since an instruction's rows are a result's first dims); `symbols` the
    names of the number of parts and of their depth.
    """
    contraction = space.contraction
    parts, chunk = Expr.symbol(symbols[0]), Expr.symbol(symbols[1])
    types = dict(inputs)
    partial = partial_product(contraction, parts)
    scratch = AllocOp(partial.result.type, PITCH)
    memory = buf_type(scratch.memory_dims, partial.result.type.element_type, "global", strided(scratch.strides))
    order = list(range(len(contraction.out_map)))
    if row > column:
        order[column], order[row] = row, column
    places = [0, *(1 + axis for axis in order)]
    seen = buf_type(
        [scratch.memory_dims[place] for place in places],
        memory.element,
        "global",
        strided([scratch.strides[place] for place in places]),
    )
    product = partial_product(contraction, parts, order)
    loads = [g for g in space.generics if space.runs_along_sum(g)]
    own = analyse([*loads, product], [product.result], in_loads=True)
    at = own.dims_of_value[product.result]
    sizes = dict.fromkeys(range(len(own.extents)), 1)
    sizes[at[1 + order.index(row)]], sizes[at[1 + order.index(column)]] = tile.rows, tile.columns
    summed = own.dims_of_generic[product][contraction.reduction_dims[-1] + 1]
    sizes[summed] = tile.depth
    made = {g.result for g in loads}
    operands = [v for v in dict.fromkeys(v for g in (*loads, product) for v in g.ins) if v not in made]
    part = Part(at[0], summed, chunk)
    first = KernelWriter(
        f"{name}_parts", own, [(v, types[v]) for v in operands], [(product.result, seen)], sizes, part
    ).write_contraction()

    added = sum_of_parts(partial.result, contraction)
    renamed: dict[SSAValue, SSAValue] = {contraction.result: added.result}
    generics = [added]
    for generic in space.generics:
        if generic is not contraction and generic not in loads:
            copy = generic.clone(renamed)
            copy.result.name_hint = generic.result.name_hint
            generics.append(copy)
    after = analyse(generics, [renamed[v] for v in space.results])
    read = [(v, t) for v, t in inputs if any(v in g.ins for g in generics)]
    chosen = dict.fromkeys(range(len(after.extents)), 1)
    lying = after.operand_dims(added, 0)
    for d, size in zip((lying[0], lying[-2], lying[-1]), tile_sizes.SPLIT_SUMS, strict=True):
        assert d is not None
        chosen[d] = tile_sizes.fit(size, facts.range(after.extents[d])[1])
    second = KernelWriter(
        f"{name}_sum",
        after,
        [(partial.result, memory), *read],
        [(renamed[v], t) for v, t in outputs],
        chosen,
    ).write_looping_reduction()
    for generic in (*generics, partial, product):
        generic.drop_all_references()
    buffers = [v for v, t in read if isinstance(t, BufType)]
    scalars = [v for v, t in read if not isinstance(t, BufType)]
    return Split(
        scratch,
        first,
        second,
        tuple(v for v in operands if isinstance(types[v], BufType)),
        (*buffers, *(v for v, _ in outputs), *scalars),
        tuple(v for v in operands if not isinstance(types[v], BufType)),
    )
