"""Pass `infer-shapes`: every tensor type states its symbolic shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.interfaces import InferShapes
from tilewright.dialects.lin.shapes import equal_dims, is_tensor, partial_shape, shape_of, tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Expr, check_consistent
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.verify_dims import raise_faults


@dataclass(frozen=True)
class InferShapesPass(TilewrightPass):
    """Gives the result of each `lin` op the shape that its operands imply, and every tensor type its `#sym.dims`.

    Arguments of functions must state their shapes; results may leave sizes open with `?`. Function types follow. A
    stated size that the facts of the module do not prove equal to the inferred one is an error at the op; one that
    they do is kept as it is stated. A `#sym.dims` that does not fit the sizes beside it, or that names an undeclared
    symbol, is an error: later steps read the one or the other. Facts that contradict one another are an error: they
    would prove anything.
    """

    name = "infer-shapes"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise_faults(op, open_sizes=True)
        check_consistent(op)
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                _infer_function(function)


def _infer_function(function: func.FuncOp) -> None:
    """Infer through one function; raises TilewrightError at the first op that does not fit."""
    name = function.sym_name.data
    inputs = list(function.function_type.inputs)
    outputs = list(function.function_type.outputs)
    for i, type_ in enumerate(inputs):
        inputs[i] = _with_dims(function, type_, f"argument {i} of @{name}")
    if not function.body.blocks:
        outputs = [_with_dims(function, type_, f"result {i} of @{name}") for i, type_ in enumerate(outputs)]
    elif len(function.body.blocks) > 1:
        raise error_at(function, f"@{name}: expected one block, got {len(function.body.blocks)}")
    else:
        block = function.body.block
        for argument, type_ in zip(block.args, inputs, strict=True):
            _set_type(argument, type_)
        _infer_block(block)
        last = block.last_op
        if isinstance(last, func.ReturnOp):
            outputs = _returned(last, outputs, name)
    function.function_type = FunctionType.from_lists(inputs, outputs)


def _with_dims(op: Operation, type_: Attribute, what: str) -> Attribute:
    """A tensor type with its `#sym.dims`, a scalar type as it is; an error at `op` for a `?` without a size."""
    if not is_tensor(type_):
        return type_
    try:
        return tensor(shape_of(type_), type_.element_type)
    except TilewrightError as error:
        raise error_at(op, f"{what}: {error.message}") from error


def _set_type(value: SSAValue, type_: Attribute) -> None:
    if value.type != type_:
        Rewriter.replace_value_with_new_type(value, type_)


def _infer_block(block: Block) -> None:
    for op in block.ops:
        if isinstance(op, InferShapes):
            _infer_op(op)
        elif isinstance(op, GroupOp):
            _infer_group(op)
        elif not isinstance(op, func.ReturnOp):
            for i, result in enumerate(op.results):
                _set_type(result, _with_dims(op, result.type, f"{op.name}: result {i}"))


def _infer_op(op: InferShapes) -> None:
    try:
        inferred = op.infer_result_types([operand.type for operand in op.operands])
        merged = [_merge(op, op.name, have.type, want) for have, want in zip(op.results, inferred, strict=True)]
    except TilewrightError as error:
        raise TilewrightError(error.message, error.location or location_of(op)) from error
    for result, type_ in zip(op.results, merged, strict=True):
        _set_type(result, type_)


def _infer_group(group: GroupOp) -> None:
    block = group.body.block
    for argument, value in zip(block.args, group.ins, strict=True):
        _set_type(argument, value.type)
    _infer_block(block)
    for result, value in zip(group.outs, group.yielded, strict=True):
        _set_type(result, value.type)


def _returned(op: func.ReturnOp, declared: Sequence[Attribute], name: str) -> list[Attribute]:
    """The function's result types: those of the values returned, whose sizes the declared ones must allow.

    The verifier has held number and element types to each other before.
    """
    found: list[Attribute] = []
    for i, (value, type_) in enumerate(zip(op.operands, declared, strict=True)):
        if is_tensor(type_) and is_tensor(value.type):
            what = f"result {i} of @{name}"
            _check_sizes(op, what, partial_shape(type_), shape_of(value.type), got_is_stated=False)
        found.append(value.type)
    return found


def _merge(op: Operation, what: str, stated: Attribute, inferred: TensorType[Any]) -> TensorType[Any]:
    """The inferred type, with the sizes that are stated in their stated form."""
    assert is_tensor(stated)  # as every op that infers its results defines them
    sizes = partial_shape(stated)
    wanted = shape_of(inferred)
    _check_sizes(op, what, wanted, sizes, got_is_stated=True)
    return tensor(
        [want if size is None else size for size, want in zip(sizes, wanted, strict=True)], stated.element_type
    )


def _check_sizes(
    op: Operation,
    what: str,
    expected: Sequence[Expr | None],
    got: Sequence[Expr | None],
    *,
    got_is_stated: bool,
) -> None:
    """Raise at `op` unless the ranks are one and each pair of known sizes is equal."""
    whose = "stated" if got_is_stated else "returned"
    if len(expected) != len(got):
        raise error_at(op, f"{what}: expected rank {len(expected)}, got {whose} rank {len(got)}")
    for i, (want, have) in enumerate(zip(expected, got, strict=True)):
        if not equal_dims(op, want, have):
            raise error_at(op, f"{what}: expected size {want} at dim {i}, got {whose} size {have}")
