"""Memory at the simt level: shared arrays, register arrays, vector loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import (
    i64_attr,
    parse_optional_values,
    parse_type_of,
    parse_value,
    print_optional_values,
)
from tilewright.dialects.simt.structure import check_room, is_static_index
from tilewright.dialects.simt.types import GlobalType, RegsType, SharedType

WIDTHS = (1, 2, 4, 8, 16)
UNALIGNED_BYTES = (4, 8, 16)
"""Bytes of an unaligned access: whole registers, so that it can be shifted into place."""


def zero_of(element: Attribute) -> Attribute:
    """The zero of an element type, as the attribute that masked loads fill with."""
    if isinstance(element, AnyFloat):
        return FloatAttr(0.0, element)
    if isinstance(element, IntegerType):
        return IntegerAttr(0, cast("IntegerType[int]", element))
    raise VerifyException(f"expected a float or integer element type, got {element}")


def _bytes_of(element: Attribute) -> int:
    """Bytes of an element in memory; 8 for a type that none has."""
    bits = 64
    if isinstance(element, IntegerType):
        bits = cast("IntegerType[int]", element).width.data
    elif isinstance(element, AnyFloat):
        bits = element.bitwidth
    return max(1, bits // 8)


@irdl_op_definition
class SharedOp(IRDLOperation):
    """`%s = simt.shared at 4096 : !simt.smem<[64, 17], f32>`: an array at a byte offset of a block's shared memory."""

    name = "simt.shared"
    offset = prop_def(IntegerAttr)
    res = result_def(SharedType)
    traits = traits_def(Pure())

    def __init__(self, offset: int, type: SharedType) -> None:
        super().__init__(properties={"offset": i64_attr(offset)}, result_types=[type])

    def verify_(self) -> None:
        type_ = self.res.type
        check_room(self, self.offset.value.data, type_.count * _bytes_of(type_.element))

    @classmethod
    def parse(cls, parser: Parser) -> SharedOp:
        parser.parse_keyword("at")
        offset = parser.parse_integer()
        parser.parse_punctuation(":")
        type_ = parse_type_of(parser, SharedType, "!simt.smem")
        return cls(offset, type_)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" at {self.offset.value.data} : ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class RegsAllocOp(IRDLOperation):
    """`%r = simt.regs.alloc : !simt.regs<[8, 8], f32>`: a per-thread register array, undefined until written."""

    name = "simt.regs.alloc"
    res = result_def(RegsType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, type: RegsType) -> None:
        super().__init__(result_types=[type])

    @classmethod
    def parse(cls, parser: Parser) -> RegsAllocOp:
        parser.parse_punctuation(":")
        type_ = parse_type_of(parser, RegsType, "!simt.regs")
        return cls(type_)

    def print(self, printer: Printer) -> None:
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)


def check_register_indices(regs: SSAValue, indices: Sequence[SSAValue]) -> None:
    """One index for each dim of the register array, each static (see `RegsType`)."""
    assert isinstance(regs.type, RegsType)
    if len(indices) != len(regs.type.sizes):
        raise VerifyException(f"expected {len(regs.type.sizes)} register indices, got {len(indices)}")
    for i in indices:
        if i.type != i32:
            raise VerifyException(f"register indices are i32, got {i.type}")
        if not is_static_index(i):
            raise VerifyException("a register index must be a constant or made of simt.unroll variables")


@irdl_op_definition
class RegsLoadOp(IRDLOperation):
    """`%v = simt.regs.load %r[%i, %j]`."""

    name = "simt.regs.load"
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    res = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(self, regs: SSAValue, indices: Sequence[SSAValue]) -> None:
        assert isinstance(regs.type, RegsType)
        super().__init__(operands=[regs, list(indices)], result_types=[regs.type.element])

    def verify_(self) -> None:
        check_register_indices(self.regs, self.indices)
        assert isinstance(self.regs.type, RegsType)
        if self.res.type != self.regs.type.element:
            raise VerifyException(f"expected result type {self.regs.type.element}, got {self.res.type}")

    @classmethod
    def parse(cls, parser: Parser) -> RegsLoadOp:
        regs = parse_value(parser)
        if not isinstance(regs.type, RegsType):
            parser.raise_error(f"expected a register array, got {regs.type}")
        return cls(regs, parse_optional_values(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.regs)
        print_optional_values(printer, self.indices)


@irdl_op_definition
class RegsStoreOp(IRDLOperation):
    """`simt.regs.store %v to %r[%i, %j]`."""

    name = "simt.regs.store"
    value = operand_def()
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, value: SSAValue, regs: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, regs, list(indices)])

    def verify_(self) -> None:
        check_register_indices(self.regs, self.indices)
        assert isinstance(self.regs.type, RegsType)
        if self.value.type != self.regs.type.element:
            raise VerifyException(f"expected a value of type {self.regs.type.element}, got {self.value.type}")

    @classmethod
    def parse(cls, parser: Parser) -> RegsStoreOp:
        value = parse_value(parser)
        parser.parse_keyword("to")
        return cls(value, parse_value(parser), parse_optional_values(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" to ")
        printer.print_operand(self.regs)
        print_optional_values(printer, self.indices)


Reach: TypeAlias = "tuple[SSAValue, SSAValue]"
"""Of an unaligned access: how many elements lie before its first one, and from it on, that may be touched."""


def _check_reach(op: LoadOp | StoreOp) -> None:
    """What an unaligned access asks for."""
    index, before, after = op.index, op.before, op.after
    if before is None and after is None:
        return
    if before is None or after is None:
        raise VerifyException("an unaligned access says how much lies before its first element and from it on")
    assert isinstance(op.memory.type, GlobalType | SharedType)
    size = op.width.value.data * _bytes_of(op.memory.type.element)
    if before.type != index.type or after.type != index.type:
        raise VerifyException(f"expected what lies around as {index.type}, got {before.type} and {after.type}")
    if size not in UNALIGNED_BYTES:
        raise VerifyException(f"an unaligned access takes {', '.join(map(str, UNALIGNED_BYTES))} bytes, got {size}")


def _parse_reach(parser: Parser) -> Reach | None:
    """`unaligned %before, %after`, if it is there."""
    if not parser.parse_optional_keyword("unaligned"):
        return None
    before = parse_value(parser)
    parser.parse_punctuation(",")
    return before, parse_value(parser)


def _print_reach(printer: Printer, reach: Reach | None) -> None:
    if reach is not None:
        printer.print_string(" unaligned ")
        printer.print_operand(reach[0])
        printer.print_string(", ")
        printer.print_operand(reach[1])


def constant_value(value: SSAValue) -> int | None:
    """The integer that an `arith.constant` gives; None for any other value."""
    if not isinstance(value.owner, ConstantOp) or not isinstance(value.owner.value, IntegerAttr):
        return None
    return value.owner.value.value.data


def _check_access(memory: SSAValue, index: SSAValue, regs: SSAValue, indices: Sequence[SSAValue], width: int) -> None:
    assert isinstance(memory.type, GlobalType | SharedType)
    assert isinstance(regs.type, RegsType)
    if memory.type.element != regs.type.element:
        raise VerifyException(f"memory holds {memory.type.element}, registers hold {regs.type.element}")
    if index.type not in (i32, i64):
        raise VerifyException(f"the element index is i32 or i64, got {index.type}")
    if width not in WIDTHS:
        raise VerifyException(f"width must be one of {WIDTHS}, got {width}")
    check_register_indices(regs, indices)
    if width > 1 and (not regs.type.sizes or regs.type.sizes[-1] < width):
        raise VerifyException(f"width {width} exceeds the last register dim of {regs.type}")
    for dim, (place, size) in enumerate(zip(indices, regs.type.sizes, strict=True)):
        known = constant_value(place)
        room = size - (width if dim == len(indices) - 1 else 1)
        if known is not None and not 0 <= known <= room:
            what = f"width {width} at register {known} leaves" if room < size - 1 else f"register {known} is not in"
            raise VerifyException(f"{what} dim {dim} of {regs.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """`simt.load %p[%i] into %r[%a, %b] width 4 if %m else 0.0 : f32`.

    Reads `width` consecutive elements from element index %i of global or shared memory into registers
    `r[a, b .. b + width - 1]`. Where the mask is false nothing is read and the registers get the `else` constant.
    With width > 1 the address is a multiple of width elements.

    With `unaligned %before, %after` it may be any. Then what may be read are the elements from %i - %before up to, not
    including, %i + %after; registers for others get the constant. The one or two aligned words of `width` elements that
    hold the wanted elements are read, where they lie within, and shifted; else the wanted elements that do, one by one.
    """

    name = "simt.load"
    memory = operand_def(GlobalType | SharedType)
    index = operand_def(AnyAttr())
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    mask = opt_operand_def(i1)
    before = opt_operand_def(AnyAttr())
    after = opt_operand_def(AnyAttr())
    width = prop_def(IntegerAttr)
    other = prop_def(AnyAttr())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        memory: SSAValue,
        index: SSAValue,
        regs: SSAValue,
        indices: Sequence[SSAValue],
        width: int = 1,
        mask: SSAValue | None = None,
        other: Attribute | None = None,
        reach: Reach | None = None,
    ) -> None:
        assert isinstance(regs.type, RegsType)
        before, after = ([], []) if reach is None else ([reach[0]], [reach[1]])
        super().__init__(
            operands=[memory, index, regs, list(indices), [] if mask is None else [mask], before, after],
            properties={"width": i64_attr(width), "other": other or zero_of(regs.type.element)},
        )

    @property
    def reach(self) -> Reach | None:
        """What may be touched around the first element; None for an aligned access."""
        return None if self.before is None or self.after is None else (self.before, self.after)

    def verify_(self) -> None:
        _check_access(self.memory, self.index, self.regs, self.indices, self.width.value.data)
        _check_reach(self)
        assert isinstance(self.regs.type, RegsType)
        element, other = self.regs.type.element, self.other
        if not isinstance(other, IntegerAttr | FloatAttr) or cast("IntegerAttr | FloatAttr", other).type != element:
            raise VerifyException(f"expected a constant of type {element} after else, got {other}")

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        memory = parse_value(parser)
        with parser.in_square_brackets():
            index = parse_value(parser)
        parser.parse_keyword("into")
        regs = parse_value(parser)
        indices = parse_optional_values(parser)
        parser.parse_keyword("width")
        width = parser.parse_integer()
        reach = _parse_reach(parser)
        mask, other = None, None
        if parser.parse_optional_keyword("if"):
            mask = parse_value(parser)
        if mask is not None or reach is not None:
            parser.parse_keyword("else")
            other = parser.parse_attribute()
        if not isinstance(regs.type, RegsType):
            parser.raise_error(f"expected a register array after `into`, got {regs.type}")
        return cls(memory, index, regs, indices, width, mask, other, reach)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.memory)
        with printer.in_square_brackets():
            printer.print_operand(self.index)
        printer.print_string(" into ")
        printer.print_operand(self.regs)
        print_optional_values(printer, self.indices)
        printer.print_string(f" width {self.width.value.data}")
        _print_reach(printer, self.reach)
        if self.mask is not None:
            printer.print_string(" if ")
            printer.print_operand(self.mask)
        if self.mask is not None or self.reach is not None:
            printer.print_string(" else ")
            printer.print_attribute(self.other)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """`simt.store %r[%a, %b] to %p[%i] width 4 if %m`: the opposite of `simt.load`.

    Nothing is written where the mask is false. With `unaligned %before, %after`, in global memory alone, the address
    may be any, and what may be written are the elements from %i - %before up to, not including, %i + %after: all at
    once where the address is a multiple of width elements and all lie within, else those that do, one by one.
    """

    name = "simt.store"
    regs = operand_def(RegsType)
    indices = var_operand_def(i32)
    memory = operand_def(GlobalType | SharedType)
    index = operand_def(AnyAttr())
    mask = opt_operand_def(i1)
    before = opt_operand_def(AnyAttr())
    after = opt_operand_def(AnyAttr())
    width = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        regs: SSAValue,
        indices: Sequence[SSAValue],
        memory: SSAValue,
        index: SSAValue,
        width: int = 1,
        mask: SSAValue | None = None,
        reach: Reach | None = None,
    ) -> None:
        before, after = ([], []) if reach is None else ([reach[0]], [reach[1]])
        super().__init__(
            operands=[regs, list(indices), memory, index, [] if mask is None else [mask], before, after],
            properties={"width": i64_attr(width)},
        )

    @property
    def reach(self) -> Reach | None:
        """What may be touched around the first element; None for an aligned access."""
        return None if self.before is None or self.after is None else (self.before, self.after)

    def verify_(self) -> None:
        _check_access(self.memory, self.index, self.regs, self.indices, self.width.value.data)
        _check_reach(self)
        if self.reach is not None and not isinstance(self.memory.type, GlobalType):
            raise VerifyException(f"an unaligned store is one to global memory, got {self.memory.type}")

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        regs = parse_value(parser)
        indices = parse_optional_values(parser)
        parser.parse_keyword("to")
        memory = parse_value(parser)
        with parser.in_square_brackets():
            index = parse_value(parser)
        parser.parse_keyword("width")
        width = parser.parse_integer()
        reach = _parse_reach(parser)
        mask = parse_value(parser) if parser.parse_optional_keyword("if") else None
        return cls(regs, indices, memory, index, width, mask, reach)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.regs)
        print_optional_values(printer, self.indices)
        printer.print_string(" to ")
        printer.print_operand(self.memory)
        with printer.in_square_brackets():
            printer.print_operand(self.index)
        printer.print_string(f" width {self.width.value.data}")
        _print_reach(printer, self.reach)
        if self.mask is not None:
            printer.print_string(" if ")
            printer.print_operand(self.mask)


@irdl_op_definition
class MisalignedOp(IRDLOperation):
    """`%n = simt.misaligned %p[%i] width 8`: how many elements lie between the last multiple of `width` elements in
    global memory and element %i, from 0 to `width` - 1; an i32."""

    name = "simt.misaligned"
    memory = operand_def(GlobalType)
    index = operand_def(AnyAttr())
    width = prop_def(IntegerAttr)
    res = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, memory: SSAValue, index: SSAValue, width: int) -> None:
        super().__init__(operands=[memory, index], properties={"width": i64_attr(width)}, result_types=[i32])

    def verify_(self) -> None:
        if self.index.type not in (i32, i64):
            raise VerifyException(f"the element index is i32 or i64, got {self.index.type}")
        if self.width.value.data not in WIDTHS:
            raise VerifyException(f"width must be one of {WIDTHS}, got {self.width.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> MisalignedOp:
        memory = parse_value(parser)
        with parser.in_square_brackets():
            index = parse_value(parser)
        parser.parse_keyword("width")
        return cls(memory, index, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.memory)
        with printer.in_square_brackets():
            printer.print_operand(self.index)
        printer.print_string(f" width {self.width.value.data}")
