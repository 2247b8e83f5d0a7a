"""Contraction groups that reduce their result: which generics belong to the tile, and which to what a reduction leaves.

The kernel of such a group walks the space of the contraction alone; each reduction takes dims of the result out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Expr
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, Kind
from tilewright.passes.grouping import combines_exactly


@dataclass(frozen=True)
class Family:
    """Reductions of a contraction's result over the same dims, and what follows them."""

    kept: frozenset[int]
    """The group dims that are left."""
    reductions: tuple[GenericOp, ...]
    after: tuple[GenericOp, ...]
    """Elementwise generics over the dims that are left."""
    results: tuple[SSAValue, ...]
    """Values of these that leave the group."""


@dataclass(frozen=True)
class ReducedContraction:
    """A contraction, its epilogue, and reductions of its result."""

    space: GroupSpace
    """All generics, but reduced are the contraction's own dims only: what a kernel of tiles of the result walks."""
    core: tuple[GenericOp, ...]
    """The contraction and its epilogue."""
    families: tuple[Family, ...]

    @property
    def results(self) -> list[SSAValue]:
        """Values of the core that leave the group."""
        made = {g.result for g in self.core}
        return [v for v in self.space.results if v in made]

    @property
    def wanted(self) -> list[SSAValue]:
        """Values of the core that lie in memory where the reductions are kernels of their own: results, and what
        reductions read."""
        made = [g.result for g in self.core]
        read = {v for f in self.families for g in f.reductions for v in g.ins}
        return [v for v in made if v in read or v in self.space.results]

    def plain(self) -> GroupSpace:
        """The space of the core alone."""
        own = self.space
        return GroupSpace(
            list(self.core),
            self.wanted,
            own.extents,
            own.dims_of_generic,
            own.dims_of_value,
            own.reduced,
            Kind.CONTRACTION,
        )


def reduced_contraction(space: GroupSpace) -> ReducedContraction | None:
    """A group as a contraction with reductions of its result; None if it is none."""
    if len(space.dims_of_generic) != len(space.generics) or not space.generics[0].is_contraction:
        return None
    if any(len(set(dims)) != len(dims) for dims in space.dims_of_generic.values()):
        return None
    contraction = space.generics[0]
    own = space.dims_of_generic[contraction]
    whole = frozenset(space.dims_of_value[contraction.result])
    homes: dict[SSAValue, frozenset[int]] = {contraction.result: whole}
    core, reductions, after = [contraction], list[GenericOp](), list[GenericOp]()
    for generic in space.generics[1:]:
        dims = frozenset(space.dims_of_generic[generic])
        if any(homes.get(v, dims) != dims for v in generic.ins):
            return None
        homes[generic.result] = frozenset(space.dims_of_value[generic.result])
        if generic.reduction_dims:
            if dims != whole:
                return None
            reductions.append(generic)
        elif dims == whole:
            core.append(generic)
        elif any(dims == homes[g.result] for g in reductions):
            after.append(generic)
        else:
            return None
    if not reductions or not all(combines_exactly(g) for g in (contraction, *reductions)):
        return None
    tile = GroupSpace(
        list(space.generics),
        list(space.results),
        space.extents,
        space.dims_of_generic,
        space.dims_of_value,
        frozenset(own[d] for d in contraction.reduction_dims),
        Kind.CONTRACTION,
    )
    kept = list(dict.fromkeys(homes[g.result] for g in reductions))
    found = tuple(_family(space, k, reductions, after, homes) for k in kept)
    return ReducedContraction(tile, tuple(core), found) if all(f.results for f in found) else None


def _family(
    space: GroupSpace,
    kept: frozenset[int],
    reductions: Sequence[GenericOp],
    after: Sequence[GenericOp],
    homes: dict[SSAValue, frozenset[int]],
) -> Family:
    own = tuple(g for g in reductions if homes[g.result] == kept)
    following = tuple(g for g in after if homes[g.result] == kept)
    made = {g.result for g in (*own, *following)}
    return Family(kept, own, following, tuple(v for v in space.results if v in made))


def reducing_space(
    dims: Mapping[GenericOp, tuple[int, ...]], extents: Mapping[int, Expr], results: Sequence[SSAValue]
) -> GroupSpace:
    """The space of reductions over the same dims and what follows them. `dims` names the dims of each generic, which
    `extents` has the sizes of, by any numbers: reductions meet even where they read different values."""
    used = sorted({d for own in dims.values() for d in own})
    number = {d: n for n, d in enumerate(used)}
    space = GroupSpace(list(dims), list(results), [extents[d] for d in used], kind=Kind.REDUCTION)
    for generic, own in dims.items():
        space.dims_of_generic[generic] = tuple(number[d] for d in own)
        space.dims_of_value[generic.result] = tuple(number[own[d]] for d in generic.out_map)
    space.reduced = frozenset(space.dims_of_generic[g][d] for g in dims for d in g.reduction_dims)
    return space
