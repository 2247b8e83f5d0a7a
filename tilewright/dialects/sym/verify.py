"""Checks of symbolic shapes that the verifier of the IR does not make.

An IR verifier treats the encoding of a tensor type as an opaque attribute. `check_dims` looks at every tensor type in
operands, results, block arguments, function types and attributes, and at every symbol that an expression names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from tilewright.dialects.sym.analysis import declared_symbols
from tilewright.dialects.sym.attributes import DimsAttr, ExprAttr, RelationAttr
from tilewright.dialects.sym.index import IndexAttr
from tilewright.dialects.sym.ops import SymbolOp


def check_dims(module: ModuleOp, *, open_sizes: bool = False) -> list[tuple[Operation, str]]:
    """Every fault of a symbolic shape in the module: the op it stands on, and one line that says what is wrong.

    For each tensor type: the encoding is `#sym.dims` or absent, of the same rank, `?` stands exactly where the size is
    not a constant, constants are the static sizes, and a `?` without encoding is refused (with `open_sizes` it is
    allowed: a size that is not stated yet). For each expression: its symbols are declared. A name in a `where` clause
    is not a declared symbol. A symbol is declared once, at the top level.
    """
    declared = declared_symbols(module)
    result: list[tuple[Operation, str]] = []
    for op in module.walk():
        messages: dict[str, None] = {}
        if isinstance(op, SymbolOp):
            if op.parent_op() is not module:
                messages[f"symbol '{op.symbol}' expected at the top level of the module"] = None
            elif declared[op.symbol] is not op:
                messages[f"symbol '{op.symbol}' is declared twice"] = None
        # Names bound on the op itself, by a `where` clause, are no symbols of the module.
        bound = frozenset(_bound_names(op))
        for name in sorted(bound & declared.keys()):
            messages[f"name '{name}' in where is a declared symbol"] = None
        known = declared.keys() | bound
        for attribute in _attributes(op):
            for message in _faults(attribute, known, open_sizes):
                messages[message] = None
        result.extend((op, message) for message in messages)
    return result


def tensor_fault(tensor: Attribute) -> str | None:
    """What is wrong with the shape of a tensor type, apart from undeclared symbols; None for any other type."""
    if not isinstance(tensor, TensorType):
        return None
    typed = cast("TensorType[Any]", tensor)
    shape = typed.get_shape()
    if not isinstance(typed.encoding, DimsAttr):
        if DYNAMIC_INDEX in shape:
            return f"tensor with '?' sizes expected a #sym.dims encoding, got {tensor}"
        return None
    dims = typed.encoding.data
    if len(dims) != len(shape):
        return f"tensor of rank {len(shape)} expected as many dims, got {len(dims)} in {tensor}"
    for position, (size, dim) in enumerate(zip(shape, dims, strict=True)):
        if size == DYNAMIC_INDEX:
            if dim.constant is not None:
                return f"dim {position} expected the static size {dim} in place of '?', got {tensor}"
        elif dim.constant is None:
            return f"dim {position} expected '?' for the size {dim}, got {size} in {tensor}"
        elif dim.constant != size:
            return f"dim {position} expected the static size {dim}, got {size} in {tensor}"
    return None


def _bound_names(op: Operation) -> Iterator[str]:
    """Names of the op's `where` clause; every op that has one keeps them in a property `names`."""
    names = op.properties.get("names")
    if isinstance(names, ArrayAttr):
        yield from (name.data for name in cast("ArrayAttr[Attribute]", names) if isinstance(name, StringAttr))


def _attributes(op: Operation) -> Iterator[Attribute]:
    """Every attribute that the op carries itself; what its regions hold belongs to the ops inside."""
    yield from (operand.type for operand in op.operands)
    yield from (result.type for result in op.results)
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.args)
    yield from op.properties.values()
    yield from op.attributes.values()


def _faults(attribute: Attribute, known: frozenset[str] | set[str], open_sizes: bool) -> Iterator[str]:
    fault = tensor_fault(attribute)
    if fault is not None and not (open_sizes and isinstance(cast("TensorType[Any]", attribute).encoding, NoneAttr)):
        yield fault
    for name in sorted(_symbols(attribute) - known):
        yield f"symbol '{name}' is not declared"
    for child in _children(attribute):
        yield from _faults(child, known, open_sizes)


def _symbols(attribute: Attribute) -> frozenset[str]:
    if isinstance(attribute, DimsAttr):
        return frozenset[str]().union(*(dim.symbols for dim in attribute.data))
    if isinstance(attribute, IndexAttr):
        # Coordinates are hidden symbols, spelled with a '%'.
        names = frozenset[str]().union(*(e.symbols for e in attribute.data))
        return frozenset(name for name in names if not name.startswith("%"))
    if isinstance(attribute, ExprAttr | RelationAttr):
        return attribute.data.symbols
    return frozenset()


def _children(attribute: Attribute) -> Iterator[Attribute]:
    match attribute:
        case FunctionType():
            yield from attribute.inputs
            yield from attribute.outputs
        case ArrayAttr():
            yield from attribute
        case DictionaryAttr():
            yield from attribute.data.values()
        case ParametrizedAttribute():
            yield from attribute.parameters
        case _:
            pass
