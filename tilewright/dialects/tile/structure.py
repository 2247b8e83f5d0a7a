"""Structure of a tile kernel: the kernel over a symbolic grid, loops with symbolic bounds, buffers, barriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import (
    i64_attr,
    int_array,
    ints,
    parse_extra_attributes,
    parse_int_list,
    parse_type_of,
    parse_value,
    print_extra_attributes,
)
from tilewright.dialects.roles import CLUSTERS
from tilewright.dialects.sym.attributes import DimsAttr, ExprAttr, RelationAttr, parse_expr_from, parse_relation_from
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.sym.relation import Relation
from tilewright.dialects.tile.types import BufType

index = IndexType()


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel: one block computes one tile for each point of a symbolic grid.

    Arguments are global buffers, then scalars (f32, i32, index: by value). `threads` is the block size and
    `index_width` the width of index arithmetic in bits, both absent while undecided; `mapped` says that the author
    spread the work over these threads, so that passes keep the layouts of fragments and the `dist` and `width` of
    copies that are written; `arch` the architecture that the schedule may use the instructions of (absent: any);
    `persistent` says that a block takes the tiles b, b + number of blocks, ..., of which there are as many as the grid
    has points; `cluster` has an entry for each grid dim: so many neighbours along it run at the same time (see
    `is_clustered`); `assumes` are relations that the code may rely on (each is proved or guarded by the plan). `bases`
    names for each argument the symbol of its base address in bytes, empty where the host aligns it to 256 bytes itself
    (or for a scalar).
    """

    name = "tile.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    grid = prop_def(DimsAttr)
    threads = opt_prop_def(IntegerAttr)
    mapped = opt_prop_def(UnitAttr)
    index_width = opt_prop_def(IntegerAttr)
    arch = opt_prop_def(StringAttr)
    persistent = opt_prop_def(UnitAttr)
    cluster = opt_prop_def(ArrayAttr[IntAttr])
    assumes = prop_def(ArrayAttr[RelationAttr])
    base_names = prop_def(ArrayAttr[StringAttr], prop_name="bases")
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        name: str,
        grid: Sequence[Expr],
        body: Region,
        *,
        threads: int | None = None,
        mapped: bool = False,
        index_width: int | None = None,
        arch: str | None = None,
        persistent: bool = False,
        cluster: Sequence[int] | None = None,
        assumes: Sequence[Relation] = (),
        bases: Sequence[str] = (),
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "bases": ArrayAttr([StringAttr(b) for b in bases]),
                "grid": DimsAttr(tuple(grid)),
                "threads": None if threads is None else i64_attr(threads),
                "mapped": UnitAttr() if mapped else None,
                "index_width": None if index_width is None else i64_attr(index_width),
                "arch": None if arch is None else StringAttr(arch),
                "persistent": UnitAttr() if persistent else None,
                "cluster": None if cluster is None else int_array(cluster),
                "assumes": ArrayAttr([RelationAttr(r) for r in assumes]),
            },
            regions=[body],
        )

    @property
    def arguments(self) -> Sequence[BlockArgument]:
        """Buffers and scalars, without the grid coordinates."""
        return self.body.block.args[: len(self.body.block.args) - len(self.grid.data)]

    @property
    def bases(self) -> tuple[str, ...]:
        """Symbol of each argument's base address; empty for one that the host aligns to 256 bytes, and for scalars."""
        return tuple(b.data for b in self.base_names.data)

    @property
    def coordinates(self) -> Sequence[BlockArgument]:
        """The grid coordinates: index values with 0 <= coordinate < grid size."""
        return self.body.block.args[len(self.body.block.args) - len(self.grid.data) :]

    @property
    def clusters(self) -> tuple[int, ...]:
        """Blocks of a cluster along each grid dim."""
        return (1,) * len(self.grid.data) if self.cluster is None else ints(self.cluster)

    @property
    def is_clustered(self) -> bool:
        """Whether blocks are launched as `cluster` says: those of a cluster follow one another in the grid.

        They do where the last dim alone has several of them, and its size is a multiple of that, as it is in a
        `persistent` kernel. Else `form-clusters` makes it so, and without it blocks run alone.
        """
        if self.cluster is None or any(n > 1 for n in self.clusters[:-1]):
            return False
        size = self.grid.data[-1].constant
        return self.persistent is not None or (size is not None and size % self.clusters[-1] == 0)

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster as they are launched; 1 where they run alone."""
        return self.clusters[-1] if self.is_clustered else 1

    def verify_(self) -> None:
        args = self.body.block.args
        if self.cluster is not None:
            if len(self.clusters) != len(self.grid.data):
                raise VerifyException(f"expected an entry of cluster for each of {len(self.grid.data)} grid dims")
            if prod(self.clusters) not in CLUSTERS or min(self.clusters) < 1:
                sizes = ", ".join(map(str, CLUSTERS))
                raise VerifyException(f"expected clusters of {sizes} blocks, got {list(self.clusters)}")
        if len(args) < len(self.grid.data):
            raise VerifyException(f"expected {len(self.grid.data)} grid coordinates")
        for a in self.coordinates:
            if a.type != index:
                raise VerifyException(f"grid coordinates are index values, got {a.type}")
        for a in self.arguments:
            if isinstance(a.type, BufType) and a.type.space.data != "global":
                raise VerifyException(f"kernel buffers are in global memory, got {a.type.space.data}")
        if self.bases and len(self.bases) != len(self.arguments):
            raise VerifyException(
                f"expected one base for each of {len(self.arguments)} arguments, got {len(self.bases)}"
            )
        if self.mapped is not None and self.threads is None:
            raise VerifyException("a kernel that is mapped has threads")
        if self.index_width is not None and self.index_width.value.data not in (32, 64):
            raise VerifyException(f"index width is 32 or 64, got {self.index_width.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("grid")
        coordinates = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        parser.parse_punctuation("=")
        grid = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr_from(parser))
        cluster = parse_int_list(parser) if parser.parse_optional_keyword("cluster") else None
        threads = parser.parse_integer() if parser.parse_optional_keyword("threads") else None
        mapped = parser.parse_optional_keyword("mapped") is not None
        width = parser.parse_integer() if parser.parse_optional_keyword("index_width") else None
        arch = parser.parse_identifier() if parser.parse_optional_keyword("arch") else None
        persistent = parser.parse_optional_keyword("persistent") is not None
        assumes: list[Relation] = []
        if parser.parse_optional_keyword("assumes"):
            assumes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_relation_from(parser))
        bases: list[str] = []
        if parser.parse_optional_keyword("bases"):
            bases = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE,
                lambda: "" if parser.parse_optional_integer() == 0 else parser.parse_identifier(),
            )
        extra = parse_extra_attributes(parser)
        body = parser.parse_region([*args, *(c.resolve(index) for c in coordinates)])
        op = cls(
            name.data,
            grid,
            body,
            threads=threads,
            mapped=mapped,
            index_width=width,
            arch=arch,
            persistent=persistent,
            cluster=cluster,
            assumes=assumes,
            bases=bases,
        )
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_block_argument)
        printer.print_string(" grid ")
        with printer.in_parens():
            printer.print_list(self.coordinates, lambda a: printer.print_block_argument(a, print_type=False))
        printer.print_string(f" = [{', '.join(str(e) for e in self.grid.data)}]")
        if self.cluster is not None:
            printer.print_string(f" cluster {list(self.clusters)}")
        if self.threads is not None:
            printer.print_string(f" threads {self.threads.value.data}")
        if self.mapped is not None:
            printer.print_string(" mapped")
        if self.index_width is not None:
            printer.print_string(f" index_width {self.index_width.value.data}")
        if self.arch is not None:
            printer.print_string(f" arch {self.arch.data}")
        if self.persistent is not None:
            printer.print_string(" persistent")
        if self.assumes.data:
            printer.print_string(f" assumes [{', '.join(str(a.data) for a in self.assumes.data)}]")
        if self.bases:
            printer.print_string(f" bases [{', '.join(b or '0' for b in self.bases)}]")
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        gaps = ["threads"] if self.threads is None else []
        return gaps + (["index_width"] if self.index_width is None else [])


@irdl_op_definition
class ForOp(IRDLOperation):
    """`tile.for %k = 0 to K step 16 unroll 4 { ... }`: a loop with symbolic bounds, run while %k < upper bound.

    Bounds are expressions over symbols and the index values named after `where`. `unroll` is printed as a pragma; the
    body is not expanded. A loop with constant bounds whose variable indexes registers must be unrolled fully.
    """

    name = "tile.for"
    lower = prop_def(ExprAttr)
    upper = prop_def(ExprAttr)
    step = prop_def(ExprAttr)
    unroll = opt_prop_def(IntegerAttr)
    names = prop_def(ArrayAttr[StringAttr])
    values = var_operand_def(index)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        lower: Expr | int,
        upper: Expr | int,
        step: Expr | int,
        body: Region,
        *,
        unroll: int | None = None,
        where: Mapping[str, SSAValue] | None = None,
    ) -> None:
        where = where or {}

        def attr(e: Expr | int) -> ExprAttr:
            return ExprAttr(e if isinstance(e, Expr) else Expr.const(e))

        super().__init__(
            operands=[list(where.values())],
            properties={
                "lower": attr(lower),
                "upper": attr(upper),
                "step": attr(step),
                "unroll": None if unroll is None else i64_attr(unroll),
                "names": ArrayAttr([StringAttr(n) for n in where]),
            },
            regions=[body],
        )

    @property
    def variable(self) -> SSAValue:
        """The loop variable, an index."""
        return self.body.block.args[0]

    @property
    def where(self) -> dict[str, SSAValue]:
        """The index values that bounds refer to, by name."""
        return dict(zip((n.data for n in self.names.data), self.values, strict=True))

    def verify_(self) -> None:
        if len(self.body.block.args) != 1 or self.body.block.args[0].type != index:
            raise VerifyException("expected one index loop variable")
        if len(self.names.data) != len(self.values):
            raise VerifyException("expected one name for each value after `where`")
        step = self.step.data.constant
        if step is not None and step < 1:
            raise VerifyException(f"expected a step of at least 1, got {step}")

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        variable = parser.parse_argument(expect_type=False).resolve(index)
        parser.parse_punctuation("=")
        lower = parse_expr_from(parser)
        parser.parse_keyword("to")
        upper = parse_expr_from(parser)
        parser.parse_keyword("step")
        step = parse_expr_from(parser)
        unroll = parser.parse_integer() if parser.parse_optional_keyword("unroll") else None
        where: dict[str, SSAValue] = {}
        if parser.parse_optional_keyword("where"):
            while True:
                name = parser.parse_identifier()
                parser.parse_punctuation("=")
                where[name] = parse_value(parser)
                if not parser.parse_optional_punctuation(","):
                    break
        extra = parse_extra_attributes(parser)
        op = cls(lower, upper, step, parser.parse_region([variable]), unroll=unroll, where=where)
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_argument(self.body.block.args[0], print_type=False)
        printer.print_string(f" = {self.lower.data} to {self.upper.data} step {self.step.data}")
        if self.unroll is not None:
            printer.print_string(f" unroll {self.unroll.value.data}")
        if self.names.data:
            printer.print_string(" where ")

            def one(pair: tuple[str, SSAValue]) -> None:
                printer.print_string(f"{pair[0]} = ")
                printer.print_operand(pair[1])

            printer.print_list(list(self.where.items()), one)
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """`%s = tile.alloc at 0 : !tile.buf<...>`: a buffer of the block in shared memory or registers.

    It is undefined until written. The byte offset `at` of a shared buffer is absent until shared memory is allocated.
    """

    name = "tile.alloc"
    offset = opt_prop_def(IntegerAttr)
    res = result_def(BufType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, type: BufType, offset: int | None = None) -> None:
        super().__init__(properties={"offset": None if offset is None else i64_attr(offset)}, result_types=[type])

    @property
    def type(self) -> BufType:
        """The buffer's type."""
        return self.res.type

    def verify_(self) -> None:
        if self.type.space.data == "global":
            raise VerifyException("tile.alloc makes shared buffers and fragments, got global")

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        offset = parser.parse_integer() if parser.parse_optional_keyword("at") else None
        parser.parse_punctuation(":")
        type_ = parse_type_of(parser, BufType, "!tile.buf")
        return cls(type_, offset)

    def print(self, printer: Printer) -> None:
        if self.offset is not None:
            printer.print_string(f" at {self.offset.value.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        gaps = ["layout"] if self.type.layout_is_open else []
        return gaps + (["offset"] if self.type.space.data == "shared" and self.offset is None else [])


@irdl_op_definition
class SyncOp(IRDLOperation):
    """All threads of the block wait for each other; shared memory written before is visible after."""

    name = "tile.sync"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of `tile.map` with one value for each output."""

    name = "tile.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[list(values)])

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        values = [parse_value(parser)]
        while parser.parse_optional_punctuation(","):
            values.append(parse_value(parser))
        return cls(*values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_operand)
