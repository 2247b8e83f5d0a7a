"""How lanes and warps combine what each thread has for many elements of a reduction's target.

Lanes that hold the same elements halve them: each keeps one half, and gets what its neighbour has of it, so that n
elements take n/2 + n/4 + ... shuffles instead of n each time (reduce-scatter). Warps then meet in shared memory, where
each lane combines its own elements, and lanes hand all of them to each other on the way back (all-gather). Every thread
ends with the same bits, since combinations are commutative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, StoreOp
from tilewright.dialects.simt.sync import ShuffleOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.tile.types import DimDistribution, Factor
from tilewright.lowering.tile_to_simt.builder import I32
from tilewright.lowering.tile_to_simt.elements import first_copy, thread_digit, thread_place

if TYPE_CHECKING:
    from tilewright.lowering.tile_to_simt.reduction import Reduction

WARP = 32


@dataclass
class Exchange:
    """One exchange under way: `partial` holds what the thread has for each element of the target."""

    reduction: Reduction
    partial: SSAValue
    axis: int
    """The target's only dim of which a thread has several elements."""
    steps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Bits of the lane that elements were halved along, with the half's size."""

    def run(self, scratch: SSAValue, high: Sequence[int]) -> None:
        """Combine over lanes, then over warps (bits `high` of the thread index) through `scratch`."""
        reduction, builder = self.reduction, self.reduction.builder
        left = self._scatter()
        warp = builder.constant(0, I32)
        for k, bit in enumerate(high):
            part = thread_digit(builder, Factor(2, bit))
            warp = builder.add_int(warp, builder.mul_int(part, builder.constant(1 << k, I32)))
        count = builder.constant(reduction.target_type.count, I32)
        mine = self._own_place()
        used = [(reduction.spread[d], reduction.size(d)) for d in reduction.target_dims()]
        used += [(DimDistribution(2, bit, 1), 2) for bit in (*high, *(bit for bit, _ in self.steps))]
        # Of lanes that have the same elements the first one writes.
        mask = first_copy(builder, used)
        reduction.barrier()
        for n in range(left):
            index = builder.add_int(builder.add_int(builder.mul_int(warp, count), mine), self._place(n))
            builder.add(StoreOp(self.partial, self._at(self._number(n)), scratch, index, 1, mask))
        reduction.barrier()
        for n in range(left):
            builder.add(RegsStoreOp(reduction.identity(), self.partial, self._at(self._number(n))))
            single = RegsAllocOp(regs_type([], reduction.element))
            builder.add(single)
            with builder.unroll(1 << len(high)) as w:
                index = builder.add_int(builder.add_int(builder.mul_int(w, count), mine), self._place(n))
                builder.add(LoadOp(scratch, index, single.res, []))
                value = builder.add(RegsLoadOp(single.res, [])).results[0]
                self._store(self._number(n), reduction.combine(self._load(self._number(n)), value))
        self._gather()

    def _scatter(self) -> int:
        """Combine over the lanes of a warp; how many elements a lane has then."""
        reduction, builder = self.reduction, self.reduction.builder
        left = elements_of(reduction, self.axis)
        for bit in (b for b in reduction.bits if b < WARP):
            half = left // 2
            if left % 2:
                with builder.unroll(left) as n:
                    value = self._load(n)
                    other = builder.add(ShuffleOp("xor", value, bit)).results[0]
                    self._store(n, reduction.combine(value, other))
                continue
            upper = self._upper(bit)
            with builder.unroll(half) as n:
                low, high = self._load(n), self._load(builder.add_int(n, builder.constant(half, I32)))
                kept, sent = self._choose(upper, high, low), self._choose(upper, low, high)
                got = builder.add(ShuffleOp("xor", sent, bit)).results[0]
                self._store(n, reduction.combine(kept, got))
            self.steps.append((bit, half))
            left = half
        return left

    def _gather(self) -> None:
        """Hand all elements to all lanes: the way back."""
        builder = self.reduction.builder
        for bit, half in reversed(self.steps):
            upper = self._upper(bit)
            with builder.unroll(half) as n:
                mine = self._load(n)
                other = builder.add(ShuffleOp("xor", mine, bit)).results[0]
                self._store(n, self._choose(upper, other, mine))
                self._store(builder.add_int(n, builder.constant(half, I32)), self._choose(upper, mine, other))

    # Places and registers -------------------------------------------------------------------------------
    def _upper(self, bit: int) -> SSAValue:
        """Whether the lane is the upper one of two along a bit."""
        builder = self.reduction.builder
        return builder.compare("eq", thread_digit(builder, Factor(2, bit)), builder.constant(1, I32))

    def _own_place(self) -> SSAValue:
        """Where the lane's elements begin among the target's: those of its threads, and of the halves it kept."""
        reduction, builder = self.reduction, self.reduction.builder
        place, stride = builder.constant(0, I32), reduction.target_type.count
        for size, d in zip(reduction.target_type.sizes, reduction.op.target_map, strict=True):
            stride //= size
            if d >= 0:
                first = thread_place(builder, reduction.spread[d], size)
                place = builder.add_int(place, builder.mul_int(first, builder.constant(stride, I32)))
        for bit, half in self.steps:
            part = thread_digit(builder, Factor(2, bit))
            place = builder.add_int(place, builder.mul_int(part, self._place(half)))
        return place

    def _place(self, register: int) -> SSAValue:
        """What a register's number adds to the place: a sum over its digits, as they are powers of two."""
        reduction = self.reduction
        d = reduction.op.target_map[self.axis]
        sizes = reduction.target_type.sizes
        stride = 1
        for size in sizes[self.axis + 1 :]:
            stride *= size
        place, weight = 0, 1
        for digit in reduction.spread[d].factors(sizes[self.axis]):
            if not digit.is_thread:
                place += register % digit.count * weight
                register //= digit.count
            weight *= digit.count
        return reduction.builder.constant(place * stride, I32)

    def _number(self, n: int) -> SSAValue:
        return self.reduction.builder.constant(n, I32)

    def _at(self, number: SSAValue) -> list[SSAValue]:
        zero = self.reduction.builder.constant(0, I32)
        return [number if axis == self.axis else zero for axis in range(len(self.reduction.target_type.sizes))]

    def _load(self, number: SSAValue) -> SSAValue:
        return self.reduction.builder.add(RegsLoadOp(self.partial, self._at(number))).results[0]

    def _store(self, number: SSAValue, value: SSAValue) -> None:
        self.reduction.builder.add(RegsStoreOp(value, self.partial, self._at(number)))

    def _choose(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.reduction.builder.add(arith.SelectOp(condition, a, b)).results[0]


def elements_of(reduction: Reduction, axis: int) -> int:
    """Elements that a thread has along a dim of the target."""
    d, size = reduction.op.target_map[axis], reduction.target_type.sizes[axis]
    return 1 if d < 0 else reduction.spread[d].elements_per_thread(size)


def exchanged_axis(reduction: Reduction) -> int | None:
    """The dim of the target whose elements can be halved; None where a thread has several of none or of more, or
    not a power of two."""
    counts = [elements_of(reduction, axis) for axis in range(len(reduction.target_type.sizes))]
    several = [axis for axis, count in enumerate(counts) if count > 1]
    if len(several) != 1 or counts[several[0]] & (counts[several[0]] - 1):
        return None
    d = reduction.op.target_map[several[0]]
    digits = reduction.spread[d].factors(reduction.target_type.sizes[several[0]])
    return None if any(f.count & (f.count - 1) for f in digits) else several[0]
