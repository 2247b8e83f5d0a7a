"""The launch plan as IR: bindings, guards, dispatch over variants, scratch, launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import (
    i64_attr,
    parse_extra_attributes,
    parse_value,
    print_extra_attributes,
)
from tilewright.dialects.sym.attributes import ExprAttr, RelationAttr, dims_of, parse_expr_from, parse_relation_from
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.sym.operators import ceildiv
from tilewright.dialects.sym.relation import Relation


def _parse_relations(parser: Parser) -> list[Relation]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_relation_from(parser))


def _relations(attribute: ArrayAttr[RelationAttr]) -> str:
    return f"[{', '.join(str(r.data) for r in attribute.data)}]"


@irdl_op_definition
class FuncOp(IRDLOperation):
    """`host.func @main(%x : tensor<...>) -> (tensor<...>) { ... }`: what one call of an entry does, in order.

    Arguments are tensors and scalars of the entry; results are written into the buffers that `host.output` names.
    """

    name = "host.func"
    sym_name = prop_def(SymbolNameConstraint())
    signature = prop_def(FunctionType)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, result_types: Sequence[Attribute], body: Region) -> None:
        types = [a.type for a in body.block.args]
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "signature": FunctionType.from_lists(types, list(result_types)),
            },
            regions=[body],
        )

    @property
    def output_types(self) -> tuple[Attribute, ...]:
        """Types of the results, in order."""
        return self.signature.outputs.data

    def verify_(self) -> None:
        if [a.type for a in self.body.block.args] != list(self.signature.inputs.data):
            raise VerifyException("the function type must list the types of the arguments")

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        extra = parse_extra_attributes(parser)
        op = cls(name.data, results, parser.parse_region(args))
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(self.output_types, printer.print_attribute)
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class BindOp(IRDLOperation):
    """`host.bind %x strides [x_s0, x_s1] base x_base`: symbols for a tensor's element strides and base address.

    The tensor is an argument or an output. The sizes in its type bind the symbols they are made of; this op names
    what the type does not hold.
    """

    name = "host.bind"
    value = operand_def()
    strides = prop_def(ArrayAttr[StringAttr])
    base = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), HasParent(FuncOp))

    def __init__(self, value: SSAValue, strides: Sequence[str], base: str) -> None:
        super().__init__(
            operands=[value],
            properties={"strides": ArrayAttr([StringAttr(s) for s in strides]), "base": StringAttr(base)},
        )

    def verify_(self) -> None:
        tensor = self.value.type
        if not isinstance(tensor, TensorType):
            raise VerifyException(f"host.bind names the strides of a tensor, got {tensor}")
        rank = cast("TensorType[Attribute]", tensor).get_num_dims()
        if len(self.strides.data) != rank:
            raise VerifyException(f"expected {rank} stride symbols, got {len(self.strides.data)}")

    @classmethod
    def parse(cls, parser: Parser) -> BindOp:
        value = parse_value(parser)
        parser.parse_keyword("strides")
        strides = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        parser.parse_keyword("base")
        return cls(value, strides, parser.parse_identifier())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(f" strides [{', '.join(s.data for s in self.strides.data)}] base {self.base.data}")


@irdl_op_definition
class LetOp(IRDLOperation):
    """`host.let parts = max(1, 132 floordiv M)`: gives a symbol of the plan its value, for the ops that follow.

    The symbol is declared with source "host"; kernels that name it get it like any other.
    """

    name = "host.let"
    symbol = prop_def(StringAttr)
    value = prop_def(ExprAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), HasParent(FuncOp))

    def __init__(self, symbol: str, value: Expr) -> None:
        super().__init__(properties={"symbol": StringAttr(symbol), "value": ExprAttr(value)})

    def verify_(self) -> None:
        if self.symbol.data in self.value.data.symbols:
            raise VerifyException(f"the value of {self.symbol.data} is given by itself: {self.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> LetOp:
        symbol = parser.parse_identifier()
        parser.parse_punctuation("=")
        return cls(symbol, parse_expr_from(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.symbol.data} = {self.value.data}")


@irdl_op_definition
class GuardOp(IRDLOperation):
    """`host.guard S >= W else "why"`: the call fails with this text and the values when the relation does not hold."""

    name = "host.guard"
    relation = prop_def(RelationAttr)
    message = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, relation: Relation, message: str) -> None:
        super().__init__(properties={"relation": RelationAttr(relation), "message": StringAttr(message)})

    @classmethod
    def parse(cls, parser: Parser) -> GuardOp:
        relation = parse_relation_from(parser)
        parser.parse_keyword("else")
        return cls(relation, parser.parse_str_literal())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.relation.data} else ")
        printer.print_string_literal(self.message.data)


@irdl_op_definition
class OutputOp(IRDLOperation):
    """`%y = host.output 0 : tensor<...>`: the buffer of result 0, made by the runtime or given by the caller."""

    name = "host.output"
    number = prop_def(IntegerAttr)
    res = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, number: int, type: Attribute) -> None:
        super().__init__(properties={"number": i64_attr(number)}, result_types=[type])

    @classmethod
    def parse(cls, parser: Parser) -> OutputOp:
        number = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(number, parser.parse_type())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number.value.data} : ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """`%t = host.alloc pitch 8 : tensor<...>`: row-major scratch for the rest of the call, undefined until written.

    Its base address is aligned to 256 bytes. Rows (along the last dim, or with `along 0` along that one, the others in
    order outside) begin at multiples of `pitch` elements, 1 unless it is given; a kernel may see the dim of the rows
    with its padding, which is memory of the tensor.
    """

    name = "host.alloc"
    pitch = opt_prop_def(IntegerAttr)
    along_attr = opt_prop_def(IntegerAttr, prop_name="along")
    res = result_def(TensorType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, type: Attribute, pitch: int = 1, along: int | None = None) -> None:
        super().__init__(
            properties={
                "pitch": None if pitch == 1 else i64_attr(pitch),
                "along": None if along is None else i64_attr(along),
            },
            result_types=[type],
        )

    @property
    def row_multiple(self) -> int:
        """What the elements from one row to the next are a multiple of."""
        return 1 if self.pitch is None else self.pitch.value.data

    @property
    def order(self) -> tuple[int, ...]:
        """The dims from the outermost in memory to that of the rows."""
        dims = range(self.res.type.get_num_dims())
        if self.along_attr is None:
            return tuple(dims)
        along = self.along_attr.value.data
        return (*(d for d in dims if d != along), along)

    @property
    def memory_dims(self) -> tuple[Expr, ...]:
        """Sizes of the memory: those of the tensor, that of the rows with its padding."""
        dims = dims_of(self.res.type)
        if not dims:
            return ()
        rows = self.order[-1]
        return (*dims[:rows], *padded_dims(dims[rows : rows + 1], self.row_multiple), *dims[rows + 1 :])

    @property
    def strides(self) -> tuple[Expr, ...]:
        """Element strides: those of a contiguous tensor of the memory's sizes, in the order in which they lie."""
        result: dict[int, Expr] = {}
        sizes, following = self.memory_dims, Expr.const(1)
        for d in reversed(self.order):
            result[d] = following
            following = following * sizes[d]
        return tuple(result[d] for d in range(len(sizes)))

    def order_of(self, dims: Sequence[Expr], strides: Sequence[Expr]) -> tuple[int, ...] | None:
        """For each dim of a kernel's buffer the dim of the memory that it is, where the kernel sees the memory with its
        dims in some order; None where it does not."""
        left = dict(enumerate(zip(self.memory_dims, self.strides, strict=True)))
        order: list[int] = []
        for pair in zip(dims, strides, strict=True):
            found = next((dim for dim, own in left.items() if own == pair), None)
            if found is None:
                return None
            del left[found]
            order.append(found)
        return None if left else tuple(order)

    def verify_(self) -> None:
        if self.row_multiple < 1:
            raise VerifyException(f"expected a pitch of at least 1 element, got {self.row_multiple}")
        rank = self.res.type.get_num_dims()
        if self.along_attr is not None and not 0 <= self.along_attr.value.data < rank:
            raise VerifyException(f"expected rows along a dim below {rank}, got {self.along_attr.value.data}")
        if self.row_multiple > 1 and not rank:
            raise VerifyException("a pitch is for tensors that have rows, got rank 0")

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        along = parser.parse_integer() if parser.parse_optional_keyword("along") else None
        pitch = parser.parse_integer() if parser.parse_optional_keyword("pitch") else 1
        parser.parse_punctuation(":")
        return cls(parser.parse_type(), pitch, along)

    def print(self, printer: Printer) -> None:
        if self.along_attr is not None:
            printer.print_string(f" along {self.along_attr.value.data}")
        if self.row_multiple != 1:
            printer.print_string(f" pitch {self.row_multiple}")
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)


def padded_dims(dims: Sequence[Expr], pitch: int) -> tuple[Expr, ...]:
    """Sizes whose last one is rounded up to a multiple of `pitch`."""
    if pitch == 1 or not dims:
        return tuple(dims)
    return (*dims[:-1], ceildiv(dims[-1], pitch) * pitch)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`host.yield %x`: the tensor that a case of a `host.dispatch` gives; it ends the case."""

    name = "host.yield"
    value = operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)


@irdl_op_definition
class DispatchOp(IRDLOperation):
    """`host.dispatch { case "on_chip" when [N <= 4096] { ... } case "looping" { ... } }`: one of several bodies runs.

    It is that of the first case whose predicates all hold. The last case has no predicates, so one always runs.

    `%y = host.dispatch -> tensor<...> { case "as it is" when [...] { host.yield %x } ... }` gives the tensor that the
    case yields: scratch that the case made, or a tensor from outside. Which one it is `host.bind` tells, whose strides
    and base are those of the tensor that was chosen.

    With `attributes {chooses}` a case's predicates only pick it: a launch may rely on those alone that it `assumes`.
    """

    name = "host.dispatch"
    cases = prop_def(ArrayAttr[StringAttr])
    predicates = prop_def(ArrayAttr[ArrayAttr[RelationAttr]])
    bodies = var_region_def("single_block")
    res = opt_result_def(TensorType)
    traits = traits_def(NoTerminator(), MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self, cases: Sequence[tuple[str, Sequence[Relation], Region]], result_type: Attribute | None = None
    ) -> None:
        super().__init__(
            properties={
                "cases": ArrayAttr([StringAttr(n) for n, _, _ in cases]),
                "predicates": ArrayAttr([ArrayAttr([RelationAttr(r) for r in p]) for _, p, _ in cases]),
            },
            regions=[[r for _, _, r in cases]],
            result_types=[result_type],
        )

    @property
    def arms(self) -> list[tuple[str, tuple[Relation, ...], Region]]:
        """Name, predicates and body of each case, in order."""
        return [
            (n.data, tuple(r.data for r in p.data), b)
            for n, p, b in zip(self.cases.data, self.predicates.data, self.bodies, strict=True)
        ]

    def verify_(self) -> None:
        if not len(self.cases.data) == len(self.predicates.data) == len(self.bodies) or not self.bodies:
            raise VerifyException("expected one name, one predicate list and one body for each case")
        if len(set(self.cases.data)) != len(self.cases.data):
            raise VerifyException("case names must differ")
        if self.predicates.data[-1].data:
            raise VerifyException("the last case must have no predicates")
        for name, _, body in self.arms:
            last = body.block.last_op
            yielded = last.value.type if isinstance(last, YieldOp) else None
            expected = None if self.res is None else self.res.type
            if yielded != expected:
                what = ["nothing" if each is None else str(each) for each in (expected, yielded)]
                raise VerifyException(f"case {name!r}: expected to yield {what[0]}, got {what[1]}")

    @classmethod
    def parse(cls, parser: Parser) -> DispatchOp:
        cases: list[tuple[str, list[Relation], Region]] = []
        result_type = parser.parse_type() if parser.parse_optional_punctuation("->") else None
        with parser.in_braces():
            while parser.parse_optional_keyword("case"):
                name = parser.parse_str_literal()
                predicates = _parse_relations(parser) if parser.parse_optional_keyword("when") else []
                body = parser.parse_region()
                if body.first_block is None:
                    body.add_block(Block())  # an empty case does nothing
                cases.append((name, predicates, body))
        op = cls(cases, result_type)
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        if self.res is not None:
            printer.print_string(" -> ")
            printer.print_attribute(self.res.type)
        printer.print_string(" {")
        with printer.indented():
            for name, predicates, body in self.arms:
                printer.print_string("\n")
                printer.print_string("case ")
                printer.print_string_literal(name)
                if predicates:
                    printer.print_string(f" when [{', '.join(map(str, predicates))}]")
                printer.print_string(" ")
                printer.print_region(body)
        printer.print_string("\n}")
        print_extra_attributes(printer, self)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`host.launch @k(%x, %y) grid [M ceildiv 32] index_width 32 assumes [x_s1 == 1]`: launches a variant of a kernel.

    A variant is the kernel compiled for an index width under the relations in `assumes`, which the plan has established
    at this point. An empty grid launches nothing. Grid and index width are absent until the plan is complete.
    """

    name = "host.launch"
    kernel = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    grid = opt_prop_def(ExprAttr)
    index_width = opt_prop_def(IntegerAttr)
    assumes = prop_def(ArrayAttr[RelationAttr])
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        kernel: str,
        arguments: Sequence[SSAValue],
        *,
        grid: Expr | None = None,
        index_width: int | None = None,
        assumes: Sequence[Relation] = (),
    ) -> None:
        super().__init__(
            operands=[list(arguments)],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "grid": None if grid is None else ExprAttr(grid),
                "index_width": None if index_width is None else i64_attr(index_width),
                "assumes": ArrayAttr([RelationAttr(r) for r in assumes]),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_value(parser))
        grid = None
        if parser.parse_optional_keyword("grid"):
            with parser.in_square_brackets():
                grid = parse_expr_from(parser)
        width = parser.parse_integer() if parser.parse_optional_keyword("index_width") else None
        assumes = _parse_relations(parser) if parser.parse_optional_keyword("assumes") else []
        op = cls(kernel.data, arguments, grid=grid, index_width=width, assumes=assumes)
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.kernel.string_value())
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_operand)
        if self.grid is not None:
            printer.print_string(f" grid [{self.grid.data}]")
        if self.index_width is not None:
            printer.print_string(f" index_width {self.index_width.value.data}")
        if self.assumes.data:
            printer.print_string(f" assumes {_relations(self.assumes)}")
        print_extra_attributes(printer, self)
