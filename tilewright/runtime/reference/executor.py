"""Run a tensor-level function in float64: the oracle of every other executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.body import YieldOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.interfaces import Decomposable
from tilewright.dialects.lin.shapes import scalar_type
from tilewright.dialects.lin.softmax import SoftmaxOp
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import ApplyOp, CastOp, RequireOp
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.reference.bounded import NO_ERROR, Bounded, rounded, settle
from tilewright.runtime.reference.generic import evaluate_generic
from tilewright.runtime.reference.inputs import bind_inputs, check_symbols
from tilewright.runtime.reference.scalar_errors import ERRORS, evaluate_bounded
from tilewright.runtime.reference.softmax_error import softmax_error
from tilewright.runtime.scalar_ops import quiet


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """One result of a program."""

    value: Array
    """What the program means: float64 for floats (each value one that the result's type has), else the integer."""
    rounded: Array
    """The same values in the dtype of the result."""
    bound: Array
    """float64, of the shape of `value`: how far an honest execution may be off; inf where nothing is known."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known while ops run: the symbols' values, and whether results round to their types."""

    symbols: Mapping[str, int]
    rounds: bool
    values: dict[SSAValue, Bounded]

    def inner(self, block: Block, args: Sequence[Bounded], rounds: bool) -> _Scope:
        return _Scope(self.symbols, rounds, dict(zip(block.args, args, strict=True)))


def run_reference(
    module: ModuleOp, entry: str, inputs: Sequence[Array], symbols: Mapping[str, int]
) -> list[ReferenceValue]:
    """The results of function `entry`, one for each value that it returns.

    `inputs` are arrays of the arguments' shapes and dtypes (bf16 is ml_dtypes.bfloat16; a scalar is an array of shape
    () or a NumPy scalar); `symbols` gives the sizes. A symbol that is the whole size of an argument's dim may be left
    out. TilewrightError when an input does not fit its argument, or sizes do not fit what the module states of them.
    """
    function = next((op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == entry), None)
    if function is None:
        raise TilewrightError(f"expected a function @{entry} in the module, got none")
    block = function.body.block
    arguments, sizes = bind_inputs([arg.type for arg in block.args], inputs, symbols)
    check_symbols(module, sizes)
    scope = _Scope(sizes, True, dict(zip(block.args, arguments, strict=True)))
    with quiet():
        results = _run_block(block, scope)
    returned = cast(Operation, block.last_op).operands
    return [_finished(value.type, x) for value, x in zip(returned, results, strict=True)]


def _finished(type_: Attribute, x: Bounded) -> ReferenceValue:
    element_type = scalar_type(type_)
    value = np.array(x.value)
    narrow = value.astype(storage_dtype(element_type))
    bound = np.array(np.broadcast_to(x.error, value.shape))
    return ReferenceValue(value, narrow, bound)


def _run_block(block: Block, scope: _Scope) -> list[Bounded]:
    """Run the ops of a block in order; the operands of its terminator."""
    for op in block.ops:
        operands = [scope.values[operand] for operand in op.operands]
        if isinstance(op, func.ReturnOp | YieldOp):
            return operands
        if isinstance(op, Decomposable):
            results = _decomposed(op, operands, scope)
        elif (handler := _HANDLERS.get(type(op))) is not None:
            results = handler(op, operands, scope)
        elif type(op) in ERRORS:
            results = [evaluate_bounded(op, operands)]
        else:
            raise TilewrightError(f"the reference runs ops of the tensor level, got {op.name}")
        for result, x in zip(op.results, results, strict=True):
            scope.values[result] = rounded(scalar_type(result.type), x) if scope.rounds else x
    raise TilewrightError("expected a block that ends in func.return or lin.yield")


def _decomposed(op: Decomposable, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    """A named op means its decomposition, in float64 throughout and rounded once at the end."""
    block = Block(arg_types=[operand.type for operand in op.operands])
    copy = op.clone(value_mapper=dict(zip(op.operands, block.args, strict=True)))
    builder = Builder(InsertPoint.at_end(block))
    values = copy.decomposition(builder)
    builder.insert(YieldOp(*values))
    results = _run_block(block, scope.inner(block, operands, rounds=False))
    if isinstance(op, SoftmaxOp):
        target = op.result.type.element_type
        error = softmax_error(target, op.axis, operands[0], results[0].value)
        return [Bounded(results[0].value, settle(target, results[0].value, error))]
    return results


def _generic(op: Operation, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    generic = cast(GenericOp, op)
    sizes = [size.evaluate(scope.symbols) for size in generic.extents()]
    return [evaluate_generic(generic, operands, sizes, scope.symbols)]


def _group(op: Operation, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    block = cast(GroupOp, op).body.block
    return _run_block(block, scope.inner(block, operands, rounds=True))


def _sym_cast(op: Operation, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    cast_op = cast(CastOp, op)
    for relation in cast_op.obligations():
        if not relation.holds(scope.symbols):
            raise TilewrightError(f"sym.cast: expected {relation}, got {_spelled(relation.symbols, scope.symbols)}")
    return [operands[0]]


def _apply(op: Operation, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    apply = cast(ApplyOp, op)
    values = dict(scope.symbols)
    for name, x in zip(apply.where, operands, strict=True):
        values[name] = int(x.value)
    return [Bounded(np.asarray(apply.expr.data.evaluate(values), np.int64), NO_ERROR)]


def _spelled(names: frozenset[str], values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in sorted(names))


def _require(op: Operation, operands: Sequence[Bounded], scope: _Scope) -> list[Bounded]:
    relation = cast(RequireOp, op).relation.data
    if not relation.holds(scope.symbols):
        raise TilewrightError(f"expected {relation}, got {_spelled(relation.symbols, scope.symbols)}", location_of(op))
    return []


_HANDLERS: dict[type[Operation], Callable[[Operation, Sequence[Bounded], _Scope], list[Bounded]]] = {
    GenericOp: _generic,
    GroupOp: _group,
    CastOp: _sym_cast,
    ApplyOp: _apply,
    RequireOp: _require,
}
