"""One `lin.generic` out of two: an elementwise producer moves into the body of the generic that reads it.

Pure construction: nothing here decides whether a fusion pays, and nothing is inserted or erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.body import IndexOp, YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.indexing import OperandMap
from tilewright.dialects.lin.shapes import is_unit, scalar_type, shape_of

CHEAP_MATH: frozenset[type[Operation]] = frozenset(
    {math.AbsFOp, math.AbsIOp, math.CeilOp, math.CopySignOp, math.FloorOp, math.FmaOp, math.RoundEvenOp, math.TruncOp}
)
"""Ops of `math` that cost about one instruction; the others are a call or run on the special function unit."""

COSTLY_ARITH: frozenset[type[Operation]] = frozenset(
    {
        arith.CeilDivSIOp,
        arith.CeilDivUIOp,
        arith.DivfOp,
        arith.DivSIOp,
        arith.DivUIOp,
        arith.FloorDivSIOp,
        arith.RemSIOp,
        arith.RemUIOp,
    }
)
"""Ops of `arith` that compile to many instructions."""


def is_elementwise(op: Operation) -> bool:
    """Whether the op is a generic without reduction dims."""
    return isinstance(op, GenericOp) and op.combine_attr is None


def is_cheap(op: GenericOp) -> bool:
    """Whether computing the body twice costs less than storing its value once."""
    for inner in op.body.block.ops:
        inner_class = type(inner)
        if inner_class in COSTLY_ARITH:
            return False
        if inner.name.startswith("math.") and inner_class not in CHEAP_MATH:
            return False
    return True


def moves_data_only(op: GenericOp) -> bool:
    """Whether the body yields its argument as it is: a transpose, a broadcast, a copy."""
    yielded = op.yielded
    return op.combine_attr is None and isinstance(yielded.owner, Block) and yielded.owner is op.body.block


def has_outer_product(op: GenericOp) -> bool:
    """Whether each operand of a contraction walks a parallel dim that the other does not: what makes it a matmul."""
    parallel = set(op.out_map)
    left, right = (parallel.intersection(d for d in m if d is not None) for m in op.operand_maps)
    return bool(left - right) and bool(right - left)


@dataclass
class _Operands:
    """The operands of the op being built: each (value, indices) once, with its scalar in the body."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])
    maps: list[OperandMap] = field(default_factory=list[OperandMap])
    accesses: list[AccessAttr | None] = field(default_factory=list[AccessAttr | None])
    block: Block = field(default_factory=Block)

    def scalar(self, value: SSAValue, indices: OperandMap, access: AccessAttr | None, like: SSAValue) -> SSAValue:
        """The block argument for the value read at these indices, called as `like` if it is new."""
        for position, known in enumerate(zip(self.values, self.maps, self.accesses, strict=True)):
            if known[0] is value and known[1:] == (indices, access):
                return self.block.args[position]
        self.values.append(value)
        self.maps.append(indices)
        self.accesses.append(access)
        argument = self.block.insert_arg(scalar_type(value.type), len(self.block.args))
        argument.name_hint = like.name_hint
        return argument

    def drop_unused(self, out: tuple[int, ...]) -> None:
        """Drop operands that the body does not read, unless an iteration dim would be left without a size, or another
        operand is read where they say."""
        for position in reversed(range(len(self.values))):
            argument = self.block.args[position]
            if argument.first_use is not None or any(a is not None and position in a.values for a in self.accesses):
                continue
            others = {d for i, m in enumerate(self.maps) if i != position for d in m}
            if others.union(out) >= {d for d in self.maps[position] if d is not None}:
                self.block.erase_arg(argument)
                del self.values[position], self.maps[position], self.accesses[position]
                later = {v: v - (v > position) for v in range(len(self.values) + 1)}
                self.accesses = [None if a is None else a.mapped(values=later) for a in self.accesses]

    def build(self, like: GenericOp) -> GenericOp:
        """The generic around the block, with all but operands and body from `like`."""
        made = GenericOp.build_around(
            self.values, self.maps, like.out_map, like.combine, like.result.type, Region(self.block), self.accesses
        )
        # What is no contraction any more computes exactly, as precision permits.
        made.precision = like.precision if made.is_contraction else None
        made.attributes.update(like.attributes)
        made.location = like.location
        made.result.name_hint = like.result.name_hint
        return made


def fuse_producer(consumer: GenericOp, producer: GenericOp) -> GenericOp | None:
    """`consumer` with the body of `producer` in the place of every read of its result; None where that cannot be said.

    `producer` has no reduction dims. A value keeps its element type between the two bodies, so its rounding stays. None
    when a dim of the consumer would be left without an operand that has it, an operand would be read at index 0 of a
    size that is 1 by facts alone.
    """
    assert not reads_at_positions(consumer, producer.result)  # those who call it looked
    operands = _Operands()
    builder = Builder(InsertPoint.at_end(operands.block))
    scalars: dict[SSAValue, SSAValue] = {}
    inlined: dict[OperandMap, SSAValue] = {}
    places: dict[int, int] = {}
    for number, (argument, value, indices, access) in enumerate(_reads(consumer)):
        if value is not producer.result:
            moved = None if access is None else access.mapped(values=places)
            scalars[argument] = operands.scalar(value, indices, moved, argument)
            places[number] = operands.block.args.index(scalars[argument])
            continue
        if indices not in inlined:
            # Result dim r of the producer is its iteration dim out_map[r], and is read at indices[r].
            at = dict(zip(producer.out_map, indices, strict=True))
            inner: dict[SSAValue, SSAValue] = {}
            inner_places: dict[int, int] = {}
            for inner_number, (inner_argument, inner_value, inner_indices, access) in enumerate(_reads(producer)):
                composed = tuple(None if d is None else at[d] for d in inner_indices)
                moved = None if access is None else access.mapped(at, inner_places)
                if access is None and not _reads_units_only(inner_value, composed):
                    return None
                inner[inner_argument] = operands.scalar(inner_value, composed, moved, inner_argument)
                inner_places[inner_number] = operands.block.args.index(inner[inner_argument])
            inlined[indices] = _copy_body(producer, inner, builder, at)
        scalars[argument] = inlined[indices]
    builder.insert(YieldOp(_copy_body(consumer, scalars, builder)))
    operands.drop_unused(consumer.out_map)
    named = {d for m in operands.maps for d in m}.union(consumer.out_map)
    if not named.issuperset(range(consumer.iteration_dims)):
        return None
    return operands.build(consumer)


def tidy_operands(op: GenericOp) -> GenericOp | None:
    """`op` without operands that its body does not read or reads twice at the same indices; None when it has none."""
    reads = set(zip(op.ins, op.operand_maps, op.accesses, strict=True))
    if len(reads) == len(op.ins) and all(argument.first_use is not None for argument in op.body.block.args):
        return None
    operands = _Operands()
    scalars: dict[SSAValue, SSAValue] = {}
    places: dict[int, int] = {}
    for number, (argument, value, indices, access) in enumerate(_reads(op)):
        moved = None if access is None else access.mapped(values=places)
        scalars[argument] = operands.scalar(value, indices, moved, argument)
        places[number] = operands.block.args.index(scalars[argument])
    builder = Builder(InsertPoint.at_end(operands.block))
    builder.insert(YieldOp(_copy_body(op, scalars, builder)))
    operands.drop_unused(op.out_map)
    return None if len(operands.values) == len(op.ins) else operands.build(op)


def reads_at_positions(op: GenericOp, result: SSAValue) -> bool:
    """Whether an op reads a value at computed positions, or another operand where the value says."""
    accesses = op.accesses
    through = {v for a in accesses if a is not None for v in a.values}
    return any(v is result and (accesses[n] is not None or n in through) for n, v in enumerate(op.ins))


def _reads(op: GenericOp) -> Iterator[tuple[SSAValue, SSAValue, OperandMap, AccessAttr | None]]:
    """For each operand its scalar in the body, the operand, and how it is read."""
    return zip(op.body.block.args, op.ins, op.operand_maps, op.accesses, strict=True)


def _reads_units_only(value: SSAValue, indices: OperandMap) -> bool:
    """Whether each index 0 is of a static size 1."""
    if None not in indices:
        return True
    return all(index is not None or is_unit(size) for index, size in zip(indices, shape_of(value.type), strict=True))


def renumber(op: GenericOp, number: dict[int, int], operands: list[SSAValue] | None = None) -> GenericOp:
    """A copy of `op` whose iteration dim d is called number[d], a permutation; with other operands if given."""
    copy = GenericOp.build_around(
        list(op.ins) if operands is None else operands,
        [tuple(None if d is None else number[d] for d in m) for m in op.operand_maps],
        [number[d] for d in op.out_map],
        op.combine,
        op.result.type,
        op.body.clone(),
        [None if a is None else a.mapped(number) for a in op.accesses],
    )
    for inner in copy.body.block.ops:
        if isinstance(inner, IndexOp):
            inner.dim_attr = IndexOp(number[inner.dim]).dim_attr
    copy.precision = op.precision
    copy.attributes.update(op.attributes)
    copy.location = op.location
    copy.result.name_hint = op.result.name_hint
    return copy


def _copy_body(
    op: GenericOp, scalars: dict[SSAValue, SSAValue], builder: Builder, dims: Mapping[int, int | None] | None = None
) -> SSAValue:
    """Copy the ops of a body, its arguments replaced, and return the scalar that it yields.

    `dims` renames the iteration dims that the body asks for; None is a dim that stands at 0.
    """
    for inner in op.body.block.ops:
        if isinstance(inner, IndexOp) and dims is not None:
            at = dims[inner.dim]
            zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
            scalars[inner.result] = builder.insert(zero if at is None else IndexOp(at)).results[0]
        elif not isinstance(inner, YieldOp):
            builder.insert(inner.clone(scalars))
    return scalars.get(op.yielded, op.yielded)
