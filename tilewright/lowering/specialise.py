"""A tensor-level program with some of its symbols replaced by numbers: for measuring and finding faults, never implied
by a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.dialects.sym import (
    DimsAttr,
    Expr,
    ExprAttr,
    Relation,
    RelationAttr,
    RequireOp,
    SymbolOp,
    symbolic_tensor,
)
from tilewright.passes.core import error_at


def specialise(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """Replace the symbols that `sizes` names in every type and attribute of the module, in place.

    Declarations of the symbols and requirements that thereby hold go away. `TilewrightError` at a requirement or a
    declaration that the sizes do not satisfy, and for a size that becomes negative.
    """
    values: dict[str, Expr | int] = dict(sizes)
    for op in list(module.walk()):
        if isinstance(op, SymbolOp) and op.symbol in sizes:
            _check_declared(op, sizes[op.symbol])
            op.detach()
            op.erase()
            continue
        stated = op.relation.data if isinstance(op, RequireOp) else None
        substitute_symbols(op, values)
        if isinstance(op, RequireOp) and not op.relation.data.symbols:
            if not op.relation.data.holds({}):
                raise error_at(op, f"the program requires {stated}, got {_spelled(sizes)}")
            op.detach()
            op.erase()


def substitute_symbols(op: Operation, values: Mapping[str, Expr | int]) -> None:
    """Replace symbols in the attributes of one op, and in the types of its results and of its regions' arguments."""
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                _retype(argument, values)
    for result in op.results:
        _retype(result, values)
    for table in (op.properties, op.attributes):
        for key, attribute in table.items():
            table[key] = _substituted(attribute, values)


def _check_declared(op: SymbolOp, size: int) -> None:
    low, high = op.lower_bound, op.upper_bound
    if (low is not None and size < low) or (high is not None and size > high) or size % op.divisor:
        raise error_at(op, f"{op.symbol} = {size} is against the declaration of {op.symbol}")


def _spelled(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _retype(value: SSAValue, values: Mapping[str, Expr | int]) -> None:
    type_ = _substituted(value.type, values)
    if type_ != value.type:
        Rewriter.replace_value_with_new_type(value, type_)


def _substituted(attribute: Attribute, values: Mapping[str, Expr | int]) -> Attribute:
    """The attribute with the symbols replaced, or itself where it has none."""
    match attribute:
        case ExprAttr():
            return ExprAttr(attribute.data.substitute(values))
        case RelationAttr():
            old = attribute.data
            return RelationAttr(Relation(old.lhs.substitute(values), old.op, old.rhs.substitute(values)))
        case DimsAttr():
            return DimsAttr(tuple(dim.substitute(values) for dim in attribute.data))
        case TensorType():
            typed = cast("TensorType[Any]", attribute)
            if not isinstance(typed.encoding, DimsAttr):
                return typed
            return symbolic_tensor(typed.element_type, [dim.substitute(values) for dim in typed.encoding.data])
        case ArrayAttr():
            return ArrayAttr([_substituted(item, values) for item in attribute])
        case DictionaryAttr():
            return DictionaryAttr({key: _substituted(item, values) for key, item in attribute.data.items()})
        case ParametrizedAttribute():
            parameters = [_substituted(parameter, values) for parameter in attribute.parameters]
            same = list(attribute.parameters) == parameters
            return attribute if same else type(attribute).new(parameters)
        case _:
            return attribute


def keep_entry(module: ModuleOp, entry: Operation) -> None:
    """Remove all functions of the module but one, in place."""
    for op in list(module.ops):
        if op.name == entry.name and op is not entry:
            op.detach()
            op.erase()


__all__ = ["keep_entry", "specialise", "substitute_symbols"]
