"""Which generics of a block can be one kernel. Pure analysis: `fuse-groups` writes it down, `fuse-elementwise` asks it.

A group is one of three kinds. In each, a value that one member computes and another reads stays with the thread block
that computed it, because both walk the same parallel dims:

- `contraction`: one contraction, and elementwise generics over the dims of its result (its epilogue); reductions of
what these make, over its rows, its columns or both, and elementwise generics over what a reduction leaves;
- `rows`: reductions over the same rows and the same columns, and elementwise generics over the rows, or over rows and
columns;
- `elementwise`: elementwise generics over the same dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat, f32, i32
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Expr
from tilewright.passes.effects import is_pure

Member = tuple[int, int]
"""A dim of a group's member: (position of the member, its iteration dim)."""


@dataclass(frozen=True)
class Group:
    """Generics that are one kernel, in program order, with a common numbering of their dims.

    `numbers[i][d]` is the group's name for iteration dim d of member i. Parallel dims (of a contraction's result, the
    rows, or all) come first, the reduced ones after them.
    """

    kind: str
    members: tuple[GenericOp, ...]
    numbers: tuple[dict[int, int], ...]


class _Dims:
    """Union-find over the dims of the members: dims in one class are walked by the same loop."""

    def __init__(self, members: Sequence[GenericOp]) -> None:
        self.members = members
        self.parent: dict[Member, Member] = {
            (i, d): (i, d) for i, member in enumerate(members) for d in range(member.iteration_dims)
        }
        self.extents = [member.extents() for member in members]

    def find(self, member: Member) -> Member:
        parent = self.parent
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    def unite(self, left: Member, right: Member) -> None:
        left, right = self.find(left), self.find(right)
        # The earlier member's dim stands for both, so that the result does not depend on the order of questions.
        if left != right:
            self.parent[max(left, right)] = min(left, right)

    def roots(self, i: int, dims: Iterable[int]) -> list[Member]:
        return [self.find((i, d)) for d in dims]

    def all_roots(self, i: int) -> list[Member]:
        return self.roots(i, range(self.members[i].iteration_dims))

    def extent(self, root: Member) -> Expr:
        return self.extents[root[0]][root[1]]

    def pair_up(self, free: Sequence[Member], columns: Sequence[Member]) -> None:
        """Unite dims that nothing ties to the group's columns yet with those columns, in order, if sizes agree."""
        if len(free) == len(columns) and all(
            self.extent(a) is self.extent(b) for a, b in zip(free, columns, strict=True)
        ):
            for a, b in zip(free, columns, strict=True):
                self.unite(b, a)


def try_group(members: Sequence[GenericOp]) -> Group | str:
    """The members as one group, or why they cannot be one; `members` is in program order and at least one."""
    dims = _Dims(members)
    position: dict[SSAValue, int] = {member.result: i for i, member in enumerate(members)}
    for i, member in enumerate(members):
        for value, indices, access in zip(member.ins, member.operand_maps, member.accesses, strict=True):
            producer = position.get(value)
            if producer is None:
                continue
            if access is not None:
                return "a value is read at computed positions, which other thread blocks may hold"
            for r, d in enumerate(indices):
                if d is None:
                    return "a value is read at index 0 of a stretched dim"
                dims.unite((i, d), (producer, members[producer].out_map[r]))
    contractions = [i for i, member in enumerate(members) if member.is_contraction]
    reductions = [i for i, member in enumerate(members) if member.combine_attr is not None and i not in contractions]
    if len(contractions) > 1 or (contractions and reductions and reductions[0] < contractions[0]):
        return "a contraction shares a kernel with no other contraction, nor with a reduction before it"
    if contractions:
        return _contraction_group(members, dims, contractions[0], reductions, position)
    if reductions:
        return _rows_group(members, dims, reductions)
    return _elementwise_group(members, dims)


def _contraction_group(
    members: Sequence[GenericOp],
    dims: _Dims,
    anchor: int,
    reductions: Sequence[int],
    position: dict[SSAValue, int],
) -> Group | str:
    contraction = members[anchor]
    if any(value in position for value in contraction.ins):
        return "a contraction's operand comes from its own kernel"
    parallel = dims.roots(anchor, contraction.out_map)
    if reductions:
        why = _unfit_reduction(members, dims, anchor, reductions)
        if why is not None:
            return why
    kept = [sorted(dims.roots(i, members[i].out_map)) for i in reductions]
    # Where a member's value is: None for one of the whole tile, else the dims that its reduction kept.
    homes: dict[int, list[Member] | None] = {anchor: None}
    for i, member in enumerate(members):
        if i == anchor:
            continue
        roots = sorted(dims.all_roots(i))
        read = [homes[position[v]] for v in member.ins if v in position and position[v] in homes]
        if roots == sorted(parallel):
            if any(home is not None for home in read):
                return "a reduction of the contraction's result is read where that result is made"
            homes[i] = sorted(dims.roots(i, member.out_map)) if i in reductions else None
        elif roots in kept and all(home == roots for home in read):
            homes[i] = roots
        else:
            return "a generic walks other dims than the contraction's result"
    order = parallel + dims.roots(anchor, contraction.reduction_dims)
    if len(set(order)) != len(order):
        return "a value is read through two different maps"
    # The contraction comes first: what the epilogue computes apart from it needs no earlier place.
    ranks = sorted(range(len(members)), key=lambda i: (i != anchor, i))
    return _numbered("contraction", members, dims, order, ranks)


def combines_exactly(generic: GenericOp) -> bool:
    """Whether partial results of a reducing generic may be combined later: nothing is rounded to less than f32."""
    element = generic.result.type.element_type
    return element in (f32, i32) or (generic.combine in (Combine.MAX, Combine.MIN) and isinstance(element, AnyFloat))


def _unfit_reduction(members: Sequence[GenericOp], dims: _Dims, anchor: int, reductions: Sequence[int]) -> str | None:
    """Why the kernel of a contraction cannot reduce tiles of its result; None if it can."""
    contraction = members[anchor]
    left, right = ({d for d in m if d is not None} for m in contraction.operand_maps)
    rows = [d for d in contraction.out_map if d in left and d not in right]
    columns = [d for d in contraction.out_map if d in right and d not in left]
    # Tiles run along the last rows and columns: of other dims each tile has one element, so nothing is saved.
    tiled = set(dims.roots(anchor, [*rows[-1:], *columns[-1:]]))
    parallel = sorted(dims.roots(anchor, contraction.out_map))
    for i in reductions:
        member = members[i]
        if sorted(dims.all_roots(i)) != parallel:
            return "a reduction walks other dims than the contraction's result"
        if tiled.isdisjoint(dims.roots(i, member.reduction_dims)):
            return "a reduction leaves the rows and columns of the contraction's tiles"
        if not (combines_exactly(contraction) and combines_exactly(member)):
            return "a contraction and a reduction that share a kernel combine in f32 or i32, or take a max or min"
    return None


def _rows_group(members: Sequence[GenericOp], dims: _Dims, reductions: Sequence[int]) -> Group | str:
    first = members[reductions[0]]
    columns = dims.roots(reductions[0], first.reduction_dims)
    rows = dims.roots(reductions[0], first.out_map)
    for i, member in enumerate(members):
        if i in reductions:
            own = dims.roots(i, member.reduction_dims)
        else:
            own = [root for root in dims.all_roots(i) if root not in rows]
        used = set(own)
        dims.pair_up([r for r in own if r not in columns], [c for c in columns if c not in used])
        columns = dims.roots(reductions[0], first.reduction_dims)
        rows = dims.roots(reductions[0], first.out_map)
    if len(members) > 1 and not rows and len(columns) > 1:
        return "a reduction of all dims leaves no rows to spread over thread blocks"
    if len(set(rows + columns)) != len(rows) + len(columns):
        return "a value is read through two different maps"
    for i, member in enumerate(members):
        roots = dims.all_roots(i)
        if i in reductions:
            if sorted(dims.roots(i, member.out_map)) != sorted(rows):
                return "reductions over different dims"
            if sorted(roots) != sorted(rows + columns):
                return "reductions over different dims"
        elif sorted(roots) not in (sorted(rows), sorted(rows + columns)):
            return "a generic walks other dims than the reduction's rows and columns"
    return _numbered("rows", members, dims, rows + columns, range(len(members)))


def _elementwise_group(members: Sequence[GenericOp], dims: _Dims) -> Group | str:
    order = dims.roots(len(members) - 1, members[-1].out_map)
    if len(set(order)) != len(order):
        return "a value is read through two different maps"
    for i in range(len(members)):
        if sorted(dims.all_roots(i)) != sorted(order):
            return "elementwise generics over different dims"
    return _numbered("elementwise", members, dims, order, range(len(members)))


def _numbered(
    kind: str, members: Sequence[GenericOp], dims: _Dims, order: Sequence[Member], ranks: Iterable[int]
) -> Group:
    number = {root: n for n, root in enumerate(order)}
    ranked = list(ranks)
    numbers = tuple({d: number[dims.find((i, d))] for d in range(members[i].iteration_dims)} for i in ranked)
    return Group(kind, tuple(members[i] for i in ranked), numbers)


class BlockGraph:
    """Who needs whom among consecutive ops of a block: through values, and the order of ops that have effects."""

    def __init__(self, ops: Iterable[Operation]) -> None:
        self.ops: list[Operation] = list(ops)
        self.index = {op: i for i, op in enumerate(self.ops)}
        self.needs: list[set[int]] = [set() for _ in self.ops]
        self.needed_by: list[set[int]] = [set() for _ in self.ops]
        last_effect: int | None = None
        for i, op in enumerate(self.ops):
            for inner in (op,) if not op.regions else op.walk():
                for operand in inner.operands:
                    self._add(i, self._home(operand))
            if not is_pure(op):
                self._add(i, last_effect)
                last_effect = i

    def _home(self, value: SSAValue) -> int | None:
        """The op among these that defines the value, if one does."""
        return self.index.get(value.op) if isinstance(value, OpResult) else None

    def _add(self, user: int, used: int | None) -> None:
        if used is not None and used != user:
            self.needs[user].add(used)
            self.needed_by[used].add(user)


class Plan:
    """A partition of the generics among consecutive ops of a block into groups, greedy in program order.

    `alone` is kept out of every other op's group: what would the others be without it.
    """

    def __init__(self, ops: Iterable[Operation], alone: GenericOp | None = None) -> None:
        self.graph = BlockGraph(ops)
        self.alone = alone
        self.unit: list[int] = list(range(len(self.graph.ops)))  # op -> the first op of its group
        self.members: dict[int, list[int]] = {i: [i] for i in self.unit}
        self.refusals: list[tuple[GenericOp, str]] = []
        for i, op in enumerate(self.graph.ops):
            if isinstance(op, GenericOp) and op is not alone:
                self._join(i, op)

    def groups(self) -> list[Group]:
        """The groups, in the order of their first members."""
        found: list[Group] = []
        for indices in self.members.values():
            generics = self._generics(indices)
            if generics:
                group = try_group(generics)
                assert isinstance(group, Group)  # `_join` only keeps what is one
                found.append(group)
        return found

    def same_group(self, ops: Iterable[Operation]) -> bool:
        """Whether all these ops are in one group."""
        return len({self.unit[self.graph.index[op]] for op in ops}) == 1

    def _generics(self, indices: Iterable[int]) -> list[GenericOp]:
        return [op for op in (self.graph.ops[i] for i in indices) if isinstance(op, GenericOp)]

    def _join(self, i: int, op: GenericOp) -> None:
        """Put op number i into the groups of the values that it reads, the latest first, where that is one kernel."""
        producers = sorted({self.unit[p] for p in self.graph.needs[i]}, key=lambda u: -self.members[u][-1])
        for unit in producers:
            first = self.graph.ops[unit]
            if not isinstance(first, GenericOp) or first is self.alone:
                continue
            union = sorted(self.members[unit] + self.members[self.unit[i]])
            group = try_group(self._generics(union))
            if isinstance(group, Group) and self._in_a_cycle(union):
                group = "a value goes through another kernel in between"
            reduces = isinstance(group, Group) and group.kind == "contraction" and op.combine_attr is not None
            if reduces and not op.is_contraction and self._read_again(i, set(union)):
                group = "what it reduces is read again with its result: a kernel over rows holds both"
            if isinstance(group, str):
                self.refusals.append((op, group))
                continue
            for index in union:
                self.members.pop(self.unit[index], None)
                self.unit[index] = union[0]
            self.members[union[0]] = union

    def _read_again(self, reduction: int, union: set[int]) -> bool:
        """Whether something that needs the reduction also reads what the reduction reads, or another value of its
        group: then the value goes through memory anyway, and a kernel over rows reads it once for both."""
        pending, seen = list(self.graph.needed_by[reduction]), set[int]()
        inside = union - {reduction}
        while pending:
            user = pending.pop()
            if user in seen:
                continue
            seen.add(user)
            if isinstance(self.graph.ops[user], GenericOp) and not inside.isdisjoint(self.graph.needs[user]):
                return True
            pending.extend(self.graph.needed_by[user])
        return False

    def _in_a_cycle(self, union: Sequence[int]) -> bool:
        """Whether something outside `union` both needs one of it and is needed by one of it, through whole groups."""
        inside = set(union)
        pending = [user for i in union for user in self.graph.needed_by[i] if user not in inside]
        seen: set[int] = set()
        while pending:
            unit = self.unit[pending.pop()]
            if unit in seen:
                continue
            seen.add(unit)
            for i in self.members[unit]:
                for user in self.graph.needed_by[i]:
                    if user in inside:
                        return True
                    pending.append(user)
        return False


def emission_order(graph: BlockGraph, units: Sequence[Sequence[int]]) -> list[int]:
    """The units (op numbers each) in an order in which each comes after those it needs, else by their last op."""
    unit_of = {i: u for u, members in enumerate(units) for i in members}
    done: set[int] = set()
    order: list[int] = []

    def emit(u: int) -> None:
        if u in done:
            return
        done.add(u)
        for needed in sorted({unit_of[n] for i in units[u] for n in graph.needs[i]} - {u}):
            emit(needed)
        order.append(u)

    for u in sorted(range(len(units)), key=lambda u: units[u][-1]):
        emit(u)
    return order
