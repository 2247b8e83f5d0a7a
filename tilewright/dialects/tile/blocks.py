"""Which block and which warps do what: roles, and the order in which tiles of the grid are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, parse_value, parse_values, print_values
from tilewright.dialects.roles import Role, parse_roles, print_roles, role_properties, roles_of, verify_roles
from tilewright.dialects.sym.attributes import DimsAttr, parse_expr_from
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.sym.ops import ApplyOp
from tilewright.dialects.tile.types import BufType, buffer_type

index = IndexType()


@irdl_op_definition
class RolesOp(IRDLOperation):
    """`tile.roles { role consumer warpgroups [0, 2] registers 240 {...} role producer warpgroups [2, 3] {...} }`.

    The regions run at the same time, each on its own warpgroups, which cover the block. They meet through channels.
    """

    name = "tile.roles"
    names = prop_def(ArrayAttr[StringAttr])
    bounds = prop_def(ArrayAttr[IntAttr])
    registers = prop_def(ArrayAttr[IntAttr])
    bodies = var_region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, roles: Sequence[Role], bodies: Sequence[Region]) -> None:
        super().__init__(properties=role_properties(roles), regions=[list(bodies)])

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles, one for each region."""
        return roles_of(self.names, self.bounds, self.registers)

    def verify_(self) -> None:
        counts = len(self.names.data), len(self.bounds.data), len(self.registers.data)
        if counts != (len(self.bodies), 2 * len(self.bodies), len(self.bodies)):
            raise VerifyException("expected a name, two bounds and a register count for each region")
        verify_roles(self.roles)

    @classmethod
    def parse(cls, parser: Parser) -> RolesOp:
        return cls(*parse_roles(parser))

    def print(self, printer: Printer) -> None:
        print_roles(printer, self.roles, self.bodies)


@irdl_op_definition
class BlockCountOp(IRDLOperation):
    """`%n = tile.block_count`: how many blocks run the kernel, at least 1; for a persistent one the launch decides."""

    name = "tile.block_count"
    res = result_def(index)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[index])


@irdl_op_definition
class RasterOp(IRDLOperation):
    """`%i, %j = tile.raster %t in [M ceildiv 128, N ceildiv 256] group 8`: the tile that comes at place %t.

    0 <= %t < product of the sizes. Tiles of `group` neighbouring rows are taken column by column, so that blocks which
    run together share operands in the cache; the last group has what is left. 0 <= %i < first size, 0 <= %j < second.
    """

    name = "tile.raster"
    place = operand_def(index)
    sizes = prop_def(DimsAttr)
    group = prop_def(IntegerAttr)
    row = result_def(index)
    column = result_def(index)
    traits = traits_def(Pure())

    def __init__(self, place: SSAValue, sizes: Sequence[Expr], group: int) -> None:
        super().__init__(
            operands=[place],
            properties={"sizes": DimsAttr(tuple(sizes)), "group": i64_attr(group)},
            result_types=[index, index],
        )

    def verify_(self) -> None:
        if len(self.sizes.data) != 2:
            raise VerifyException(f"expected two sizes, got {len(self.sizes.data)}")
        if self.group.value.data < 1:
            raise VerifyException(f"expected groups of at least one row, got {self.group.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> RasterOp:
        place = parse_value(parser)
        parser.parse_keyword("in")
        sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
        parser.parse_keyword("group")
        return cls(place, sizes, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.place)
        printer.print_string(f" in [{', '.join(str(e) for e in self.sizes.data)}] group {self.group.value.data}")


@irdl_op_definition
class SliceOp(IRDLOperation):
    """`%v = tile.slice %acc[%zero, %p] : !tile.buf<[128, 64], f32, fragment>`: a part of a fragment, not a copy of it.

    Offsets are multiples of the part's sizes, made of constants and variables of loops that are unrolled fully.
    """

    name = "tile.slice"
    source = operand_def(BufType)
    offsets = var_operand_def(index)
    res = result_def(BufType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, offsets: Sequence[SSAValue], type: BufType) -> None:
        super().__init__(operands=[source, list(offsets)], result_types=[type])

    def verify_(self) -> None:
        source, part = buffer_type(self.source), self.res.type
        if source.space.data != "fragment" or part.space.data != "fragment" or source.element != part.element:
            raise VerifyException("expected a part of a fragment with its element type")
        if source.rank != part.rank or len(self.offsets) != part.rank:
            raise VerifyException(f"expected a size and an offset for each of {source.rank} dims")
        if any(n % m for n, m in zip(source.sizes, part.sizes, strict=True)):
            raise VerifyException(f"sizes {list(part.sizes)} do not divide {list(source.sizes)}")
        for dim, offset in enumerate(self.offsets):
            known = offset.owner.expr.data.constant if isinstance(offset.owner, ApplyOp) else None
            if known is not None and (wrong := self.wrong_offset(dim, known)) is not None:
                raise VerifyException(wrong)

    def wrong_offset(self, dim: int, offset: int) -> str | None:
        """What is wrong with an offset of this value along a dim, if anything."""
        size, part = buffer_type(self.source).sizes[dim], self.res.type.sizes[dim]
        if 0 <= offset <= size - part and offset % part == 0:
            return None
        return f"expected an offset along dim {dim} that is a multiple of {part} from 0 to {size - part}, got {offset}"

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        source, offsets = parse_value(parser), parse_values(parser)
        parser.parse_punctuation(":")
        start = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, BufType):
            parser.raise_error(f"expected a !tile.buf type, got {type_}", start, parser.pos)
        return cls(source, offsets, type_)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        print_values(printer, self.offsets)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)
