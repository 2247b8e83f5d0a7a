"""From a graph of tensors to a module: one public function, and the symbols that its arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.api.sizes import Declaration
from tilewright.api.tensor import UNNAMED, Tensor, check_tensors
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.elementwise import MapOp
from tilewright.dialects.sym import RequireOp, SymbolOp
from tilewright.dialects.verify import verify_module

BY_VALUE = ("float32", "int32")
"""dtypes whose rank-0 placeholders are scalars by value."""


def build_module(
    outputs: Tensor | Sequence[Tensor], inputs: Sequence[Tensor] | None = None, name: str = "main"
) -> ModuleOp:
    """The module of one function `name` that returns `outputs`, verified.

    Arguments are the placeholders that the outputs need, in the order in which they were made, unless `inputs` lists
    them (others may be among them). Placeholders of rank 0 are passed by value. TilewrightError when `inputs` lacks a
    placeholder, or when two symbols of one name were declared differently.
    """
    if not isinstance(cast("object", outputs), Tensor | Sequence):
        raise TilewrightError(f"build_module: expected a tensor or several, got {type(outputs).__name__}")
    results = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    check_tensors("build_module", *results, *(inputs or ()))
    if not results:
        raise TilewrightError("build_module: expected at least one output, got none")
    order = _topological(results)
    needed = [t for t in order if t.is_placeholder]
    arguments = sorted(needed, key=lambda t: t.serial) if inputs is None else list(inputs)
    _check_inputs(arguments, needed)

    block = Block(arg_types=[_argument_type(t) for t in arguments])
    values: dict[Tensor, SSAValue] = {}
    for n, (argument, tensor) in enumerate(zip(block.args, arguments, strict=True)):
        hint = f"arg{n}" if tensor.name == UNNAMED else tensor.name
        argument.name_hint = SSAValue.extract_valid_name(hint)
        values[tensor] = argument
    builder = Builder(InsertPoint.at_end(block))
    for tensor in order:
        if tensor.emit is not None:
            operands = [values[operand] for operand in tensor.operands]
            if not tensor.takes_scalars:
                operands = [
                    _as_tensor(builder, operand, value)
                    for operand, value in zip(tensor.operands, operands, strict=True)
                ]
            values[tensor] = tensor.emit(builder, operands)
            values[tensor].name_hint = tensor.name
    returned = [_as_tensor(builder, tensor, values[tensor]) for tensor in results]
    builder.insert(func.ReturnOp(*returned))
    types = FunctionType.from_lists([arg.type for arg in block.args], [tensor.type for tensor in results])
    function = func.FuncOp(name, types, Region(block))
    declared: list[Operation] = [_symbol_op(d) for d in _declarations((*arguments, *order))]
    required = [RequireOp(r) for r in dict.fromkeys(r for tensor in order for r in tensor.requires)]
    module = ModuleOp([*declared, *required, function])
    verify_module(module)
    return module


def _topological(results: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor that the results need, operands before users, without recursion."""
    order: list[Tensor] = []
    done: set[Tensor] = set()
    stack: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(results)]
    while stack:
        tensor, operands_done = stack.pop()
        if tensor in done:
            continue
        if operands_done:
            done.add(tensor)
            order.append(tensor)
            continue
        stack.append((tensor, True))
        stack.extend((operand, False) for operand in reversed(tensor.operands))
    return order


def _check_inputs(arguments: Sequence[Tensor], needed: Sequence[Tensor]) -> None:
    for position, tensor in enumerate(arguments):
        if not tensor.is_placeholder:
            raise TilewrightError(f"build_module: expected placeholders as inputs, got {tensor!r} at {position}")
    if len(set(arguments)) != len(arguments):
        raise TilewrightError("build_module: expected distinct inputs, got one twice")
    for tensor in needed:
        if tensor not in arguments:
            raise TilewrightError(f"build_module: expected every placeholder in inputs, got none for {tensor!r}")


def _argument_type(tensor: Tensor) -> Attribute:
    by_value = tensor.rank == 0 and tensor.dtype in BY_VALUE
    return tensor.element_type if by_value else tensor.type


def _as_tensor(builder: Builder, tensor: Tensor, value: SSAValue) -> SSAValue:
    """A scalar by value as a tensor of rank 0; a tensor as it is."""
    if value.type == tensor.type:
        return value
    return builder.insert(MapOp.build_from([value], tensor.type, lambda _, args: args[0])).result


def _declarations(tensors: Sequence[Tensor]) -> list[Declaration]:
    """What was declared of each symbol in the shapes, in order of appearance; undeclared ones are any size."""
    found: dict[str, Declaration] = {}
    for tensor in tensors:
        for size in (*tensor.sizes, *tensor.mentions):
            known = {d.name: d for d in size.declarations}
            for symbol in sorted(size.expr.symbols):
                declaration = known.get(symbol, Declaration(symbol))
                if found.setdefault(symbol, declaration) != declaration:
                    raise TilewrightError(
                        f"symbol {symbol}: expected one declaration, got {found[symbol]} and {declaration}"
                    )
    return list(found.values())


def _symbol_op(declaration: Declaration) -> SymbolOp:
    return SymbolOp(
        declaration.name,
        min=declaration.min or None,
        max=declaration.max,
        multiple_of=None if declaration.multiple_of == 1 else declaration.multiple_of,
        likely=declaration.likely,
    )
