"""Writes contractions that reduce the tiles of their result, and the kernels that finish such reductions.

A block combines what its tile has of the reduced dims in registers, and stores that as one of the partial results:
`partial[tile, kept]` in scratch. A second kernel combines the partial results and goes on with what follows the
reduction. There are no atomics: the order is fixed, and so are the bits. Where a tile is known to cover the reduced
dims the block has the result itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from tilewright.dialects.host.ops import AllocOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, ceildiv, dims_of
from tilewright.dialects.sym.attributes import symbolic_tensor
from tilewright.dialects.tile.compute import ReduceOp
from tilewright.dialects.tile.iteration import BROADCAST
from tilewright.dialects.tile.structure import KernelOp, YieldOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile import tile_sizes
from tilewright.lowering.lin_to_tile.builder import identity_attribute
from tilewright.lowering.lin_to_tile.group_space import GroupSpace
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter
from tilewright.lowering.lin_to_tile.reduced_space import Family, ReducedContraction, reducing_space

PITCH = 16
"""Bytes that rows of partial results are a multiple of: the widest access of a thread."""
STRIP = 128
"""Kept elements that a block of a finishing kernel has."""


@dataclass(frozen=True)
class Partial:
    """Partial results of one reduction: scratch of [tiles along each reduced dim, kept dims]."""

    reduction: GenericOp
    scratch: AllocOp
    """As a template of the op that the plan gets."""

    @property
    def memory(self) -> BufType:
        """The scratch as kernels see it."""
        element = self.reduction.result.type.element_type
        return buf_type(self.scratch.memory_dims, element, "global", strided(self.scratch.strides))


@dataclass(frozen=True)
class Finish:
    """A kernel that combines the partial results of a family."""

    kernel: KernelOp
    partials: tuple[Partial, ...]
    """What it takes first."""
    read: tuple[SSAValue, ...]
    """Values of the group that it takes after these: read, written, scalars."""


class TileReducer(KernelWriter):
    """State while one kernel of tiles is written that reduces what it has computed."""

    def __init__(
        self,
        name: str,
        reduced: ReducedContraction,
        inputs: Sequence[tuple[SSAValue, Attribute]],
        outputs: Sequence[tuple[SSAValue, BufType]],
        tiles: dict[int, int],
        facts: Facts,
    ) -> None:
        self.reduced = reduced
        space, types = reduced.space, dict(outputs)
        self.whole = tuple(f for f in reduced.families if _covers(reduced, f, tiles, facts))
        self.partials = {
            g: _partial(reduced, g, tiles) for f in reduced.families if f not in self.whole for g in f.reductions
        }
        direct = [*reduced.results, *(v for f in self.whole for v in f.results)]
        written = [(v, types[v]) for v in direct] + [(g.result, p.memory) for g, p in self.partials.items()]
        self.written: list[SSAValue | Partial] = [*direct, *self.partials.values()]
        """What the kernel's arguments between buffers that it reads and scalars are."""
        self.skipped = {g for f in reduced.families if f not in self.whole for g in f.after}
        computed = [g for g in space.generics if g not in self.skipped]
        self.read = [v for v, _ in inputs if any(v in g.ins for g in computed)]
        super().__init__(name, space, [(v, t) for v, t in inputs if v in self.read], written, tiles)

    def compute(self, generic: GenericOp) -> None:
        """A generic on whole fragments; a reduction of a tile. What follows partial results is for another kernel."""
        if generic.reduction_dims:
            self.reduce_tile(generic)
        elif generic not in self.skipped:
            super().compute(generic)

    def reduce_tile(self, generic: GenericOp) -> None:
        """Combines what the tile has; elements outside of the tensor do not take part."""
        element, own = generic.result.type.element_type, self.space.dims_of_generic[generic]
        inputs = [self.operand(generic, n) for n in range(len(generic.ins))]
        every = list(range(generic.iteration_dims))
        if generic.yielded is generic.body.block.args[0] and len(inputs) == 1 and inputs[0][1] == every:
            values = inputs[0][0]
        else:
            values = self.build.alloc(self.tile_sizes(own), element, "v")

            def body(block: Block, args: Sequence[BlockArgument]) -> None:
                block.add_op(YieldOp(self.copy_body(generic, block, args)))

            self.build.map(generic.iteration_dims, inputs, [(values, every)], body)
        combine = self.combine_of(generic)
        # A fragment has the dims of the tensor that it goes to: the reduced ones are walked a tile at a time.
        tiled = len(generic.reduction_dims) if generic in self.partials else 0
        kept = self.tile_sizes(self.space.dims_of_value[generic.result])
        hint = generic.result.name_hint
        out = self.build.alloc([1] * tiled + kept, element, f"f_{hint}" if hint else "f")
        self.build.fill(out, identity_attribute(combine, element))
        target = (out, [BROADCAST] * tiled + list(generic.out_map))
        self.build.add(
            ReduceOp(combine.value, generic.iteration_dims, (values, every), target, valid=self.limits(generic))
        )
        self.fragments[generic.result] = out

    def store_results(self, values: Sequence[SSAValue]) -> None:
        """Writes results, and partial results at the place of the tile."""
        super().store_results([v for v in values if not any(v is g.result for g in self.partials)])
        coordinates = dict(zip(self.parallel, self.kernel.coordinates, strict=True))
        targets = dict(self.targets)
        for generic in self.partials:
            own = self.space.dims_of_generic[generic]
            places = [coordinates[own[d]] for d in generic.reduction_dims]
            places += self.offsets_of(self.space.dims_of_value[generic.result])
            self.build.store(self.fragments[generic.result], targets[generic.result], places)


def finishing_kernels(
    writer: TileReducer,
    inputs: Sequence[tuple[SSAValue, Attribute]],
    outputs: Sequence[tuple[SSAValue, BufType]],
    facts: Facts,
) -> list[Finish]:
    """The kernels that combine what the writer's kernel leaves in scratch: one for each family of reductions."""
    found: list[Finish] = []
    for number, family in enumerate(writer.reduced.families):
        if family not in writer.whole:
            name = f"{writer.kernel.sym_name.data}_combine{number}"
            partials = tuple(writer.partials[g] for g in family.reductions)
            found.append(_finish(name, writer.space, family, partials, inputs, outputs, facts))
    return found


def _covers(reduced: ReducedContraction, family: Family, tiles: dict[int, int], facts: Facts) -> bool:
    """Whether a tile certainly has all of the dims that a family reduces, which are not empty."""
    space = reduced.space
    dims = [d for d in space.dims_of_value[space.contraction.result] if d not in family.kept]
    one = Expr.const(1)
    return all(
        facts.prove(Relation(space.extents[d], "<=", Expr.const(tiles[d]))) is Answer.PROVED
        and facts.prove(Relation(space.extents[d], ">=", one)) is Answer.PROVED
        for d in dims
    )


def _partial(reduced: ReducedContraction, generic: GenericOp, tiles: dict[int, int]) -> Partial:
    space = reduced.space
    own = space.dims_of_generic[generic]
    sizes = [ceildiv(space.extents[own[d]], tiles[own[d]]) for d in generic.reduction_dims]
    kept = [space.extents[d] for d in space.dims_of_value[generic.result]]
    type_ = symbolic_tensor(generic.result.type.element_type, [*sizes, *kept])
    return Partial(generic, AllocOp(type_, PITCH // element_bytes(type_.element_type) if kept else 1))


def _finish(
    name: str,
    whole: GroupSpace,
    family: Family,
    partials: Sequence[Partial],
    inputs: Sequence[tuple[SSAValue, Attribute]],
    outputs: Sequence[tuple[SSAValue, BufType]],
    facts: Facts,
) -> Finish:
    renamed: dict[SSAValue, SSAValue] = {}
    dims: dict[GenericOp, tuple[int, ...]] = {}
    extents = dict(enumerate(whole.extents))
    for partial in partials:
        old, rank = partial.reduction, partial.scratch.res.type.get_num_dims()
        first = len(old.reduction_dims)
        made = GenericOp.build_from(
            [partial.scratch.res],
            [tuple(range(rank))],
            range(first, rank),
            old.combine,
            old.result.type,
            lambda _, args: args[0],
        )
        made.result.name_hint = old.result.name_hint
        partial.scratch.res.name_hint = "partial"
        renamed[old.result] = made.result
        walked = tuple(whole.dims_of_generic[old][d] for d in old.reduction_dims)
        # Where the tile was one of several along a dim, its number stands for the dim.
        extents |= dict(zip(walked, dims_of(partial.scratch.res.type), strict=False))
        dims[made] = (*walked, *whole.dims_of_value[old.result])
    for old in family.after:
        made = old.clone(renamed)
        made.result.name_hint = old.result.name_hint
        renamed[old.result] = made.result
        dims[made] = whole.dims_of_generic[old]
    generics = list(dims)
    space = reducing_space(dims, extents, [renamed[v] for v in family.results])
    types = dict(outputs)
    read = [(v, t) for v, t in inputs if any(v in g.ins for g in generics)]
    tiles = dict.fromkeys(range(len(space.extents)), 1)
    lying, first = space.operand_dims(generics[0], 0), len(partials[0].reduction.reduction_dims)
    left = tile_sizes.ROW_CHUNK
    for d in (*lying[first:][-1:], lying[first - 1]):
        assert d is not None
        most = left if d in space.reduced else STRIP
        tiles[d] = tile_sizes.fit(most, facts.range(space.extents[d])[1])
        left //= tiles[d]
    kernel = KernelWriter(
        name,
        space,
        [*((p.scratch.res, p.memory) for p in partials), *read],
        [(renamed[v], types[v]) for v in family.results],
        tiles,
    ).write_looping_reduction()
    for generic in generics:
        generic.drop_all_references()
    buffers = [v for v, t in read if isinstance(t, BufType)]
    scalars = [v for v, t in read if not isinstance(t, BufType)]
    return Finish(kernel, tuple(partials), (*buffers, *family.results, *scalars))
