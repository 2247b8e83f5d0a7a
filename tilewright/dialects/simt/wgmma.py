"""Matrix instructions of a warpgroup (wgmma) on operands in shared memory, and the store of results (stmatrix).

`simt.wgmma m64n256k16 ...` starts acc += a * b for a 64 x k tile of a and a k x n tile of b; 128 threads take part,
each holds n / 2 of the accumulators. It runs asynchronously: `simt.wgmma.fence` before the first, `simt.wgmma.commit`
closes a group, `simt.wgmma.wait N` waits until at most N groups are pending. Registers in flight may not be touched.
Source: PTX ISA 8.0, wgmma.

Where an accumulator sits, in lane l of warp w of the warpgroup: row 16*w + 8*i + l/4, column 8*j + 2*(l mod 4) + c at
registers [i, 2*j + c], for i, c in 0..1 and j < n/8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerAttr, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
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
    parse_optional_values,
    parse_value,
    parse_word,
    print_optional_values,
)
from tilewright.dialects.simt.mbarriers import parse_slot, print_slot
from tilewright.dialects.simt.memory import check_register_indices
from tilewright.dialects.simt.types import RegsType, SharedType

MAJORS = ("k", "mn")
"""The dim along which an operand is contiguous in shared memory: the summed one, or its own."""

LEFT_REGISTERS = 4
"""Registers of A that a thread holds for one instruction."""

_SHAPE = re.compile(r"m64n(\d{1,3})k(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Shape:
    """The tile of one instruction: m x k times k x n."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"


def parse_shape(text: str) -> Shape | None:
    """The shape that a text such as `m64n256k16` names, or None."""
    match = _SHAPE.fullmatch(text)
    return None if match is None else Shape(64, int(match.group(1)), int(match.group(2)))


def depth_of(element: Attribute) -> int | None:
    """Elements along k of one instruction: 32 bytes of them; None for a type that wgmma does not take here."""
    if isinstance(element, BFloat16Type | Float16Type):
        return 16
    return 8 if isinstance(element, Float32Type) else None


@irdl_op_definition
class WgmmaOp(IRDLOperation):
    """`simt.wgmma m64n256k16 %a[%i] k lbo 16 sbo 1024, %b[%j] mn lbo 8192 sbo 1024 into %acc[%r, %c]`.

    Operands begin at element %i of a swizzled shared array. `k` or `mn` says along which dim they are contiguous; `lbo`
    and `sbo` are the leading and stride byte offsets between the 8-row cores of the layout: for `k`, sbo from 8 rows to
    the next 8 (lbo is ignored); for `mn`, lbo from one panel of `swizzle` bytes to the next, sbo from 8 rows along k to
    the next 8. Accumulators are f32 at registers
    [%r .. %r + 1, %c .. %c + n/4 - 1], static; other dims of the array have size 1. f32 operands are read as
    tf32, with the first 10 bits of the fraction.
    """

    name = "simt.wgmma"
    shape = prop_def(StringAttr)
    lhs = operand_def(SharedType)
    lhs_index = operand_def(i32)
    rhs = operand_def(SharedType)
    rhs_index = operand_def(i32)
    acc = operand_def(RegsType)
    indices = var_operand_def(i32)
    majors = prop_def(StringAttr)
    lhs_lbo = prop_def(IntegerAttr)
    lhs_sbo = prop_def(IntegerAttr)
    rhs_lbo = prop_def(IntegerAttr)
    rhs_sbo = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        shape: Shape,
        lhs: tuple[SSAValue, SSAValue],
        rhs: tuple[SSAValue, SSAValue],
        acc: SSAValue,
        indices: Sequence[SSAValue],
        *,
        majors: tuple[str, str],
        lhs_offsets: tuple[int, int],
        rhs_offsets: tuple[int, int],
    ) -> None:
        super().__init__(
            operands=[*lhs, *rhs, acc, list(indices)],
            properties={
                "shape": StringAttr(str(shape)),
                "majors": StringAttr(",".join(majors)),
                "lhs_lbo": i64_attr(lhs_offsets[0]),
                "lhs_sbo": i64_attr(lhs_offsets[1]),
                "rhs_lbo": i64_attr(rhs_offsets[0]),
                "rhs_sbo": i64_attr(rhs_offsets[1]),
            },
        )

    @property
    def tile(self) -> Shape:
        """The instruction's shape."""
        found = parse_shape(self.shape.data)
        assert found is not None
        return found

    @property
    def major(self) -> tuple[str, str]:
        """`k` or `mn` for each operand."""
        lhs, _, rhs = self.majors.data.partition(",")
        return lhs, rhs

    @property
    def offsets(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(leading, stride) byte offsets of each operand."""
        return (
            (self.lhs_lbo.value.data, self.lhs_sbo.value.data),
            (self.rhs_lbo.value.data, self.rhs_sbo.value.data),
        )

    @property
    def pitch(self) -> int:
        """Registers from one row of accumulators to the next: the size of the array's last dim of more than one."""
        assert isinstance(self.acc.type, RegsType)
        return next((n for n in reversed(self.acc.type.sizes) if n > 1), 1)

    def verify_(self) -> None:
        shape = parse_shape(self.shape.data)
        assert isinstance(self.lhs.type, SharedType)
        assert isinstance(self.rhs.type, SharedType)
        assert isinstance(self.acc.type, RegsType)
        element = self.lhs.type.element
        depth = depth_of(element)
        if depth is None or element != self.rhs.type.element:
            raise VerifyException(
                f"expected operands of one type of bf16, f16, f32, got {element} and {self.rhs.type.element}"
            )
        if shape is None or shape.k != depth or not 8 <= shape.n <= 256 or shape.n % 8:
            raise VerifyException(f"expected shape m64n<8 to 256 in steps of 8>k{depth}, got {self.shape.data}")
        if any(major not in MAJORS for major in self.major):
            raise VerifyException(f"expected each operand to be contiguous along k or mn, got {self.majors.data}")
        if isinstance(element, Float32Type) and self.major != ("k", "k"):
            raise VerifyException("f32 operands are contiguous along k")
        for array in (self.lhs.type, self.rhs.type):
            if not array.swizzle.data:
                raise VerifyException(f"expected a swizzled shared array, got {array}")
        for offset in (n for pair in self.offsets for n in pair):
            if offset % 16 or not 0 <= offset < 1 << 18:
                raise VerifyException(f"byte offsets are multiples of 16 below 2^18, got {offset}")
        check_register_indices(self.acc, self.indices)
        if self.acc.type.element != Float32Type() or self.pitch < shape.n // 4:
            raise VerifyException(f"expected f32 accumulators with rows of {shape.n // 4}, got {self.acc.type}")

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaOp:
        position = parser.pos
        shape = parse_shape(parser.parse_identifier())
        if shape is None:
            parser.raise_error("expected a shape such as m64n256k16", position, parser.pos)

        def operand() -> tuple[tuple[SSAValue, SSAValue], str, tuple[int, int]]:
            place = parse_slot(parser)
            major = parse_word(parser, MAJORS, "major dim").data
            parser.parse_keyword("lbo")
            lbo = parser.parse_integer()
            parser.parse_keyword("sbo")
            return place, major, (lbo, parser.parse_integer())

        lhs, left, lhs_offsets = operand()
        parser.parse_punctuation(",")
        rhs, right, rhs_offsets = operand()
        parser.parse_keyword("into")
        acc, indices = parse_value(parser), parse_optional_values(parser)
        return cls(
            shape, lhs, rhs, acc, indices, majors=(left, right), lhs_offsets=lhs_offsets, rhs_offsets=rhs_offsets
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.shape.data} ")
        print_slot(printer, self.lhs, self.lhs_index)
        (lbo, sbo), (left, right) = self.offsets[0], self.major
        printer.print_string(f" {left} lbo {lbo} sbo {sbo}, ")
        print_slot(printer, self.rhs, self.rhs_index)
        lbo, sbo = self.offsets[1]
        printer.print_string(f" {right} lbo {lbo} sbo {sbo} into ")
        printer.print_operand(self.acc)
        print_optional_values(printer, self.indices)


@irdl_op_definition
class WgmmaRegsOp(IRDLOperation):
    """`simt.wgmma.regs m64n256k8 %r[%i], %b[%j] k lbo 16 sbo 1024 into %acc[%c, %r] turned`: A comes from registers.

    Like `simt.wgmma`, but for the left operand: lane l of warp w holds of A, 64 x 8 elements of f32 that are read as
    tf32, row 16*w + l/4 + 8*(r mod 2) at k = l mod 4 + 4*(r/2), in registers r = 0..3 along the array's last dim (PTX
    ISA 8.0, wgmma, fragments of A). It reads them until it has been waited for: nothing may write them before, and what
    was written needs a fence. Of `turned` accumulators the array has the columns first: registers [%c .. %c + n/4 - 1,
    %r .. %r + 1].
    """

    name = "simt.wgmma.regs"
    shape = prop_def(StringAttr)
    lhs = operand_def(RegsType)
    lhs_indices = var_operand_def(i32)
    rhs = operand_def(SharedType)
    rhs_index = operand_def(i32)
    acc = operand_def(RegsType)
    indices = var_operand_def(i32)
    lbo = prop_def(IntegerAttr)
    sbo = prop_def(IntegerAttr)
    turned = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        shape: Shape,
        lhs: tuple[SSAValue, Sequence[SSAValue]],
        rhs: tuple[SSAValue, SSAValue],
        acc: SSAValue,
        indices: Sequence[SSAValue],
        offsets: tuple[int, int],
        *,
        turned: bool = False,
    ) -> None:
        super().__init__(
            operands=[lhs[0], list(lhs[1]), *rhs, acc, list(indices)],
            properties={
                "shape": StringAttr(str(shape)),
                "lbo": i64_attr(offsets[0]),
                "sbo": i64_attr(offsets[1]),
                "turned": UnitAttr() if turned else None,
            },
        )

    @property
    def tile(self) -> Shape:
        """The instruction's shape."""
        found = parse_shape(self.shape.data)
        assert found is not None
        return found

    @property
    def steps(self) -> tuple[int, int]:
        """Registers from one row of accumulators to the next, and from one column to the next."""
        assert isinstance(self.acc.type, RegsType)
        wide = [n for n in self.acc.type.sizes if n > 1]
        pitch = wide[-1] if wide else 1
        return (1, pitch) if self.turned is not None else (pitch, 1)

    def verify_(self) -> None:
        shape = parse_shape(self.shape.data)
        assert isinstance(self.lhs.type, RegsType)
        assert isinstance(self.rhs.type, SharedType)
        assert isinstance(self.acc.type, RegsType)
        if self.lhs.type.element != Float32Type() or self.rhs.type.element != Float32Type():
            raise VerifyException(f"expected f32 operands, got {self.lhs.type.element} and {self.rhs.type.element}")
        if shape is None or shape.k != depth_of(Float32Type()) or not 8 <= shape.n <= 256 or shape.n % 8:
            raise VerifyException(f"expected shape m64n<8 to 256 in steps of 8>k8, got {self.shape.data}")
        if not self.rhs.type.swizzle.data:
            raise VerifyException(f"expected a swizzled shared array, got {self.rhs.type}")
        for offset in (self.lbo.value.data, self.sbo.value.data):
            if offset % 16 or not 0 <= offset < 1 << 18:
                raise VerifyException(f"byte offsets are multiples of 16 below 2^18, got {offset}")
        check_register_indices(self.lhs, self.lhs_indices)
        check_register_indices(self.acc, self.indices)
        if self.lhs.type.sizes[-1] < LEFT_REGISTERS:
            raise VerifyException(f"expected {LEFT_REGISTERS} registers of A, got {self.lhs.type}")
        if self.acc.type.element != Float32Type() or self.acc.type.count < shape.n // 2:
            raise VerifyException(f"expected {shape.n // 2} f32 accumulators, got {self.acc.type}")

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaRegsOp:
        position = parser.pos
        shape = parse_shape(parser.parse_identifier())
        if shape is None:
            parser.raise_error("expected a shape such as m64n256k8", position, parser.pos)
        lhs = parse_value(parser), parse_optional_values(parser)
        parser.parse_punctuation(",")
        rhs = parse_slot(parser)
        parser.parse_keyword("k")
        parser.parse_keyword("lbo")
        lbo = parser.parse_integer()
        parser.parse_keyword("sbo")
        sbo = parser.parse_integer()
        parser.parse_keyword("into")
        acc, indices = parse_value(parser), parse_optional_values(parser)
        turned = parser.parse_optional_keyword("turned") is not None
        return cls(shape, lhs, rhs, acc, indices, (lbo, sbo), turned=turned)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.shape.data} ")
        printer.print_operand(self.lhs)
        print_optional_values(printer, self.lhs_indices)
        printer.print_string(", ")
        print_slot(printer, self.rhs, self.rhs_index)
        printer.print_string(f" k lbo {self.lbo.value.data} sbo {self.sbo.value.data} into ")
        printer.print_operand(self.acc)
        print_optional_values(printer, self.indices)
        if self.turned is not None:
            printer.print_string(" turned")


@irdl_op_definition
class WgmmaFenceOp(IRDLOperation):
    """`simt.wgmma.fence`: registers that the threads wrote are seen by the matrix instructions that follow."""

    name = "simt.wgmma.fence"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class WgmmaCommitOp(IRDLOperation):
    """`simt.wgmma.commit`: the instructions since the last become a group."""

    name = "simt.wgmma.commit"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class WgmmaWaitOp(IRDLOperation):
    """`simt.wgmma.wait 0 of %acc`: wait until at most so many groups are pending.

    The arrays that are named may be read and written after it (with 0 pending groups, all that instructions wrote).
    """

    name = "simt.wgmma.wait"
    pending = prop_def(IntegerAttr)
    accumulators = var_operand_def(RegsType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, pending: int, accumulators: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[list(accumulators)], properties={"pending": i64_attr(pending)})

    def verify_(self) -> None:
        if not 0 <= self.pending.value.data <= 7:
            raise VerifyException(f"expected 0 to 7 pending groups, got {self.pending.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaWaitOp:
        pending = parser.parse_integer()
        accumulators: list[SSAValue] = []
        if parser.parse_optional_keyword("of"):
            accumulators = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))
        return cls(pending, accumulators)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pending.value.data}")
        if self.accumulators:
            printer.print_string(" of ")
            printer.print_list(self.accumulators, printer.print_operand)


@irdl_op_definition
class StMatrixOp(IRDLOperation):
    """`simt.stmatrix %r[%a, %b] to %s[%i] trans`: a warp stores four 8 x 8 matrices of 16-bit elements.

    Lane l holds of matrix q the elements (l/4, 2*(l mod 4)) and the next, at registers [.., b + 2*q] and the next.
    Lanes 8*q to 8*q + 7 give the places of the rows of matrix q, 8 elements each, at multiples of 16 bytes. `trans`
    stores the transposed matrices. Source: PTX ISA 7.8, stmatrix.
    """

    name = "simt.stmatrix"
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    shared = operand_def(SharedType)
    index = operand_def(i32)
    trans = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self, regs: SSAValue, indices: Sequence[SSAValue], shared: SSAValue, index: SSAValue, *, trans: bool = False
    ) -> None:
        super().__init__(
            operands=[regs, list(indices), shared, index], properties={"trans": UnitAttr() if trans else None}
        )

    def verify_(self) -> None:
        assert isinstance(self.regs.type, RegsType)
        assert isinstance(self.shared.type, SharedType)
        element = self.regs.type.element
        if not isinstance(element, BFloat16Type | Float16Type) or element != self.shared.type.element:
            raise VerifyException(f"expected bf16 or f16 on both sides, got {element} and {self.shared.type.element}")
        check_register_indices(self.regs, self.indices)
        if not self.regs.type.sizes or self.regs.type.sizes[-1] < 8:
            raise VerifyException(f"expected rows of at least 8 registers, got {self.regs.type}")

    @classmethod
    def parse(cls, parser: Parser) -> StMatrixOp:
        regs, indices = parse_value(parser), parse_optional_values(parser)
        parser.parse_keyword("to")
        shared, index = parse_slot(parser)
        return cls(regs, indices, shared, index, trans=parser.parse_optional_keyword("trans") is not None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.regs)
        print_optional_values(printer, self.indices)
        printer.print_string(" to ")
        print_slot(printer, self.shared, self.index)
        if self.trans is not None:
            printer.print_string(" trans")
