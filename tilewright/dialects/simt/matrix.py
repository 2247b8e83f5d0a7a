"""Matrices that a warp holds together: `ldmatrix` brings them to its registers, `mma.sync` multiplies them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
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
from tilewright.dialects.simt.fragments import MMA_SHAPES, MmaShape, ldmatrix_registers
from tilewright.dialects.simt.memory import check_register_indices
from tilewright.dialects.simt.types import RegsType, SharedType

COUNTS = ("x1", "x2", "x4")
SHAPES = tuple(dict.fromkeys(name for name, _ in MMA_SHAPES))

_OPERANDS = ((16, "f16, bf16"), (32, "f32 (as tf32)"))


def element_bits(element: Attribute) -> int:
    """Bits of a float or integer element; VerifyException for another type."""
    if isinstance(element, AnyFloat | IntegerType):
        return element.bitwidth
    raise VerifyException(f"expected a float or integer element type, got {element}")


def check_fragment(name: str, regs: SSAValue, indices: Sequence[SSAValue], count: int) -> None:
    """A fragment of `count` neighbouring registers along the last dim of an array."""
    assert isinstance(regs.type, RegsType)
    check_register_indices(regs, indices)
    if (regs.type.sizes[-1] if regs.type.sizes else 1) < count:
        raise VerifyException(f"{name}: expected a last register dim of at least {count}, got {regs.type}")


def _parse_registers(parser: Parser, what: str) -> tuple[SSAValue, list[SSAValue]]:
    regs = parse_value(parser)
    if not isinstance(regs.type, RegsType):
        parser.raise_error(f"expected a register array {what}, got {regs.type}")
    return regs, parse_optional_values(parser)


def _print_registers(printer: Printer, regs: SSAValue, indices: Sequence[SSAValue]) -> None:
    printer.print_operand(regs)
    print_optional_values(printer, indices)


@irdl_op_definition
class LdmatrixOp(IRDLOperation):
    """`simt.ldmatrix x4 trans %s[%i] into %r[%a]`: a warp reads 1, 2 or 4 matrices of 8 rows of 16 bytes.

    Lane `8 m + j` names row j of matrix m: the 16 bytes from its element index %i of shared memory, a multiple of 16
    bytes. What other lanes name is not used. Lane l gets word `l % 4` of row `l // 4` of each matrix, in neighbouring
    registers `r[a ..]`, the first matrix first: 2 registers a matrix for elements of 16 bits, 1 for 32, 4 for 8. With
    `trans` (16 bits alone) it gets elements `2 (l % 4)` and the next of column `l // 4`. All lanes of the warp take
    part.
    """

    name = "simt.ldmatrix"
    memory = operand_def(SharedType)
    index = operand_def(AnyAttr())
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    count = prop_def(IntegerAttr)
    trans = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        memory: SSAValue,
        index: SSAValue,
        regs: SSAValue,
        indices: Sequence[SSAValue],
        count: int = 4,
        trans: bool = False,
    ) -> None:
        super().__init__(
            operands=[memory, index, regs, list(indices)],
            properties={"count": i64_attr(count), "trans": UnitAttr() if trans else None},
        )

    @property
    def registers(self) -> int:
        """Registers that each lane gets."""
        assert isinstance(self.regs.type, RegsType)
        return ldmatrix_registers(self.count.value.data, element_bits(self.regs.type.element) // 8)

    def verify_(self) -> None:
        assert isinstance(self.memory.type, SharedType)
        assert isinstance(self.regs.type, RegsType)
        element = self.memory.type.element
        if element != self.regs.type.element:
            raise VerifyException(f"memory holds {element}, registers hold {self.regs.type.element}")
        if self.index.type not in (i32, i64):
            raise VerifyException(f"the element index is i32 or i64, got {self.index.type}")
        if self.count.value.data not in (1, 2, 4):
            raise VerifyException(f"expected 1, 2 or 4 matrices, got {self.count.value.data}")
        bits = element_bits(element)
        if bits not in ((16,) if self.trans else (8, 16, 32)):
            allowed = "16 bits for trans" if self.trans else "8, 16 or 32 bits"
            raise VerifyException(f"expected elements of {allowed}, got {element}")
        check_fragment("ldmatrix", self.regs, self.indices, self.registers)

    @classmethod
    def parse(cls, parser: Parser) -> LdmatrixOp:
        count = int(parse_word(parser, COUNTS, "the number of matrices").data[1:])
        trans = parser.parse_optional_keyword("trans") is not None
        memory = parse_value(parser)
        with parser.in_square_brackets():
            index = parse_value(parser)
        parser.parse_keyword("into")
        return cls(memory, index, *_parse_registers(parser, "after `into`"), count, trans)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" x{self.count.value.data} {'trans ' if self.trans else ''}")
        printer.print_operand(self.memory)
        with printer.in_square_brackets():
            printer.print_operand(self.index)
        printer.print_string(" into ")
        _print_registers(printer, self.regs, self.indices)


@irdl_op_definition
class MmaSyncOp(IRDLOperation):
    """`simt.mma_sync m16n8k16 %a[%i], %b[%j] into %c[%i, %j]`: a warp adds A (16 x k) times B (k x 8) to C, in place.

    The elements that each lane holds, in neighbouring registers along the last dim, are those of `fragments.py`. C is
    f32; A and B are f16 or bf16 (k 16 or 8), or f32 read as tf32 (k 8): the 13 lowest bits of the fraction are
    ignored. Products are exact; the simulator and the CPU add them to C one by one, k ascending, each sum rounded to
    f32. Tensor cores add in another order and with other intermediate precision, so results agree within a tolerance.
    All lanes take part.
    """

    name = "simt.mma_sync"
    shape = prop_def(StringAttr)
    a = operand_def(RegsType)
    a_indices = var_operand_def(i32)
    b = operand_def(RegsType)
    b_indices = var_operand_def(i32)
    c = operand_def(RegsType)
    c_indices = var_operand_def(i32)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        shape: str,
        a: SSAValue,
        a_indices: Sequence[SSAValue],
        b: SSAValue,
        b_indices: Sequence[SSAValue],
        c: SSAValue,
        c_indices: Sequence[SSAValue],
    ) -> None:
        super().__init__(
            operands=[a, list(a_indices), b, list(b_indices), c, list(c_indices)],
            properties={"shape": StringAttr(shape)},
        )

    @property
    def mma(self) -> MmaShape:
        """The shape with its fragments."""
        assert isinstance(self.a.type, RegsType)
        return MMA_SHAPES[self.shape.data, element_bits(self.a.type.element)]

    def verify_(self) -> None:
        assert isinstance(self.a.type, RegsType)
        assert isinstance(self.b.type, RegsType)
        assert isinstance(self.c.type, RegsType)
        element = self.a.type.element
        if self.shape.data not in SHAPES:
            raise VerifyException(f"expected shape {', '.join(SHAPES)}, got {self.shape.data}")
        if self.b.type.element != element:
            raise VerifyException(f"A holds {element}, B holds {self.b.type.element}")
        known = isinstance(element, BFloat16Type | Float16Type | Float32Type)
        if not known or (self.shape.data, element_bits(element)) not in MMA_SHAPES:
            allowed = ", ".join(types for bits, types in _OPERANDS if (self.shape.data, bits) in MMA_SHAPES)
            raise VerifyException(f"{self.shape.data}: expected elements of type {allowed}, got {element}")
        if not isinstance(self.c.type.element, Float32Type):
            raise VerifyException(f"expected C of type f32, got {self.c.type.element}")
        shape = self.mma
        check_fragment("A", self.a, self.a_indices, shape.a_registers)
        check_fragment("B", self.b, self.b_indices, shape.b_registers)
        check_fragment("C", self.c, self.c_indices, shape.c_registers)

    @classmethod
    def parse(cls, parser: Parser) -> MmaSyncOp:
        shape = parse_word(parser, SHAPES, "shape")
        a, a_indices = _parse_registers(parser, "for A")
        parser.parse_punctuation(",")
        b, b_indices = _parse_registers(parser, "for B")
        parser.parse_keyword("into")
        return cls(shape.data, a, a_indices, b, b_indices, *_parse_registers(parser, "after `into`"))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.shape.data} ")
        _print_registers(printer, self.a, self.a_indices)
        printer.print_string(", ")
        _print_registers(printer, self.b, self.b_indices)
        printer.print_string(" into ")
        _print_registers(printer, self.c, self.c_indices)
