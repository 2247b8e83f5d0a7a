"""`tile.gather`: elements of a global buffer at computed positions, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerType, StringAttr
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
    int_array,
    ints,
    parse_extra_attributes,
    parse_value,
    parse_word,
    print_extra_attributes,
)
from tilewright.dialects.sym.attributes import parse_expr_from
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.sym.index import FAMILIES, IndexAttr, dim, free_prefixes, members, offset, spelled, value
from tilewright.dialects.tile.iteration import (
    Maps,
    iteration_sizes,
    maps_attr,
    maps_of,
    parse_mapped,
    print_mapped,
)
from tilewright.dialects.tile.limits import parse_valid, print_valid
from tilewright.dialects.tile.types import BufType, DistributedLayout, MixedLayout, buffer_type

WORDS = ("clip", "proved", "trusted")
index = IndexType()


@irdl_op_definition
class GatherOp(IRDLOperation):
    """`tile.gather (d0, d1) %x[o0 + d0, 2*d1 - 1] to %f where o0 = %m0 bounds [clip, proved] other 0.0 : f32`.

    Element (d0, d1) of the target, a fragment or shared buffer that has the dims in brackets, becomes the element of
    the global buffer at these indices: expressions over the target's coordinates, index values of the kernel named
    after `where`, and values of integer fragments (`with v0 = %ids[d0]`). Each dim of the source has a bound: `clip`
    (where its index lies outside, on either side, the target gets `other`), `proved` (no index does) or `trusted` (the
    program promises it). `valid(d1 < %n)`: elements at or past the limit get `other` too. `dist` says which thread
    moves what when the target is shared.
    """

    name = "tile.gather"
    source = operand_def(BufType)
    target = operand_def(BufType)
    values = var_operand_def(BufType)
    offsets = var_operand_def(index)
    limits = var_operand_def(index)
    indices = prop_def(IndexAttr)
    maps = prop_def(Maps)
    valid = prop_def(ArrayAttr[IntAttr])
    bounds = prop_def(ArrayAttr[StringAttr])
    other = opt_prop_def(AnyAttr())
    dist = opt_prop_def(DistributedLayout)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        indices: Sequence[Expr],
        target: SSAValue,
        *,
        bounds: Sequence[str],
        values: Sequence[tuple[SSAValue, Sequence[int]]] = (),
        offsets: Sequence[SSAValue] = (),
        valid: Mapping[int, SSAValue] | None = None,
        other: Attribute | None = None,
        dist: DistributedLayout | None = None,
    ) -> None:
        """`indices` hold `dim(n)` for the target's coordinates, `value(n)` and `offset(n)` for entries of these lists;
        `values` pairs a fragment with the target dim of each of its dims."""
        valid = valid or {}
        super().__init__(
            operands=[source, target, [v for v, _ in values], list(offsets), list(valid.values())],
            properties={
                "indices": IndexAttr(tuple(indices)),
                "maps": maps_attr([m for _, m in values]),
                "valid": int_array(list(valid)),
                "bounds": ArrayAttr([StringAttr(b) for b in bounds]),
                "other": other,
                "dist": dist,
            },
        )

    @property
    def mapped_values(self) -> list[tuple[SSAValue, tuple[int, ...]]]:
        """The integer fragments that say where to read, with the target dim of each of their dims."""
        return list(zip(self.values, maps_of(self.maps), strict=True))

    @property
    def bound_words(self) -> tuple[str, ...]:
        """`clip`, `proved` or `trusted` for each dim of the source."""
        return tuple(b.data for b in self.bounds.data)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The index along each dim of the source."""
        return self.indices.data

    @property
    def valid_limits(self) -> dict[int, SSAValue]:
        """Target dim to the index value that its coordinate must be below."""
        return dict(zip(ints(self.valid), self.limits, strict=True))

    @property
    def tile_type(self) -> BufType:
        """The buffer that is filled."""
        return buffer_type(self.target)

    @property
    def distribution(self) -> DistributedLayout | MixedLayout | None:
        """Which thread moves which element: the fragment's layout, else `dist`."""
        layout = self.tile_type.layout
        return layout if isinstance(layout, DistributedLayout | MixedLayout) else self.dist

    def with_masks(self, bounds: Sequence[str], valid: Mapping[int, SSAValue]) -> GatherOp:
        """The same gather with other bounds and limits, detached."""
        new = GatherOp(
            self.source,
            self.exprs,
            self.target,
            bounds=bounds,
            values=self.mapped_values,
            offsets=list(self.offsets),
            valid=valid,
            other=self.other,
            dist=self.dist,
        )
        new.attributes.update(self.attributes)
        new.location = self.location
        return new

    def verify_(self) -> None:
        source, target = buffer_type(self.source), self.tile_type
        if source.space.data != "global" or target.space.data == "global":
            raise VerifyException("tile.gather reads global memory and writes a fragment or a shared buffer")
        if source.element != target.element:
            raise VerifyException(f"expected equal element types, got {source.element} and {target.element}")
        for what, given in (("indices", self.exprs), ("bounds", self.bound_words)):
            if len(given) != source.rank:
                raise VerifyException(f"expected {source.rank} {what}, got {len(given)}")
        for word in self.bound_words:
            if word not in WORDS:
                raise VerifyException(f"expected bound {', '.join(WORDS)}, got {word}")
        for family, count in zip(FAMILIES, (target.rank, len(self.values), len(self.offsets)), strict=True):
            if any(n >= count for n in members(self.exprs, family)):
                raise VerifyException(
                    f"expected {family}0 to {family}{count - 1} in the indices, got {self.spelling()}"
                )
        iteration_sizes(target.rank, [self.target, *self.values], [range(target.rank), *maps_of(self.maps)])
        for v in self.values:
            if buffer_type(v).space.data != "fragment" or not isinstance(
                buffer_type(v).element, IntegerType | IndexType
            ):
                raise VerifyException(f"expected integer fragments after with, got {v.type}")
        if len(self.valid.data) != len(self.limits):
            raise VerifyException("expected one limit for each valid dim")

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        return [] if self.distribution is not None else ["dist"]

    def spelling(self) -> str:
        """The indices as text."""
        prefixes = free_prefixes(self.exprs)
        return ", ".join(str(spelled(e, prefixes)) for e in self.exprs)

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
        dims = {n: i for i, n in enumerate(names)}
        source = parse_value(parser)
        exprs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
        parser.parse_keyword("to")
        target = parse_value(parser)
        coordinates: dict[str, Expr | int] = {name: dim(d) for name, d in dims.items()}
        values: list[tuple[SSAValue, Sequence[int]]] = []
        offsets: list[SSAValue] = []
        if parser.parse_optional_keyword("with"):
            while True:
                coordinates[parser.parse_identifier()] = value(len(values))
                parser.parse_punctuation("=")
                values.append(parse_mapped(parser, dims))
                if not parser.parse_optional_punctuation(","):
                    break
        if parser.parse_optional_keyword("where"):
            while True:
                coordinates[parser.parse_identifier()] = offset(len(offsets))
                parser.parse_punctuation("=")
                offsets.append(parse_value(parser))
                if not parser.parse_optional_punctuation(","):
                    break
        valid_dims, limits = parse_valid(parser, dims)
        parser.parse_keyword("bounds")
        bounds = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_word(parser, WORDS, "bound").data
        )
        other = parser.parse_attribute() if parser.parse_optional_keyword("other") else None
        dist = None
        if parser.parse_optional_keyword("dist"):
            found = parser.parse_attribute()
            if not isinstance(found, DistributedLayout):
                parser.raise_error(f"expected a #tile.distributed layout, got {found}")
            dist = found
        op = cls(
            source,
            [e.substitute(coordinates) for e in exprs],
            target,
            bounds=bounds,
            values=values,
            offsets=offsets,
            valid=dict(zip(valid_dims, limits, strict=True)),
            other=other,
            dist=dist,
        )
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        prefixes = free_prefixes(self.exprs)
        names = ", ".join(f"{prefixes['d']}{d}" for d in range(self.tile_type.rank))
        printer.print_string(f" ({names}) ")
        printer.print_operand(self.source)
        printer.print_string(f"[{self.spelling()}] to ")
        printer.print_operand(self.target)

        def named(word: str, entries: Sequence[tuple[str, SSAValue, tuple[int, ...]]]) -> None:
            if not entries:
                return
            printer.print_string(f" {word} ")

            def one(entry: tuple[str, SSAValue, tuple[int, ...]]) -> None:
                printer.print_string(f"{entry[0]} = ")
                print_mapped(printer, entry[1], entry[2], prefixes["d"])

            printer.print_list(entries, one)

        named("with", [(f"{prefixes['v']}{n}", v, m) for n, (v, m) in enumerate(self.mapped_values)])
        named("where", [(f"{prefixes['o']}{n}", v, ()) for n, v in enumerate(self.offsets)])
        print_valid(printer, ints(self.valid), self.limits, prefixes["d"])
        printer.print_string(f" bounds [{', '.join(self.bound_words)}]")
        if self.other is not None:
            printer.print_string(" other ")
            printer.print_attribute(self.other)
        if self.dist is not None:
            printer.print_string(" dist ")
            printer.print_attribute(self.dist)
        print_extra_attributes(printer, self)
