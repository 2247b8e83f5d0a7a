"""Scalar ops of bodies (`arith`, `math`), copied with `index` read as a 64-bit integer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.dialects.sym.ops import ApplyOp
from tilewright.dialects.tile.compute import IndexOp
from tilewright.dialects.tile.structure import YieldOp
from tilewright.lowering.tile_to_simt.builder import I64
from tilewright.lowering.tile_to_simt.state import Kernel, element_type
from tilewright.passes.core import error_at


def clone_body(kernel: Kernel, body: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Add the ops of a `tile.map` body for these arguments; what it yields."""
    location = kernel.builder.location
    for argument, value in zip(body.args, arguments, strict=True):
        kernel.values[argument] = value
    for op in body.ops:
        if isinstance(op, YieldOp):
            kernel.builder.location = location
            return [kernel.values[v] for v in op.values]
        kernel.builder.location = op.location
        if isinstance(op, ApplyOp):
            kernel.values[op.result] = kernel.expr(op.expr.data, op.where)
        elif not isinstance(op, IndexOp):  # which `lower_map` has placed
            clone_scalar(kernel, op)
    raise AssertionError("a verified tile.map body ends in tile.yield")


def clone_scalar(kernel: Kernel, op: Operation) -> None:
    """Add a copy of one op without regions; its operands must be lowered."""
    builder = kernel.builder
    if op.regions or not op.name.startswith(("arith.", "math.")):
        raise error_at(op, f"tile-to-simt has no lowering of {op.name}")
    operands = [kernel.values[v] for v in op.operands]
    if isinstance(op, arith.ConstantOp):
        value: Attribute = op.value
        if isinstance(value, IntegerAttr) and isinstance(op.result.type, IndexType):
            value = IntegerAttr(cast("IntegerAttr[IndexType]", value).value.data, I64)
        kernel.values[op.result] = builder.attribute(value)
        return
    if isinstance(op, arith.IndexCastOp):
        kernel.values[op.result] = builder.convert(operands[0], cast("IntegerType[int]", element_type(op.result.type)))
        return
    for i, operand in enumerate(op.operands):
        if isinstance(operand.type, IndexType):
            operands[i] = builder.convert(operands[i], I64)
    new = type(op).create(
        operands=operands,
        result_types=[element_type(t) for t in op.result_types],
        properties=op.properties,
        attributes=op.attributes,
    )
    builder.add(new)
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
        kernel.values[old] = result
