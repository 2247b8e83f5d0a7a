"""What the lowering of one kernel knows: the builder, and what each tile value became."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.types import TensorMapAttr, TmapType
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.tile.channels import ChannelOp
from tilewright.dialects.tile.types import AnyDistribution, BufType, DimDistribution
from tilewright.lowering.tile_to_simt.builder import I64, Builder
from tilewright.lowering.tile_to_simt.expressions import lower_expr


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel: its rings in shared memory, its mbarriers when tensor maps fill it, and its named barrier.

    `stored` says that tensor maps store from it, `by_threads` that threads fill it from global memory; `blocks` of a
    cluster fill and release its slots together, `rank` being the place of this one.
    """

    op: ChannelOp
    arrays: list[SSAValue]
    full: SSAValue | None
    empty: SSAValue | None
    number: int
    stored: bool = False
    by_threads: bool = False
    blocks: int = 1
    rank: SSAValue | None = None

    @property
    def is_async(self) -> bool:
        """Whether some of the copies into its slots go on while threads do."""
        return any(copy.is_async for copy in self.op.fills)


@dataclass(frozen=True, slots=True)
class Ring:
    """Where one side of a channel is: its next slot, the parity that it waits for there, the slot before or -1.

    Where threads fill the slots there are no mbarriers, and the slot alone counts.
    """

    slot: SSAValue
    parity: SSAValue
    previous: SSAValue


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer of a slot: its ring, its first element in it, its channel and its slot's number.

    A swizzled buffer of its own is one too, without a channel.
    """

    array: SSAValue
    first: SSAValue
    channel: Channel | None
    number: SSAValue


@dataclass(slots=True)
class Kernel:
    """One kernel under way. `values` maps buffers to pointers, shared or register arrays, and scalars to scalars."""

    builder: Builder
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    pointers: list[SSAValue] = field(default_factory=list[SSAValue])
    """The pointer arguments, in order."""
    maps: dict[tuple[TmapType, TensorMapAttr], SSAValue] = field(
        default_factory=dict["tuple[TmapType, TensorMapAttr]", SSAValue]
    )
    """The tensor map arguments, in order, each once."""
    channels: dict[SSAValue, Channel] = field(default_factory=dict[SSAValue, Channel])
    rings: dict[tuple[SSAValue, str], Ring] = field(default_factory=dict["tuple[SSAValue, str]", Ring])
    """By channel and side, `acquire` or `receive`."""
    slots: dict[SSAValue, Slot] = field(default_factory=dict[SSAValue, Slot])
    """By buffer that an acquire or receive gave."""
    register_offsets: dict[SSAValue, list[SSAValue]] = field(default_factory=dict[SSAValue, "list[SSAValue]"])
    """For a part of a fragment: where it begins in the whole's register array."""
    accumulators: list[SSAValue] = field(default_factory=list[SSAValue])
    """Register arrays that matrix instructions write."""
    turn: tuple[SSAValue, int] | None = None
    """The variable and count of the innermost unrolled loop."""
    started: Operation | None = None
    """The first op that starts an mbarrier, once there is one."""
    scope: str = "block"
    """Whose first thread does what one thread does: `block`, or `role` inside of one."""

    def tensor_map(self, type_: TmapType, made: TensorMapAttr) -> SSAValue:
        """The argument for a tensor map."""
        found = self.maps.get((type_, made))
        if found is None:
            found = self.maps[type_, made] = self.builder.argument(type_, len(self.maps))
        return found

    def index(self, value: SSAValue) -> SSAValue:
        """A tile-level index value in the kernel's index type."""
        return self.builder.convert(self.values[value], self.builder.index)

    def expr(self, expr: Expr, where: dict[str, SSAValue]) -> SSAValue:
        """An expression over symbols and tile-level index values, in the kernel's index type."""
        return lower_expr(self.builder, expr, {name: self.index(value) for name, value in where.items()})


def registers_of(kernel: Kernel, fragment: SSAValue, indices: Sequence[SSAValue]) -> list[SSAValue]:
    """Indices into the register array of a fragment; those of a part begin at its offsets."""
    offsets = kernel.register_offsets.get(fragment)
    if offsets is None:
        return list(indices)
    return [kernel.builder.add_int(i, offset) for i, offset in zip(indices, offsets, strict=True)]


def element_type(type_: Attribute) -> Attribute:
    """How an element is stored and computed with: an `index` has 64 bits, whatever the width of addresses."""
    return I64 if isinstance(type_, IndexType) else type_


def element_bytes(type_: Attribute) -> int:
    """Bytes of one element in memory; an i1 takes one."""
    stored = element_type(type_)
    if isinstance(stored, IntegerType):
        return max(1, cast("IntegerType[int]", stored).width.data // 8)
    if isinstance(stored, AnyFloat):
        return stored.bitwidth // 8
    raise TilewrightError(f"expected a float or integer element type, got {type_}")


def distribution(op: Operation, type_: Attribute) -> tuple[AnyDistribution, ...]:
    """The distribution of a fragment over threads; an error at the op when it has none."""
    if isinstance(type_, BufType) and type_.distribution is not None:
        return type_.distribution
    raise TilewrightError(f"{op.name}: expected a fragment with a layout over threads, got {type_}")


def iteration_distribution(
    op: Operation, count: int, operands: Sequence[tuple[SSAValue, Sequence[int]]]
) -> list[AnyDistribution]:
    """The distribution of each iteration dim, on which all operands that run along it must agree."""
    found: list[AnyDistribution | None] = [None] * count
    for value, dims in operands:
        if not isinstance(value.type, BufType):
            continue
        for dim, d in zip(distribution(op, value.type), dims, strict=True):
            if d < 0:
                continue
            # A dim that is not spread lies in each thread in order, whatever its stride and vector.
            normal = dim if dim.threads > 1 else DimDistribution(1, 1, 1)
            known = found[d]
            if known is None:
                found[d] = normal
            elif known != normal:
                raise TilewrightError(f"{op.name}: operands differ in the distribution of d{d}: {known} and {normal}")
    return [dim or DimDistribution(1, 1, 1) for dim in found]
