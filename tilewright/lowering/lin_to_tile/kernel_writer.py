"""Writes the body of one tile kernel for a group: the schedules for elementwise groups, contractions and reductions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.body import IndexOp as LinIndexOp
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.shapes import as_tensor
from tilewright.dialects.sym import Expr, ceildiv, smin
from tilewright.dialects.sym.index import dim, members, offset
from tilewright.dialects.tile.compute import IndexOp, MmaOp, ReduceOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.iteration import BROADCAST
from tilewright.dialects.tile.structure import KernelOp, YieldOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.lin_to_tile.builder import TileBuilder, constant_attribute, identity_attribute, index
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, dims_read, indexed_read

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BinaryOp: TypeAlias = "Callable[[SSAValue, SSAValue], Operation]"

COMBINING_OPS: Mapping[Combine, tuple[BinaryOp, BinaryOp]] = {
    Combine.SUM: (arith.AddfOp, arith.AddiOp),
    Combine.PROD: (arith.MulfOp, arith.MuliOp),
    Combine.MAX: (arith.MaximumfOp, arith.MaxSIOp),
    Combine.MIN: (arith.MinimumfOp, arith.MinSIOp),
}
"""The scalar op of each combination, for floats and for integers."""


def combine_scalars(combine: Combine, left: SSAValue, right: SSAValue) -> Operation:
    """The op that combines two scalars of one type; i1 counts as unsigned."""
    floats, integers = COMBINING_OPS[combine]
    if isinstance(left.type, AnyFloat):
        return floats(left, right)
    if str(left.type) == "i1" and combine in (Combine.MAX, Combine.MIN):
        unsigned = arith.MaxUIOp if combine is Combine.MAX else arith.MinUIOp
        return unsigned(left, right)
    return integers(left, right)


@dataclass(frozen=True)
class Part:
    """A kernel whose blocks sum over parts of a dim: block i of the group dim `number` over `depth` elements of the dim
    `summed`, from `i * depth` on."""

    number: int
    summed: int
    depth: Expr


class KernelWriter:
    """State while one kernel is written: where each dim stands, and which values are in fragments already."""

    def __init__(
        self,
        name: str,
        space: GroupSpace,
        inputs: Sequence[tuple[SSAValue, Attribute]],
        outputs: Sequence[tuple[SSAValue, BufType]],
        tiles: Mapping[int, int],
        part: Part | None = None,
    ) -> None:
        """`inputs` and `outputs` pair a value of the group with the type of the kernel argument that holds it.

        Arguments are the buffers of `inputs`, those of `outputs`, then the scalars of `inputs`.
        """
        self.space = space
        self.tiles = dict(tiles)
        self.part = part
        self.parallel = space.parallel
        buffers = [(v, t) for v, t in inputs if isinstance(t, BufType)]
        scalars = [(v, t) for v, t in inputs if not isinstance(t, BufType)]
        types = [t for _, t in (*buffers, *outputs, *scalars)]
        self.block = Block(arg_types=types + [index] * len(self.parallel))
        self.build = TileBuilder(self.block)
        args = list(self.block.args)
        first = len(buffers) + len(outputs)
        self.arguments: dict[SSAValue, SSAValue] = {}
        for (value, _), arg in zip((*buffers, *scalars), (*args[: len(buffers)], *args[first:]), strict=False):
            arg.name_hint = value.name_hint
            self.arguments[value] = arg
        self.targets: list[tuple[SSAValue, SSAValue]] = []
        for n, ((value, _), arg) in enumerate(zip(outputs, args[len(buffers) : first], strict=True)):
            arg.name_hint = f"out{n}"
            self.targets.append((value, arg))
        grid = [ceildiv(space.extents[d], self.tiles[d]) for d in self.parallel]
        self.kernel = KernelOp(name, grid, Region(self.block))
        self.offsets: dict[int, SSAValue] = {}
        for d, coordinate in zip(self.parallel, self.kernel.coordinates, strict=True):
            coordinate.name_hint = f"i{d}"
            self.offsets[d] = self.build.scaled(coordinate, self.tiles[d], f"o{d}")
        self.fragments: dict[SSAValue, SSAValue] = {}
        self.loaded: dict[tuple[SSAValue, tuple[int | None, ...]], SSAValue] = {}
        self.gathered: dict[Hashable, SSAValue] = {}
        self._zero: SSAValue | None = None

    # Fragments ------------------------------------------------------------------------------------------
    def zero(self) -> SSAValue:
        """The index 0, made once at the top of the kernel."""
        if self._zero is None:
            outer, self.build.block = self.build.block, self.block
            self._zero = self.build.expression(Expr.const(0), {}, "zero")
            self.build.block = outer
            first = self.block.first_op
            if first is not None and first is not self._zero.owner:
                op = self._zero.owner
                assert isinstance(op, Operation)
                op.detach()
                self.block.insert_op_before(op, first)
        return self._zero

    def tile_sizes(self, dims: Sequence[int | None]) -> list[int]:
        """Sizes of a fragment along group dims; 1 where a dim is read at index 0."""
        return [1 if d is None else self.tiles[d] for d in dims]

    def offsets_of(self, dims: Sequence[int | None]) -> list[SSAValue]:
        """Where the tile starts along group dims."""
        return [self.zero() if d is None else self.offsets[d] for d in dims]

    def operand(self, generic: GenericOp, number: int) -> tuple[SSAValue, list[int]]:
        """Operand `number` in a fragment (or the scalar itself), with its map over the generic's iteration dims."""
        value = generic.ins[number]
        if not isinstance(value.type, TensorType):
            return self.arguments[value], []
        access = indexed_read(generic, number)
        if access is not None:
            return self.gather(generic, number, access), list(dims_read(generic, number))
        own = [BROADCAST if d is None else d for d in generic.operand_maps[number]]
        if value in self.fragments:
            return self.fragments[value], own
        if value not in self.arguments:
            self.compute(self.producer(value))
            return self.fragments[value], own
        dims = self.space.operand_dims(generic, number)
        if (value, dims) not in self.loaded:
            name = f"t_{value.name_hint}" if value.name_hint else "t"
            self.loaded[value, dims] = self.build.load(
                self.arguments[value], self.offsets_of(dims), self.tile_sizes(dims), name
            )
        return self.loaded[value, dims], own

    def gather(self, generic: GenericOp, number: int, access: AccessAttr) -> SSAValue:
        """Operand `number`, which is read at computed positions, in a fragment along the dims it depends on."""
        value, own = generic.ins[number], self.space.dims_of_generic[generic]
        read = dims_read(generic, number)
        place = {d: n for n, d in enumerate(read)}
        # Iteration dim d stands at the tile's offset plus the place in the tile.
        at = access.mapped({d: offset(n) + dim(place[d]) for n, d in enumerate(access.dims)})
        at = at.mapped(values={v: n for n, v in enumerate(access.values)})
        key = (value, at, tuple(own[d] for d in read), tuple(generic.ins[v] for v in access.values))
        if key not in self.gathered:
            values: list[tuple[SSAValue, list[int]]] = []
            for v in access.values:
                fragment, dims = self.operand(generic, v)
                values.append((fragment, [d if d == BROADCAST else place[d] for d in dims]))
            element = as_tensor(value.type).element_type
            name = f"t_{value.name_hint}" if value.name_hint else "t"
            fragment = self.build.alloc([self.tiles[own[d]] for d in read], element, name)
            # What an operand says is a promise; all else is masked until it is proved.
            bounds = ["trusted" if members([e], "v") and access.fill is None else "clip" for e in at.indices]
            # A promise holds inside the extents only; what lies past a reduced one must not be combined.
            limits = self.limits(generic, read if "trusted" in bounds else generic.reduction_dims)
            self.build.add(
                GatherOp(
                    self.arguments[value],
                    at.indices,
                    fragment,
                    bounds=bounds,
                    values=values,
                    offsets=[self.offsets[own[d]] for d in access.dims],
                    valid={place[d]: limit for d, limit in limits.items() if d in place},
                    other=constant_attribute(0, element) if access.fill is None else access.fill,
                )
            )
            self.gathered[key] = fragment
        return self.gathered[key]

    def producer(self, value: SSAValue) -> GenericOp:
        """The generic that makes a value inside the group."""
        owner = value.owner
        assert isinstance(owner, GenericOp)
        return owner

    def copy_body(self, generic: GenericOp, block: Block, args: Sequence[SSAValue]) -> SSAValue:
        """Clones the ops of a generic's body into `block` on `args`; returns the yielded scalar there."""
        mapper: dict[SSAValue, SSAValue] = dict(zip(generic.body.block.args, args, strict=True))
        own = self.space.dims_of_generic[generic]
        for op in generic.body.block.ops:
            if op is generic.body.block.last_op:
                break
            if isinstance(op, LinIndexOp):
                # The place in the tensor is the tile's offset plus the place in the tile.
                place = IndexOp(op.dim)
                total = arith.AddiOp(self.offsets[own[op.dim]], place.result)
                block.add_ops([place, total])
                mapper[op.result] = total.result
            else:
                block.add_op(op.clone(mapper))
        return mapper[generic.yielded]

    def result_fragment(self, generic: GenericOp) -> SSAValue:
        """A new fragment for the result of a generic."""
        sizes = self.tile_sizes(self.space.dims_of_value[generic.result])
        hint = generic.result.name_hint
        return self.build.alloc(sizes, generic.result.type.element_type, f"f_{hint}" if hint else "f")

    def compute(self, generic: GenericOp) -> None:
        """An all-parallel generic on whole fragments."""
        self.compute_within(generic, {})

    def compute_within(self, generic: GenericOp, valid: dict[int, SSAValue]) -> None:
        """The same up to `valid` limits of its iteration dims, with zeros from there on."""
        inputs = [self.operand(generic, n) for n in range(len(generic.ins))]
        out = self.result_fragment(generic)
        if valid:
            self.build.fill(out, constant_attribute(0, generic.result.type.element_type))

        def body(block: Block, args: Sequence[BlockArgument]) -> None:
            block.add_op(YieldOp(self.copy_body(generic, block, args)))

        self.build.map(generic.iteration_dims, inputs, [(out, generic.out_map)], body, valid)
        self.fragments[generic.result] = out

    def make_operand(self, contraction: GenericOp, number: int) -> None:
        """Computes an operand of a contraction that its own kernel makes along the sum, with zeros past the end of
        that: what a body makes of the zeros that were loaded there may be anything."""
        value = contraction.ins[number]
        if value in self.arguments or value in self.fragments or not isinstance(value.type, TensorType):
            return
        generic = self.producer(value)
        own = self.space.dims_of_generic[generic]
        summed = [d for d, g in enumerate(own) if g in self.space.reduced and self.tiles[g] > 1]
        self.compute_within(generic, self.limits(generic, summed))

    def store_results(self, values: Sequence[SSAValue]) -> None:
        """Writes those of `values` that leave the kernel."""
        for value, target in self.targets:
            if value in values:
                dims = self.space.dims_of_value[value]
                self.build.store(self.fragments[value], target, self.offsets_of(dims))

    @contextmanager
    def walk(self, dims: Sequence[int]) -> Generator[None]:
        """Loops over reduced dims, a tile at a time; what is made inside is forgotten after."""
        fragments, loaded, gathered = dict(self.fragments), dict(self.loaded), dict(self.gathered)
        with ExitStack() as stack:
            for d in dims:
                upper, lower, where = self.space.extents[d], Expr.const(0), {}
                if self.part is not None and d == self.part.summed:
                    lower = Expr.symbol("part") * self.part.depth
                    upper = smin(upper, lower + self.part.depth)
                    where = {"part": self.offsets[self.part.number]}
                self.offsets[d] = stack.enter_context(
                    self.build.loop(upper, self.tiles[d], f"k{d}", lower=lower, where=where)
                )
            yield
        self.fragments, self.loaded, self.gathered = fragments, loaded, gathered

    # Schedules ------------------------------------------------------------------------------------------
    def write_elementwise(self) -> KernelOp:
        """Load, compute, store."""
        for generic in self.space.generics:
            self.compute(generic)
        self.store_results(self.space.results)
        return self.kernel

    def write_contraction(self) -> KernelOp:
        """Accumulate over the summed dims tile by tile, then the epilogue on the accumulators."""
        contraction = self.space.contraction
        acc = self.result_fragment(contraction)
        self.build.fill(acc, identity_attribute(Combine.SUM, contraction.result.type.element_type))
        own = self.space.dims_of_generic[contraction]
        with self.walk([own[d] for d in contraction.reduction_dims]):
            for n in range(2):
                self.make_operand(contraction, n)
            lhs, rhs = (self.operand(contraction, n) for n in range(2))
            mma = MmaOp(contraction.iteration_dims, lhs, rhs, (acc, contraction.out_map))
            mma.precision = contraction.precision
            self.build.add(mma)
        self.fragments[contraction.result] = acc
        for generic in self.space.generics:
            if generic is not contraction and not self.space.runs_along_sum(generic):
                self.compute(generic)
        self.store_results(self.space.results)
        return self.kernel

    def limits(self, generic: GenericOp, dims: Sequence[int] | None = None) -> dict[int, SSAValue]:
        """For each reduced iteration dim (or each of `dims`) how many elements of the tile are inside."""
        limits: dict[int, SSAValue] = {}
        own = self.space.dims_of_generic[generic]
        for d in generic.reduction_dims if dims is None else dims:
            extent, name = self.space.extents[own[d]], "k"
            while name in extent.symbols:
                name += "_"
            limits[d] = self.build.expression(extent - Expr.symbol(name), {name: self.offsets[own[d]]}, "n")
        return limits

    def write_looping_reduction(self) -> KernelOp:
        """One walk over the reduced dims for each reduction, and a last one that stores; elementwise values are
        recomputed in each."""
        dims = self.walk_order()
        for generic in self.space.generics:
            if generic.reduction_dims:
                self.reduce_in_walk(generic, dims)
            elif not self.space.runs_along_sum(generic):
                self.compute(generic)
        wide = [v for v in self.space.results if set(self.space.dims_of_value[v]) & self.space.reduced]
        self.store_results([v for v in self.space.results if v not in wide])
        if wide:
            with self.walk(dims):
                for value in wide:
                    if value not in self.fragments:
                        self.compute(self.producer(value))
                self.store_results(wide)
        return self.kernel

    def walk_order(self) -> list[int]:
        """Reduced dims, outermost first: in the order of the first reduction's dims."""
        first = next(g for g in self.space.generics if g.reduction_dims)
        own = self.space.dims_of_generic[first]
        return [own[d] for d in first.reduction_dims]

    def reduce_in_walk(self, generic: GenericOp, dims: Sequence[int]) -> None:
        """Combines into one accumulator an element of the tile while walking, and across the tile once at the end."""
        combine, element = self.combine_of(generic), generic.result.type.element_type
        own = self.space.dims_of_generic[generic]
        every = list(range(generic.iteration_dims))
        acc = self.build.alloc(self.tile_sizes(own), element, "acc")
        self.build.fill(acc, identity_attribute(combine, element))
        with self.walk(dims):
            inputs = [self.operand(generic, n) for n in range(len(generic.ins))]

            def body(block: Block, args: Sequence[BlockArgument]) -> None:
                value = self.copy_body(generic, block, args[:-1])
                combined = combine_scalars(combine, args[-1], value)
                block.add_ops([combined, YieldOp(combined.results[0])])

            limits = self.limits(generic)
            self.build.map(generic.iteration_dims, [*inputs, (acc, every)], [(acc, every)], body, limits)
        self.finish_reduction(generic, acc, {})

    def combine_of(self, generic: GenericOp) -> Combine:
        """How a reducing generic combines."""
        combine = generic.combine
        assert combine is not None
        return combine

    def finish_reduction(self, generic: GenericOp, values: SSAValue, valid: dict[int, SSAValue]) -> None:
        """Combines a fragment over its reduced dims into the generic's result."""
        combine = self.combine_of(generic)
        out = self.result_fragment(generic)
        self.build.fill(out, identity_attribute(combine, generic.result.type.element_type))
        every = list(range(generic.iteration_dims))
        self.build.add(
            ReduceOp(combine.value, generic.iteration_dims, (values, every), (out, generic.out_map), valid=valid)
        )
        self.fragments[generic.result] = out

    def write_on_chip_reduction(self) -> KernelOp:
        """The whole row in registers: every input is read once."""
        for d in self.space.reduced:
            self.offsets[d] = self.zero()
        for generic in self.space.generics:
            if not generic.reduction_dims:
                self.compute(generic)
                continue
            own = self.space.dims_of_generic[generic]
            inputs = [self.operand(generic, n) for n in range(len(generic.ins))]
            every = list(range(generic.iteration_dims))
            if generic.yielded is generic.body.block.args[0] and len(inputs) == 1 and inputs[0][1] == every:
                self.finish_reduction(generic, inputs[0][0], self.limits(generic))
                continue
            values = self.build.alloc(self.tile_sizes(own), generic.result.type.element_type, "v")

            def body(block: Block, args: Sequence[BlockArgument], generic: GenericOp = generic) -> None:
                block.add_op(YieldOp(self.copy_body(generic, block, args)))

            self.build.map(generic.iteration_dims, inputs, [(values, every)], body)
            self.finish_reduction(generic, values, self.limits(generic))
        self.store_results(self.space.results)
        return self.kernel
