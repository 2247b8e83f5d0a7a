"""How a tile kernel fills buffers: rectangles copied between memory spaces, fragments set to a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
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
    parse_extra_attributes,
    parse_optional_values,
    parse_value,
    parse_word,
    print_extra_attributes,
    print_optional_values,
)
from tilewright.dialects.tile.types import BufType, DistributedLayout, MixedLayout, buffer_type

BOUNDS = ("clip", "proved")
VIAS = ("thread", "cp.async", "tma", "stmatrix")
"""How a copy is made: by the threads' loads and stores, by copies that the threads start and go on (from global memory
to a channel's slot), by a tensor map (between global memory and a channel's slot), or by the warps' matrix stores (from
a fragment of 16-bit elements to shared memory)."""
ASYNC_BYTES = (4, 8, 16)
"""Bytes of one asynchronous copy of a thread (PTX ISA, cp.async)."""
index = IndexType()


@irdl_op_definition
class CopyOp(IRDLOperation):
    """`tile.copy %x[%m0, %k] to %s bounds [clip, clip] other 0.0 : f32 via thread width 4`.

    Copies a rectangle between memory and shared memory or registers. The rectangle is the whole fragment, or the whole
    shared buffer when no fragment takes part; the other side may have one offset a dim. Each tile dim of a copy with
    global memory has a bound: `clip` (elements at or past the size are not read, the tile gets `other` there; nor
    written) or `proved` (none is past the size). `width` elements along dim `along` (the last one if absent) go in one
    access of the memory side. A copy from global to shared memory has two memory sides: `width` is the load's,
    `store_width` the store's (the same if absent). `dist` says which thread moves what when no fragment says it.
    `unaligned` accesses of global memory may begin at any element and lie partly past the size; stores read a slot.
    `via tma multicast`: all blocks of the cluster copy this rectangle in this turn of the channel, and each fetches its
    part of it for all of them.
    """

    name = "tile.copy"
    source = operand_def(BufType)
    source_offsets = var_operand_def(index)
    target = operand_def(BufType)
    target_offsets = var_operand_def(index)
    bounds = prop_def(ArrayAttr[StringAttr])
    other = opt_prop_def(AnyAttr())
    via = opt_prop_def(StringAttr)
    width = opt_prop_def(IntegerAttr)
    along = opt_prop_def(IntegerAttr)
    store_width = opt_prop_def(IntegerAttr)
    unaligned = opt_prop_def(UnitAttr)
    multicast = opt_prop_def(UnitAttr)
    dist = opt_prop_def(DistributedLayout)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        source_offsets: Sequence[SSAValue],
        target: SSAValue,
        target_offsets: Sequence[SSAValue],
        *,
        bounds: Sequence[str] = (),
        other: Attribute | None = None,
        via: str | None = None,
        width: int | None = None,
        along: int | None = None,
        store_width: int | None = None,
        unaligned: bool = False,
        multicast: bool = False,
        dist: DistributedLayout | None = None,
    ) -> None:
        super().__init__(
            operands=[source, list(source_offsets), target, list(target_offsets)],
            properties={
                "bounds": ArrayAttr([StringAttr(b) for b in bounds]),
                "other": other,
                "via": None if via is None else StringAttr(via),
                "width": None if width is None else i64_attr(width),
                "along": None if along is None else i64_attr(along),
                "store_width": None if store_width is None else i64_attr(store_width),
                "unaligned": UnitAttr() if unaligned else None,
                "multicast": UnitAttr() if multicast else None,
                "dist": dist,
            },
        )

    @property
    def spaces(self) -> tuple[str, str]:
        """Memory spaces of source and target."""
        return buffer_type(self.source).space.data, buffer_type(self.target).space.data

    @property
    def tile_type(self) -> BufType:
        """The buffer whose whole extent is copied: the fragment, else the shared buffer."""
        source, target = buffer_type(self.source), buffer_type(self.target)
        for space in ("fragment", "shared"):
            for t in (target, source):
                if t.space.data == space:
                    return t
        raise VerifyException("a copy needs a shared buffer or a fragment on one side")

    @property
    def distribution(self) -> DistributedLayout | MixedLayout | None:
        """Which thread moves which element: the fragment's layout, else `dist`."""
        layout = self.tile_type.layout
        return layout if isinstance(layout, DistributedLayout | MixedLayout) else self.dist

    @property
    def by_threads(self) -> bool:
        """Whether the threads' own loads and stores make the copy, also while nothing else is decided."""
        return self.via is None or self.via.data == "thread"

    @property
    def is_async(self) -> bool:
        """Whether the threads start the copy and go on."""
        return self.via is not None and self.via.data == "cp.async"

    @property
    def vector_dim(self) -> int:
        """The dim along which an access is `width` elements wide; -1 for a tile of rank 0."""
        return self.tile_type.rank - 1 if self.along is None else self.along.value.data

    @property
    def widths(self) -> tuple[int, int]:
        """Elements an access of the load and of the store; 1 while undecided."""
        load = 1 if self.width is None else self.width.value.data
        return load, load if self.store_width is None else self.store_width.value.data

    @property
    def bound_words(self) -> tuple[str, ...]:
        """`clip` or `proved` for each tile dim; empty without global memory."""
        return tuple(b.data for b in self.bounds.data)

    def verify_(self) -> None:
        source, target, tile = buffer_type(self.source), buffer_type(self.target), self.tile_type
        if source.element != target.element:
            raise VerifyException(f"expected equal element types, got {source.element} and {target.element}")
        if source.rank != target.rank:
            raise VerifyException(f"expected equal ranks, got {source.rank} and {target.rank}")
        if self.spaces == ("fragment", "fragment"):
            raise VerifyException("a copy between fragments goes through shared memory")
        for buffer, offsets, side in ((source, self.source_offsets, "source"), (target, self.target_offsets, "target")):
            if len(offsets) not in (0, buffer.rank):
                raise VerifyException(f"expected {buffer.rank} {side} offsets or none, got {len(offsets)}")
            if offsets and buffer.space.data == "fragment":
                raise VerifyException("a fragment has no offsets")
            if buffer.space.data != "global" and any(a > b for a, b in zip(tile.sizes, buffer.sizes, strict=True)):
                raise VerifyException(f"tile of sizes {list(tile.sizes)} exceeds {buffer}")
        if "global" in self.spaces:
            if len(self.bounds.data) != tile.rank:
                raise VerifyException(f"expected {tile.rank} bounds, got {len(self.bounds.data)}")
        elif self.bounds.data:
            raise VerifyException("bounds belong to copies with global memory")
        for b in self.bound_words:
            if b not in BOUNDS:
                raise VerifyException(f"expected bound clip or proved, got {b}")
        self._verify_way(tile)
        for width in self.widths:
            if width not in (1, 2, 4, 8, 16):
                raise VerifyException(f"width must be 1, 2, 4, 8 or 16, got {width}")
        if self.along is not None and not 0 <= self.along.value.data < tile.rank:
            raise VerifyException(f"expected along to be a dim from 0 to {tile.rank - 1}, got {self.along.value.data}")
        if self.unaligned is not None and ("global" not in self.spaces or not self.by_threads):
            raise VerifyException("unaligned accesses are those of threads to global memory")
        if self.unaligned is not None and source.space.data != "global" and source.swizzle is None:
            raise VerifyException(f"unaligned stores read a swizzled slot, got {source}")

    def _verify_way(self, tile: BufType) -> None:
        """What tensor maps and matrix stores can move."""
        via = "thread" if self.via is None else self.via.data
        if via not in VIAS:
            raise VerifyException(f"expected via {', '.join(VIAS)}, got {via}")
        if via == "cp.async":
            if self.spaces != ("global", "shared"):
                raise VerifyException(f"via cp.async moves global to shared memory, got {' to '.join(self.spaces)}")
            load, store = self.widths
            element: Attribute = tile.element
            bits = cast("IntegerType[int]", element).bitwidth if isinstance(element, AnyFloat | IntegerType) else 0
            if load != store or load * bits // 8 not in ASYNC_BYTES:
                raise VerifyException(f"via cp.async moves 4, 8 or 16 bytes at a time, got {load} of {element}")
        if via in ("cp.async", "tma"):
            other: Attribute | None = self.other
            if isinstance(other, FloatAttr | IntegerAttr) and other.value.data:
                raise VerifyException(f"via {via} fills with zero, got {other}")
        if self.multicast is not None and (via != "tma" or self.spaces[0] != "global"):
            raise VerifyException("multicast copies are made via tma, from global memory")
        if via == "tma" and set(self.spaces) != {"global", "shared"}:
            raise VerifyException(f"via tma moves between global and shared memory, got {' to '.join(self.spaces)}")
        if via == "stmatrix":
            if self.spaces != ("fragment", "shared"):
                raise VerifyException(f"via stmatrix moves fragment to shared, got {' to '.join(self.spaces)}")
            if not isinstance(tile.element, BFloat16Type | Float16Type):
                raise VerifyException(f"via stmatrix moves bf16 or f16, got {tile.element}")

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        if not (self.by_threads or self.is_async):
            return []
        gaps = [] if self.via is not None else ["via"]
        gaps += [] if self.width is not None else ["width"]
        return gaps + ([] if self.distribution is not None else ["dist"])

    @classmethod
    def parse(cls, parser: Parser) -> CopyOp:
        source, source_offsets = parse_value(parser), parse_optional_values(parser)
        parser.parse_keyword("to")
        target, target_offsets = parse_value(parser), parse_optional_values(parser)
        bounds: list[str] = []
        if parser.parse_optional_keyword("bounds"):
            bounds = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_word(parser, BOUNDS, "bound").data
            )
        other = parser.parse_attribute() if parser.parse_optional_keyword("other") else None
        via = parse_word(parser, VIAS, "via").data if parser.parse_optional_keyword("via") else None
        multicast = parser.parse_optional_keyword("multicast") is not None
        width = parser.parse_integer() if parser.parse_optional_keyword("width") else None
        along = parser.parse_integer() if parser.parse_optional_keyword("along") else None
        store_width = parser.parse_integer() if parser.parse_optional_keyword("store_width") else None
        unaligned = parser.parse_optional_keyword("unaligned") is not None
        dist = None
        if parser.parse_optional_keyword("dist"):
            found = parser.parse_attribute()
            if not isinstance(found, DistributedLayout):
                parser.raise_error(f"expected a #tile.distributed layout, got {found}")
            dist = found
        op = cls(
            source,
            source_offsets,
            target,
            target_offsets,
            bounds=bounds,
            other=other,
            via=via,
            width=width,
            along=along,
            store_width=store_width,
            unaligned=unaligned,
            multicast=multicast,
            dist=dist,
        )
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        print_optional_values(printer, self.source_offsets)
        printer.print_string(" to ")
        printer.print_operand(self.target)
        print_optional_values(printer, self.target_offsets)
        if self.bounds.data:
            printer.print_string(f" bounds [{', '.join(self.bound_words)}]")
        if self.other is not None:
            printer.print_string(" other ")
            printer.print_attribute(self.other)
        if self.via is not None:
            printer.print_string(f" via {self.via.data}")
        if self.multicast is not None:
            printer.print_string(" multicast")
        if self.width is not None:
            printer.print_string(f" width {self.width.value.data}")
        if self.along is not None:
            printer.print_string(f" along {self.along.value.data}")
        if self.store_width is not None:
            printer.print_string(f" store_width {self.store_width.value.data}")
        if self.unaligned is not None:
            printer.print_string(" unaligned")
        if self.dist is not None:
            printer.print_string(" dist ")
            printer.print_attribute(self.dist)
        print_extra_attributes(printer, self)


@irdl_op_definition
class FillOp(IRDLOperation):
    """`tile.fill %acc with 0.0 : f32`: every element of a fragment becomes the constant."""

    name = "tile.fill"
    target = operand_def(BufType)
    value = prop_def(AnyAttr())
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, target: SSAValue, value: Attribute) -> None:
        super().__init__(operands=[target], properties={"value": value})

    def verify_(self) -> None:
        if buffer_type(self.target).space.data != "fragment":
            raise VerifyException("tile.fill writes a fragment")

    @classmethod
    def parse(cls, parser: Parser) -> FillOp:
        target = parse_value(parser)
        parser.parse_keyword("with")
        return cls(target, parser.parse_attribute())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.target)
        printer.print_string(" with ")
        printer.print_attribute(self.value)
