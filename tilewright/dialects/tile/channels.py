"""Channels: rings of slots in shared memory, through which copies and computation run apart.

A producer acquires a slot (waits until it is free), fills it and publishes it; a consumer receives it (waits until it
is full), reads it and releases it. Slots come in order, and each is received once. With one thread of control the ops
stand one after the other; `specialise-warps` gives the two sides to roles. What the slots wait for (copies by tensor
map and an mbarrier, groups of asynchronous copies, the block's own stores) follows from how the copies into them are
made.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, int_array, ints, parse_int_list, parse_type_of, parse_value
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.types import BufType

MAX_STAGES = 16


@irdl_attr_definition
class ChannelType(ParametrizedAttribute, TypeAttribute):
    """`!tile.channel<4, !tile.buf<[128, 64], bf16, shared>, ...>`: a ring of four slots, each with these buffers."""

    name = "tile.channel"
    stages: IntAttr = param_def()
    buffers: ArrayAttr[Attribute] = param_def()

    @property
    def parts(self) -> tuple[BufType, ...]:
        """The buffers of one slot."""
        return tuple(b for b in self.buffers.data if isinstance(b, BufType))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            stages = parser.parse_integer()
            buffers: list[Attribute] = []
            while parser.parse_optional_punctuation(","):
                buffers.append(parser.parse_type())
        return [IntAttr(stages), ArrayAttr(buffers)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.stages.data))
            for buffer in self.buffers.data:
                printer.print_string(", ")
                printer.print_attribute(buffer)

    def verify(self) -> None:
        if not 1 <= self.stages.data <= MAX_STAGES:
            raise VerifyException(f"expected 1 to {MAX_STAGES} slots, got {self.stages.data}")
        if not self.buffers.data or len(self.parts) != len(self.buffers.data):
            raise VerifyException("expected a !tile.buf for each buffer of a slot, at least one")
        for part in self.parts:
            if part.space.data != "shared":
                raise VerifyException(f"slots lie in shared memory, got {part.space.data}")


def channel_type(stages: int, buffers: Sequence[BufType]) -> ChannelType:
    """A channel type."""
    return ChannelType(IntAttr(stages), ArrayAttr(buffers))


@irdl_op_definition
class ChannelOp(IRDLOperation):
    """`%ch = tile.channel at [0, 65536] barriers 196608 : !tile.channel<4, ...>`: a ring of slots, all free.

    `at` has the byte offset of each buffer's ring in shared memory, `barriers` that of two mbarriers a slot where slots
    are filled by tensor maps; both are absent until shared memory is allocated.
    """

    name = "tile.channel"
    offsets = opt_prop_def(ArrayAttr[IntAttr])
    barriers = opt_prop_def(IntegerAttr)
    res = result_def(ChannelType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, type: ChannelType, offsets: Sequence[int] | None = None, barriers: int | None = None) -> None:
        super().__init__(
            properties={
                "offsets": None if offsets is None else int_array(offsets),
                "barriers": None if barriers is None else i64_attr(barriers),
            },
            result_types=[type],
        )

    @property
    def type(self) -> ChannelType:
        """The channel's type."""
        return self.res.type

    def verify_(self) -> None:
        if self.offsets is not None and len(self.offsets.data) != len(self.type.parts):
            raise VerifyException(f"expected {len(self.type.parts)} offsets, got {len(self.offsets.data)}")
        if self.barriers is not None and self.barriers.value.data % 8:
            raise VerifyException(f"mbarriers lie at a multiple of 8 bytes, got {self.barriers.value.data}")

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        layouts = all(not part.layout_is_open for part in self.type.parts)
        gaps = ([] if layouts else ["layout"]) + ([] if self.offsets is not None else ["offset"])
        return gaps + (["barriers"] if self.is_loaded and self.barriers is None else [])

    @property
    def fills(self) -> list[CopyOp]:
        """The copies from global memory into the slots."""
        acquired = [b for use in self.res.uses if isinstance(use.operation, AcquireOp) for b in use.operation.buffers]
        copies = [(b, u.operation) for b in acquired for u in b.uses if isinstance(u.operation, CopyOp)]
        return [copy for buffer, copy in copies if copy.target is buffer and copy.spaces[0] == "global"]

    @property
    def is_loaded(self) -> bool:
        """Whether tensor maps fill the slots from global memory."""
        return any(copy.via is not None and copy.via.data == "tma" for copy in self.fills)

    @property
    def is_filled_by_threads(self) -> bool:
        """Whether threads fill the slots from global memory: by asynchronous copies, or by loads and stores."""
        return any(copy.by_threads or copy.is_async for copy in self.fills)

    @classmethod
    def parse(cls, parser: Parser) -> ChannelOp:
        offsets = parse_int_list(parser) if parser.parse_optional_keyword("at") else None
        barriers = parser.parse_integer() if parser.parse_optional_keyword("barriers") else None
        parser.parse_punctuation(":")
        return cls(parse_type_of(parser, ChannelType, "!tile.channel"), offsets, barriers)

    def print(self, printer: Printer) -> None:
        if self.offsets is not None:
            printer.print_string(f" at {list(ints(self.offsets))}")
        if self.barriers is not None:
            printer.print_string(f" barriers {self.barriers.value.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)


class _SlotOp(IRDLOperation):
    """`%a, %b = tile.acquire %ch`: the buffers of the next slot."""

    channel = operand_def(ChannelType)
    buffers = var_result_def(BufType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, channel: SSAValue) -> None:
        assert isinstance(channel.type, ChannelType)
        super().__init__(operands=[channel], result_types=[list(channel.type.parts)])

    def verify_(self) -> None:
        assert isinstance(self.channel.type, ChannelType)
        if tuple(b.type for b in self.buffers) != self.channel.type.parts:
            raise VerifyException("expected the types of the slot's buffers as results")

    @classmethod
    def parse(cls, parser: Parser) -> _SlotOp:
        start = parser.pos
        channel = parse_value(parser)
        if not isinstance(channel.type, ChannelType):
            parser.raise_error(f"expected a channel, got {channel.type}", start, parser.pos)
        return cls(channel)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.channel)


@irdl_op_definition
class AcquireOp(_SlotOp):
    """`%a, %b = tile.acquire %ch`: wait until the next slot is free; its buffers, to be written."""

    name = "tile.acquire"


@irdl_op_definition
class ReceiveOp(_SlotOp):
    """`%a, %b = tile.receive %ch`: wait until the next slot has been published; its buffers, to be read."""

    name = "tile.receive"


class _TurnOp(IRDLOperation):
    channel = operand_def(ChannelType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class PublishOp(_TurnOp):
    """`tile.publish %ch`: the slot that was acquired last is full, once the copies into it have landed."""

    name = "tile.publish"

    def __init__(self, channel: SSAValue) -> None:
        super().__init__(operands=[channel])

    @classmethod
    def parse(cls, parser: Parser) -> PublishOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.channel)


@irdl_op_definition
class ReleaseOp(_TurnOp):
    """`tile.release %ch lag 1`: all slots that were received but the last one are free again; without lag, all.

    What read them is waited for: matrix instructions that run on for one turn let their slot go one turn later.
    """

    name = "tile.release"
    lag = prop_def(IntegerAttr)

    def __init__(self, channel: SSAValue, lag: int = 0) -> None:
        super().__init__(operands=[channel], properties={"lag": i64_attr(lag)})

    def verify_(self) -> None:
        assert isinstance(self.channel.type, ChannelType)
        lag = self.lag.value.data
        if lag not in (0, 1) or lag >= self.channel.type.stages.data:
            raise VerifyException(f"expected a lag of 0 or 1, less than the number of slots, got {lag}")

    @classmethod
    def parse(cls, parser: Parser) -> ReleaseOp:
        channel = parse_value(parser)
        return cls(channel, parser.parse_integer() if parser.parse_optional_keyword("lag") else 0)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.channel)
        if self.lag.value.data:
            printer.print_string(f" lag {self.lag.value.data}")
