"""Types of the simt level: pointers, tensor maps, shared arrays, barriers in memory, and register arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import int_array, ints
from tilewright.dialects.sym.attributes import DimsAttr, parse_expr_from


@irdl_attr_definition
class GlobalType(ParametrizedAttribute, TypeAttribute):
    """`!simt.global<f32>`: a pointer to elements in global memory. Indices count elements."""

    name = "simt.global"
    element: Attribute = param_def()


def _parse_shaped(parser: AttrParser) -> tuple[ArrayAttr[IntAttr], Attribute]:
    """`[64, 17], f32`."""
    sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    parser.parse_punctuation(",")
    return int_array(sizes), parser.parse_type()


def _print_shaped(printer: Printer, sizes: Sequence[int], element: Attribute) -> None:
    with printer.in_square_brackets():
        printer.print_list(sizes, lambda n: printer.print_string(str(n)))
    printer.print_string(", ")
    printer.print_attribute(element)


SWIZZLES = (0, 32, 64, 128)
"""Bytes of a row whose 16-byte chunks are permuted; 0 for none."""


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """`!simt.smem<[64, 17], f32>`: an array in shared memory (row-major), indexed by one linear element index.

    `!simt.smem<[4, 128, 64], bf16, swizzle 128>`: the byte at place b of the array lies at b with bits 4 to 6 (5 and 4
    for 64 bytes, 4 for 32) xored with bits 7 to 9 (8 and 7, 7), as the tensor memory accelerator and the matrix
    instructions have it. Such an array starts at a multiple of 1024 bytes; indices stay logical.
    """

    name = "simt.smem"
    shape: ArrayAttr[IntAttr] = param_def()
    element: Attribute = param_def()
    swizzle: IntAttr = param_def()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Static sizes, outermost first."""
        return ints(self.shape)

    @property
    def count(self) -> int:
        """Number of elements."""
        return prod(self.sizes)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            shape, element = _parse_shaped(parser)
            swizzle = 0
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("swizzle")
                swizzle = parser.parse_integer()
        return [shape, element, IntAttr(swizzle)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shaped(printer, self.sizes, self.element)
            if self.swizzle.data:
                printer.print_string(f", swizzle {self.swizzle.data}")

    def verify(self) -> None:
        if self.swizzle.data not in SWIZZLES:
            raise VerifyException(f"expected a swizzle of 32, 64 or 128 bytes, got {self.swizzle.data}")
        if any(n < 1 for n in self.sizes):
            raise VerifyException(f"sizes of a shared array must be at least 1, got {list(self.sizes)}")


def swizzled(byte: int, swizzle: int) -> int:
    """Where the byte at a logical place of an array with this swizzle lies, both counted from the array's start."""
    rows = max(swizzle // 16 - 1, 0)  # 7, 3, 1: a mask of the chunk's bits
    return byte ^ ((byte >> 7 & rows) << 4)


@irdl_attr_definition
class MbarType(ParametrizedAttribute, TypeAttribute):
    """`!simt.mbar<4>`: an array of memory barriers (mbarrier objects of 8 bytes) in shared memory."""

    name = "simt.mbar"
    count: IntAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.count.data}>")

    def verify(self) -> None:
        if self.count.data < 1:
            raise VerifyException(f"expected at least one barrier, got {self.count.data}")


@irdl_attr_definition
class TmapType(ParametrizedAttribute, TypeAttribute):
    """`!simt.tmap<[128, 64], bf16>`: a tensor map whose transfers move boxes of these sizes, outermost dim first."""

    name = "simt.tmap"
    shape: ArrayAttr[IntAttr] = param_def()
    element: Attribute = param_def()

    @property
    def box(self) -> tuple[int, ...]:
        """Sizes of the box, outermost dim first."""
        return ints(self.shape)

    @property
    def count(self) -> int:
        """Elements of the box."""
        return prod(self.box)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return list(_parse_shaped(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shaped(printer, self.box, self.element)

    def verify(self) -> None:
        if not 1 <= len(self.box) <= 5 or any(not 1 <= n <= 256 for n in self.box):
            raise VerifyException(f"expected a box of 1 to 5 dims of 1 to 256 elements, got {list(self.box)}")


@irdl_attr_definition
class TensorMapAttr(ParametrizedAttribute):
    """`#simt.tensor_map<0, dims [M, K], strides [a_s0, 1], swizzle 128>`: how the host makes a kernel's tensor map.

    Of pointer argument 0: sizes and element strides as expressions, outermost dim first; the last stride is 1. Elements
    outside the sizes read as zero and are not written. The box is that of the argument's type.
    """

    name = "simt.tensor_map"
    pointer: IntAttr = param_def()
    dims: DimsAttr = param_def()
    strides: DimsAttr = param_def()
    swizzle: IntAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def exprs(word: str) -> DimsAttr:
            parser.parse_punctuation(",")
            parser.parse_keyword(word)
            return DimsAttr(
                tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser)))
            )

        with parser.in_angle_brackets():
            pointer = parser.parse_integer()
            dims, strides = exprs("dims"), exprs("strides")
            parser.parse_punctuation(",")
            parser.parse_keyword("swizzle")
            return [IntAttr(pointer), dims, strides, IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        dims, strides = (", ".join(str(e) for e in a.data) for a in (self.dims, self.strides))
        printer.print_string(f"<{self.pointer.data}, dims [{dims}], strides [{strides}], swizzle {self.swizzle.data}>")

    def verify(self) -> None:
        if len(self.dims.data) != len(self.strides.data):
            raise VerifyException(f"expected a stride a dim, got {len(self.strides.data)} for {len(self.dims.data)}")
        if self.swizzle.data not in SWIZZLES:
            raise VerifyException(f"expected a swizzle of 0, 32, 64 or 128 bytes, got {self.swizzle.data}")


@irdl_attr_definition
class RegsType(ParametrizedAttribute, TypeAttribute):
    """`!simt.regs<[8, 8], f32>`: a per-thread array in registers.

    Memory-like: it has one `simt.regs.alloc`, is never carried through control flow, and every index is a constant or a
    variable of `simt.unroll` (or arithmetic on those), else the compiler would place it in local memory.
    """

    name = "simt.regs"
    shape: ArrayAttr[IntAttr] = param_def()
    element: Attribute = param_def()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Static sizes, outermost first; rank 0 is one register."""
        return ints(self.shape)

    @property
    def count(self) -> int:
        """Number of registers a thread."""
        return prod(self.sizes)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return list(_parse_shaped(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shaped(printer, self.sizes, self.element)

    def verify(self) -> None:
        if any(n < 1 for n in self.sizes):
            raise VerifyException(f"register array sizes must be at least 1, got {list(self.sizes)}")


def regs_type(sizes: Sequence[int], element: Attribute) -> RegsType:
    """A register array type."""
    return RegsType(int_array(sizes), element)


def shared_type(sizes: Sequence[int], element: Attribute, swizzle: int = 0) -> SharedType:
    """A shared array type."""
    return SharedType(int_array(sizes), element, IntAttr(swizzle))
