"""Facts that a module states, and expressions of its index values."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp, SubiOp
from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import SourceLocation
from tilewright.dialects.sym.expr import Expr, as_expr, hidden_symbol
from tilewright.dialects.sym.facts import Facts
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


def _reason(op: Operation) -> str:
    location = location_of(op)
    return op.name if location is None else str(location)


class IndexScope:
    """Names for SSA index values, so that expressions and facts can speak of them.

    A value seen through (`sym.apply`, `arith.constant`, and sums, differences and products of index type in `arith`)
    is the expression it computes; any other value is a symbol of its own, hidden unless the caller names it.
    """

    def __init__(self, facts: Facts | None = None) -> None:
        self.facts = Facts() if facts is None else facts
        """Facts of this scope; what callers add speaks of the expressions that `expr` returns."""
        self._exprs: dict[SSAValue, Expr] = {}
        self._count = 0

    def bind(self, value: SSAValue, expr: Expr) -> None:
        """Let `value` stand for `expr` from now on."""
        self._exprs[value] = expr

    def symbol(self, value: SSAValue) -> Expr:
        """A symbol that stands for `value` and nothing else; the same one each time."""
        found = self._exprs.get(value)
        if found is None:
            found = self._exprs[value] = hidden_symbol(f"%{self._count}{value.name_hint or ''}")
            self._count += 1
        return found

    def expr(self, value: SSAValue) -> Expr:
        """The expression of an index value over declared symbols and the symbols of this scope."""
        found = self._exprs.get(value)
        if found is None:
            found = self._computed(value)
            found = self._exprs[value] = self.symbol(value) if found is None else found
        return found

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
        scope._count = self._count
        return scope

    def _computed(self, value: SSAValue) -> Expr | None:
        op = value.owner
        if isinstance(op, ApplyOp):
            bindings: dict[str, Expr | int] = {name: self.expr(v) for name, v in op.where.items()}
            return op.expr.data.substitute(bindings)
        if not isinstance(op, Operation) or not isinstance(value.type, IndexType):
            return None
        if isinstance(op, ConstantOp):
            return Expr.const(op.value.value.data) if isinstance(op.value, IntegerAttr) else None
        if isinstance(op, AddiOp):
            return self.expr(op.lhs) + self.expr(op.rhs)
        if isinstance(op, SubiOp):
            return self.expr(op.lhs) - self.expr(op.rhs)
        if isinstance(op, MuliOp):
            return self.expr(op.lhs) * self.expr(op.rhs)
        return None


def index_expr(value: SSAValue, scope: IndexScope | None = None) -> Expr:
    """The expression of an index value, in `scope` or in a scope of its own."""
    return (IndexScope() if scope is None else scope).expr(value)
