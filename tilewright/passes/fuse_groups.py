"""Pass `fuse-groups`: each kernel's generics go into one `lin.group`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.dialects.lin.body import YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.effects import is_dead
from tilewright.passes.generic_fusion import renumber
from tilewright.passes.grouping import Group, Plan, emission_order
from tilewright.passes.remarks import remark


@dataclass(frozen=True)
class FuseGroupsPass(TilewrightPass):
    """Wraps every generic into a `lin.group`, and joins those that one kernel can compute.

    A contraction takes the elementwise users of its result, and reductions of its rows or columns unless what they
    reduce is read again with what they leave; reductions take the generics over the same rows that feed them or use
    them; elementwise generics over the same dims join. A value used outside its group becomes a result of the group.
    In a group all generics number their dims alike: parallel dims (or rows) first, then the reduced ones.
    Relies on fuse-elementwise for what can be one body.
    """

    name = "fuse-groups"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    _erase_dead_generics(block)
                    group_block(block)


def _erase_dead_generics(block: Block) -> None:
    for op in reversed(tuple(block.ops)):
        if isinstance(op, GenericOp) and is_dead(op):
            Rewriter.erase_op(op)


def group_block(block: Block) -> None:
    """Put the generics of one block into groups, in place; other ops keep their order as far as values allow."""
    plan = Plan(block.ops)
    graph = plan.graph
    for op, reason in plan.refusals:
        remark(op, FuseGroupsPass.name, f"not joined to a producer: {reason}")
    units = list(plan.members.values())
    groups = {graph.index[group.members[0]]: group for group in plan.groups()}
    group_of_unit = [next((groups[i] for i in members if i in groups), None) for members in units]
    order = emission_order(graph, units)
    for op in graph.ops:
        op.detach()
    replaced: dict[SSAValue, SSAValue] = {}
    for u in order:
        group = group_of_unit[u]
        if group is None:
            made = graph.ops[units[u][0]]
        else:
            made, results = _build_group(group, replaced)
            replaced.update(results)
            members = len(group.members)
            remark(made, FuseGroupsPass.name, f"one kernel ({group.kind}) of {members} generic{'s'[: members > 1]}")
        block.add_op(made)
    for old, new in replaced.items():
        old.replace_all_uses_with(new)
    for group in groups.values():
        for member in reversed(group.members):
            member.erase()


def _build_group(group: Group, replaced: dict[SSAValue, SSAValue]) -> tuple[GroupOp, dict[SSAValue, SSAValue]]:
    """The `lin.group` of a group, and for each member's value that is used outside the result that replaces it.

    `replaced` holds the values of groups built before, whose uses are not rewritten yet.
    """
    inside = set[Operation](group.members)
    arguments: list[SSAValue] = []
    block = Block()
    scope: dict[SSAValue, SSAValue] = {}
    for member, number in zip(group.members, group.numbers, strict=True):
        operands: list[SSAValue] = []
        for value in member.ins:
            outer = replaced.get(value, value)
            if value not in scope:
                arguments.append(outer)
                scope[value] = block.insert_arg(outer.type, len(block.args))
                scope[value].name_hint = value.name_hint
            operands.append(scope[value])
        # A member that lacks dims of the group has the others in the group's order.
        own = {n: rank for rank, n in enumerate(sorted(number.values()))}
        copy = renumber(member, {d: own[n] for d, n in number.items()}, operands)
        block.add_op(copy)
        scope[member.result] = copy.result
    kept = [member for member in group.members if _used_outside(member.result, inside)]
    block.add_op(YieldOp(*[scope[member.result] for member in kept]))
    made = GroupOp(arguments, [member.result.type for member in kept], Region(block))
    made.location = group.members[-1].location
    results: dict[SSAValue, SSAValue] = {}
    for member, result in zip(kept, made.outs, strict=True):
        result.name_hint = member.result.name_hint
        results[member.result] = result
    return made, results


def _used_outside(value: OpResult, inside: set[Operation]) -> bool:
    return any(use.operation not in inside for use in value.uses)
