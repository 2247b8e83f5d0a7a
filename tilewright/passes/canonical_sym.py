"""Canonicalization patterns for `sym`: index expressions fold into one another, casts that change nothing go."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.dialects.sym import Expr
from tilewright.dialects.sym.ops import ApplyOp, CastOp
from tilewright.passes.canonical_arith import constant_integer
from tilewright.passes.rewriting import Pattern, Rewriter, pattern


@pattern(ApplyOp)
def fold_apply(op: ApplyOp, rewriter: Rewriter) -> None:
    """Constants and other `sym.apply` ops among the arguments move into the expression, which may then be one value."""
    expr = op.expr.data
    where = op.where
    substitution: dict[str, Expr | int] = {}
    kept: dict[str, SSAValue] = {}
    name_of: dict[SSAValue, str] = {}
    inner_applies: list[tuple[str, ApplyOp]] = []
    for name, value in where.items():
        constant = constant_integer(value)
        if name not in expr.symbols:
            continue
        if constant is not None:
            substitution[name] = constant
        elif isinstance(value, OpResult) and isinstance(value.op, ApplyOp):
            inner_applies.append((name, value.op))
        elif value in name_of:
            substitution[name] = Expr.symbol(name_of[value])
        else:
            kept[name] = value
            name_of[value] = name
    taken = set(expr.symbols)
    for _, inner in inner_applies:
        taken |= inner.expr.data.symbols
    for name, inner in inner_applies:
        renaming: dict[str, Expr | int] = {}
        for inner_name, value in inner.where.items():
            if inner_name not in inner.expr.data.symbols:
                continue
            if value not in name_of:
                free = inner_name not in kept and inner_name not in _symbols_outside(expr, where, inner_applies, inner)
                chosen = inner_name if free else _fresh(inner_name, taken | set(kept) | _declared(op))
                kept[chosen] = value
                name_of[value] = chosen
            renaming[inner_name] = Expr.symbol(name_of[value])
        substitution[name] = inner.expr.data.substitute(renaming)
    result = expr.substitute(substitution)
    if result.constant is not None:
        if -(1 << 63) <= result.constant < 1 << 63:
            rewriter.replace(op, arith.ConstantOp(IntegerAttr(result.constant, IndexType())))
        return
    kept = {name: value for name, value in kept.items() if name in result.symbols}
    for name, value in kept.items():
        if result is Expr.symbol(name):
            rewriter.replace(op, (), (value,))
            return
    if result is not expr or kept != where:
        rewriter.replace(op, ApplyOp(result, kept))


def _symbols_outside(
    expr: Expr, where: dict[str, SSAValue], inner_applies: list[tuple[str, ApplyOp]], own: ApplyOp
) -> set[str]:
    """The names that already mean something in the composed expression: not as `own` binds them."""
    taken = set(expr.symbols) - {name for name, _ in inner_applies}
    for _, other in inner_applies:
        if other is not own:
            taken |= other.expr.data.symbols - set(other.where)
    return taken | (own.expr.data.symbols - set(own.where))


def _fresh(base: str, taken: set[str]) -> str:
    number = 0
    while f"{base}{number}" in taken:
        number += 1
    return f"{base}{number}"


def _declared(op: Operation) -> set[str]:
    """The symbols that the module declares."""
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)  # patterns are applied to ops inside one
    found: set[str] = set()
    for region in module.regions:
        for block in region.blocks:
            for other in block.ops:
                name = other.properties.get("sym_name")
                if name is not None:
                    found.add(getattr(name, "data", ""))
    return found


@pattern(CastOp)
def fold_cast(op: CastOp, rewriter: Rewriter) -> None:
    """A cast to the operand's own type is the operand.

    Two casts in a row stay: they carry two obligations, and dropping the type in between would drop one.
    """
    if op.source.type == op.result.type:
        rewriter.replace(op, (), (op.source,))


PATTERNS: tuple[Pattern[Operation], ...] = (fold_apply, fold_cast)
"""All of them, for `apply_patterns`."""
