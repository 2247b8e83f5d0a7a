"""`lin.reshape`: the same elements in row-major order under other sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, verify_result_types
from tilewright.dialects.lin.requirements import require, verify_possible
from tilewright.dialects.lin.shapes import as_tensor, check_element_type, partial_shape, shape_of, tensor
from tilewright.dialects.sym import Expr, Relation, floordiv, mod
from tilewright.dialects.sym.index import dim


def count(sizes: Sequence[Expr]) -> Expr:
    """The number of elements of a shape."""
    total = Expr.const(1)
    for size in sizes:
        total = total * size
    return total


@irdl_op_definition
class ReshapeOp(IRDLOperation, Decomposable):
    """`%y = lin.reshape %x : !X -> !Y`: as many elements, in row-major order.

    The numbers of elements must be equal: canonically, by facts, or else by a `sym.require`.
    """

    name = "lin.reshape"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, sizes: Sequence[Expr]) -> None:
        super().__init__(operands=[operand], result_types=[tensor(sizes, as_tensor(operand.type).element_type)])

    def requirements(self) -> list[Relation]:
        """As many elements after as before."""
        return [Relation(count(shape_of(self.operand.type)), "==", count(shape_of(self.result.type)))]

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        stated = partial_shape(self.result.type)
        sizes = [size for size in stated if size is not None]
        if len(sizes) < len(stated):
            raise TilewrightError("lin.reshape: expected a result with stated sizes, got '?'")
        return [tensor(sizes, as_tensor(operand_types[0]).element_type)]

    def decomposition(self, builder: Builder) -> list[SSAValue]:
        require(self, builder, self.requirements())
        source, target = shape_of(self.operand.type), shape_of(self.result.type)
        access = AccessAttr.at(positions(source, target))
        rank = len(target)
        generic = GenericOp.build_from(
            [self.operand], [()], range(rank), None, self.result.type, lambda _, args: args[0], [access]
        )
        return [builder.insert(generic).result]

    def verify_(self) -> None:
        check_element_type(self.operand.type)
        verify_result_types(self)
        verify_possible(self, self.requirements)


def positions(source: Sequence[Expr], target: Sequence[Expr]) -> list[Expr]:
    """For each dim of `source` where element (d0, d1, ...) of `target` lies along it.

    Dims are matched in runs of equal products, so that a dim that both have is read as it is, dims that are joined
    need one division each and dims that are split none. Where `source` has no elements by a size 0, there is nothing to
    read and no size to divide by: all are 0.
    """
    if any(size.constant == 0 for size in source):
        return [Expr.const(0)] * len(source)
    found: list[Expr] = []
    for own, other in _runs(source, target):
        linear = Expr.const(0)
        for d in other:
            linear = linear * target[d] + dim(d)
        inner = [source[a] for a in own]
        for n, a in enumerate(own):
            after = count(inner[n + 1 :])
            index = linear if after.constant == 1 else floordiv(linear, after)
            # Below the first dim of the run, the quotient counts through the dims before it.
            if source[a].constant == 1:
                index = Expr.const(0)
            found.append(index if n == 0 else mod(index, source[a]))
    return found


def _runs(source: Sequence[Expr], target: Sequence[Expr]) -> list[tuple[list[int], list[int]]]:
    """Neighbouring dims of both shapes whose products are equal, in order; the last run takes what is left."""
    runs: list[tuple[list[int], list[int]]] = []
    own, other = list[int](), list[int]()
    left = right = Expr.const(1)
    a = b = 0
    while a < len(source) or b < len(target):
        # The side with fewer factors so far takes its next dim.
        take_source = b == len(target) or (a < len(source) and (not own or (bool(other) and _smaller(left, right))))
        if take_source:
            own.append(a)
            left, a = left * source[a], a + 1
        else:
            other.append(b)
            right, b = right * target[b], b + 1
        if own and other and left is right:
            runs.append((own, other))
            own, other = [], []
            left = right = Expr.const(1)
    if own or other:
        if runs and (not own or not other):
            # Dims of size 1 at the end of one side join the last run.
            last = runs.pop()
            own, other = [*last[0], *own], [*last[1], *other]
        runs.append((own, other))
    return runs


def _smaller(left: Expr, right: Expr) -> bool:
    """Whether `left` divides into `right` with fewer factors: what it lacks is still to come."""
    degree = [max((len(m) for m, _ in e.terms), default=0) for e in (left, right)]
    if degree[0] != degree[1]:
        return degree[0] < degree[1]
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return a < b
    return abs(left.terms[0][1]) < abs(right.terms[0][1]) if left.terms and right.terms else False
