"""Three opinions on a case that owe nothing to the algebra: enumeration of a grid, Z3, and isl for the affine ones."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import numpy as np

from tests.dialects.sym.generator import Case, Question, Tree

Truth: TypeAlias = Literal["always", "never", "both", "no model"]
"""What a relation is over the values looked at: true at each, false at each, either, or there were none."""

_INT64_SAFE: Final = 2**60


def _magnitude(tree: Tree) -> int:
    """A bound on the absolute value of every intermediate result in the window, which is inside -32..32."""
    if not tree.args:
        return abs(tree.value) if tree.op == "integer" else 32
    left, right = (_magnitude(a) for a in tree.args)
    if tree.op == "*":
        return left * right
    return left + right + 1


class Grid:
    """The points of a case's windows at which all facts have a value and hold."""

    def __init__(self, case: Case) -> None:
        windows = [np.array(s.window(), dtype=np.int64) for s in case.symbols]
        mesh = np.meshgrid(*windows, indexing="ij")
        self.values = {s.name: m.ravel() for s, m in zip(case.symbols, mesh, strict=True)}
        for fact in case.facts:
            defined, truth = self.relation(fact)
            keep = defined & truth
            self.values = {name: v[keep] for name, v in self.values.items()}

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def evaluate(self, tree: Tree) -> tuple[Any, Any]:
        """Where each divisor in the tree is non-zero, and the values (anything elsewhere)."""
        dtype = np.int64 if max(_magnitude(n) for n in tree.nodes()) < _INT64_SAFE else object
        defined = np.ones(len(self), dtype=bool)

        def value(node: Tree) -> Any:
            nonlocal defined
            if node.op == "integer":
                return np.full(len(self), node.value, dtype=dtype)
            if node.op == "symbol":
                return self.values[node.name].astype(dtype)
            left, right = (value(a) for a in node.args)
            match node.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "min":
                    return np.minimum(left, right)
                case "max":
                    return np.maximum(left, right)
                case _:
                    zero = (right == 0).astype(bool)
                    defined &= ~zero
                    right = np.where(zero, 1, right)
                    if node.op == "floordiv":
                        return left // right
                    if node.op == "ceildiv":
                        return (left + right - 1) // right
                    return left % right

        return defined, value(tree)

    def relation(self, question: Question) -> tuple[Any, Any]:
        """Where the relation has a value, and where it is true."""
        left_defined, left = self.evaluate(question.lhs)
        right_defined, right = self.evaluate(question.rhs)
        match question.op:
            case "==":
                truth = left == right
            case ">=":
                truth = left >= right
            case "<=":
                truth = left <= right
            case ">":
                truth = left > right
            case "<":
                truth = left < right
        return left_defined & right_defined, truth.astype(bool)

    def truth(self, question: Question) -> Truth:
        """The relation over all points where it has a value."""
        defined, truth = self.relation(question)
        values = truth[defined]
        if not len(values):
            return "no model"
        return "always" if values.all() else "never" if not values.any() else "both"


def enumerated(case: Case) -> Truth:
    """The query over the grid of the case."""
    return Grid(case).truth(case.query)


def by_z3(case: Case, timeout_ms: int) -> Truth | None:
    """The query over all integers, or None where Z3 gives up."""
    import z3

    variables = {s.name: z3.Int(s.name) for s in case.symbols}
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)

    def floor(x: Any, y: Any) -> Any:
        # Z3's div rounds so that the remainder is non-negative: up for a negative divisor.
        return z3.If(y > 0, x / y, (-x) / (-y))

    def value(tree: Tree) -> Any:
        if tree.op == "integer":
            return z3.IntVal(tree.value)
        if tree.op == "symbol":
            return variables[tree.name]
        left, right = (value(a) for a in tree.args)
        match tree.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "min":
                return z3.If(left <= right, left, right)
            case "max":
                return z3.If(left >= right, left, right)
            case _:
                solver.add(right != 0)
                if tree.op == "floordiv":
                    return floor(left, right)
                if tree.op == "ceildiv":
                    return floor(left + right - 1, right)
                return left - right * floor(left, right)

    def relation(question: Question) -> Any:
        left, right = value(question.lhs), value(question.rhs)
        match question.op:
            case "==":
                return left == right
            case ">=":
                return left >= right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case "<":
                return left < right

    for s in case.symbols:
        variable = variables[s.name]
        if s.low is not None:
            solver.add(variable >= s.low)
        if s.high is not None:
            solver.add(variable <= s.high)
        if s.multiple > 1:
            solver.add(variable % s.multiple == 0)
    for fact in case.facts:
        solver.add(relation(fact))
    query = relation(case.query)
    found: list[bool] = []
    for side in (query, z3.Not(query)):
        solver.push()
        solver.add(side)
        answer = solver.check()
        solver.pop()
        if answer == z3.unknown:
            return None
        found.append(answer == z3.sat)
    return _verdict(*found)


def _verdict(can_hold: bool, can_fail: bool) -> Truth:
    if can_hold and can_fail:
        return "both"
    return "always" if can_hold else "never" if can_fail else "no model"


class NotAffine(Exception):
    """The case has a product of symbols or a division by one, which isl cannot express."""


def _affine_text(tree: Tree) -> str:
    """isl's text of an expression without min and max, which `_branches` has taken out."""
    if tree.op == "integer":
        return f"({tree.value})"
    if tree.op == "symbol":
        return tree.name
    left, right = tree.args
    if tree.op == "*":
        if not any(all(n.op != "symbol" for n in a.nodes()) for a in tree.args):
            raise NotAffine
    elif tree.op not in ("+", "-", "min", "max") and (right.op != "integer" or right.value < 1):
        raise NotAffine
    x, y = _affine_text(left), _affine_text(right)
    match tree.op:
        case "floordiv":
            return f"floor(({x})/{right.value})"
        case "ceildiv":
            return f"ceil(({x})/{right.value})"
        case "mod":
            return f"(({x}) mod {right.value})"
        case "min" | "max":
            return f"{tree.op}({x}, {y})"
        case _:
            # isl wants the constant factor as a literal.
            if tree.op == "*" and all(n.op != "symbol" for n in left.nodes()):
                return f"({_constant(left)}*({y}))"
            if tree.op == "*":
                return f"({_constant(right)}*({x}))"
            return f"(({x}) {tree.op} ({y}))"


def _constant(tree: Tree) -> int:
    """The value of a tree without symbols; divisors in it are positive, as `_affine_text` has seen."""
    if tree.op == "integer":
        return tree.value
    left, right = (_constant(a) for a in tree.args)
    match tree.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case "floordiv":
            return left // right
        case "ceildiv":
            return -(-left // right)
        case _:
            return left % right


def _isl_relation(question: Question) -> str:
    op = "=" if question.op == "==" else question.op
    return f"{_affine_text(question.lhs)} {op} {_affine_text(question.rhs)}"


def isl_sets(case: Case) -> tuple[str, str]:
    """isl's texts of the points where the facts hold, and of those where the query does; raises `NotAffine`."""
    names = ", ".join(s.name for s in case.symbols)
    conditions: list[str] = []
    for s in case.symbols:
        if s.low is not None:
            conditions.append(f"{s.name} >= {s.low}")
        if s.high is not None:
            conditions.append(f"{s.name} <= {s.high}")
        if s.multiple > 1:
            conditions.append(f"{s.name} mod {s.multiple} = 0")
    conditions += [_isl_relation(fact) for fact in case.facts]
    known = f"{{ [{names}] : {' and '.join(conditions)} }}" if conditions else f"{{ [{names}] }}"
    return known, f"{{ [{names}] : {_isl_relation(case.query)} }}"


def by_isl(case: Case) -> Truth | None:
    """The query over all integers; None for a case that is not affine, or that is too much for isl."""
    import islpy

    try:
        known_text, query_text = isl_sets(case)
    except NotAffine:
        return None
    context = islpy.Context()
    context.set_max_operations(200_000)
    try:
        known, query = islpy.Set(known_text, context), islpy.Set(query_text, context)
        return _verdict(not known.intersect(query).is_empty(), not known.subtract(query).is_empty())
    except islpy.Error:
        return None
