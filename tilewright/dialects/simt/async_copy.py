"""Copies from global to shared memory that go on while the thread does (`cp.async`), and waiting for them."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, parse_value
from tilewright.dialects.simt.matrix import element_bits
from tilewright.dialects.simt.types import GlobalType, SharedType

COPY_BYTES = (4, 8, 16)


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """`simt.cp_async %p[%i] to %s[%j] width 8 valid %n`: starts a copy of `width` elements, 4, 8 or 16 bytes in all.

    Both addresses are multiples of these bytes. With `valid` only the first %n elements (an i32 from 0 to width) are
    read, and zeros are written for the rest; with none valid the global address is not used. The source may be read,
    and the destination written, at any time until the thread has waited for the copy's group (`simt.cp_async_commit`,
    `simt.cp_async_wait`); other threads may use what it brought after a barrier behind that.
    """

    name = "simt.cp_async"
    source = operand_def(GlobalType)
    source_index = operand_def(AnyAttr())
    target = operand_def(SharedType)
    target_index = operand_def(AnyAttr())
    valid = opt_operand_def(i32)
    width = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        source_index: SSAValue,
        target: SSAValue,
        target_index: SSAValue,
        width: int,
        valid: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[source, source_index, target, target_index, [] if valid is None else [valid]],
            properties={"width": i64_attr(width)},
        )

    def verify_(self) -> None:
        assert isinstance(self.source.type, GlobalType)
        assert isinstance(self.target.type, SharedType)
        element = self.source.type.element
        if self.target.type.element != element:
            raise VerifyException(f"global memory holds {element}, shared memory {self.target.type.element}")
        for index in (self.source_index, self.target_index):
            if index.type not in (i32, i64):
                raise VerifyException(f"the element index is i32 or i64, got {index.type}")
        size, odd = divmod(element_bits(element), 8)
        if odd or self.width.value.data * size not in COPY_BYTES:
            elements = f"{self.width.value.data} elements of {element}"
            raise VerifyException(f"expected a copy of 4, 8 or 16 bytes, got {elements}")

    @classmethod
    def parse(cls, parser: Parser) -> CpAsyncOp:
        source = parse_value(parser)
        with parser.in_square_brackets():
            source_index = parse_value(parser)
        parser.parse_keyword("to")
        target = parse_value(parser)
        with parser.in_square_brackets():
            target_index = parse_value(parser)
        parser.parse_keyword("width")
        width = parser.parse_integer()
        valid = parse_value(parser) if parser.parse_optional_keyword("valid") else None
        return cls(source, source_index, target, target_index, width, valid)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        with printer.in_square_brackets():
            printer.print_operand(self.source_index)
        printer.print_string(" to ")
        printer.print_operand(self.target)
        with printer.in_square_brackets():
            printer.print_operand(self.target_index)
        printer.print_string(f" width {self.width.value.data}")
        if self.valid is not None:
            printer.print_string(" valid ")
            printer.print_operand(self.valid)


@irdl_op_definition
class CpAsyncCommitOp(IRDLOperation):
    """The thread's copies since its last `simt.cp_async_commit` become a group; one without copies counts too."""

    name = "simt.cp_async_commit"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class CpAsyncWaitOp(IRDLOperation):
    """`simt.cp_async_wait pending 1`: the thread waits until at most so many of its latest groups are not complete."""

    name = "simt.cp_async_wait"
    pending = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, pending: int = 0) -> None:
        super().__init__(properties={"pending": i64_attr(pending)})

    def verify_(self) -> None:
        if self.pending.value.data < 0:
            raise VerifyException(f"expected at least 0 pending groups, got {self.pending.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> CpAsyncWaitOp:
        parser.parse_keyword("pending")
        return cls(parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" pending {self.pending.value.data}")
