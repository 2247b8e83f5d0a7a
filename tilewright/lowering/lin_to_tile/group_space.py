"""The iteration space that the generics of one kernel share, and what kind of kernel it asks for.

Dims of generics meet where one generic reads what another one made, and where two generics read one input. The second
kind is given up where it would make a generic walk one dim twice: an input may be read in several ways at once (x plus
its transpose).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import SSAValue

from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Expr
from tilewright.dialects.sym.index import dim


class Kind(StrEnum):
    """What shape of kernel a group asks for."""

    ELEMENTWISE = "elementwise"
    CONTRACTION = "contraction"
    REDUCTION = "reduction"
    UNSUPPORTED = "unsupported"


@dataclass
class GroupSpace:
    """Generics in order, their shared dims numbered from 0, and where each generic and value lies among them."""

    generics: list[GenericOp]
    results: list[SSAValue]
    extents: list[Expr] = field(default_factory=list[Expr])
    dims_of_generic: dict[GenericOp, tuple[int, ...]] = field(default_factory=dict[GenericOp, tuple[int, ...]])
    dims_of_value: dict[SSAValue, tuple[int, ...]] = field(default_factory=dict[SSAValue, tuple[int, ...]])
    reduced: frozenset[int] = frozenset()
    kind: Kind = Kind.UNSUPPORTED

    @property
    def parallel(self) -> list[int]:
        """Dims that no generic reduces, in the order of the first result that has them all."""
        rest = [d for d in range(len(self.extents)) if d not in self.reduced]
        for value in self.results:
            order = [d for d in self.dims_of_value[value] if d not in self.reduced]
            if set(order) == set(rest):
                return order
        return rest

    def operand_dims(self, generic: GenericOp, number: int) -> tuple[int | None, ...]:
        """Group dim of each dim of operand `number`; None where it is read at index 0.

        For an operand that is read at computed positions: the group dims that its value depends on.
        """
        own = self.dims_of_generic[generic]
        if indexed_read(generic, number) is not None:
            return tuple(own[d] for d in dims_read(generic, number))
        return tuple(None if d is None else own[d] for d in generic.operand_maps[number])

    @property
    def contraction(self) -> GenericOp:
        """The generic that contracts, in a CONTRACTION group."""
        return next(g for g in self.generics if g.reduction_dims)

    def runs_along_sum(self, generic: GenericOp) -> bool:
        """Whether a generic computes one value for each point of the reduced dims: in a CONTRACTION group, for an
        operand of the contraction."""
        return not generic.reduction_dims and bool(set(self.dims_of_generic[generic]) & self.reduced)


def indexed_read(generic: GenericOp, number: int) -> AccessAttr | None:
    """How operand `number` is read when no tile of it holds what is read: at computed positions, or along one dim
    twice (`%x[d0, d0]`, a diagonal, of which a tile would be almost all waste). None for any other."""
    access, own = generic.accesses[number], generic.operand_maps[number]
    moving = [d for d in own if d is not None]
    if access is not None or len(set(moving)) == len(moving):
        return access
    return AccessAttr.at([Expr.const(0) if d is None else dim(d) for d in own])


def dims_read(generic: GenericOp, number: int) -> tuple[int, ...]:
    """The iteration dims on which the value of an indexed read depends, ascending."""
    return tuple(sorted(set(generic.dims_read(number))))


class _Joined:
    """Union-find over hashable nodes, with the merged order of first appearance."""

    def __init__(self) -> None:
        self.parent: dict[tuple[int, int], tuple[int, int]] = {}

    def find(self, node: tuple[int, int]) -> tuple[int, int]:
        self.parent.setdefault(node, node)
        while self.parent[node] != node:
            node = self.parent[node]
        return node

    def join(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parent[max(a, b)] = min(a, b)

    def try_join(self, pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]], generics: Sequence[GenericOp]) -> None:
        """Joins all pairs, or none when some generic would have two dims that are one."""
        before = dict(self.parent)
        for a, b in pairs:
            self.join(a, b)
        for n, generic in enumerate(generics):
            roots = {self.find((n, d)) for d in range(generic.iteration_dims)}
            if len(roots) < generic.iteration_dims:
                self.parent = before
                return


def analyse(generics: Sequence[GenericOp], results: Sequence[SSAValue], *, in_loads: bool = False) -> GroupSpace:
    """The shared space of `generics` (in order), of which `results` leave the kernel; kind UNSUPPORTED if none is. With
    `in_loads` a contraction's operands may be computed along its sum, where the kernel loads them."""
    space = GroupSpace(list(generics), list(results))
    made: dict[SSAValue, int] = {g.result: n for n, g in enumerate(generics)}
    joined = _Joined()
    for n, generic in enumerate(generics):
        for d in range(generic.iteration_dims):
            joined.find((n, d))
        for number, operand in enumerate(generic.ins):
            producer = made.get(operand)
            if producer is None:
                continue
            if indexed_read(generic, number) is not None:
                return space  # other blocks may hold what is read: no one kernel
            for axis, d in enumerate(generic.operand_maps[number]):
                if d is not None:
                    joined.join((n, d), (producer, generics[producer].out_map[axis]))
    readers: dict[SSAValue, tuple[int, int]] = {}
    for n, generic in enumerate(generics):
        for number, operand in enumerate(generic.ins):
            if operand in made or not isinstance(operand.type, TensorType) or indexed_read(generic, number) is not None:
                continue
            first, first_operand = readers.setdefault(operand, (n, number))
            axes = zip(generics[first].operand_maps[first_operand], generic.operand_maps[number], strict=True)
            pairs = [((first, a), (n, b)) for a, b in axes if a is not None and b is not None]
            joined.try_join(pairs, generics)
    numbers: dict[tuple[int, int], int] = {}
    for n, generic in enumerate(generics):
        extents = generic.extents()
        own: list[int] = []
        for d in range(generic.iteration_dims):
            root = joined.find((n, d))
            if root not in numbers:
                numbers[root] = len(space.extents)
                space.extents.append(extents[d])
            own.append(numbers[root])
        space.dims_of_generic[generic] = tuple(own)
        space.dims_of_value[generic.result] = tuple(own[d] for d in generic.out_map)
    space.reduced = frozenset(space.dims_of_generic[g][d] for g in generics for d in g.reduction_dims)
    space.kind = _kind(space, in_loads=in_loads)
    return space


def _kind(space: GroupSpace, *, in_loads: bool) -> Kind:
    if any(len(set(dims)) != len(dims) for dims in space.dims_of_generic.values()):
        return Kind.UNSUPPORTED  # one generic walks a value along the same dim twice
    parallel = {d for d in range(len(space.extents)) if d not in space.reduced}
    moving = {d for d in parallel if space.extents[d].constant != 1}
    if not all(moving <= set(space.dims_of_value[v]) for v in space.results):
        return Kind.UNSUPPORTED  # several blocks would write the same element
    reducing = [g for g in space.generics if g.reduction_dims]
    if not reducing:
        return Kind.ELEMENTWISE
    if any(g.is_contraction and _accumulates_exactly(g) for g in reducing):
        along = [g for g in space.generics if g is not reducing[0] and set(space.dims_of_generic[g]) & space.reduced]
        fits = len(reducing) == 1 and (not along or (in_loads and _feed_only(space, along, reducing[0])))
        return Kind.CONTRACTION if fits else Kind.UNSUPPORTED
    for generic in reducing:
        own = space.dims_of_generic[generic]
        if frozenset(own[d] for d in generic.reduction_dims) != space.reduced:
            return Kind.UNSUPPORTED  # reductions over different dims do not share a walk
    return Kind.REDUCTION


def _feed_only(space: GroupSpace, generics: Sequence[GenericOp], contraction: GenericOp) -> bool:
    """Whether what generics compute along the sum goes to the contraction alone, which reads no element of it twice."""
    made, inside = {g.result for g in generics}, {*generics, contraction}
    others = (v for g in space.generics if g not in inside for v in g.ins)
    turned = (indexed_read(g, n) for g in generics for n in range(len(g.ins)))
    return made.isdisjoint((*space.results, *others)) and all(access is None for access in turned)


def _accumulates_exactly(generic: GenericOp) -> bool:
    """Whether the sum is kept in f32 or i32, which is what a multiply-accumulate adds in."""
    return generic.result.type.element_type in (f32, i32)
