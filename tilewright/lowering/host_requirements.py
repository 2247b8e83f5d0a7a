"""What an entry asks of its sizes, each with the place that asks; and which of it needs a check at run time.

A call knows nothing but the shapes of its arguments. Every other fact that the compiler uses is a requirement here:
bounds and divisors of symbols, `sym.require`, the obligations of `sym.cast`, sizes that must not be negative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.host.ops import AllocOp, BindOp, FuncOp, LetOp, OutputOp
from tilewright.dialects.lin.shapes import is_tensor, partial_shape
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Answer, CastOp, Expr, Facts, Relation, RequireOp, SymbolOp, mod
from tilewright.lowering.host_conflicts import Statement, explain_conflict
from tilewright.passes.core import error_at

Entry: TypeAlias = FuncOp | func.FuncOp
"""An entry as a program (`func.func`) or as a launch plan (`host.func`)."""

MAX_RANK: Final = 64
"""Dims that NumPy's arrays can have."""
_ZERO: Final = Expr.const(0)
_OPERATORS: Final = re.compile(r"\b(?:mod|floordiv|ceildiv)\b|[*+]|(?<=\w) - |\bm(?:in|ax)\(")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A relation that must hold, the text of the guard that checks it, and the op that asks for it."""

    relation: Relation
    message: str
    origin: Operation

    @property
    def statement(self) -> Statement:
        """The relation with the place that asks for it."""
        place = location_of(self.origin)
        return Statement(self.relation, self.origin.name if place is None else str(place))


@dataclass(frozen=True, slots=True)
class Settled:
    """A requirement with what came of it."""

    requirement: Requirement
    answer: Answer
    """PROVED from the argument shapes and the guards before it, else UNKNOWN: a guard checks it."""


def cost(relation: Relation) -> int:
    """Arithmetic operations that a check takes; a minimum or maximum is a call and counts as three."""
    return sum(3 if found.startswith("m") and found.endswith("(") else 1 for found in _OPERATORS.findall(str(relation)))


def argument_dims(entry: Entry) -> list[tuple[int, int, Expr]]:
    """(argument, dim, size) of each size in the argument types."""
    return [
        (number, dim, size)
        for number, argument in enumerate(entry.body.block.args)
        if is_tensor(argument.type)
        for dim, size in enumerate(partial_shape(argument.type))
        if size is not None
    ]


def bound_symbols(entry: Entry) -> frozenset[str]:
    """Symbols that a call of the entry gives values to: in the shapes of its arguments, and of `host.bind`."""
    found = set[str]().union(*(size.symbols for _, _, size in argument_dims(entry)))
    for op in entry.body.walk():
        if isinstance(op, BindOp | LetOp):
            found.update(bound_by(op))
    return frozenset(found)


def bound_by(op: BindOp | LetOp) -> tuple[str, ...]:
    """The symbols that an op of the plan gives values to."""
    return (op.symbol.data,) if isinstance(op, LetOp) else (*(stride.data for stride in op.strides), op.base.data)


def shape_statements(entry: Entry) -> list[Statement]:
    """What any call brings along: no size of an argument is negative."""
    return [
        Statement(Relation(size, ">=", _ZERO), f"argument {number} dim {dim}")
        for number, dim, size in argument_dims(entry)
    ]


def entry_requirements(module: ModuleOp, entry: Entry) -> list[Requirement]:
    """All that the module asks of the sizes of an entry, cheap checks first and otherwise as written; then the sizes
    of results and intermediate tensors.

    A requirement that names a symbol which no argument binds is an error: no call could check it. One that stands
    outside the entry and has no symbol of it belongs to another entry.
    """
    bound = bound_symbols(entry)
    found: list[Requirement] = []
    for op in module.ops:
        # What the plan computes itself it guards where it is computed.
        if isinstance(op, SymbolOp) and op.symbol in bound and op.source_kind != "host":
            found.extend(bounds_of(op))
    for op, own in (*((each, False) for each in module.ops), *((each, True) for each in entry.body.walk())):
        if isinstance(op, RequireOp):
            found.extend(_checkable(op, op.relation.data, bound, "requirement", own))
        elif isinstance(op, CastOp):
            for relation in op.obligations():
                found.extend(_checkable(op, relation, bound, "obligation", own))
    found.sort(key=lambda each: cost(each.relation))
    once: dict[Relation, Requirement] = {}
    for each in (*found, *_sizes(entry)):
        once.setdefault(each.relation, each)
    return list(once.values())


def settle(entry: Entry, requirements: Sequence[Requirement]) -> tuple[list[Settled], Facts]:
    """Each requirement as proved or left to a guard, in order, and what holds once all guards have passed.

    Raises `TilewrightError` at the first requirement that no sizes can meet, with the statements it clashes with.
    """
    _check_coefficients(entry)
    shapes = shape_statements(entry)
    facts = Facts()
    for statement in shapes:
        facts.add(statement.relation, statement.where)
    contradiction = facts.contradiction()
    if contradiction is not None:
        why = explain_conflict(shapes) or contradiction
        raise error_at(entry, f"no call of @{entry.sym_name.data} is possible: {why}")
    settled: list[Settled] = []
    for number, each in enumerate(requirements):
        answer = facts.prove(each.relation)
        if answer is Answer.PROVED:
            settled.append(Settled(each, answer))
            continue
        statement = each.statement
        facts.add(each.relation, statement.where)
        contradiction = facts.contradiction()
        if answer is Answer.DISPROVED or contradiction is not None:
            before = [*shapes, *(earlier.statement for earlier in requirements[: number + 1])]
            why = explain_conflict(before) or contradiction or f"{statement} never holds"
            raise error_at(each.origin, f"no call of @{entry.sym_name.data} is possible: {why}")
        settled.append(Settled(each, Answer.UNKNOWN))
    return settled, facts


def check_statements(module: ModuleOp, entry: Entry) -> None:
    """Raise `TilewrightError` where what the module states excludes every call of the entry."""
    settle(entry, entry_requirements(module, entry))
    check_together(module, entry)


def check_together(module: ModuleOp, entry: Entry) -> None:
    """Raise `TilewrightError` where the statements of the module exclude one another.

    Those about symbols of other entries count too: the compiler uses all facts of a module together, and of facts that
    clash anything would follow.
    """
    statements = [r.statement for op in module.ops if isinstance(op, SymbolOp) for r in bounds_of(op)]
    statements += [Requirement(op.relation.data, "", op).statement for op in module.ops if isinstance(op, RequireOp)]
    facts = Facts()
    for statement in statements:
        facts.add(statement.relation, statement.where)
    contradiction = facts.contradiction()
    if contradiction is not None:
        why = explain_conflict(statements) or contradiction
        raise error_at(entry, f"the statements of the module exclude one another: {why}")


def bounds_of(op: SymbolOp) -> Iterator[Requirement]:
    """What the declaration of a symbol asks of its value."""
    symbol = Expr.symbol(op.symbol)
    low, high, divisor = op.lower_bound, op.upper_bound, op.divisor
    if low is not None and (op.min is not None or op.source_kind == "arg"):
        yield Requirement(Relation(symbol, ">=", Expr.const(low)), f"{op.symbol}: expected at least {low}", op)
    if high is not None:
        yield Requirement(Relation(symbol, "<=", Expr.const(high)), f"{op.symbol}: expected at most {high}", op)
    if divisor > 1:
        multiple = Relation(mod(symbol, divisor), "==", _ZERO)
        yield Requirement(multiple, f"{op.symbol}: expected a multiple of {divisor}", op)


def _checkable(op: Operation, relation: Relation, bound: frozenset[str], what: str, own: bool) -> Iterator[Requirement]:
    if not relation.symbols:
        if not relation.holds({}):
            raise error_at(op, f"{what} {relation} never holds")
        return
    unbound = sorted(relation.symbols - bound)
    if unbound:
        if len(unbound) == len(relation.symbols) and not own:
            return
        raise error_at(op, f"{what} {relation} cannot be checked: no argument binds {', '.join(unbound)}")
    place = location_of(op)
    where = "" if place is None else f" ({place})"
    yield Requirement(relation, f"{relation}: required by the program{where}", op)


def _sizes(entry: Entry) -> Iterator[Requirement]:
    computed = {op.symbol.data: op.value.data for op in entry.body.walk() if isinstance(op, LetOp)}
    for value, what, op in _made_tensors(entry):
        for size in partial_shape(value.type):
            # Before infer-shapes sizes may be open.
            if size is not None and size.constant is None:
                # The guard comes before the plan computes anything.
                size = size.substitute(computed)
                text = f"{size}: expected a size of {what} of at least 0"
                yield Requirement(Relation(size, ">=", _ZERO), text, op)


def _check_coefficients(entry: Entry) -> None:
    """Numbers of 64 bits and more in a size leave no size but 0 that a tensor can have; nor has one above 64 dims."""
    tensors: list[tuple[SSAValue, str, Operation]] = [
        (value, f"argument {number}", entry) for number, value in enumerate(entry.body.block.args)
    ]
    for value, what, op in [*tensors, *_made_tensors(entry)]:
        if is_tensor(value.type) and len(partial_shape(value.type)) > MAX_RANK:
            raise error_at(op, f"{what}: expected at most {MAX_RANK} dims, got {len(partial_shape(value.type))}")
    sizes = [(size, f"argument {number} dim {dim}", entry) for number, dim, size in argument_dims(entry)]
    for value, what, op in _made_tensors(entry):
        sizes += [(size, what, op) for size in partial_shape(value.type) if size is not None]
    for size, what, op in sizes:
        if any(abs(coefficient) >= 1 << 63 for _, coefficient in size.terms):
            raise error_at(op, f"{what}: expected coefficients below 2^63, got size {size}")


def _made_tensors(entry: Entry) -> Iterator[tuple[SSAValue, str, Operation]]:
    last = entry.body.block.last_op
    returned = last.operands if isinstance(last, func.ReturnOp) else ()
    for op in entry.body.walk():
        if isinstance(op, OutputOp | AllocOp):
            yield op.res, "a result" if isinstance(op, OutputOp) else "an intermediate tensor", op
        elif isinstance(entry, func.FuncOp) and op.parent_op() is entry:
            for value in op.results:
                if is_tensor(value.type):
                    yield value, "a result" if value in returned else "an intermediate tensor", op


__all__ = [
    "Entry",
    "Requirement",
    "Settled",
    "argument_dims",
    "bound_by",
    "bound_symbols",
    "check_statements",
    "check_together",
    "cost",
    "entry_requirements",
    "settle",
    "shape_statements",
]
