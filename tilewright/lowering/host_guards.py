"""The guards of an entry: what is declared or required of symbols and does not follow from the arguments' shapes alone.

A call knows nothing but the shapes of its arguments. Every other fact that the compiler uses is checked here first, in
the order in which facts build on one another, and each guard is left out when the ones before it prove it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.host.ops import AllocOp, BindOp, FuncOp, GuardOp, OutputOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, RequireOp, SymbolOp, dims_of, mod
from tilewright.passes.core import error_at


@dataclass
class GuardList:
    """Guards in order, and what holds once they have passed."""

    facts: Facts = field(default_factory=Facts)
    guards: list[GuardOp] = field(default_factory=list[GuardOp])

    def require(self, relation: Relation, message: str, origin: Operation) -> None:
        """Add a guard for the relation unless what is known proves it; from then on it is known."""
        if self.facts.prove(relation) is Answer.PROVED:
            return
        guard = GuardOp(relation, message)
        guard.location = origin.location
        self.guards.append(guard)
        self.facts.add(relation)


def bound_symbols(func: FuncOp) -> frozenset[str]:
    """Symbols that a call of the entry gives values to: in the shapes of its arguments, and of `host.bind`."""
    found: set[str] = set()
    for argument in func.body.block.args:
        if is_tensor(argument.type):
            found.update(*(dim.symbols for dim in dims_of(argument.type)))
    for op in func.body.walk():
        if isinstance(op, BindOp):
            found.update(stride.data for stride in op.strides)
            found.add(op.base.data)
    return frozenset(found)


def entry_guards(module: ModuleOp, func: FuncOp) -> GuardList:
    """The guards that every call of the entry passes before anything else happens.

    They cover `min`, `max` and `multiple_of` of its symbols, each `sym.require`, and sizes of results and scratch that
    might be negative. A requirement that names a symbol no argument binds, beside one that is bound, is an error: the
    call could not check it. One that has no symbol of this entry belongs to another entry.
    """
    result = GuardList()
    bound = bound_symbols(func)
    for argument in func.body.block.args:
        if is_tensor(argument.type):
            for dim in dims_of(argument.type):
                result.facts.add(Relation(dim, ">=", Expr.const(0)))
    for op in module.ops:
        if isinstance(op, SymbolOp) and op.symbol in bound:
            _declared(result, op)
    for op in module.walk():
        if isinstance(op, RequireOp):
            _required(result, op, bound)
    contradiction = result.facts.contradiction()
    if contradiction is not None:
        raise error_at(func, f"no call of @{func.sym_name.data} is possible: {contradiction}")
    for op in func.body.walk():
        if isinstance(op, OutputOp | AllocOp):
            what = "a result" if isinstance(op, OutputOp) else "an intermediate tensor"
            for dim in dims_of(op.res.type):
                natural = Relation(dim, ">=", Expr.const(0))
                result.require(natural, f"{dim}: expected a size of {what} of at least 0", op)
    return result


def _declared(result: GuardList, op: SymbolOp) -> None:
    symbol = Expr.symbol(op.symbol)
    low, high, divisor = op.lower_bound, op.upper_bound, op.divisor
    if low is not None and (op.min is not None or op.source_kind == "arg"):
        result.require(Relation(symbol, ">=", Expr.const(low)), f"{op.symbol}: expected at least {low}", op)
    if high is not None:
        result.require(Relation(symbol, "<=", Expr.const(high)), f"{op.symbol}: expected at most {high}", op)
    if divisor > 1:
        multiple = Relation(mod(symbol, divisor), "==", Expr.const(0))
        result.require(multiple, f"{op.symbol}: expected a multiple of {divisor}", op)


def _required(result: GuardList, op: RequireOp, bound: frozenset[str]) -> None:
    relation = op.relation.data
    if not relation.symbols:
        if not relation.holds({}):
            raise error_at(op, f"requirement {relation} never holds")
        return
    unbound = sorted(relation.symbols - bound)
    if unbound:
        if len(unbound) == len(relation.symbols):
            return
        raise error_at(op, f"requirement {relation} cannot be checked: no argument binds {', '.join(unbound)}")
    place = location_of(op)
    where = "" if place is None else f" ({place})"
    result.require(relation, f"{relation}: required by the program{where}", op)
