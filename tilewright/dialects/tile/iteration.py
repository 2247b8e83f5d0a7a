"""Iteration spaces of tile ops: which iteration dim indexes which buffer dim, and how that is written.

An operand is written `%a[d0, d2]`: buffer dim 0 runs along iteration dim 0, buffer dim 1 along iteration dim 2. A `0`
stands for a buffer dim of size 1 that is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import int_array, ints, parse_value
from tilewright.dialects.tile.types import BufType

BROADCAST = -1
"""In a map: the buffer dim has size 1 and does not move."""

Maps = ArrayAttr[ArrayAttr[IntAttr]]


def maps_attr(maps: Sequence[Sequence[int]]) -> Maps:
    """The attribute form of one map an operand."""
    return ArrayAttr([int_array(m) for m in maps])


def maps_of(attribute: Maps) -> tuple[tuple[int, ...], ...]:
    """The maps of a `maps_attr`."""
    return tuple(ints(m) for m in attribute.data)


def parse_dim_names(parser: Parser) -> dict[str, int]:
    """`(d0, d1)`: names of the iteration dims, in order."""
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
    return {n: i for i, n in enumerate(names)}


def parse_mapped(parser: Parser, names: dict[str, int]) -> tuple[SSAValue, tuple[int, ...]]:
    """`%a[d0, 0]`, or `%s` for a scalar or a buffer of rank 0."""
    value = parse_value(parser)

    def one() -> int:
        if parser.parse_optional_integer(allow_boolean=False, allow_negative=False) is not None:
            return BROADCAST
        position = parser.pos
        name = parser.parse_identifier()
        if name not in names:
            parser.raise_error(f"{name} is not an iteration dim; they are {', '.join(names)}", position, parser.pos)
        return names[name]

    dims = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, one) or []
    return value, tuple(dims)


def print_dim_names(printer: Printer, count: int) -> None:
    """Prints ` (d0, d1)`."""
    printer.print_string(" (" + ", ".join(f"d{i}" for i in range(count)) + ")")


def print_mapped(printer: Printer, value: SSAValue, dims: Sequence[int], letter: str = "d") -> None:
    """Prints `%a[d0, 0]`."""
    printer.print_operand(value)
    if dims:
        printer.print_string(spelled(dims, letter))


def spelled(dims: Sequence[int], letter: str = "d") -> str:
    """`[d0, 0]`."""
    return "[" + ", ".join("0" if d == BROADCAST else f"{letter}{d}" for d in dims) + "]"


def iteration_sizes(count: int, values: Sequence[SSAValue], maps: Sequence[Sequence[int]]) -> list[int | None]:
    """Static extent of each iteration dim from the buffers it indexes; None where none does.

    Raises VerifyException when two buffers disagree or a map's length is not its buffer's rank.
    """
    sizes: list[int | None] = [None] * count
    for value, dims in zip(values, maps, strict=True):
        if not isinstance(value.type, BufType):
            if dims:
                raise VerifyException(f"a scalar operand has no dims, got {list(dims)}")
            continue
        if value.type.rank != len(dims):
            raise VerifyException(f"expected {value.type.rank} dims for {value.type}, got {len(dims)}")
        for size, d in zip(value.type.sizes, dims, strict=True):
            if d == BROADCAST:
                if size != 1:
                    raise VerifyException(f"a broadcast dim has size 1, got {size}")
            elif d >= count:
                raise VerifyException(f"iteration dim d{d} does not exist")
            elif sizes[d] is None:
                sizes[d] = size
            elif sizes[d] != size:
                raise VerifyException(f"iteration dim d{d} has size {sizes[d]} and size {size}")
    return sizes
