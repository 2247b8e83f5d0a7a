"""`tile.reduce`: in the thread, across the lanes of a warp by shuffles, across warps through shared memory.

1. Each thread combines the elements it holds, the identity in place of those past a `valid` limit.
2. A reduced dim of T threads with stride S occupies the bits S, 2*S, .. S*T/2 of the thread index. A shuffle with lane
   `lane xor bit` for each bit below 32 leaves the result of those in every lane. Combination commutes, so all lanes
   get the same bits.
3. With bits from 32 on, one lane of each warp writes to the scratch (between barriers), and every thread combines what
   all warps wrote, in the same order. No barrier follows: whoever writes to the scratch again has one before.
Only bits of reduced dims take part, so threads that hold copies are counted once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.simt.mbarriers import NamedBarrierOp
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, StoreOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.tile.compute import ReduceOp
from tilewright.dialects.tile.iteration import BROADCAST
from tilewright.dialects.tile.types import AnyDistribution, BufType, DimDistribution, Factor, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32
from tilewright.lowering.tile_to_simt.compute import inside_limits, read, register_indices
from tilewright.lowering.tile_to_simt.elements import (
    Local,
    each_local,
    first_copy,
    thread_digit,
    thread_place,
)
from tilewright.lowering.tile_to_simt.exchange import Exchange, exchanged_axis
from tilewright.lowering.tile_to_simt.state import (
    Kernel,
    distribution,
    element_type,
    iteration_distribution,
    registers_of,
)
from tilewright.passes.core import error_at

BinaryOp: TypeAlias = "Callable[[SSAValue, SSAValue], Operation]"

WARP = 32
_FLOAT: dict[str, BinaryOp] = {
    "sum": arith.AddfOp,
    "prod": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_SIGNED: dict[str, BinaryOp] = {
    "sum": arith.AddiOp,
    "prod": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
}
_BOOL: dict[str, BinaryOp] = {
    "sum": arith.AddiOp,
    "prod": arith.MuliOp,
    "max": arith.MaxUIOp,
    "min": arith.MinUIOp,
}


def _identity(combine: str, type_: Attribute) -> Attribute:
    """The value that changes nothing, exactly: -0.0 for a sum of floats, since 0.0 would turn -0.0 into 0.0."""
    if isinstance(type_, AnyFloat):
        values = {"sum": -0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
        return FloatAttr(values[combine], type_)
    width = cast("IntegerType[int]", type_).width.data
    if width == 1:
        bits = {"sum": 0, "prod": 1, "max": 0, "min": 1}
    else:
        bits = {"sum": 0, "prod": 1, "max": -(1 << (width - 1)), "min": (1 << (width - 1)) - 1}
    return IntegerAttr(bits[combine], cast(Any, type_))


class Reduction:
    """One `tile.reduce` under way: `partial` are registers with one element for each local element of the target."""

    def __init__(self, kernel: Kernel, op: ReduceOp) -> None:
        self.kernel, self.op, self.builder = kernel, op, kernel.builder
        self.target_type: BufType = buffer_type(op.target)
        self.element = element_type(self.target_type.element)
        self.spread = iteration_distribution(
            op, op.iteration.value.data, [(op.source, op.source_map), (op.target, op.target_map)]
        )
        self.bits = sorted(bit for d in op.reduced_dims for bit in self._bits(self.spread[d], self.size(d)))
        table = _FLOAT if isinstance(self.element, AnyFloat) else _BOOL if self.element == IntegerType(1) else _SIGNED
        self.combiner = table[op.combine.data]
        self.partial: SSAValue | None = None

    def _bits(self, dim: AnyDistribution, size: int) -> list[int]:
        """Bits of the thread index over which a reduced dim of `size` elements is spread."""
        bits: list[int] = []
        for digit in dim.factors(size):
            if not digit.is_thread:
                continue
            if digit.count & (digit.count - 1) or digit.stride & (digit.stride - 1):
                raise error_at(
                    self.op,
                    "tile.reduce: expected powers of two for threads and stride of a reduced dim,"
                    f" got threads {digit.count} stride {digit.stride}",
                )
            bits += [digit.stride << k for k in range(digit.count.bit_length() - 1)]
        return bits

    def size(self, d: int) -> int:
        """Elements of an iteration dim."""
        found = self.op.sizes[d]
        assert found is not None
        return found

    def combine(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.builder.add(self.combiner(a, b)).results[0]

    def each(self, loops: ExitStack, dims: tuple[int, ...], places: bool = False) -> dict[int, Local]:
        """Loops over the local elements of iteration dims."""
        found: dict[int, Local] = {}
        for d in dims:
            size = self.size(d)
            place = places or d in self.op.valid_limits
            found[d] = loops.enter_context(each_local(self.builder, self.spread[d], size, place=place))
        return found

    def target_dims(self) -> tuple[int, ...]:
        """Iteration dims of the target, in the order of its dims."""
        return tuple(d for d in self.op.target_map if d != BROADCAST)

    def allocate(self) -> SSAValue:
        """The registers of the partial results."""
        sizes = [
            dim.elements_per_thread(n)
            for dim, n in zip(distribution(self.op, self.target_type), self.target_type.sizes, strict=True)
        ]
        alloc = RegsAllocOp(regs_type(sizes, self.element))
        self.builder.add(alloc)
        return alloc.res

    def in_warp(self, partial: SSAValue, outer: Mapping[int, Local], indices: list[SSAValue]) -> SSAValue:
        """Combine a thread's elements and those of the other lanes for one target element; the result in every lane."""
        result = self.in_thread(partial, outer, indices)
        for bit in self.bits:
            if bit < WARP:
                other = self.builder.add(ShuffleOp("xor", result, bit)).results[0]
                result = self.combine(result, other)
        return result

    def identity(self) -> SSAValue:
        """What changes nothing."""
        return self.builder.attribute(_identity(self.op.combine.data, self.element))

    def in_thread(self, partial: SSAValue, outer: Mapping[int, Local], indices: list[SSAValue]) -> SSAValue:
        """Combine a thread's elements for one target element, in `partial`."""
        builder, op = self.builder, self.op
        identity = self.identity()
        builder.add(RegsStoreOp(identity, partial, indices))
        with ExitStack() as loops:
            locals_ = {**outer, **self.each(loops, op.reduced_dims)}
            value = read(self.kernel, op.source, op.source_map, locals_)
            valid = inside_limits(self.kernel, op.valid_limits, self.spread, op.sizes, locals_)
            if valid is not None:
                value = builder.add(arith.SelectOp(valid, value, identity)).results[0]
            so_far = builder.add(RegsLoadOp(partial, indices)).results[0]
            builder.add(RegsStoreOp(self.combine(so_far, value), partial, indices))
        return builder.add(RegsLoadOp(partial, indices)).results[0]

    def finish(self, result: SSAValue, indices: list[SSAValue]) -> None:
        """Combine with what the target holds."""
        target, places = self.kernel.values[self.op.target], registers_of(self.kernel, self.op.target, indices)
        old = self.builder.add(RegsLoadOp(target, places)).results[0]
        self.builder.add(RegsStoreOp(self.combine(old, result), target, places))

    def scratch_index(self, warp: SSAValue, locals_: Mapping[int, Local]) -> SSAValue:
        """`warp * (elements of the target) + row-major place of the target element`, an i32."""
        builder = self.builder
        index = builder.mul_int(warp, builder.constant(self.target_type.count, I32))
        stride = self.target_type.count
        for size, d in zip(self.target_type.sizes, self.op.target_map, strict=True):
            stride //= size
            if d == BROADCAST:
                continue
            place = locals_[d].place
            assert place is not None
            by = builder.constant(stride, I32)
            first = builder.mul_int(thread_place(builder, self.spread[d], size), by)
            index = builder.add_int(builder.add_int(index, first), builder.mul_int(place, by))
        return index

    def barrier(self) -> None:
        """Wait for the threads that take part: the block, or those of a role, at a barrier that no channel has."""
        in_role = self.kernel.scope != "block"
        number, threads = len(self.kernel.channels) + 1, self.builder.threads
        self.builder.add(NamedBarrierOp(number, threads) if in_role else BarrierOp())

    def across_warps(self, scratch: SSAValue, partial: SSAValue) -> None:
        """Exchange the warps' partial results through shared memory and finish each target element.

        The barrier before the writes is for the next turn of a loop around: others may still read what this turn wrote.
        """
        builder, op = self.builder, self.op
        high = [bit for bit in self.bits if bit >= WARP]
        warps = 1 << len(high)
        # The number of this warp among those that combine: its reduced bits, packed.
        number = builder.constant(0, I32)
        for k, bit in enumerate(high):
            part = thread_digit(builder, Factor(2, bit))
            number = builder.add_int(number, builder.mul_int(part, builder.constant(1 << k, I32)))
        # One lane writes for its warp; of warps and lanes that hold copies, the first.
        writers = [(self.spread[d], self.size(d)) for d in self.target_dims()]
        writers += [(DimDistribution(2, bit, 1), 2) for bit in high]
        mask = first_copy(builder, writers)
        self.barrier()
        with ExitStack() as loops:
            locals_ = self.each(loops, self.target_dims(), places=True)
            indices = register_indices(builder, op.target_map, locals_)
            builder.add(StoreOp(partial, indices, scratch, self.scratch_index(number, locals_), 1, mask))
        self.barrier()
        with ExitStack() as loops:
            locals_ = self.each(loops, self.target_dims(), places=True)
            indices = register_indices(builder, op.target_map, locals_)
            identity = builder.attribute(_identity(op.combine.data, self.element))
            builder.add(RegsStoreOp(identity, partial, indices))
            single = RegsAllocOp(regs_type([], self.element))
            builder.add(single)
            with builder.unroll(warps) as w:
                index = self.scratch_index(w, locals_)
                builder.add(LoadOp(scratch, index, single.res, []))
                so_far = builder.add(RegsLoadOp(partial, indices)).results[0]
                value = builder.add(RegsLoadOp(single.res, [])).results[0]
                builder.add(RegsStoreOp(self.combine(so_far, value), partial, indices))
            self.finish(builder.add(RegsLoadOp(partial, indices)).results[0], indices)


def lower_reduce(kernel: Kernel, op: ReduceOp) -> None:
    """Add the three steps of a reduction, as far as threads are spread."""
    reduction = Reduction(kernel, op)
    builder = kernel.builder
    high = [bit for bit in reduction.bits if bit >= WARP]
    if high:
        needed = (1 << len(high)) * reduction.target_type.count
        got = 0 if op.scratch is None else buffer_type(op.scratch).count
        if got < needed:
            raise error_at(op, f"tile.reduce: expected a scratch of at least {needed} elements, got {got}")
        if op.scratch is not None and buffer_type(op.scratch).element != reduction.target_type.element:
            raise error_at(op, f"tile.reduce: expected a scratch of {reduction.target_type.element}")
    partial = reduction.allocate()
    axis = exchanged_axis(reduction) if high else None
    if axis is not None:
        assert op.scratch is not None
        with ExitStack() as loops:
            locals_ = reduction.each(loops, reduction.target_dims())
            reduction.in_thread(partial, locals_, register_indices(builder, op.target_map, locals_))
        Exchange(reduction, partial, axis).run(kernel.values[op.scratch], high)
        with ExitStack() as loops:
            locals_ = reduction.each(loops, reduction.target_dims())
            indices = register_indices(builder, op.target_map, locals_)
            reduction.finish(builder.add(RegsLoadOp(partial, indices)).results[0], indices)
        return
    with ExitStack() as loops:
        locals_ = reduction.each(loops, reduction.target_dims())
        indices = register_indices(builder, op.target_map, locals_)
        result = reduction.in_warp(partial, locals_, indices)
        if high:
            builder.add(RegsStoreOp(result, partial, indices))
        else:
            reduction.finish(result, indices)
    if high:
        assert op.scratch is not None
        reduction.across_warps(kernel.values[op.scratch], partial)
