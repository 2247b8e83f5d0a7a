"""Operands of matrix instructions that no tensor map can move are copied into scratch with padded rows first.

A tensor map asks for strides and addresses of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled), which a tensor with
an odd number of columns does not have. A copy costs what reading and writing the operand costs, a small share of a
large product; the multiply-adds that remain otherwise are an order of magnitude slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IndexType
from xdsl.ir import Block, Region, SSAValue

from tilewright.dialects.host.ops import AllocOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.shapes import as_tensor
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.builder import TileBuilder, constant_attribute
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, analyse
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter


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


def operand_axes(space: GroupSpace, number: int) -> list[int]:
    """The axes of operand `number` along which a tensor map may run, last one first: those of its rows or columns, and
    of what is summed."""
    found = matrix_dims(space)
    own = (found.rows, found.columns)[number][-1]
    dims = space.operand_dims(space.contraction, number)
    return sorted({axis for axis, d in enumerate(dims) if d == own or d in space.reduced}, reverse=True)


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
    if arch != "sm_90a" or type_.get_num_dims() < 2 or not isinstance(type_.element_type, BFloat16Type | Float16Type):
        return 1
    for use in value.uses:
        op = use.operation
        if isinstance(op, GroupOp):
            read, generics = op.body.block.args[use.index], [g for g in op.body.block.ops if isinstance(g, GenericOp)]
        else:
            read, generics = value, [op] if isinstance(op, GenericOp) else []
        if any(g.is_contraction and read in g.ins for g in generics):
            return tile_sizes.ROW_BYTES // element_bytes(type_.element_type)
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
    cost = tile_sizes.COPY_LAUNCH + tile_sizes.COPY_ELEMENT * copied
    wanted = [Relation(cost, "<=", total), Relation(results, ">=", Expr.const(1))]
    if max_workspace is not None:
        wanted.append(Relation(scratch, "<=", Expr.const(max_workspace)))
    answers = [facts.prove(r) for r in wanted]
    if Answer.DISPROVED in answers:
        return None
    return [r for r, a in zip(wanted, answers, strict=True) if a is not Answer.PROVED]


def copy_kernel(name: str, value: SSAValue, source: BufType, scratch: AllocOp, *, turned: bool) -> KernelOp:
    """A kernel that copies `value`, which lies as `source`, into scratch of the same sizes, with zeros in the padding.
    A `turned` one has square tiles, for a source that is contiguous along the dim before the last."""
    type_ = as_tensor(value.type)
    dims = tuple(range(source.rank))
    generic = GenericOp.build_from([value], [dims], dims, None, type_, lambda _, args: args[0])
    space = analyse([generic], [generic.result])
    target = buf_type(scratch.memory_dims, source.element, "global", strided(scratch.strides))
    edges = tile_sizes.COPY_TURNED if turned else tile_sizes.COPY_ROWS
    tiles = {**dict.fromkeys(dims, 1), **dict(zip(dims[-2:], edges[-len(dims[-2:]) :], strict=True))}
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
            where = {"i": number}
            at = [
                build.expression(rows * row, where, "o0"),
                build.expression(columns * (here - first - row * across), where, "o1"),
            ]
            zero = constant_attribute(0, sources[0].element)
            build.add(CopyOp(block.args[n], at, fragment, [], bounds=["clip", "clip"], other=zero))
            build.store(fragment, block.args[n + 2], at)
        first = first + down * across
    return KernelOp(name, [first], Region(block))
