"""Structure of a simt kernel: the kernel itself, thread and block ids, statically unrolled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure, RecursiveMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import i64_attr, parse_extra_attributes, parse_i64, parse_word, print_extra_attributes
from tilewright.dialects.roles import CLUSTERS
from tilewright.dialects.simt.types import GlobalType, TensorMapAttr, TmapType
from tilewright.dialects.sym.attributes import ExprAttr, RelationAttr, parse_expr_from, parse_relation_from

DIMENSIONS = ("x", "y", "z")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel: tensor maps, pointers, scalars that the launch passes by value, scalars (i32 or i64) bound to `params`.

    A `persistent` kernel may be launched with fewer blocks than `grid` says. With `cluster 2`, blocks 2c and 2c + 1 are
    a cluster, and both numbers of blocks are multiples of 2. The host makes each tensor map from its entry in `maps`.
    The last arguments, as many as `params` has entries, are the bound ones; the host evaluates an expression for each.
    `threads` is the block size (one dimension), `smem` the bytes of dynamic shared memory, `grid` the number of blocks
    as an expression that the host evaluates, `assumes` what the code relies on: the host plan proves or guards each.
    """

    name = "simt.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    threads = prop_def(IntegerAttr)
    smem = prop_def(IntegerAttr)
    grid = prop_def(ExprAttr)
    params = prop_def(ArrayAttr[ExprAttr])
    assumes = prop_def(ArrayAttr[RelationAttr])
    persistent = opt_prop_def(UnitAttr)
    cluster = opt_prop_def(IntegerAttr)
    tensor_maps = prop_def(ArrayAttr[TensorMapAttr], prop_name="maps")
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        name: str,
        threads: int,
        grid: ExprAttr,
        params: Sequence[ExprAttr],
        assumes: Sequence[RelationAttr],
        body: Region,
        smem: int = 0,
        maps: Sequence[TensorMapAttr] = (),
        *,
        persistent: bool = False,
        cluster: int | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "cluster": None if cluster is None else i64_attr(cluster),
                "threads": i64_attr(threads),
                "smem": i64_attr(smem),
                "grid": grid,
                "params": ArrayAttr(params),
                "assumes": ArrayAttr(assumes),
                "maps": ArrayAttr(maps),
                "persistent": UnitAttr() if persistent else None,
            },
            regions=[body],
        )

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster, 1 without clusters."""
        return 1 if self.cluster is None else self.cluster.value.data

    @property
    def maps(self) -> list[SSAValue]:
        """The tensor map arguments, one for each entry of `maps`; they come first."""
        return [a for a in self.body.block.args if isinstance(a.type, TmapType)]

    @property
    def pointers(self) -> list[SSAValue]:
        """The global pointer arguments, in launch order."""
        return [a for a in self.body.block.args if isinstance(a.type, GlobalType)]

    @property
    def values(self) -> list[SSAValue]:
        """The scalar arguments that the launch passes by value, in launch order, after the pointers."""
        args, first = self.body.block.args, len(self.maps) + len(self.pointers)
        return list(args[first : max(first, len(args) - len(self.params.data))])

    @property
    def scalars(self) -> list[SSAValue]:
        """The scalar arguments that the host computes, one for each entry of `params`; they come last."""
        return list(self.body.block.args[len(self.maps) + len(self.pointers) + len(self.values) :])

    def verify_(self) -> None:
        args = self.body.block.args
        maps, n = len(self.maps), len(self.maps) + len(self.pointers)
        if any(isinstance(a.type, TmapType) for a in args[maps:]):
            raise VerifyException("tensor maps must come before pointers")
        if any(isinstance(a.type, GlobalType) for a in args[n:]):
            raise VerifyException("pointers must come before scalars")
        self._verify_maps()
        if len(self.scalars) != len(self.params.data):
            raise VerifyException(
                f"expected one scalar argument for each of {len(self.params.data)} params, got {len(self.scalars)}"
            )
        for a in self.scalars:
            if a.type not in (i32, i64):
                raise VerifyException(f"scalar arguments for params are i32 or i64, got {a.type}")
        for a in self.values:
            if not isinstance(a.type, IntegerType | AnyFloat):
                raise VerifyException(f"scalar arguments are integers or floats, got {a.type}")
        threads = self.threads.value.data
        if not 1 <= threads <= 1024 or threads % 32:
            raise VerifyException(f"threads must be a multiple of 32 from 32 to 1024, got {threads}")
        if self.cluster is not None and self.cluster_size not in CLUSTERS:
            raise VerifyException(
                f"expected clusters of {', '.join(map(str, CLUSTERS))} blocks, got {self.cluster_size}"
            )

    def _verify_maps(self) -> None:
        if len(self.maps) != len(self.tensor_maps.data):
            raise VerifyException(f"expected an entry of maps for each of {len(self.maps)} tensor map arguments")
        for argument, made in zip(self.maps, self.tensor_maps.data, strict=True):
            assert isinstance(argument.type, TmapType)
            number = made.pointer.data
            pointer = self.pointers[number].type if number < len(self.pointers) else None
            if not isinstance(pointer, GlobalType) or pointer.element != argument.type.element:
                raise VerifyException(f"a tensor map of {argument.type.element} needs a pointer to it, got {pointer}")
            if len(made.dims.data) != len(argument.type.box):
                raise VerifyException(f"expected {len(argument.type.box)} dims in {made}")

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("threads")
        threads = parser.parse_integer()
        parser.parse_keyword("smem")
        smem = parser.parse_integer()
        parser.parse_keyword("grid")
        with parser.in_square_brackets():
            grid = ExprAttr(parse_expr_from(parser))
        cluster = parser.parse_integer() if parser.parse_optional_keyword("cluster") else None
        persistent = parser.parse_optional_keyword("persistent") is not None
        params: list[ExprAttr] = []
        if parser.parse_optional_keyword("params"):
            params = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: ExprAttr(parse_expr_from(parser))
            )
        assumes: list[RelationAttr] = []
        if parser.parse_optional_keyword("assumes"):
            assumes = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: RelationAttr(parse_relation_from(parser))
            )
        maps: list[TensorMapAttr] = []
        if parser.parse_optional_keyword("maps"):
            maps = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_map(parser))
        extra = parse_extra_attributes(parser)
        body = parser.parse_region(args)
        op = cls(name.data, threads, grid, params, assumes, body, smem, maps, persistent=persistent, cluster=cluster)
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(f" threads {self.threads.value.data} smem {self.smem.value.data} grid [{self.grid.data}]")
        if self.cluster is not None:
            printer.print_string(f" cluster {self.cluster_size}")
        if self.persistent is not None:
            printer.print_string(" persistent")
        if self.params.data:
            printer.print_string(f" params [{', '.join(str(p.data) for p in self.params.data)}]")
        if self.assumes.data:
            printer.print_string(f" assumes [{', '.join(str(a.data) for a in self.assumes.data)}]")
        if self.tensor_maps.data:
            printer.print_string(" maps ")
            with printer.in_square_brackets():
                printer.print_list(self.tensor_maps.data, printer.print_attribute)
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


def _parse_map(parser: Parser) -> TensorMapAttr:
    position = parser.pos
    found = parser.parse_attribute()
    if not isinstance(found, TensorMapAttr):
        parser.raise_error(f"expected a #simt.tensor_map, got {found}", position, parser.pos)
    return found


@irdl_op_definition
class TidOp(IRDLOperation):
    """Index of the thread in its block, 0 <= tid < threads, as i32."""

    name = "simt.tid"
    res = result_def(i32)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


@irdl_op_definition
class BlockIdOp(IRDLOperation):
    """Index of the block in the grid along x, y or z, as i32."""

    name = "simt.block_id"
    dim = prop_def(StringAttr)
    res = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, dim: str = "x") -> None:
        super().__init__(properties={"dim": StringAttr(dim)}, result_types=[i32])

    def verify_(self) -> None:
        if self.dim.data not in DIMENSIONS:
            raise VerifyException(f"expected dim x, y or z, got {self.dim.data}")

    @classmethod
    def parse(cls, parser: Parser) -> BlockIdOp:
        op = cls(parse_word(parser, DIMENSIONS, "dim").data)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dim.data}")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class GridDimOp(IRDLOperation):
    """Number of blocks of the grid along x, as i32."""

    name = "simt.grid_dim"
    res = result_def(i32)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


@irdl_op_definition
class UnrollOp(IRDLOperation):
    """`simt.unroll %i < 8 { ... }`: a loop with a static trip count that the compiler unrolls fully.

    It stays rolled in IR. The variable is an i32 that counts from 0; the body carries no values.
    """

    name = "simt.unroll"
    count = prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, count: int, body: Region | None = None) -> None:
        if body is None:
            body = Region(Block(arg_types=[i32]))
        super().__init__(properties={"count": i64_attr(count)}, regions=[body])

    @property
    def variable(self) -> SSAValue:
        """The loop variable."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != 1 or args[0].type != i32:
            raise VerifyException("expected one i32 loop variable")
        if self.count.value.data < 1:
            raise VerifyException(f"expected a trip count of at least 1, got {self.count.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> UnrollOp:
        variable = parser.parse_argument(expect_type=False).resolve(i32)
        parser.parse_punctuation("<")
        count = parse_i64(parser)
        extra = parse_extra_attributes(parser)
        op = cls(count.value.data, parser.parse_region([variable]))
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_argument(self.body.block.args[0], print_type=False)
        printer.print_string(f" < {self.count.value.data}")
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


def check_room(op: Operation, offset: int, size: int) -> None:
    """Raise VerifyException unless so many bytes from an offset on lie in the shared memory of the kernel around."""
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    room = offset + size if kernel is None else kernel.smem.value.data
    if offset < 0 or offset + size > room:
        raise VerifyException(f"bytes {offset} to {offset + size} do not lie in {room} bytes of shared memory")


def is_static_index(value: SSAValue) -> bool:
    """Whether an index is made of constants and unroll variables alone, so that a register array may use it."""
    owner = value.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), UnrollOp)
    if owner.name == "arith.constant":
        return True
    if owner.name.startswith("arith.") and not owner.regions:
        return all(is_static_index(o) for o in owner.operands)
    return False
