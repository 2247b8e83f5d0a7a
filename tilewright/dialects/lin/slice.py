"""`lin.slice`: a rectangle of a tensor, every n-th element along each dim."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.requirements import require, verify_possible
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, shape_of, tensor
from tilewright.dialects.lin.syntax import (
    int_array,
    parse_expressions,
    parse_integers,
    parse_tensor_type,
    print_expressions,
    print_integers,
)
from tilewright.dialects.sym import DimsAttr, Expr, Relation, smax
from tilewright.dialects.sym.index import dim


@irdl_op_definition
class SliceOp(IRDLOperation, Decomposable):
    """`%y = lin.slice %x offsets [a, b] sizes [m, n] strides [1, 2] : !X -> !Y`: y[i, j] = x[a + i, b + 2*j].

    Offsets and sizes are expressions over symbols, strides constants of at least 1 (all 1 if absent). The slice must
    lie inside: what is not proved becomes a `sym.require`. Bounds are not clamped.
    """

    name = "lin.slice"

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    offsets_attr = prop_def(DimsAttr, prop_name="offsets")
    sizes_attr = prop_def(DimsAttr, prop_name="sizes")
    strides_attr = prop_def(DenseArrayBase.constr(i64), prop_name="strides")

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        offsets: Sequence[Expr],
        sizes: Sequence[Expr],
        strides: Sequence[int] | None = None,
        result_type: TensorType | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        if result_type is None:
            result_type = tensor(sizes, as_tensor(operand.type).element_type)
        super().__init__(
            operands=[operand],
            result_types=[result_type],
            properties={
                "offsets": DimsAttr(tuple(offsets)),
                "sizes": DimsAttr(tuple(sizes)),
                "strides": int_array([1] * len(offsets) if strides is None else strides),
            },
            attributes=attributes or {},
        )

    @property
    def offsets(self) -> tuple[Expr, ...]:
        """Where the slice starts along each dim."""
        return self.offsets_attr.data

    @property
    def sizes(self) -> tuple[Expr, ...]:
        """The sizes of the result."""
        return self.sizes_attr.data

    @property
    def strides(self) -> tuple[int, ...]:
        """The step along each dim of the operand."""
        return tuple(self.strides_attr.get_values())

    def requirements(self) -> list[Relation]:
        """What makes the slice lie inside, an empty one at any offset from 0 to the size."""
        found: list[Relation] = []
        for size, offset, n, step in zip(
            shape_of(self.operand.type), self.offsets, self.sizes, self.strides, strict=True
        ):
            found.append(Relation(offset, ">=", Expr.const(0)))
            found.append(Relation(n, ">=", Expr.const(0)))
            last = offset + step * (n - 1)
            # For n = 0 and a step above 1 the left side is offset - step, which may be at or past the size.
            limit = size if step == 1 else smax(size, offset - step + 1)
            found.append(Relation(last, "<", limit))
        return found

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        rank = len(shape_of(operand_types[0]))
        for what, given in (("offsets", self.offsets), ("sizes", self.sizes), ("strides", self.strides)):
            if len(given) != rank:
                raise TilewrightError(f"lin.slice: expected {rank} {what}, got {len(given)}")
        if any(step < 1 for step in self.strides):
            raise TilewrightError(f"lin.slice: expected strides of at least 1, got {list(self.strides)}")
        return [tensor(self.sizes, as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        require(self, builder, self.requirements())
        indices = [a + step * dim(d) for d, (a, step) in enumerate(zip(self.offsets, self.strides, strict=True))]
        generic = GenericOp.build_from(
            [self.operand],
            [()],
            range(len(indices)),
            None,
            self.result.type,
            lambda _, args: args[0],
            [AccessAttr.at(indices)],
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        verify_result_types(self)
        verify_possible(self, self.requirements)

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("offsets")
        offsets = parse_expressions(parser)
        parser.parse_keyword("sizes")
        sizes = parse_expressions(parser)
        strides = parse_integers(parser) if parser.parse_optional_keyword("strides") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return SliceOp(value, offsets, sizes, strides, parse_tensor_type(parser), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(" offsets ")
        print_expressions(printer, self.offsets)
        printer.print_string(" sizes ")
        print_expressions(printer, self.sizes)
        if any(step != 1 for step in self.strides):
            printer.print_string(" strides ")
            print_integers(printer, self.strides)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
