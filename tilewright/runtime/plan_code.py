"""Expressions and relations as Python source. Names are the generator's own, never text from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.sym.expr import Atom

SAFE_GLOBALS: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max, "len": len}
"""All that generated code can name."""


def expr_code(expr: Expr, names: Mapping[str, str]) -> str:
    """`expr` as a Python expression in parentheses; `names` maps each of its symbols to a Python expression."""
    parts: list[str] = []
    for monomial, coefficient in expr.terms:
        factors = [_atom(a, names) for a in monomial]
        parts.append("*".join(factors if factors and coefficient == 1 else [str(coefficient), *factors]))
    return f"({' + '.join(parts)})" if parts else "0"


def relation_code(relation: Relation, names: Mapping[str, str]) -> str:
    """The relation as a Python condition."""
    return f"{expr_code(relation.lhs, names)} {relation.op} {expr_code(relation.rhs, names)}"


def tuple_code(parts: Sequence[str]) -> str:
    """A tuple of Python expressions."""
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.kind == "symbol":
        return names[atom.name]
    args = [expr_code(a, names) for a in atom.args]
    return f"({args[0]}//{args[1]})" if atom.kind == "floordiv" else f"{atom.kind}({', '.join(args)})"


def define(source: str, name: str, extra: Mapping[str, Any]) -> Callable[..., Any]:
    """The function `name` of generated source, which sees `SAFE_GLOBALS` and `extra` and nothing else."""
    namespace: dict[str, Any] = {**SAFE_GLOBALS, **extra}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    return namespace[name]


def expressions_function(exprs: Sequence[Expr], symbols: Sequence[str]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """A function from the values of `symbols`, in order, to the values of the expressions."""
    names = {symbol: f"s[{number}]" for number, symbol in enumerate(symbols)}
    body = tuple_code([expr_code(e, names) for e in exprs])
    return define(f"def scalars(s):\n    return {body}\n", "scalars", {})
