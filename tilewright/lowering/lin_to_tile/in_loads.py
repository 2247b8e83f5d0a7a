"""Elementwise work on the operands of a product, computed where the product's kernel loads them.

A kernel of its own computes each element once, into rows that tensor maps can move. That asks for a launch, and for
scratch: small products do without, and those whose scratch the workspace has no room for. Each tile of a product
computes what it loads then, so that an element is computed once for each tile that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.host.ops import AllocOp, DispatchOp, LaunchOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.shapes import as_tensor
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, smax, smin
from tilewright.lowering.host_plan import CHOOSES
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, Kind, analyse
from tilewright.lowering.lin_to_tile.repack import matrix_dims, row_multiple, suits_matrix_instructions
from tilewright.passes.choose_mma import WARPGROUP_ARCH, multiplies_by_warps
from tilewright.passes.remarks import remark


@dataclass(frozen=True)
class Loading:
    """A product together with what makes its operands, as one group."""

    makers: tuple[Operation, ...]
    """The elementwise groups that it takes in."""
    space: GroupSpace
    outer: Mapping[SSAValue, SSAValue]
    """For each value that it reads that of the function."""
    results: Mapping[SSAValue, SSAValue]
    """For each value that leaves it that of the function."""
    when: Relation | None
    """When operands are computed in the loads; None for always."""
    held: Expr
    """Bytes of scratch that they take otherwise."""

    def say(self, op: Operation) -> None:
        """Remarks when the product computes its operands."""
        operands = " and ".join(f"%{maker.results[0].name_hint or 'operand'}" for maker in self.makers)
        when = "always" if self.when is None else str(self.when)
        remark(op, "lin-to-tile", f"{operands}: computed where multiply-adds of threads load it: {when}")

    def choice(self, inside: Sequence[Operation], ordinary: Operation | None) -> DispatchOp:
        """What a group does where operands are computed in the loads, and its `ordinary` launch for all else."""
        assert self.when is not None
        assert isinstance(ordinary, LaunchOp | DispatchOp)
        ordinary.detach()
        dispatch = DispatchOp(
            [("in loads", (self.when,), Region(Block(inside))), ("made", (), Region(Block([ordinary])))]
        )
        dispatch.attributes[CHOOSES] = UnitAttr()
        return dispatch

    def erase(self) -> None:
        """Gives up the generics, once kernels are written."""
        for generic in reversed(self.space.generics):
            generic.detach()
            generic.erase(safe_erase=False)


def generics_of(op: GroupOp | GenericOp) -> list[GenericOp]:
    """The generics of a group, or the one that stands alone."""
    return [op] if isinstance(op, GenericOp) else [g for g in op.body.block.ops if isinstance(g, GenericOp)]


def _is_elementwise(maker: GroupOp | GenericOp) -> bool:
    """Whether a group of one result is elementwise, and reads nothing at computed positions."""
    parts, left = generics_of(maker), _left(maker)
    if any(access is not None for g in parts for access in g.accesses) or all(g.result is not left for g in parts):
        return False
    return analyse(parts, [left]).kind is Kind.ELEMENTWISE


def _left(maker: GroupOp | GenericOp) -> SSAValue:
    """What an elementwise group leaves, as it is inside."""
    return maker.result if isinstance(maker, GenericOp) else maker.yielded[0]


def find_loadings(
    source: Block, facts: Facts, arch: str | None, max_workspace: int | None, resolve: Callable[[SSAValue], SSAValue]
) -> dict[Operation, Loading]:
    """The products of a block whose operands elementwise groups make for them alone, and may be computed in their
    loads; for the product and for each of these groups."""
    found: dict[Operation, Loading] = {}
    for op in source.ops:
        loading = find_loading(op, facts, arch, max_workspace, resolve)
        if loading is not None:
            found.update(dict.fromkeys((op, *loading.makers), loading))
    return found


def find_loading(
    op: Operation, facts: Facts, arch: str | None, max_workspace: int | None, resolve: Callable[[SSAValue], SSAValue]
) -> Loading | None:
    """An op as such a product; None if it is none."""
    if not isinstance(op, GroupOp | GenericOp):
        return None
    contractions = [g for g in generics_of(op) if g.is_contraction]
    if len(contractions) != 1:
        return None
    (contraction,) = contractions
    inside: dict[SSAValue, SSAValue] = {v: v for v in op.ins}
    if isinstance(op, GroupOp):
        inside = dict(zip(op.body.block.args, op.ins, strict=True))
    makers: dict[SSAValue, GroupOp | GenericOp] = {}
    for number, value in enumerate(contraction.ins):
        outside, read = inside.get(value), contraction.operand_maps[number]
        maker = None if outside is None else outside.owner
        if outside is None or not isinstance(maker, GroupOp | GenericOp) or maker.parent is not op.parent:
            continue
        alone = len(maker.results) == 1 and outside.uses.get_length() == 1 and value.uses.get_length() == 1
        alone = alone and _is_elementwise(maker)
        plain = contraction.accesses[number] is None and None not in read and len(set(read)) == len(read)
        if alone and plain:
            makers[outside] = maker
    if not makers:
        return None
    space, outer, results = _join(op, makers, resolve)
    held = made_bytes(list(makers), arch)
    found = Loading(tuple(makers.values()), space, outer, results, None, held)
    fits = space.kind is Kind.CONTRACTION and len(results) == len(op.results)
    room = None if max_workspace is None else held - max_workspace
    answer = _when(space, len(makers), facts, arch, room) if fits else None
    if answer is None:
        found.erase()
        return None
    return replace(found, when=answer[0])


def _join(
    op: GroupOp | GenericOp, makers: Mapping[SSAValue, GroupOp | GenericOp], resolve: Callable[[SSAValue], SSAValue]
) -> tuple[GroupSpace, dict[SSAValue, SSAValue], dict[SSAValue, SSAValue]]:
    """The generics of the makers, then those of the product, on values of their own; what these read and leave."""
    block = Block()
    argument: dict[SSAValue, SSAValue] = {}
    made: dict[SSAValue, SSAValue] = {}
    generics: list[GenericOp] = []

    def copy(group: GroupOp | GenericOp) -> dict[SSAValue, SSAValue]:
        """The values of a group by those of its copy."""
        outside: dict[SSAValue, SSAValue] = {v: v for v in group.ins}
        if isinstance(group, GroupOp):
            outside = dict(zip(group.body.block.args, group.ins, strict=True))
        scope: dict[SSAValue, SSAValue] = {}
        for inner, value in outside.items():
            if value in made:
                scope[inner] = made[value]
                continue
            source = resolve(value)
            if source not in argument:
                argument[source] = block.insert_arg(inner.type, len(block.args))
                argument[source].name_hint = inner.name_hint
            scope[inner] = argument[source]
        for generic in generics_of(group):
            twin = generic.clone(scope)
            twin.result.name_hint = generic.result.name_hint
            block.add_op(twin)
            generics.append(twin)
            scope[generic.result] = twin.result
        return scope

    for value, maker in makers.items():
        scope = copy(maker)
        made[value] = scope[_left(maker)]
    scope = copy(op)
    yielded = [op.result] if isinstance(op, GenericOp) else list(op.yielded)
    inside = {g.result for g in generics}
    results: dict[SSAValue, SSAValue] = {
        scope[v]: r for v, r in zip(yielded, op.results, strict=True) if scope.get(v) in inside
    }
    space = analyse(generics, list(results), in_loads=True)
    return space, {inner: value for value, inner in argument.items()}, results


def _when(
    space: GroupSpace, made: int, facts: Facts, arch: str | None, excess: Expr | None
) -> tuple[Relation | None] | None:
    """When operands, so many of which are made, are computed in the loads: one relation, that any of the reasons for it
    holds, or none where one always does; None if none ever does. `excess` is by how much their scratch exceeds what is
    allowed."""
    sides = matrix_dims(space)
    total = Expr.const(1)
    for d, size in enumerate(space.extents):
        ends = (*sides.rows[-1:], *sides.columns[-1:])
        total = total * (smax(size, tile_sizes.SMALL_CONTRACTION[0]) if d in ends else size)
    small = total - tile_sizes.COPY_LAUNCH
    reasons: list[Expr] = []
    matrix = suits_matrix_instructions(space)
    if not (matrix and multiplies_by_warps(arch)):
        reasons.append(small)
    if made == 1 and not (matrix and (arch == WARPGROUP_ARCH or multiplies_by_warps(arch))):
        inside = {g.result for g in space.generics}
        others = sides.columns if space.contraction.ins[0] in inside else sides.rows
        reasons.append(prod((space.extents[d] for d in others), start=Expr.const(1)) - tile_sizes.FEW)
    if excess is not None:
        reasons.append(1 - excess)
    answers = [facts.prove(Relation(each, "<=", Expr.const(0))) for each in reasons]
    if Answer.PROVED in answers:
        return (None,)
    open_ = [each for each, answer in zip(reasons, answers, strict=True) if answer is Answer.UNKNOWN]
    if not open_:
        return None
    least = open_[0]
    for each in open_[1:]:
        least = smin(least, each)
    return (Relation(least, "<=", Expr.const(0)),)


def made_bytes(made: Sequence[SSAValue], arch: str | None) -> Expr:
    """What the scratch of operands that kernels of their own make takes."""
    total = Expr.const(0)
    for value in made:
        type_ = as_tensor(value.type)
        dims = AllocOp(type_, row_multiple(value, arch)).memory_dims
        total = total + prod(dims, start=Expr.const(element_bytes(type_.element_type)))
    return total
