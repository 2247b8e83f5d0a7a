"""Types of the simt level: pointers into global and shared memory, and register arrays."""

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


@irdl_attr_definition
class GlobalType(ParametrizedAttribute, TypeAttribute):
    """`!simt.global<f32>`: a pointer to elements in global memory. Indices count elements."""

    name = "simt.global"
    element: Attribute = param_def()


def _parse_shaped(parser: AttrParser) -> list[Attribute]:
    with parser.in_angle_brackets():
        sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(",")
        element = parser.parse_type()
    return [int_array(sizes), element]


def _print_shaped(printer: Printer, sizes: Sequence[int], element: Attribute) -> None:
    with printer.in_angle_brackets():
        with printer.in_square_brackets():
            printer.print_list(sizes, lambda n: printer.print_string(str(n)))
        printer.print_string(", ")
        printer.print_attribute(element)


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """`!simt.smem<[64, 17], f32>`: an array in shared memory (row-major), indexed by one linear element index."""

    name = "simt.smem"
    shape: ArrayAttr[IntAttr] = param_def()
    element: Attribute = param_def()

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
        return _parse_shaped(parser)

    def print_parameters(self, printer: Printer) -> None:
        _print_shaped(printer, self.sizes, self.element)


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
        return _parse_shaped(parser)

    def print_parameters(self, printer: Printer) -> None:
        _print_shaped(printer, self.sizes, self.element)

    def verify(self) -> None:
        if any(n < 1 for n in self.sizes):
            raise VerifyException(f"register array sizes must be at least 1, got {list(self.sizes)}")


def regs_type(sizes: Sequence[int], element: Attribute) -> RegsType:
    """A register array type."""
    return RegsType(int_array(sizes), element)


def shared_type(sizes: Sequence[int], element: Attribute) -> SharedType:
    """A shared array type."""
    return SharedType(int_array(sizes), element)
