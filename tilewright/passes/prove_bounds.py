"""The pass `prove-bounds`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from tilewright.dialects.sym import Answer, Expr, Relation
from tilewright.dialects.sym.index import dim, members, name_of, offset
from tilewright.dialects.tile.compute import MapOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, global_side, kernels_of


@dataclass(frozen=True)
class ProveBoundsPass(TilewrightPass):
    """Removes tail masks where the tile is proved to be inside: `clip` becomes `proved`, and a `valid` limit goes.

    What cannot be proved stays a mask. Relies on the module's facts, what the kernel assumes, and the ranges of
    coordinates and loop variables.
    """

    name = "prove-bounds"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for inner in list(kernel.walk()):
                if isinstance(inner, CopyOp):
                    self._copy(inner, scopes)
                elif isinstance(inner, GatherOp):
                    prove_gather(inner, scopes, self.name)
                elif isinstance(inner, MapOp | ReduceOp):
                    self._limits(inner, scopes)

    def _copy(self, copy: CopyOp, scopes: KernelScopes) -> None:
        side = global_side(copy)
        if side is None or "clip" not in copy.bound_words:
            return
        buffer, offsets = side
        scope, words = scopes.at(copy), list(copy.bound_words)
        for d, size in enumerate(copy.tile_type.sizes):
            start = scope.expr(offsets[d]) if offsets else Expr.const(0)
            if words[d] == "clip" and scopes.proved(copy, Relation(start + (size - 1), "<", buf(buffer).dims[d])):
                words[d] = "proved"
        if tuple(words) != copy.bound_words:
            copy.properties["bounds"] = ArrayAttr([StringAttr(w) for w in words])
            left = [f"dim {d}" for d, w in enumerate(words) if w == "clip"]
            remark(copy, self.name, f"masked along {', '.join(left)}" if left else "no mask needed")

    def _limits(self, op: MapOp | ReduceOp, scopes: KernelScopes) -> None:
        kept: dict[int, SSAValue] = {}
        for d, limit in op.valid_limits.items():
            size = op.sizes[d]
            assert size is not None
            if not scopes.proved(op, Relation(scopes.at(op).expr(limit), ">=", Expr.const(size))):
                kept[d] = limit
        if len(kept) < len(op.valid.data):
            _replace(op, kept)


def prove_gather(op: GatherOp, scopes: KernelScopes, pass_name: str) -> None:
    """Drops limits that no element reaches, and makes `proved` what lies inside for every element that is left."""
    sizes = op.tile_type.sizes
    kept = {
        d: limit
        for d, limit in op.valid_limits.items()
        if not scopes.proved(op, Relation(scopes.at(op).expr(limit), ">=", Expr.const(sizes[d])))
    }
    words = gather_bounds(op, scopes)
    if len(kept) == len(op.valid.data) and words == op.bound_words:
        return
    left = [f"dim {d}" for d, w in enumerate(words) if w == "clip"] + [f"tile dim {d}" for d in kept]
    remark(op, pass_name, f"masked along {', '.join(left)}" if left else "no mask needed")
    block = op.parent
    assert block is not None
    block.insert_op_before(op.with_masks(words, kept), op)
    op.detach()
    op.erase()


def gather_bounds(op: GatherOp, scopes: KernelScopes) -> tuple[str, ...]:
    """The bound of each dim: `proved` where every index of the tile lies inside, else as it is."""
    scope = scopes.at(op)
    names: dict[str, Expr | int] = {name_of(offset(n)): scope.expr(v) for n, v in enumerate(op.offsets)}
    facts = scope.facts.child()
    limits = op.valid_limits
    for d, size in enumerate(op.tile_type.sizes):
        facts.add(Relation(dim(d), ">=", Expr.const(0)))
        facts.add(Relation(dim(d), "<", Expr.const(size)))
        if d in limits:
            facts.add(Relation(dim(d), "<", scope.expr(limits[d])))
    words = list(op.bound_words)
    for n, (word, expr) in enumerate(zip(words, op.exprs, strict=True)):
        if word != "clip" or members([expr], "v"):
            continue
        at, size = expr.substitute(names), buf(op.source).dims[n]
        inside = (Relation(at, ">=", Expr.const(0)), Relation(at, "<", size))
        if all(facts.prove(r) is Answer.PROVED for r in inside):
            words[n] = "proved"
    return tuple(words)


def _replace(op: MapOp | ReduceOp, kept: dict[int, SSAValue]) -> None:
    """The same op with these limits only."""
    count = op.iteration.value.data
    if isinstance(op, MapOp):
        new = MapOp(count, op.mapped_inputs, op.mapped_outputs, op.detach_region(op.body), valid=kept)
    else:
        source, target = (op.source, op.source_map), (op.target, op.target_map)
        new = ReduceOp(op.combine.data, count, source, target, valid=kept, scratch=op.scratch)
    new.attributes.update(op.attributes)
    new.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    op.detach()
    op.erase()
