"""Buffers of the tile level and their layouts: strided in memory, distributed over threads evenly or in mixed radix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import int_array, ints
from tilewright.dialects.sym.attributes import DimsAttr, parse_expr_from
from tilewright.dialects.sym.expr import Expr

SPACES = ("global", "shared", "fragment")


@irdl_attr_definition
class StridedLayout(ParametrizedAttribute):
    """`#tile.strided<[x_s0, 1]>`: element strides of a buffer in memory; constants in shared memory."""

    name = "tile.strided"
    strides: DimsAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            strides = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
        return [DimsAttr(tuple(strides))]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(str(e) for e in self.strides.data)}]>")


@dataclass(frozen=True, slots=True)
class Factor:
    """One digit of an element's place in a dim: over threads when `stride` is positive, else over a thread's registers.

    A digit over threads has the value (tid / stride) mod count.
    """

    count: int
    stride: int

    @property
    def is_thread(self) -> bool:
        """Whether the digit names a thread rather than a register."""
        return self.stride > 0


@dataclass(frozen=True, slots=True)
class DimDistribution:
    """How one tile dim is spread over the threads of a block.

    Thread coordinate t = (tid / stride) mod threads holds, for o = 0, 1, ..., the elements
    (o * threads + t) * vector + v with 0 <= v < vector. A thread's local index is o * vector + v.
    """

    threads: int
    stride: int
    vector: int

    def elements_per_thread(self, size: int) -> int:
        """Local elements of a dim of `size` elements (which threads * vector divides)."""
        return size // self.threads

    def fits(self, size: int) -> bool:
        """Whether a dim of `size` elements can be spread so."""
        return size % (self.threads * self.vector) == 0

    def factors(self, size: int) -> tuple[Factor, ...]:
        """The digits of a place in a dim of `size` elements, the fastest first; none for one element."""
        digits = (Factor(self.vector, 0), Factor(self.threads, self.stride))
        return merged((*digits, Factor(size // (self.threads * self.vector), 0)))


@dataclass(frozen=True, slots=True)
class MixedDistribution:
    """How one tile dim is spread in mixed radix: digits, the fastest first, over threads and registers by turns.

    What matrix instructions ask of their operands. The rows of a warpgroup's accumulators, `[8:4, 2, 4:32]`: row
    16*w + 8*i + g lies in lane group g = (tid / 4) mod 8 of warp w = (tid / 32) mod 4, at local index i.
    """

    digits: tuple[Factor, ...]

    @property
    def threads(self) -> int:
        """Threads that hold different elements."""
        return prod(f.count for f in self.digits if f.is_thread)

    @property
    def vector(self) -> int:
        """Neighbouring elements that a thread holds."""
        first = next((f for f in self.digits if f.count > 1), None)
        return 1 if first is None or first.is_thread else first.count

    def elements_per_thread(self, size: int) -> int:
        """Local elements of a dim of `size` elements."""
        return size // self.threads

    def fits(self, size: int) -> bool:
        """Whether a dim of `size` elements can be spread so: the digits count all of them."""
        return prod(f.count for f in self.digits) == size

    def factors(self, size: int) -> tuple[Factor, ...]:
        """The digits of a place in the dim, the fastest first; none for one element."""
        return merged(self.digits)


@irdl_attr_definition
class SwizzledLayout(ParametrizedAttribute):
    """`#tile.swizzled<128, 1>`: panels of 128 bytes along dim 1, their 16-byte chunks permuted, in shared memory.

    A panel holds a row of that many bytes for every place of the other dims, the last of them fastest; panels follow
    one another. Within eight rows the chunk c of row r lies at c xor r (for 64 and 32 bytes r/2 and r/4), as tensor
    maps and matrix instructions have it, so that neither rows nor columns of chunks meet in a bank.
    """

    name = "tile.swizzled"
    bytes: IntAttr = param_def()
    along: IntAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            size = parser.parse_integer()
            parser.parse_punctuation(",")
            return [IntAttr(size), IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.bytes.data}, {self.along.data}>")

    def verify(self) -> None:
        if self.bytes.data not in (32, 64, 128):
            raise VerifyException(f"expected panels of 32, 64 or 128 bytes, got {self.bytes.data}")


AnyDistribution: TypeAlias = DimDistribution | MixedDistribution


def merged(digits: Sequence[Factor]) -> tuple[Factor, ...]:
    """The digits without those of one value, neighbouring ones over registers joined."""
    found: list[Factor] = []
    for digit in digits:
        if digit.count == 1:
            continue
        if found and not digit.is_thread and not found[-1].is_thread:
            found[-1] = Factor(found[-1].count * digit.count, 0)
        else:
            found.append(digit)
    return tuple(found)


def factors_of_part(dim: AnyDistribution, size: int, part: int) -> tuple[Factor, ...] | None:
    """The digits of a place in a part of a dim of `size` elements that begins at a multiple of the `part` elements it
    has; None where the part is not the same registers of each thread wherever it begins."""
    if not dim.fits(size):
        return None
    low: list[Factor] = []
    left = part
    for digit in dim.factors(size):
        if digit.is_thread and left % digit.count:
            return None
        count = gcd(left, digit.count)
        if count < digit.count and left != count:
            return None
        low.append(Factor(count, digit.stride))
        left //= count
    return merged(low) if left == 1 else None


@irdl_attr_definition
class MixedLayout(ParametrizedAttribute):
    """`#tile.mixed<[8:4, 2, 4:32], [2, 4:1, 32]>`: a fragment spread in mixed radix, see `MixedDistribution`.

    One list a dim; `8:4` is a digit of 8 values over threads with thread stride 4, `2` one over registers.
    """

    name = "tile.mixed"
    counts: ArrayAttr[ArrayAttr[IntAttr]] = param_def()
    strides: ArrayAttr[ArrayAttr[IntAttr]] = param_def()

    @property
    def dims(self) -> tuple[MixedDistribution, ...]:
        """The distribution of each dim."""
        return tuple(
            MixedDistribution(tuple(Factor(n, s) for n, s in zip(ints(c), ints(t), strict=True)))
            for c, t in zip(self.counts.data, self.strides.data, strict=True)
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def digit() -> tuple[int, int]:
            count = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if parser.parse_optional_punctuation(":") is None:
                return count, 0
            return count, parser.parse_integer(allow_boolean=False, allow_negative=False)

        def dim() -> list[tuple[int, int]]:
            return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, digit)

        dims = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, dim)
        counts = ArrayAttr([int_array([n for n, _ in digits]) for digits in dims])
        return [counts, ArrayAttr([int_array([s for _, s in digits]) for digits in dims])]

    def print_parameters(self, printer: Printer) -> None:
        dims = (
            ", ".join(f"{f.count}:{f.stride}" if f.is_thread else str(f.count) for f in d.digits) for d in self.dims
        )
        printer.print_string(f"<{', '.join(f'[{text}]' for text in dims)}>")

    def verify(self) -> None:
        if any(f.count < 1 for d in self.dims for f in d.digits):
            raise VerifyException("the digits of a mixed layout count at least 1")


def mixed(dims: Sequence[MixedDistribution]) -> MixedLayout:
    """The layout with these dims."""
    return MixedLayout(
        ArrayAttr([int_array([f.count for f in d.digits]) for d in dims]),
        ArrayAttr([int_array([f.stride for f in d.digits]) for d in dims]),
    )


def layout_of(dims: Sequence[AnyDistribution], sizes: Sequence[int]) -> DistributedLayout | MixedLayout:
    """The layout with these dims for a fragment of these sizes: evenly distributed where every dim is."""
    even = [d for d in dims if isinstance(d, DimDistribution)]
    if len(even) == len(dims):
        return distributed(even)
    return mixed(
        [
            d if isinstance(d, MixedDistribution) else MixedDistribution(d.factors(n))
            for d, n in zip(dims, sizes, strict=True)
        ]
    )


@irdl_attr_definition
class DistributedLayout(ParametrizedAttribute):
    """`#tile.distributed<threads [8, 32] strides [32, 1] vector [1, 4]>`: a fragment's elements over a block's threads.

    One entry a dim, see `DimDistribution`. Thread bits that no dim uses hold copies: a fragment that lacks a dim of a
    wider one is replicated over that dim's threads.
    """

    name = "tile.distributed"
    threads: ArrayAttr[IntAttr] = param_def()
    strides: ArrayAttr[IntAttr] = param_def()
    vector: ArrayAttr[IntAttr] = param_def()

    @property
    def dims(self) -> tuple[DimDistribution, ...]:
        """The distribution of each dim."""
        return tuple(
            DimDistribution(t, s, v)
            for t, s, v in zip(ints(self.threads), ints(self.strides), ints(self.vector), strict=True)
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        found: list[Attribute] = []
        with parser.in_angle_brackets():
            for word in ("threads", "strides", "vector"):
                parser.parse_keyword(word)
                found.append(
                    int_array(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
                )
        return found

    def print_parameters(self, printer: Printer) -> None:
        t, s, v = ints(self.threads), ints(self.strides), ints(self.vector)
        printer.print_string(f"<threads {list(t)} strides {list(s)} vector {list(v)}>")

    def verify(self) -> None:
        t, s, v = ints(self.threads), ints(self.strides), ints(self.vector)
        if not len(t) == len(s) == len(v):
            raise VerifyException(
                f"threads, strides and vector must have one entry a dim, got {len(t)}, {len(s)}, {len(v)}"
            )
        if any(n < 1 for n in (*t, *s, *v)):
            raise VerifyException("threads, strides and vector must be at least 1")


def distributed(dims: Sequence[DimDistribution]) -> DistributedLayout:
    """The layout with these dims."""
    return DistributedLayout(
        int_array([d.threads for d in dims]), int_array([d.stride for d in dims]), int_array([d.vector for d in dims])
    )


@irdl_attr_definition
class BufType(ParametrizedAttribute, TypeAttribute):
    """`!tile.buf<[M, N], f32, global, #tile.strided<[x_s0, 1]>>`: a buffer in global or shared memory or in registers.

    Global sizes are symbolic, all others constant. The layout is absent while it is undecided.
    """

    name = "tile.buf"
    shape: DimsAttr = param_def()
    element: Attribute = param_def()
    space: StringAttr = param_def()
    layout: Attribute = param_def()

    @property
    def dims(self) -> tuple[Expr, ...]:
        """Sizes as expressions."""
        return self.shape.data

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape.data)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Static sizes of a shared buffer or fragment."""
        return tuple(static_size(e) for e in self.shape.data)

    @property
    def count(self) -> int:
        """Number of elements of a shared buffer or fragment."""
        return prod(self.sizes)

    @property
    def strides(self) -> tuple[Expr, ...] | None:
        """Element strides of a buffer in memory, or None while undecided."""
        return self.layout.strides.data if isinstance(self.layout, StridedLayout) else None

    @property
    def swizzle(self) -> SwizzledLayout | None:
        """The swizzled layout of a shared buffer, if it has one."""
        return self.layout if isinstance(self.layout, SwizzledLayout) else None

    @property
    def layout_is_open(self) -> bool:
        """Whether the layout is undecided."""
        return isinstance(self.layout, NoneAttr)

    @property
    def distribution(self) -> tuple[AnyDistribution, ...] | None:
        """The distribution of a fragment over threads, or None while undecided."""
        return self.layout.dims if isinstance(self.layout, DistributedLayout | MixedLayout) else None

    def with_layout(self, layout: Attribute | None) -> BufType:
        """The same buffer with another layout."""
        return BufType(self.shape, self.element, self.space, NoneAttr() if layout is None else layout)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            space = parser.parse_identifier()
            layout: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(","):
                layout = parser.parse_attribute()
        return [DimsAttr(tuple(dims)), element, StringAttr(space), layout]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(str(e) for e in self.dims)}], ")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.space.data}")
            if not isinstance(self.layout, NoneAttr):
                printer.print_string(", ")
                printer.print_attribute(self.layout)

    def verify(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(f"expected memory space {', '.join(SPACES)}, got {self.space.data}")
        if self.space.data != "global" and any(e.constant is None or e.constant < 1 for e in self.dims):
            raise VerifyException(
                f"sizes of a {self.space.data} buffer must be constants of at least 1, got {self.shape}"
            )
        if isinstance(self.layout, StridedLayout):
            if self.space.data == "fragment":
                raise VerifyException("a fragment has a #tile.distributed layout, got #tile.strided")
            if len(self.layout.strides.data) != self.rank:
                raise VerifyException(f"expected {self.rank} strides, got {len(self.layout.strides.data)}")
        elif isinstance(self.layout, DistributedLayout | MixedLayout):
            self._verify_distribution(self.layout)
        elif isinstance(self.layout, SwizzledLayout):
            if self.space.data != "shared" or not 0 <= self.layout.along.data < self.rank:
                raise VerifyException(f"a swizzled layout is for a dim of a shared buffer, got {self.layout}")
        elif not isinstance(self.layout, NoneAttr):
            raise VerifyException(
                f"expected a #tile.strided, #tile.swizzled, #tile.distributed or #tile.mixed layout, got {self.layout}"
            )

    def _verify_distribution(self, layout: DistributedLayout | MixedLayout) -> None:
        if self.space.data != "fragment":
            raise VerifyException(f"a {self.space.data} buffer has a #tile.strided layout, got #{layout.name}")
        if len(layout.dims) != self.rank:
            raise VerifyException(f"expected a layout of {self.rank} dims, got {len(layout.dims)}")
        for size, dim in zip(self.sizes, layout.dims, strict=True):
            if dim.fits(size):
                continue
            if isinstance(dim, MixedDistribution):
                counted = prod(f.count for f in dim.digits)
                raise VerifyException(f"the digits of a dim of {size} elements count {counted}")
            raise VerifyException(f"size {size} is not divisible by threads {dim.threads} times vector {dim.vector}")


def buffer_type(value: SSAValue) -> BufType:
    """The type of a buffer operand."""
    if not isinstance(value.type, BufType):
        raise VerifyException(f"expected a !tile.buf, got {value.type}")
    return value.type


def static_size(e: Expr) -> int:
    """The constant that a static size is."""
    if e.constant is None:
        raise VerifyException(f"expected a constant size, got {e}")
    return e.constant


def buf_type(dims: Sequence[Expr | int], element: Attribute, space: str, layout: Attribute | None = None) -> BufType:
    """A buffer type from sizes, element type, memory space and an optional layout."""
    exprs = tuple(d if isinstance(d, Expr) else Expr.const(d) for d in dims)
    return BufType(DimsAttr(exprs), element, StringAttr(space), NoneAttr() if layout is None else layout)


def strided(strides: Sequence[Expr | int]) -> StridedLayout:
    """A strided layout."""
    return StridedLayout(DimsAttr(tuple(s if isinstance(s, Expr) else Expr.const(s) for s in strides)))
