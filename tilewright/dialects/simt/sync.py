"""Synchronisation and exchange between the threads of a block."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, parse_value, parse_word

SHUFFLES = ("xor", "down", "index")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of the block wait for each other; memory written before is visible to all after."""

    name = "simt.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """`%r = simt.shuffle xor %v, 16`: all 32 lanes of a warp exchange a value of a 32-bit (or narrower) type.

    `xor`: from lane `lane ^ n`; `down`: from lane `lane + n` (own value past the end); `index`: from lane `n`.
    """

    name = "simt.shuffle"
    mode = prop_def(StringAttr)
    amount = prop_def(IntegerAttr)
    value = operand_def()
    res = result_def()
    # It orders the lanes of a warp, so it must not move across control flow.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, mode: str, value: SSAValue, amount: int) -> None:
        super().__init__(
            operands=[value],
            properties={"mode": StringAttr(mode), "amount": i64_attr(amount)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        if self.mode.data not in SHUFFLES:
            raise VerifyException(f"expected mode {', '.join(SHUFFLES)}, got {self.mode.data}")
        if not 0 <= self.amount.value.data < 32:
            raise VerifyException(f"expected a lane count from 0 to 31, got {self.amount.value.data}")
        if self.res.type != self.value.type:
            raise VerifyException(f"expected result type {self.value.type}, got {self.res.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        mode = parse_word(parser, SHUFFLES, "mode")
        value = parse_value(parser)
        parser.parse_punctuation(",")
        return cls(mode.data, value, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.mode.data} ")
        printer.print_operand(self.value)
        printer.print_string(f", {self.amount.value.data}")
