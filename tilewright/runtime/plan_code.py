"""Expressions and relations as Python source. Names are the generator's own, never text from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.sym.expr import Atom, from_terms

SAFE_GLOBALS: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max, "len": len}
"""All that generated code can name."""


def expr_code(expr: Expr, names: Mapping[str, str]) -> str:
    """`expr` as a Python expression, in parentheses where it is a sum or a product; `names` maps each of its symbols
    to a Python expression. `n - d*(n floordiv d)` becomes `n % d`, which is one operation in place of three."""
    parts: list[str] = []
    remainder = _take_remainder(expr)
    while remainder is not None:
        scale, numerator, divisor, expr = remainder
        text = f"{expr_code(numerator, names)} % {expr_code(divisor, names)}"
        parts.append(text if scale == 1 else f"-({text})" if scale == -1 else f"{scale}*({text})")
        remainder = _take_remainder(expr)
    for monomial, coefficient in expr.terms:
        factors = [_atom(a, names) for a in monomial]
        if factors and abs(coefficient) == 1:
            parts.append(("-" if coefficient < 0 else "") + "*".join(factors))
        else:
            parts.append("*".join([str(coefficient), *factors]))
    if len(parts) == 1 and len(expr.terms) == 1:
        monomial, coefficient = expr.terms[0]
        if (len(monomial) == 1 and coefficient == 1) or (not monomial and coefficient >= 0):
            return parts[0]
    return f"({' + '.join(parts).replace(' + -', ' - ')})" if parts else "0"


def _take_remainder(expr: Expr) -> tuple[int, Expr, Expr, Expr] | None:
    """(s, n, d, rest) with `expr == s*(n mod d) + rest` where rest has none of the terms that make up the remainder."""
    for monomial, coefficient in expr.terms:
        for atom in monomial:
            if atom.kind != "floordiv":
                continue
            numerator, divisor = atom.args
            removed = divisor * from_terms({(atom,): 1})
            scale = -coefficient // (divisor.constant or 1)
            rest = expr - (numerator - removed) * scale
            if len(rest.terms) == len(expr.terms) - len(numerator.terms) - len(removed.terms):
                return scale, numerator, divisor, rest
    return None


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
    """A function from the values of `symbols`, in order, to the values of the expressions; TilewrightError for values
    by which one of them divides by zero."""
    names = {symbol: f"s[{number}]" for number, symbol in enumerate(symbols)}
    body = tuple_code([expr_code(e, names) for e in exprs])
    compiled = define(f"def scalars(s):\n    return {body}\n", "scalars", {})
    if "/" not in body and "%" not in body:
        return compiled

    def checked(values: tuple[int, ...]) -> tuple[int, ...]:
        try:
            return compiled(values)
        except ZeroDivisionError:
            # The algebra names the divisor.
            return tuple(e.evaluate(dict(zip(symbols, values, strict=True))) for e in exprs)

    return checked
