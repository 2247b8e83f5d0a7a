"""Barriers in shared memory (mbarrier), named barriers, and fences between the two ways to memory.

An mbarrier counts arrivals and bytes: its phase completes when as many arrivals as `init` said have come and as many
bytes as `expect` announced have landed; then the next phase begins. A waiter names the parity of its phase.
Source: PTX ISA 8.0, mbarrier.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, parse_type_of, parse_value, parse_word
from tilewright.dialects.simt.clusters import check_cluster
from tilewright.dialects.simt.structure import check_room
from tilewright.dialects.simt.types import MbarType

FENCES = ("mbarrier_init", "async")
MBARRIER_BYTES = 8
NAMED_BARRIERS = 16
"""Named barriers of a block; number 0 is the block barrier (PTX ISA, bar.sync)."""


@irdl_op_definition
class MbarOp(IRDLOperation):
    """`%b = simt.mbar at 4096 : !simt.mbar<4>`: mbarriers at a byte offset (a multiple of 8) of shared memory."""

    name = "simt.mbar"
    offset = prop_def(IntegerAttr)
    res = result_def(MbarType)
    traits = traits_def(Pure())

    def __init__(self, offset: int, type: MbarType) -> None:
        super().__init__(properties={"offset": i64_attr(offset)}, result_types=[type])

    def verify_(self) -> None:
        if self.offset.value.data % 8:
            raise VerifyException(f"an mbarrier lies at a multiple of 8 bytes, got {self.offset.value.data}")
        check_room(self, self.offset.value.data, self.res.type.count.data * MBARRIER_BYTES)

    @classmethod
    def parse(cls, parser: Parser) -> MbarOp:
        parser.parse_keyword("at")
        offset = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(offset, parse_type_of(parser, MbarType, "!simt.mbar"))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" at {self.offset.value.data} : ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class MbarInitOp(IRDLOperation):
    """`simt.mbar.init %b arrivals 8`: every barrier of the array begins phase 0, which takes that many arrivals.

    One thread of the block executes it, then `simt.fence mbarrier_init` and a block barrier.
    """

    name = "simt.mbar.init"
    bar = operand_def(MbarType)
    arrivals = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, bar: SSAValue, arrivals: int) -> None:
        super().__init__(operands=[bar], properties={"arrivals": i64_attr(arrivals)})

    def verify_(self) -> None:
        if not 1 <= self.arrivals.value.data < 1 << 20:
            raise VerifyException(f"expected 1 to 2^20 - 1 arrivals, got {self.arrivals.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> MbarInitOp:
        bar = parse_value(parser)
        parser.parse_keyword("arrivals")
        return cls(bar, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.bar)
        printer.print_string(f" arrivals {self.arrivals.value.data}")


def parse_slot(parser: Parser) -> tuple[SSAValue, SSAValue]:
    """`%b[%s]`: one of an array."""
    array = parse_value(parser)
    with parser.in_square_brackets():
        return array, parse_value(parser)


def print_slot(printer: Printer, array: SSAValue, index: SSAValue) -> None:
    """Prints `%b[%s]`."""
    printer.print_operand(array)
    with printer.in_square_brackets():
        printer.print_operand(index)


@irdl_op_definition
class MbarArriveOp(IRDLOperation):
    """`simt.mbar.arrive %b[%s]`: each executing thread arrives once; what it did before is seen after the wait.

    `simt.mbar.arrive %b[%s] at %r` arrives at that barrier of the cluster's block %r.
    """

    name = "simt.mbar.arrive"
    bar = operand_def(MbarType)
    slot = operand_def(i32)
    rank = opt_operand_def(i32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, bar: SSAValue, slot: SSAValue, rank: SSAValue | None = None) -> None:
        super().__init__(operands=[bar, slot, rank])

    def verify_(self) -> None:
        if self.rank is not None:
            check_cluster(self)

    @classmethod
    def parse(cls, parser: Parser) -> MbarArriveOp:
        bar, slot = parse_slot(parser)
        return cls(bar, slot, parse_value(parser) if parser.parse_optional_keyword("at") else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_slot(printer, self.bar, self.slot)
        if self.rank is not None:
            printer.print_string(" at ")
            printer.print_operand(self.rank)


@irdl_op_definition
class MbarExpectOp(IRDLOperation):
    """`simt.mbar.expect %b[%s] bytes 49152`: announce bytes that asynchronous copies will land, and arrive."""

    name = "simt.mbar.expect"
    bar = operand_def(MbarType)
    slot = operand_def(i32)
    bytes = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, bar: SSAValue, slot: SSAValue, bytes: int) -> None:
        super().__init__(operands=[bar, slot], properties={"bytes": i64_attr(bytes)})

    def verify_(self) -> None:
        if not 0 <= self.bytes.value.data < 1 << 20:
            raise VerifyException(f"expected 0 to 2^20 - 1 bytes, got {self.bytes.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> MbarExpectOp:
        bar, slot = parse_slot(parser)
        parser.parse_keyword("bytes")
        return cls(bar, slot, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_slot(printer, self.bar, self.slot)
        printer.print_string(f" bytes {self.bytes.value.data}")


@irdl_op_definition
class MbarWaitOp(IRDLOperation):
    """`simt.mbar.wait %b[%s] parity %p`: wait until the phase of this parity (0 or 1) is complete.

    A fresh barrier is in phase 0, so that a wait for parity 1 passes at once.
    """

    name = "simt.mbar.wait"
    bar = operand_def(MbarType)
    slot = operand_def(i32)
    parity = operand_def(i32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, bar: SSAValue, slot: SSAValue, parity: SSAValue) -> None:
        super().__init__(operands=[bar, slot, parity])

    @classmethod
    def parse(cls, parser: Parser) -> MbarWaitOp:
        bar, slot = parse_slot(parser)
        parser.parse_keyword("parity")
        return cls(bar, slot, parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_slot(printer, self.bar, self.slot)
        printer.print_string(" parity ")
        printer.print_operand(self.parity)


@irdl_op_definition
class FenceOp(IRDLOperation):
    """`simt.fence async`: asynchronous copies and matrix instructions see what the thread wrote to shared memory.

    `simt.fence mbarrier_init`: barriers that were initialised are seen by them.
    """

    name = "simt.fence"
    kind = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kind: str) -> None:
        super().__init__(properties={"kind": StringAttr(kind)})

    def verify_(self) -> None:
        if self.kind.data not in FENCES:
            raise VerifyException(f"expected a fence of {', '.join(FENCES)}, got {self.kind.data}")

    @classmethod
    def parse(cls, parser: Parser) -> FenceOp:
        return cls(parse_word(parser, FENCES, "fence").data)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}")


@irdl_op_definition
class NamedBarrierOp(IRDLOperation):
    """`simt.named_barrier 1 threads 256`: so many threads of the block wait for each other at barrier 1 to 15."""

    name = "simt.named_barrier"
    number = prop_def(IntegerAttr)
    threads = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, number: int, threads: int) -> None:
        super().__init__(properties={"number": i64_attr(number), "threads": i64_attr(threads)})

    def verify_(self) -> None:
        if not 1 <= self.number.value.data < NAMED_BARRIERS:
            raise VerifyException(f"expected a barrier from 1 to {NAMED_BARRIERS - 1}, got {self.number.value.data}")
        threads = self.threads.value.data
        if not 32 <= threads <= 1024 or threads % 32:
            raise VerifyException(f"expected a multiple of 32 threads from 32 to 1024, got {threads}")

    @classmethod
    def parse(cls, parser: Parser) -> NamedBarrierOp:
        number = parser.parse_integer()
        parser.parse_keyword("threads")
        return cls(number, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number.value.data} threads {self.threads.value.data}")
