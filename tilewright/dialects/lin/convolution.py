"""`lin.conv2d`: a two-dimensional convolution, images NCHW and filters OIHW."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.casts import accumulator_type, constant_attribute
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.contraction import product_body
from tilewright.dialects.lin.elementwise import CastOp
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
from tilewright.dialects.sym import DimsAttr, Expr, Relation, floordiv
from tilewright.dialects.sym.index import dim


def window_count(size: Expr, padding: tuple[Expr, Expr], kernel: Expr, stride: int, dilation: int) -> Expr:
    """How many windows fit along a dim: floor((size + padding - dilation*(kernel - 1) - 1) / stride) + 1."""
    return floordiv(size + padding[0] + padding[1] - dilation * (kernel - 1) - 1, stride) + 1


@irdl_op_definition
class Conv2dOp(IRDLOperation, Decomposable):
    """`%y = lin.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1 : !X, !W -> !Y`.

    x is [N, C, H, W], w is [O, C / groups, KH, KW], y is [N, O, OH, OW]. `padding` counts zeros before and after along
    H, then along W (expressions over symbols). Defaults: strides and dilation 1, no padding, one group. Accumulates in
    f32 (i32 for i32) and rounds once. That groups divide the channels, and that the filter fits, is proved or required.
    """

    name = "lin.conv2d"

    image = operand_def(TensorType)
    filters = operand_def(TensorType)
    result = result_def(TensorType)
    strides_attr = prop_def(DenseArrayBase.constr(i64), prop_name="strides")
    dilation_attr = prop_def(DenseArrayBase.constr(i64), prop_name="dilation")
    padding_attr = prop_def(DimsAttr, prop_name="padding")
    groups_attr = prop_def(IntegerAttr, prop_name="groups")

    traits = traits_def(Pure())

    def __init__(
        self,
        image: SSAValue,
        filters: SSAValue,
        result_type: TensorType,
        *,
        strides: Sequence[int] = (1, 1),
        padding: Sequence[Expr] | None = None,
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[image, filters],
            result_types=[result_type],
            properties={
                "strides": int_array(strides),
                "dilation": int_array(dilation),
                "padding": DimsAttr((Expr.const(0),) * 4 if padding is None else tuple(padding)),
                "groups": IntegerAttr(groups, i64),
            },
            attributes=attributes or {},
        )

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps of the window along H and W."""
        return tuple(self.strides_attr.get_values())

    @property
    def dilation(self) -> tuple[int, ...]:
        """Steps between the elements of a window along H and W."""
        return tuple(self.dilation_attr.get_values())

    @property
    def padding(self) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
        """Zeros before and after, along H and along W."""
        top, bottom, left, right = self.padding_attr.data
        return (top, bottom), (left, right)

    @property
    def groups(self) -> int:
        """Groups of channels that are convolved apart."""
        return self.groups_attr.value.data

    def requirements(self) -> list[Relation]:
        """What the channels and the windows must be for the convolution to exist."""
        x, w = shape_of(self.image.type), shape_of(self.filters.type)
        found = [Relation(x[1], "==", self.groups * w[1])]
        if self.groups > 1:
            found.append(Relation(w[0], "==", self.groups * floordiv(w[0], self.groups)))
        for axis, (padding, dilation) in enumerate(zip(self.padding, self.dilation, strict=True)):
            found += [Relation(p, ">=", Expr.const(0)) for p in padding]
            size, kernel = x[2 + axis], w[2 + axis]
            found.append(Relation(size + padding[0] + padding[1], ">=", dilation * (kernel - 1) + 1))
        return found

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        x, w = shape_of(operand_types[0]), shape_of(operand_types[1])
        if len(x) != 4 or len(w) != 4:
            raise TilewrightError(f"lin.conv2d: expected two operands of rank 4, got ranks {len(x)} and {len(w)}")
        self._check_window()
        spatial = [
            window_count(x[2 + a], self.padding[a], w[2 + a], self.strides[a], self.dilation[a]) for a in range(2)
        ]
        return [tensor((x[0], w[0], *spatial), self.result.type.element_type)]

    def _check_window(self) -> None:
        for what, given, count in (
            ("strides", self.strides, 2),
            ("dilation", self.dilation, 2),
            ("padding", self.padding_attr.data, 4),
        ):
            if len(given) != count:
                raise TilewrightError(f"lin.conv2d: expected {count} entries of {what}, got {len(given)}")
        if min(*self.strides, *self.dilation, self.groups) < 1:
            raise TilewrightError("lin.conv2d: expected strides, dilation and groups of at least 1")

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        require(self, builder, self.requirements())
        w = shape_of(self.filters.type)
        source = as_tensor(self.image.type).element_type
        accumulator, target = accumulator_type(source), self.result.type.element_type
        # Iteration dims: image, output channel, output row and column, filter row and column, channel in the group.
        n, o, oh, ow, kh, kw, c = range(7)
        channel = dim(c)
        if self.groups > 1:
            channel = channel + w[1] * floordiv(dim(o), floordiv(w[0], self.groups))
        places = [
            self.strides[a] * dim(out) + self.dilation[a] * dim(k) - self.padding[a][0]
            for a, (out, k) in enumerate(((oh, kh), (ow, kw)))
        ]
        access = AccessAttr.at([dim(n), channel, *places], constant_attribute(0, source))
        between = tensor(shape_of(self.result.type), accumulator)
        generic = GenericOp.build_from(
            [self.image, self.filters],
            [(), (o, c, kh, kw)],
            (n, o, oh, ow),
            Combine.SUM,
            between,
            product_body(accumulator),
            [access, None],
        )
        value = builder.insert(generic).result
        return [value if accumulator == target else builder.insert(CastOp(value, target)).result]

    def verify_(self) -> None:
        for operand_type in (self.image.type, self.filters.type, self.result.type):
            check_element_type(operand_type)
        left, right = (as_tensor(v.type).element_type for v in (self.image, self.filters))
        target = self.result.type.element_type
        if left != right:
            raise VerifyException(f"expected operands of one element type, got {left} and {right}")
        if not isinstance(left, AnyFloat) and (not isinstance(left, IntegerType) or left == i1):
            raise VerifyException(f"expected f32, f16, bf16 or i32 elements, got {left}")
        if isinstance(left, AnyFloat) != isinstance(target, AnyFloat) or (
            not isinstance(left, AnyFloat) and target != left
        ):
            raise VerifyException(f"expected a result of the operands' kind {left}, got {target}")
        verify_result_types(self)
        verify_possible(self, self.requirements)

    @classmethod
    def parse(cls, parser: Parser) -> Conv2dOp:
        position = parser.pos
        image = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        filters = parser.parse_unresolved_operand()
        strides = parse_integers(parser) if parser.parse_optional_keyword("strides") else (1, 1)
        padding = parse_expressions(parser) if parser.parse_optional_keyword("padding") else None
        dilation = parse_integers(parser) if parser.parse_optional_keyword("dilation") else (1, 1)
        groups = parser.parse_integer(allow_boolean=False) if parser.parse_optional_keyword("groups") else 1
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_punctuation(",")
        types.append(parser.parse_type())
        parser.parse_punctuation("->")
        left, right = parser.resolve_operands([image, filters], types, position)
        return Conv2dOp(
            left,
            right,
            parse_tensor_type(parser),
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.image, self.filters), printer.print_ssa_value)
        if self.strides != (1, 1):
            printer.print_string(" strides ")
            print_integers(printer, self.strides)
        if any(p.constant != 0 for p in self.padding_attr.data):
            printer.print_string(" padding ")
            print_expressions(printer, self.padding_attr.data)
        if self.dilation != (1, 1):
            printer.print_string(" dilation ")
            print_integers(printer, self.dilation)
        if self.groups != 1:
            printer.print_string(f" groups {self.groups}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.image.type, self.filters.type), printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
