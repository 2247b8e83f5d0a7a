"""Buffers of the tile level and the two kinds of layout: strided in memory, distributed over threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

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
    def distribution(self) -> tuple[DimDistribution, ...] | None:
        """The distribution of a fragment over threads, or None while undecided."""
        return self.layout.dims if isinstance(self.layout, DistributedLayout) else None

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
        elif isinstance(self.layout, DistributedLayout):
            self._verify_distribution(self.layout)
        elif not isinstance(self.layout, NoneAttr):
            raise VerifyException(f"expected a #tile.strided or #tile.distributed layout, got {self.layout}")

    def _verify_distribution(self, layout: DistributedLayout) -> None:
        if self.space.data != "fragment":
            raise VerifyException(f"a {self.space.data} buffer has a #tile.strided layout, got #tile.distributed")
        if len(layout.dims) != self.rank:
            raise VerifyException(f"expected a layout of {self.rank} dims, got {len(layout.dims)}")
        for size, dim in zip(self.sizes, layout.dims, strict=True):
            if size % (dim.threads * dim.vector):
                raise VerifyException(
                    f"size {size} is not divisible by threads {dim.threads} times vector {dim.vector}"
                )


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
