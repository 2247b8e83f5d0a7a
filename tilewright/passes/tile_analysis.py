"""What tile passes ask of a kernel: which fragment dims are one iteration dim, what is known where an op stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.sym import Answer, Expr, Facts, Relation, ceildiv
from tilewright.dialects.sym.analysis import IndexScope, module_facts, value_symbol
from tilewright.dialects.sym.expr import from_terms
from tilewright.dialects.sym.index import members
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp, SliceOp
from tilewright.dialects.tile.compute import MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.iteration import BROADCAST
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp
from tilewright.dialects.tile.types import BufType


def kernels_of(module: ModuleOp) -> list[KernelOp]:
    """The tile kernels of a module, in order."""
    return [op for op in module.body.block.ops if isinstance(op, KernelOp)]


def buf(value: SSAValue) -> BufType:
    """The buffer type of a value."""
    if not isinstance(value.type, BufType):
        raise TypeError(f"expected a !tile.buf, got {value.type}")
    return value.type


def space(value: SSAValue) -> str:
    """Memory space of a buffer, or `scalar`."""
    return value.type.space.data if isinstance(value.type, BufType) else "scalar"


def mapped_operands(op: Operation) -> list[tuple[SSAValue, tuple[int, ...]]]:
    """Fragments of a map, reduce, mma or gather with the iteration dim of each of their dims."""
    if isinstance(op, MapOp):
        return [(v, m) for v, m in (*op.mapped_inputs, *op.mapped_outputs) if isinstance(v.type, BufType)]
    if isinstance(op, ReduceOp):
        return [(op.source, op.source_map), (op.target, op.target_map)]
    if isinstance(op, MmaOp):
        operands = zip((op.lhs, op.rhs, op.acc), op.operand_dims, strict=True)
        return [(value, own) for value, own in operands if space(value) == "fragment"]
    if isinstance(op, GatherOp):
        target = [(op.target, tuple(range(op.tile_type.rank)))] if space(op.target) == "fragment" else []
        return [*target, *op.mapped_values]
    return []


@dataclass
class IterationDims:
    """The iteration dims of a kernel: classes of fragment dims that must be spread over threads in the same way.

    A dim of size 1 that is broadcast belongs to no class (`dims` has None there).
    """

    dims: dict[SSAValue, tuple[int | None, ...]] = field(default_factory=dict[SSAValue, tuple[int | None, ...]])
    sizes: list[int] = field(default_factory=list[int])

    def fragments(self) -> list[SSAValue]:
        """Fragments in program order."""
        return list(self.dims)

    def widest(self) -> SSAValue | None:
        """The fragment with most elements (the first of them), which the others follow."""
        return max(self.dims, key=lambda v: buf(v).count, default=None)


def iteration_dims(kernel: KernelOp) -> IterationDims:
    """The classes of a kernel's fragment dims, numbered in order of first appearance."""
    parent: dict[tuple[SSAValue, int], tuple[SSAValue, int]] = {}

    def find(node: tuple[SSAValue, int]) -> tuple[SSAValue, int]:
        parent.setdefault(node, node)
        while parent[node] != node:
            node = parent[node]
        return node

    fragments = [
        op.results[0]
        for op in kernel.walk()
        if isinstance(op, AllocOp | SliceOp) and space(op.results[0]) == "fragment"
    ]
    for fragment in fragments:
        for axis in range(buf(fragment).rank):
            find((fragment, axis))
    still: set[tuple[SSAValue, int]] = set()
    for op in kernel.walk():
        first: dict[int, tuple[SSAValue, int]] = {}
        for value, own in mapped_operands(op):
            for axis, d in enumerate(own):
                if d == BROADCAST:
                    still.add((value, axis))
                elif d in first:
                    a, b = find(first[d]), find((value, axis))
                    if a != b:
                        parent[b] = a
                else:
                    first[d] = (value, axis)
    found = IterationDims()
    numbers: dict[tuple[SSAValue, int], int] = {}
    for fragment in fragments:
        own_dims: list[int | None] = []
        for axis, size in enumerate(buf(fragment).sizes):
            root = find((fragment, axis))
            if (fragment, axis) in still and size == 1:
                own_dims.append(None)
                continue
            if root not in numbers:
                numbers[root] = len(found.sizes)
                found.sizes.append(size)
            own_dims.append(numbers[root])
        found.dims[fragment] = tuple(own_dims)
    return found


class KernelScopes:
    """What is known at each op of a kernel: facts of the module, assumptions, ranges of coordinates and loop variables.

    What a loop implies (its variable is below the upper bound, so the bound is positive) holds inside the loop alone.
    """

    def __init__(self, kernel: KernelOp) -> None:
        module = kernel.parent_op()
        facts = module_facts(module) if isinstance(module, ModuleOp) else Facts()
        for relation in kernel.assumes.data:
            facts.add(relation.data, "assumed by the variant")
        scope = IndexScope(facts)
        for coordinate, size in zip(kernel.coordinates, kernel.grid.data, strict=True):
            scope.bounded(coordinate, 0, size, "grid coordinate")
        self._scopes: dict[Block, IndexScope] = {kernel.body.block: scope}
        self.kernel = kernel
        for op in kernel.walk():
            if isinstance(op, RasterOp):
                for result, size in zip(op.results, op.sizes.data, strict=True):
                    scope.bounded(result, 0, size, "place in a raster")
            elif isinstance(op, BlockCountOp):
                least = Expr.const(kernel.cluster_size)
                scope.require(Relation(value_symbol(op.res), ">=", least), "number of blocks")

    def at(self, op: Operation) -> IndexScope:
        """The scope of the block that holds `op`."""
        block = op.parent
        if block is None:
            raise ValueError("expected an op inside a kernel")
        return self._of(block)

    def _of(self, block: Block) -> IndexScope:
        found = self._scopes.get(block)
        if found is not None:
            return found
        owner = block.parent_op()
        if owner is None or owner.parent is None:
            raise ValueError("expected a block inside a kernel")
        outer = self._of(owner.parent)
        if not isinstance(owner, ForOp):
            self._scopes[block] = outer
            return outer
        scope = outer.child()
        names = {name: scope.expr(value) for name, value in owner.where.items()}
        lower, upper, step = (e.data.substitute(names) for e in (owner.lower, owner.upper, owner.step))
        turn = value_symbol(owner.variable)
        scope.bind(owner.variable, lower + step * turn)
        scope.require(Relation(turn, ">=", Expr.const(0)), "loop variable")
        scope.require(Relation(lower + step * turn, "<", upper), "loop variable")
        if step.constant is not None:
            scope.require(Relation(turn, "<", ceildiv(upper - lower, step)), "loop variable")
        self._scopes[block] = scope
        return scope

    def proved(self, op: Operation, relation: Relation) -> bool:
        """Whether the relation holds at `op`, for certain."""
        return self.at(op).facts.prove(relation) is Answer.PROVED

    def divides(self, op: Operation, e: Expr, divisor: int) -> bool:
        """Whether `divisor` divides the expression at `op`, for certain."""
        return divisor == 1 or self.at(op).facts.divisible(e, divisor) is Answer.PROVED


def copies(kernel: KernelOp) -> Iterator[CopyOp]:
    """The copies of a kernel, in program order."""
    for op in kernel.walk():
        if isinstance(op, CopyOp):
            yield op


def gathers(kernel: KernelOp) -> Iterator[GatherOp]:
    """The gathers of a kernel, in program order."""
    for op in kernel.walk():
        if isinstance(op, GatherOp):
            yield op


def fast_dim(gather: GatherOp, scopes: KernelScopes) -> int | None:
    """The target dim along which a gather moves through global memory in the smallest steps; None for rank 0.

    Steps of a dim that occurs in the index of a contiguous source dim, by its coefficient; the last dim if none does.
    """
    sizes, strides = gather.tile_type.sizes, buf(gather.source).strides
    best: tuple[int, int] | None = None
    for axis, expr in enumerate(gather.exprs):
        if strides is not None and not scopes.proved(gather, Relation(strides[axis], "==", Expr.const(1))):
            continue
        if strides is None and axis != len(gather.exprs) - 1:
            continue
        for monomial, coefficient in expr.terms:
            found = members([from_terms({monomial: 1})], "d")
            if len(found) == 1 and sizes[found[0]] > 1 and (best is None or abs(coefficient) < best[0]):
                best = abs(coefficient), found[0]
    if best is not None:
        return best[1]
    return len(sizes) - 1 if sizes else None


def global_side(copy: CopyOp) -> tuple[SSAValue, list[SSAValue]] | None:
    """The global buffer of a copy and its offsets, or None for a copy on chip."""
    if space(copy.source) == "global":
        return copy.source, list(copy.source_offsets)
    if space(copy.target) == "global":
        return copy.target, list(copy.target_offsets)
    return None


def contiguous_dim(copy: CopyOp, scopes: KernelScopes) -> int | None:
    """The dim along which a copy's global buffer is contiguous for certain; None for rank 0.

    The last dim where strides are not known.
    """
    side = global_side(copy)
    if side is None or buf(side[0]).rank == 0:
        return None
    strides = buf(side[0]).strides
    if strides is None:
        return buf(side[0]).rank - 1
    for d, stride in reversed(list(enumerate(strides))):
        if scopes.proved(copy, Relation(stride, "==", Expr.const(1))):
            return d
    return buf(side[0]).rank - 1
