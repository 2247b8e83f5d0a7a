"""Facts that a module states, and expressions of its index values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from operator import add, mul, sub
from typing import Final
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.sym.expr import Expr, as_expr, hidden_symbol, is_name
from tilewright.dialects.sym.facts import Facts
from tilewright.dialects.sym.operators import floordiv, smax, smin
from tilewright.dialects.sym.ops import ApplyOp, RequireOp, SymbolOp
from tilewright.dialects.sym.relation import Relation


def location_of(op: Operation) -> SourceLocation | None:
    """Where the op stands in its source file, when the parser or the front end recorded it."""
    location = op.location
    if not isinstance(location, FileLineColLoc):
        return None
    return SourceLocation(location.filename.data, location.line.data, location.column.data)


def declared_symbols(module: ModuleOp) -> dict[str, SymbolOp]:
    """The `sym.symbol` ops at the top level of the module, by name; of two with one name, the first."""
    result: dict[str, SymbolOp] = {}
    for op in module.ops:
        if isinstance(op, SymbolOp):
            result.setdefault(op.symbol, op)
    return result


def module_facts(module: ModuleOp) -> Facts:
    """What the `sym.symbol` and `sym.require` ops at the top level of the module state; reasons are locations."""
    facts = Facts()
    for op in declared_symbols(module).values():
        facts.declare(op.symbol, op.lower_bound, op.upper_bound, op.divisor, reason=_reason(op))
    add_requirements(facts, module.ops)
    return facts


def add_requirements(facts: Facts, ops: Iterable[Operation]) -> None:
    """Add the relation of each `sym.require` among the ops, such as those of a function's body."""
    for op in ops:
        if isinstance(op, RequireOp):
            facts.add(op.relation.data, _reason(op))


def check_consistent(module: ModuleOp) -> None:
    """Raise unless what the module's symbols and requirements state can hold, as far as the prover can tell.

    The error stands at the last of the statements it follows from; it names all of them, each with its location, and
    the value they would give. Requirements inside a function are added to those at the top level, for each by itself.
    """
    facts = module_facts(module)
    _check(facts, list(module.ops))
    for op in module.ops:
        inside = [o for o in op.walk() if isinstance(o, RequireOp)] if op.regions else []
        if inside:
            scope = facts.child()
            add_requirements(scope, inside)
            _check(scope, [*module.ops, *inside])


def _check(facts: Facts, ops: list[Operation]) -> None:
    conflict = facts.conflict()
    if conflict is None:
        return
    stated = [op for op in ops if isinstance(op, SymbolOp | RequireOp)]
    named = [op for op in stated if any(s.endswith(f"({_reason(op)})") for s in conflict.statements)]
    raise TilewrightError(f"requirements that cannot hold: {conflict}", location_of(named[-1]) if named else None)


def _reason(op: Operation) -> str:
    location = location_of(op)
    return op.name if location is None else str(location)


def _round_up(a: Expr, b: Expr) -> Expr:
    """The ceiling of a / b for either sign of b, unlike `ceildiv`."""
    return -floordiv(-a, b)


_ARITH: Final[dict[str, Callable[..., Expr]]] = {
    "arith.addi": add,
    "arith.subi": sub,
    "arith.muli": mul,
    "arith.floordivsi": floordiv,
    "arith.ceildivsi": _round_up,
    "arith.minsi": smin,
    "arith.maxsi": smax,
}
# By name, so that reading an index does not import the dialect.

_VALUE_SYMBOLS: WeakKeyDictionary[SSAValue, Expr] = WeakKeyDictionary()
_NUMBERS = count()
# Symbols that stand for SSA values. One table for all scopes: two values never share a symbol, whatever scopes meet.


def value_symbol(value: SSAValue) -> Expr:
    """The hidden symbol that stands for an SSA value: the same one for as long as the value lives."""
    found = _VALUE_SYMBOLS.get(value)
    if found is None:
        # Padded, so that symbols sort in the order in which values were met, and proofs do not depend on history.
        found = _VALUE_SYMBOLS[value] = hidden_symbol(f"%{next(_NUMBERS):09d}{value.name_hint or ''}")
    return found


class IndexScope:
    """Expressions of SSA index values, and facts on them.

    A value seen through (`sym.apply`, and constants, sums, products, floor and ceiling divisions, minima and maxima of
    index type in `arith`) is the expression it computes, taken not to overflow; any other value is a hidden symbol of
    its own (`value_symbol`).
    """

    def __init__(self, facts: Facts | None = None) -> None:
        self.facts = Facts() if facts is None else facts
        """Facts of this scope; what callers add speaks of the expressions that `expr` returns."""
        self._exprs: dict[SSAValue, Expr] = {}
        self._values: dict[str, SSAValue] = {}

    def bind(self, value: SSAValue, expr: Expr) -> None:
        """Let `value` stand for `expr` from now on."""
        self._exprs[value] = expr

    def expr(self, value: SSAValue) -> Expr:
        """The expression of an index value over declared symbols and the symbols of this scope."""
        found = self._exprs.get(value)
        if found is None:
            found = self._computed(value)
            if found is None:
                found = value_symbol(value)
                self._values[next(iter(found.symbols))] = value
            self._exprs[value] = found
        return found

    def apply(self, expr: Expr | int) -> ApplyOp:
        """The `sym.apply` op that computes an expression of this scope, its hidden symbols bound in `where`."""
        expr = as_expr(expr)
        names: dict[str, Expr | int] = {}
        where: dict[str, SSAValue | Operation] = {}
        for hidden in sorted(expr.symbols & self._values.keys()):
            value = self._values[hidden]
            hint = value.name_hint
            name = hint if hint is not None and is_name(hint) else "v"
            while name in expr.symbols or name in where:
                name += "_"
            names[hidden] = Expr.symbol(name)
            where[name] = value
        return ApplyOp(expr.substitute(names), where)

    def require(self, relation: Relation, reason: str = "") -> None:
        """Add a fact on expressions of this scope."""
        self.facts.add(relation, reason)

    def bounded(self, value: SSAValue, low: Expr | int, high: Expr | int, reason: str = "") -> Expr:
        """State that `low <= value < high`, as of a loop variable, and return the expression of `value`."""
        expr = self.expr(value)
        self.facts.add(Relation(expr, ">=", as_expr(low)), reason)
        self.facts.add(Relation(expr, "<", as_expr(high)), reason)
        return expr

    def child(self) -> IndexScope:
        """A scope that knows this one's names and facts and keeps its own additions to itself."""
        scope = IndexScope(self.facts.child())
        scope._exprs = dict(self._exprs)
        scope._values = dict(self._values)
        return scope

    def _computed(self, value: SSAValue) -> Expr | None:
        op = value.owner
        if isinstance(op, ApplyOp):
            bindings: dict[str, Expr | int] = {name: self.expr(v) for name, v in op.where.items()}
            return op.expr.data.substitute(bindings)
        if not isinstance(op, Operation) or not isinstance(value.type, IndexType):
            return None
        if op.name == "arith.constant":
            constant = op.properties.get("value")
            return Expr.const(constant.value.data) if isinstance(constant, IntegerAttr) else None
        function = _ARITH.get(op.name)
        return None if function is None else function(*(self.expr(operand) for operand in op.operands))


def index_expr(value: SSAValue, scope: IndexScope | None = None) -> Expr:
    """The expression of an index value, in `scope` or in a scope of its own."""
    return (IndexScope() if scope is None else scope).expr(value)
