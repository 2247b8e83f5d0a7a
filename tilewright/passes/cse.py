"""Pass `cse`: of two ops that compute the same value, keep the first."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsolatedFromAbove, IsTerminator

from tilewright.passes.core import TilewrightPass
from tilewright.passes.effects import is_dead, is_pure, only_reads


@dataclass(frozen=True)
class CsePass(TilewrightPass):
    """Replaces an op by an earlier equal one, and erases dead ops it meets; relies on the ops' memory effects.

    Two ops are equal when class, operands, attributes, result types and regions are. A pure op serves everywhere its
    value is visible; an op that reads serves in its own block up to the next op that may write. Ops that write,
    allocate, or declare no effects are left alone.
    """

    name = "cse"
    level = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        eliminate_common_subexpressions(op)


def eliminate_common_subexpressions(root: Operation) -> bool:
    """Run the elimination inside `root` and say whether anything was erased."""
    erased = False
    for region in root.regions:
        erased |= _simplify_region(region, None)
    return erased


@dataclass
class _Scope:
    """The ops whose values are visible, by key; a scope sees its parent's."""

    parent: _Scope | None
    known: dict[Hashable, list[Operation]] = field(default_factory=dict[Hashable, list[Operation]])

    def find(self, key: Hashable, op: Operation) -> Operation | None:
        scope: _Scope | None = self
        while scope is not None:
            for candidate in scope.known.get(key, ()):
                if _same_regions(candidate, op):
                    return candidate
            scope = scope.parent
        return None

    def add(self, key: Hashable, op: Operation) -> None:
        self.known.setdefault(key, []).append(op)


def _key(op: Operation) -> Hashable:
    """What equal ops have in common, regions aside."""
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return (
        name,
        tuple(op.operands),
        tuple(op.result_types),
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
    )


def _same_regions(left: Operation, right: Operation) -> bool:
    return len(left.regions) == len(right.regions) and all(
        a.is_structurally_equivalent(b) for a, b in zip(left.regions, right.regions, strict=True)
    )


def _simplify_region(region: Region, scope: _Scope | None) -> bool:
    changed = False
    for block in region.blocks:
        changed |= _simplify_block(block, _Scope(scope))
    return changed


def _simplify_block(block: Block, scope: _Scope) -> bool:
    changed = False
    reads = _Scope(None)
    for op in tuple(block.ops):
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=True)
        for region in op.regions:
            changed |= _simplify_region(region, None if isolated else scope)
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            continue
        if is_dead(op):
            _erase(op)
            changed = True
            continue
        if is_pure(op):
            table = scope
        elif only_reads(op):
            table = reads
        else:
            reads = _Scope(None)
            continue
        if any(len(region.blocks) > 1 for region in op.regions):
            continue
        key = _key(op)
        earlier = table.find(key, op)
        if earlier is None:
            table.add(key, op)
            continue
        for old, new in zip(op.results, earlier.results, strict=True):
            old.replace_all_uses_with(new)
        _erase(op)
        changed = True
    return changed


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
