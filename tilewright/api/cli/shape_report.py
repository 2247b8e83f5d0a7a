"""What is known of the shapes of an entry: its values, its symbols, and every requirement with what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.interfaces import Decomposable, InferShapes
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import (
    Answer,
    Expr,
    Facts,
    Relation,
    RequireOp,
    SymbolOp,
    declared_symbols,
    dims_of,
    mod,
)
from tilewright.lowering.host_conflicts import Statement, proof
from tilewright.lowering.host_requirements import (
    Requirement,
    Settled,
    entry_requirements,
    settle,
    shape_statements,
)
from tilewright.passes.decompose import DecomposePass
from tilewright.runtime.binding import Check, Solve, size_steps
from tilewright.runtime.variants import copy_module

MAX_MODULUS = 4096
"""Largest modulus that is tried as a congruence of a symbol."""
MAX_REMAINDERS = 64
"""Largest modulus of which remainders other than 0 are tried."""

Rows = list[tuple[str, ...]]
_GUARD = ("guard", "checked at each call")


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """Tables as rows of text, the heading first."""

    entry: str
    place: str
    values: Rows
    symbols: Rows
    requirements: Rows

    def __str__(self) -> str:
        tables = (self.values, self.symbols, self.requirements)
        parts = [_table(rows) for rows in tables if len(rows) > 1]
        return "\n".join([f"entry @{self.entry} ({self.place})\n", *parts])


def shape_report(module: ModuleOp, function: func.FuncOp) -> ShapeReport:
    """The report on an entry whose shapes are inferred. Raises `TilewrightError` where no call is possible, with the
    statements that exclude it, or where no size determines a symbol."""
    copied = copy_module(module)
    entry = _entry(copied, function)
    steps = size_steps(entry)
    _state_needs(copied, entry)
    requirements = entry_requirements(copied, entry)
    settled, facts = settle(entry, requirements)
    names = value_names(entry)
    return ShapeReport(
        entry.sym_name.data,
        _place(entry),
        [("value", "shape", "type", "place"), *_values(entry, names)],
        [("symbol", "declared", "likely", "bound by", "known"), *_symbols(copied, steps, names, entry, settled, facts)],
        [
            ("requirement", "place", "verdict", "because"),
            *_checked_sizes(steps, names, entry),
            *_verdicts(entry, settled),
            *_implied(entry, settled, names),
        ],
    )


def _entry(module: ModuleOp, function: func.FuncOp) -> func.FuncOp:
    """The function of the same name in a copy of the module."""
    return next(op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == function.sym_name.data)


def _state_needs(module: ModuleOp, entry: func.FuncOp) -> None:
    """Put in front of the entry's ops what named ops need beyond their shapes (a window inside its image), which they
    state when they are decomposed."""
    meant = copy_module(module)
    DecomposePass().apply(make_context(), meant)
    stated = {op.relation for op in entry.walk() if isinstance(op, RequireOp)}
    first = entry.body.block.first_op
    for op in _entry(meant, entry).walk():
        if isinstance(op, RequireOp) and op.relation not in stated and first is not None:
            needed = op.clone()
            needed.location = op.location
            entry.body.block.insert_op_before(needed, first)
            stated.add(op.relation)


def value_names(function: func.FuncOp) -> dict[SSAValue, str]:
    """The name of each value of the entry as its text has it; those without a name are numbered in order."""
    found: dict[SSAValue, str] = {}
    taken: set[str] = set()
    number = 0
    values = [*function.body.block.args, *(result for op in function.body.block.ops for result in op.results)]
    for value in values:
        name = value.name_hint
        if name is None:
            name, number = str(number), number + 1
        unique, suffix = name, 0
        while unique in taken:
            suffix += 1
            unique = f"{name}_{suffix}"
        taken.add(unique)
        found[value] = f"%{unique}"
    return found


def _place(op: Operation) -> str:
    place = location_of(op)
    return "no place" if place is None else str(place)


def _table(rows: Rows) -> str:
    """Left-aligned columns, two blanks apart, without blanks at the ends of lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def _values(entry: func.FuncOp, names: dict[SSAValue, str]) -> Iterator[tuple[str, ...]]:
    last = entry.body.block.last_op
    returned = list(last.operands) if isinstance(last, func.ReturnOp) else []
    for value, name in names.items():
        roles = [f"result {number}" for number, result in enumerate(returned) if result is value]
        if value in entry.body.block.args:
            roles.insert(0, f"argument {entry.body.block.args.index(value)}")
        place = _place(value.owner if isinstance(value.owner, Operation) else entry)
        if is_tensor(value.type):
            shape = f"[{', '.join(str(size) for size in dims_of(value.type))}]"
            yield name, shape, str(value.type.element_type), ", ".join([*roles, place])
        else:
            yield name, "scalar", str(value.type), ", ".join([*roles, place])


def _symbols(
    module: ModuleOp,
    steps: Sequence[Solve | Check],
    names: dict[SSAValue, str],
    entry: func.FuncOp,
    settled: Sequence[Settled],
    facts: Facts,
) -> Iterator[tuple[str, ...]]:
    moduli = _moduli([each.requirement for each in settled])
    declared = declared_symbols(module)
    order = list(declared)
    for step in sorted((s for s in steps if isinstance(s, Solve)), key=lambda s: order.index(s.symbol)):
        op = declared[step.symbol]
        bound = f"{names[entry.body.block.args[step.argument]]} dim {step.dim}"
        expr = step.factor * Expr.symbol(step.symbol) + step.rest
        if expr != Expr.symbol(step.symbol):
            bound += f" = {expr}"
        likely = ", ".join(str(size) for size in op.likely_values)
        yield step.symbol, _declaration(op), likely or "-", bound, known_of(step.symbol, moduli, facts)


def _declaration(op: SymbolOp) -> str:
    bounds = (("min", op.min), ("max", op.max), ("multiple_of", op.multiple_of))
    return ", ".join(f"{name} {value.value.data}" for name, value in bounds if value is not None) or "-"


def _moduli(requirements: Sequence[Requirement]) -> list[int]:
    """Numbers that a congruence may go by: those in the requirements, their least common multiples and divisors."""
    found: set[int] = set()
    for each in requirements:
        for expr in (each.relation.lhs, each.relation.rhs):
            for monomial, coefficient in expr.terms:
                found.add(abs(coefficient))
                found.update(abs(a.args[1].constant or 1) for a in monomial if a.kind == "floordiv")
    found = {lcm(a, b) for a in found for b in found if lcm(a, b) <= MAX_MODULUS}
    found |= {d for k in found for d in range(2, min(k, MAX_REMAINDERS) + 1) if k % d == 0}
    return sorted((k for k in found if k >= 2), reverse=True)


def known_of(symbol: str, moduli: Sequence[int], facts: Facts) -> str:
    """Range and congruence of a symbol: `16..4096, multiple of 16`, `>= 0`, `== 7`, `>= 1, 3 mod 8`."""
    expr = Expr.symbol(symbol)
    low, high = facts.range(expr)
    if low is not None and low == high:
        return f"== {low}"
    parts: list[str] = []
    if low is not None:
        parts.append(f">= {low}" if high is None else f"{low}..{high}")
    elif high is not None:
        parts.append(f"<= {high}")
    multiple = 1
    for modulus in moduli:
        if multiple % modulus and facts.divisible(expr, modulus) is Answer.PROVED:
            multiple = lcm(multiple, modulus)
    if multiple > 1:
        parts.append(f"multiple of {multiple}")
        return ", ".join(parts)
    for modulus in (k for k in moduli if k <= MAX_REMAINDERS):
        for remainder in range(1, modulus):
            if facts.prove(Relation(mod(expr, modulus), "==", Expr.const(remainder))) is Answer.PROVED:
                return ", ".join([*parts, f"{remainder} mod {modulus}"])
    return ", ".join(parts) or "any"


def _checked_sizes(
    steps: Sequence[Solve | Check], names: dict[SSAValue, str], entry: func.FuncOp
) -> Iterator[tuple[str, ...]]:
    for step in steps:
        if isinstance(step, Check):
            value = entry.body.block.args[step.argument]
            yield f"{names[value]} dim {step.dim} == {step.expr}", f"argument {step.argument}", *_GUARD


def _guarded(settled: Sequence[Settled]) -> list[Statement]:
    return [each.requirement.statement for each in settled if each.answer is not Answer.PROVED]


def _because(statements: Sequence[Statement], relation: Relation) -> str:
    found = proof(statements, relation)
    if found is None:
        # The compiler had a proof in which they came in another order: all of them is what it rests on.
        found = statements
    return " and ".join(map(str, found)) or "it always holds"


def _verdicts(entry: func.FuncOp, settled: Sequence[Settled]) -> Iterator[tuple[str, ...]]:
    """A row for each requirement of the program."""
    for number, each in enumerate(settled):
        relation, origin = each.requirement.relation, each.requirement.origin
        place = f"{origin.name} {_place(origin)}"
        if each.answer is Answer.PROVED:
            known = [*shape_statements(entry), *_guarded(settled[:number])]
            yield str(relation), place, "proved", _because(known, relation)
        else:
            yield str(relation), place, *_GUARD


def _implied(entry: func.FuncOp, settled: Sequence[Settled], names: dict[SSAValue, str]) -> Iterator[tuple[str, ...]]:
    """Equal sizes that ops take for granted; `infer-shapes` has refused what is not proved."""
    known = [*shape_statements(entry), *_guarded(settled)]
    for op in list(entry.body.block.ops):
        if not isinstance(op, InferShapes):
            continue
        pairs: dict[tuple[str, str], tuple[Expr, Expr]] = {}
        for (left, left_dim), (right, right_dim) in equal_sizes(op):
            key = f"{names[left]} dim {left_dim}", f"{names[right]} dim {right_dim}"
            pairs[key] = dims_of(left.type)[left_dim], dims_of(right.type)[right_dim]
        for (left, right), (a, b) in pairs.items():
            why = f"both are {a}" if a is b else _because(known, Relation(a, "==", b))
            yield f"{left} == {right}", f"{op.name} {_place(op)}", "proved", why


def equal_sizes(op: InferShapes) -> list[tuple[tuple[SSAValue, int], tuple[SSAValue, int]]]:
    """Pairs of (operand or result, dim) that the op needs to be equal, from the iteration dims that they share.

    The op's decomposition is built in front of it and left there: it is for a copy that nobody runs.
    """
    values = {*op.operands, *op.results}
    same: dict[SSAValue, SSAValue] = {}
    found: list[tuple[tuple[SSAValue, int], tuple[SSAValue, int]]] = []
    for generic in _generics(op, same):
        shared: dict[int, tuple[SSAValue, int]] = {}
        result = same.get(generic.result, generic.result)
        for value, map_ in (*zip(generic.ins, generic.operand_maps, strict=True), (result, generic.out_map)):
            for dim, iteration_dim in enumerate(map_):
                if iteration_dim is None or value not in values:
                    continue
                first = shared.setdefault(iteration_dim, (value, dim))
                # That a result has its operands' sizes is how it got its type, unless it is stated in another form.
                stated = value in op.results and dims_of(first[0].type)[first[1]] is dims_of(value.type)[dim]
                if first != (value, dim) and not stated:
                    found.append((first, (value, dim)))
    return found


def _generics(op: Operation, same: dict[SSAValue, SSAValue]) -> Iterator[GenericOp]:
    """The generics that an op means; `same` maps their results to those of the op that they stand for."""
    block = op.parent_block()
    if isinstance(op, GenericOp):
        yield op
    elif isinstance(op, Decomposable) and block is not None:
        before = set(block.ops)
        made = op.decomposition(Builder(InsertPoint.before(op)))
        for inner, outer in zip(made, op.results, strict=True):
            same[inner] = same.get(outer, outer)
        for each in list(block.ops):
            if each not in before:
                yield from _generics(each, same)


__all__ = ["ShapeReport", "equal_sizes", "known_of", "shape_report", "value_names"]
