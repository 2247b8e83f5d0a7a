"""The tensor memory accelerator: boxes of a tensor between global and shared memory, moved asynchronously.

One thread asks for a box; coordinates count elements, outermost dim first. Elements outside the tensor land as zero and
are not written. What is moved to shared memory is announced at an mbarrier; what is moved from it belongs to a group
that `simt.bulk.commit` closes and `simt.bulk.wait` waits for. Source: PTX ISA 8.0, cp.async.bulk.tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import (
    i64_attr,
    int_array,
    ints,
    parse_int_list,
    parse_value,
    parse_values,
    print_values,
)
from tilewright.dialects.simt.clusters import check_cluster, cluster_around
from tilewright.dialects.simt.mbarriers import parse_slot, print_slot
from tilewright.dialects.simt.types import MbarType, SharedType, TmapType


def check_box(map_: SSAValue, coordinates: Sequence[SSAValue], shared: SSAValue) -> None:
    """A coordinate a dim of the box, elements of the same type."""
    assert isinstance(map_.type, TmapType)
    assert isinstance(shared.type, SharedType)
    if len(coordinates) != len(map_.type.box):
        raise VerifyException(f"expected {len(map_.type.box)} coordinates, got {len(coordinates)}")
    if map_.type.element != shared.type.element:
        raise VerifyException(f"the map moves {map_.type.element}, the array holds {shared.type.element}")
    if map_.type.count > shared.type.count:
        raise VerifyException(f"a box of {map_.type.count} elements exceeds an array of {shared.type.count}")


@irdl_op_definition
class PrefetchMapOp(IRDLOperation):
    """`simt.prefetch_map %map`: fetch the map itself, so that the first copy by it need not wait for that."""

    name = "simt.prefetch_map"
    map = operand_def(TmapType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, map: SSAValue) -> None:
        super().__init__(operands=[map])

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchMapOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.map)


@irdl_op_definition
class TmaLoadOp(IRDLOperation):
    """`simt.tma.load %map[%m, %k] to %s[%i] signal %bar[%n]`: a box into the array from element %i on, row-major.

    The executing thread asks; when the box has landed, its bytes (those outside the tensor too) count at the barrier.
    With `multicast [0, 1]` it lands in these blocks of the cluster, at the same place of each, and counts at the same
    barrier of each.
    """

    name = "simt.tma.load"
    map = operand_def(TmapType)
    coordinates = var_operand_def(i32)
    shared = operand_def(SharedType)
    index = operand_def(i32)
    bar = operand_def(MbarType)
    slot = operand_def(i32)
    multicast = opt_prop_def(ArrayAttr[IntAttr])
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        map: SSAValue,
        coordinates: Sequence[SSAValue],
        shared: SSAValue,
        index: SSAValue,
        bar: SSAValue,
        slot: SSAValue,
        multicast: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            operands=[map, list(coordinates), shared, index, bar, slot],
            properties={"multicast": None if multicast is None else int_array(multicast)},
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The blocks of the cluster that the box goes to; empty for the block that asks alone."""
        return () if self.multicast is None else ints(self.multicast)

    def verify_(self) -> None:
        check_box(self.map, self.coordinates, self.shared)
        if self.multicast is None:
            return
        check_cluster(self)
        size = cluster_around(self)
        if not self.ranks or list(self.ranks) != sorted(set(self.ranks)) or self.ranks[0] < 0:
            raise VerifyException(f"expected ascending blocks of the cluster, at least one, got {list(self.ranks)}")
        if size is not None and self.ranks[-1] >= size:
            raise VerifyException(f"expected blocks 0 to {size - 1} of the cluster, got {self.ranks[-1]}")

    @classmethod
    def parse(cls, parser: Parser) -> TmaLoadOp:
        map_, coordinates = parse_value(parser), parse_values(parser)
        parser.parse_keyword("to")
        shared, index = parse_slot(parser)
        parser.parse_keyword("signal")
        bar, slot = parse_slot(parser)
        ranks = parse_int_list(parser) if parser.parse_optional_keyword("multicast") else None
        return cls(map_, coordinates, shared, index, bar, slot, ranks)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.map)
        print_values(printer, self.coordinates)
        printer.print_string(" to ")
        print_slot(printer, self.shared, self.index)
        printer.print_string(" signal ")
        print_slot(printer, self.bar, self.slot)
        if self.multicast is not None:
            printer.print_string(f" multicast {list(self.ranks)}")


@irdl_op_definition
class TmaStoreOp(IRDLOperation):
    """`simt.tma.store %s[%i] to %map[%m, %n]`: a box from the array, from element %i on, in the thread's open group.

    What other threads wrote to the array must be fenced (`simt.fence async`) by them, then waited for.
    """

    name = "simt.tma.store"
    shared = operand_def(SharedType)
    index = operand_def(i32)
    map = operand_def(TmapType)
    coordinates = var_operand_def(i32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, shared: SSAValue, index: SSAValue, map: SSAValue, coordinates: Sequence[SSAValue]) -> None:
        super().__init__(operands=[shared, index, map, list(coordinates)])

    def verify_(self) -> None:
        check_box(self.map, self.coordinates, self.shared)

    @classmethod
    def parse(cls, parser: Parser) -> TmaStoreOp:
        shared, index = parse_slot(parser)
        parser.parse_keyword("to")
        return cls(shared, index, parse_value(parser), parse_values(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_slot(printer, self.shared, self.index)
        printer.print_string(" to ")
        printer.print_operand(self.map)
        print_values(printer, self.coordinates)


@irdl_op_definition
class BulkCommitOp(IRDLOperation):
    """`simt.bulk.commit`: the stores that the executing thread asked for since the last become a group."""

    name = "simt.bulk.commit"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class BulkWaitOp(IRDLOperation):
    """`simt.bulk.wait 1 read`: wait until at most so many of the thread's groups are pending.

    With `read` they may still be writing to global memory, but have read shared memory, which can be written again.
    """

    name = "simt.bulk.wait"
    pending = prop_def(IntegerAttr)
    read = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, pending: int, *, read: bool = False) -> None:
        super().__init__(properties={"pending": i64_attr(pending), "read": UnitAttr() if read else None})

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= 7:
            raise VerifyException(f"expected 0 to 7 pending groups, got {self.pending.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> BulkWaitOp:
        pending = parser.parse_integer()
        return cls(pending, read=parser.parse_optional_keyword("read") is not None)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pending.value.data}{' read' if self.read is not None else ''}")
