"""Writing tile IR: one place that appends ops to a block and names what it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.combine import Combine, identity_value
from tilewright.dialects.sym import ApplyOp, Expr
from tilewright.dialects.tile.compute import MapOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.structure import AllocOp, ForOp
from tilewright.dialects.tile.types import BufType, buf_type

if TYPE_CHECKING:
    from collections.abc import Generator

index = IndexType()


def constant_attribute(value: float, element: Attribute) -> Attribute:
    """`value` as a constant of an element type."""
    if isinstance(element, AnyFloat):
        return FloatAttr(float(value), element)
    if isinstance(element, IndexType):
        return IntegerAttr(int(value), element)
    if isinstance(element, IntegerType):
        return IntegerAttr(int(value), cast(IntegerType, element))
    raise TilewrightError(f"expected a float or integer element type, got {element}")


def identity_attribute(combine: Combine, element: Attribute) -> Attribute:
    """What a combination starts from, as a constant."""
    return constant_attribute(identity_value(combine, element), element)


class TileBuilder:
    """Appends tile ops to the current block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def add(self, op: Operation) -> Operation:
        """Appends an op."""
        self.block.add_op(op)
        return op

    def alloc(self, sizes: Sequence[int], element: Attribute, name: str, space: str = "fragment") -> SSAValue:
        """A new buffer of the block."""
        op = AllocOp(buf_type(sizes, element, space))
        self.add(op)
        op.res.name_hint = name
        return op.res

    def scaled(self, coordinate: SSAValue, factor: int, name: str) -> SSAValue:
        """`factor * coordinate` as an index value."""
        if factor == 1:
            return coordinate
        op = ApplyOp(factor * Expr.symbol("i"), {"i": coordinate})
        self.add(op)
        op.result.name_hint = name
        return op.result

    def expression(self, e: Expr, where: dict[str, SSAValue], name: str) -> SSAValue:
        """An expression as an index value."""
        op = ApplyOp(e, where)
        self.add(op)
        op.result.name_hint = name
        return op.result

    def load(self, buffer: SSAValue, offsets: Sequence[SSAValue], sizes: Sequence[int], name: str) -> SSAValue:
        """A fragment filled from global memory, zero where the tile hangs over."""
        assert isinstance(buffer.type, BufType)
        element = buffer.type.element
        fragment = self.alloc(sizes, element, name)
        self.add(
            CopyOp(buffer, offsets, fragment, [], bounds=["clip"] * len(sizes), other=constant_attribute(0, element))
        )
        return fragment

    def store(self, fragment: SSAValue, buffer: SSAValue, offsets: Sequence[SSAValue]) -> None:
        """Writes a fragment to global memory, without what hangs over."""
        self.add(CopyOp(fragment, [], buffer, offsets, bounds=["clip"] * len(offsets)))

    def fill(self, fragment: SSAValue, value: Attribute) -> None:
        """Every element becomes a constant."""
        self.add(FillOp(fragment, value))

    @contextmanager
    def loop(
        self,
        upper: Expr,
        step: int,
        name: str,
        *,
        lower: Expr | int = 0,
        where: Mapping[str, SSAValue] | None = None,
    ) -> Generator[SSAValue]:
        """Appends to the body of `tile.for %name = lower to upper step step` within the `with`; bounds may name the
        values of `where`."""
        body = Block(arg_types=[index])
        body.args[0].name_hint = name
        self.add(ForOp(lower, upper, step, Region(body), where=where))
        outer, self.block = self.block, body
        try:
            yield body.args[0]
        finally:
            self.block = outer

    def map(
        self,
        iteration: int,
        inputs: Sequence[tuple[SSAValue, Sequence[int]]],
        outputs: Sequence[tuple[SSAValue, Sequence[int]]],
        write_body: Callable[[Block, Sequence[BlockArgument]], None],
        valid: dict[int, SSAValue] | None = None,
    ) -> None:
        """`tile.map` with a body that `write_body` appends, up to its `tile.yield`."""
        types = [v.type.element if isinstance(v.type, BufType) else v.type for v, _ in inputs]
        body = Block(arg_types=types)
        write_body(body, body.args)
        self.add(MapOp(iteration, inputs, outputs, Region(body), valid=valid))
