"""Operands of matrix instructions that no tensor map can move are copied into scratch with padded rows first.

A tensor map asks for strides and addresses of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled), which a tensor with
an odd number of columns does not have. A copy costs what reading and writing the operand costs, a small share of a
large product; the multiply-adds that remain otherwise are an order of magnitude slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilewright.dialects.host.ops import AllocOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.shapes import as_tensor, scalar_type
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.builder import TileBuilder, constant_attribute
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, analyse
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter
from tilewright.lowering.lin_to_tile.tile_sizes import MatrixTile, SplitTile
from tilewright.passes.choose_mma import WARPGROUP_ARCH, has_instruction, sums_along_rows


@dataclass(frozen=True)
class MatrixDims:
    """The group dims of a contraction: rows of the left operand, columns of the right one, what is summed."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]


def matrix_dims(space: GroupSpace) -> MatrixDims:
    """The dims of the group's contraction, each kind in order."""
    contraction = space.contraction
    left, right = (
        {d for d in space.operand_dims(contraction, n) if d is not None and d not in space.reduced} for n in range(2)
    )
    own = space.dims_of_generic[contraction]
    return MatrixDims(
        tuple(d for d in space.parallel if d in left and d not in right),
        tuple(d for d in space.parallel if d in right and d not in left),
        tuple(own[d] for d in contraction.reduction_dims),
    )


def operand_axes(space: GroupSpace, number: int, arch: str | None = None) -> list[int]:
    """The axes of operand `number` along which a tensor map may run, last one first: those of its rows or columns, and
    of what is summed; of that the one that tiles run along where warpgroups of `arch` take just one operand otherwise.
    """
    found = matrix_dims(space)
    own = (found.rows, found.columns)[number][-1]
    dims = space.operand_dims(space.contraction, number)
    summed = {found.depth[-1]} if reads_along_sum(space, arch) else space.reduced
    return sorted({axis for axis, d in enumerate(dims) if d == own or d in summed}, reverse=True)


def own_axis(space: GroupSpace, number: int) -> int:
    """The axis of operand `number` that its rows or columns run along."""
    found = matrix_dims(space)
    return space.operand_dims(space.contraction, number).index((found.rows, found.columns)[number][-1])


def reads_along_sum(space: GroupSpace, arch: str | None) -> bool:
    """Whether the matrix instructions of an architecture read at least one of the operands only where the sum is
    contiguous."""
    return arch == WARPGROUP_ARCH and sums_along_rows(operand_element(space))


def through_registers(space: GroupSpace, number: int, axis: int, arch: str | None) -> bool:
    """Whether operand `number`, contiguous along `axis`, is one that instructions read from shared memory along the sum
    alone, but lies along its own dim: it is the left one then, and goes through registers."""
    return reads_along_sum(space, arch) and axis == own_axis(space, number)


def step_depth(space: GroupSpace, tile: MatrixTile | SplitTile) -> int:
    """Summed elements of a step. Tiles of matrix instructions state those of 16 bits: of others a step has as many
    bytes, and takes as long."""
    if tile in (tile_sizes.SPLIT_SMALL, tile_sizes.LARGE_TILE):
        return tile.depth
    return tile.depth * 2 // element_bytes(operand_element(space))


def suits_matrix_instructions(space: GroupSpace) -> bool:
    """Whether there are matrix instructions for a contraction's operands and sums, and rows, columns and a depth."""
    contraction, dims = space.contraction, matrix_dims(space)
    if not (dims.rows and dims.columns and dims.depth) or any(contraction.accesses):
        return False
    operands = {scalar_type(v.type) for v in contraction.ins}
    accumulator = scalar_type(contraction.result.type)
    return len(operands) == 1 and has_instruction(operands.pop(), contraction.precision) and accumulator == f32


def sum_axis(space: GroupSpace, number: int) -> int:
    """The axis of operand `number` along which its tiles run along the sum."""
    dims = list(space.operand_dims(space.contraction, number))
    return len(dims) - 1 - dims[::-1].index(matrix_dims(space).depth[-1])


def direct_layouts(
    space: GroupSpace, number: int, layouts: Mapping[SSAValue, BufType], base: str, facts: Facts, arch: str | None
) -> list[tuple[int, tuple[Relation, ...]]]:
    """The axes along which operand `number` may be contiguous to be moved as it is, with what that asks for.

    Where one operand must be contiguous along the sum, the right one is unless the left one is.
    """
    operands = space.contraction.ins
    found = mapped_layouts(layouts[operands[number]], base, operand_axes(space, number, arch), facts)
    if not reads_along_sum(space, arch):
        return found
    own, others = own_axis(space, number), list[Relation]()
    if number == 1:
        strides = layouts[operands[0]].strides or ()
        others.append(Relation(strides[sum_axis(space, 0)], "==", Expr.const(1)))
    answers = [facts.prove(r) for r in others]
    if operands[0] is operands[1] or Answer.DISPROVED in answers:
        return [(axis, asked) for axis, asked in found if axis != own]
    left = [r for r, a in zip(others, answers, strict=True) if a is not Answer.PROVED]
    return [(axis, (*asked, *left) if axis == own else asked) for axis, asked in found]


def operand_element(space: GroupSpace) -> Attribute:
    """The element type of the contraction's left operand."""
    return scalar_type(space.contraction.ins[0].type)


def mapped_layouts(
    type_: BufType, base: str, axes: Sequence[int], facts: Facts, alignment: int = tile_sizes.MAP_BYTES
) -> list[tuple[int, tuple[Relation, ...]]]:
    """The axes along which a tensor map can move a buffer, each with what it asks for beyond the facts.

    `base` is the symbol of the address, "" for scratch, which is aligned. Strides must be positive, as those of scratch
    that has elements are: a map has no others. With another `alignment`, in bytes, what asynchronous copies of as many
    can move.
    """
    multiple = alignment // element_bytes(type_.element)
    found: list[tuple[int, tuple[Relation, ...]]] = []
    for axis in axes:
        relations: list[Relation] = []
        strides = type_.strides or ()
        relations.append(Relation(strides[axis], "==", Expr.const(1)))
        for other, stride in enumerate(strides):
            if other != axis and type_.dims[other].constant != 1:
                if base:
                    relations.append(Relation(stride, ">=", Expr.const(1)))
                relations.append(Relation(mod(stride, multiple), "==", Expr.const(0)))
        if base:
            relations.append(Relation(mod(Expr.symbol(base), alignment), "==", Expr.const(0)))
        answers = [facts.prove(r) for r in relations]
        if Answer.DISPROVED not in answers:
            found.append((axis, tuple(r for r, a in zip(relations, answers, strict=True) if a is not Answer.PROVED)))
    return found


def row_multiple(value: SSAValue, arch: str | None) -> int:
    """What the rows of scratch for `value` are a multiple of, in elements: as tensor maps ask where a product on matrix
    instructions may read it, else 1."""
    type_ = as_tensor(value.type)
    element = type_.element_type
    if arch != WARPGROUP_ARCH or type_.get_num_dims() < 2:
        return 1
    for use in value.uses:
        op = use.operation
        if isinstance(op, GroupOp):
            read, generics = op.body.block.args[use.index], [g for g in op.body.block.ops if isinstance(g, GenericOp)]
        else:
            read, generics = value, [op] if isinstance(op, GenericOp) else []
        if any(g.is_contraction and read in g.ins and has_instruction(element, g.precision) for g in generics):
            return tile_sizes.ROW_BYTES // element_bytes(element)
    return 1


def worth_copying(
    space: GroupSpace, facts: Facts, copied: Expr, scratch: Expr, max_workspace: int | None
) -> list[Relation] | None:
    """When copies of operands, of `copied` elements together, pay: the multiply-adds of threads that are done without
    them, in tiles of at least the small one's rows and columns, take longer; and scratch (in bytes, for all operands)
    is within the limit. What the facts prove is left out; None if they refute it."""
    found, least = matrix_dims(space), tile_sizes.SMALL_CONTRACTION[0]
    total = Expr.const(1)
    for d, size in enumerate(space.extents):
        total = total * (smax(size, least) if d in (found.rows[-1], found.columns[-1]) else size)
    results = space.extents[found.rows[-1]] * space.extents[found.columns[-1]]
    cost = tile_sizes.COPY_LAUNCH + tile_sizes.COPY_BYTE * element_bytes(operand_element(space)) * copied
    wanted = [Relation(cost, "<=", total), Relation(results, ">=", Expr.const(1))]
    if max_workspace is not None:
        wanted.append(Relation(scratch, "<=", Expr.const(max_workspace)))
    answers = [facts.prove(r) for r in wanted]
    if Answer.DISPROVED in answers:
        return None
    return [r for r, a in zip(wanted, answers, strict=True) if a is not Answer.PROVED]


def copy_kernel(
    name: str, value: SSAValue, source: BufType, scratch: AllocOp, *, turned: bool, other: int | None = None
) -> KernelOp:
    """A kernel that copies `value`, which lies as `source`, into scratch of the same sizes, with zeros in the padding.
    Its tiles run along the scratch's rows and the dim `other` (the dim before in memory, unless it is given); those of
    a `turned` one are square, for a source that is contiguous along that one."""
    type_ = as_tensor(value.type)
    dims = tuple(range(source.rank))
    generic = GenericOp.build_from([value], [dims], dims, None, type_, lambda _, args: args[0])
    space = analyse([generic], [generic.result])
    target = buf_type(scratch.memory_dims, source.element, "global", strided(scratch.strides))
    edges = tile_sizes.COPY_TURNED if turned else tile_sizes.COPY_ROWS
    wide = (scratch.order[-2] if other is None else other, scratch.order[-1])
    tiles = {**dict.fromkeys(dims, 1), **dict(zip(wide, edges, strict=True))}
    kernel = KernelWriter(name, space, [(value, source)], [(generic.result, target)], tiles).write_elementwise()
    generic.drop_all_references()
    return kernel


def paired_kernel(name: str, operands: Sequence[tuple[SSAValue, BufType, AllocOp]]) -> KernelOp:
    """A kernel that makes the copies of two matrices with contiguous rows: the blocks of the first, then those of the
    second, so that one launch does for both. Arguments are the two matrices, then their scratch."""
    sources = [source for _, source, _ in operands]
    targets = [
        buf_type(scratch.memory_dims, source.element, "global", strided(scratch.strides))
        for _, source, scratch in operands
    ]
    block = Block(arg_types=[*sources, *targets, IndexType()])
    build, (number,) = TileBuilder(block), block.args[-1:]
    for n, (value, _, _) in enumerate(operands):
        block.args[n].name_hint, block.args[n + 2].name_hint = value.name_hint, f"out{n}"
    rows, columns = tile_sizes.COPY_ROWS
    counts = [(ceildiv(source.dims[0], rows), ceildiv(source.dims[1], columns)) for source in sources]
    number.name_hint = "i"
    fragment = build.alloc([rows, columns], sources[0].element, "t")
    first, here = Expr.const(0), Expr.symbol("i")
    for n, (down, across) in enumerate(counts):
        # At most one turn: of the blocks of this copy alone.
        mine = smin(1, first + down * across - here) if n == 0 else smin(1, here - first + 1)
        with build.loop(mine, 1, "once", where={"i": number}):
            row = floordiv(here - first, smax(1, across))
            where: dict[str, SSAValue] = {"i": number}
            at = [
                build.expression(rows * row, where, "o0"),
                build.expression(columns * (here - first - row * across), where, "o1"),
            ]
            zero = constant_attribute(0, sources[0].element)
            build.add(CopyOp(block.args[n], at, fragment, [], bounds=["clip", "clip"], other=zero))
            build.store(fragment, block.args[n + 2], at)
        first = first + down * across
    return KernelOp(name, [first], Region(block))
