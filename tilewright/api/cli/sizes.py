"""Sizes for `run`: what the user gave, else what the program calls likely, else small ones; never against the program.

A bounded search: symbols in turn, each from a short list of candidates, every `sym.require` looked at as soon as its
symbols are known. Equations are solved rather than searched where they are linear in the symbol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import CastOp, Expr, Relation, RequireOp, SymbolOp, dims_of
from tilewright.runtime.binding import linear_parts

START = 64
"""Where sizes are counted up from that nobody has said anything about."""
CANDIDATES = 40
STEPS = 50_000


def parse_dims(words: Sequence[str]) -> dict[str, int]:
    """`["M=100", "N=7"]` as sizes by symbol."""
    found: dict[str, int] = {}
    for word in words:
        name, equals, size = word.partition("=")
        if not equals or not size.strip().isdecimal() or not name.strip().isidentifier():
            raise TilewrightError(f"--dim: expected SYMBOL=SIZE such as M=100, got {word!r}")
        if len(size.strip()) > 18:
            raise TilewrightError(f"--dim: expected a size that fits in 64 bits, got {size.strip()[:30]}...")
        if name.strip() in found:
            raise TilewrightError(f"--dim: {name.strip()} is given twice")
        found[name.strip()] = int(size)
    return found


def entry_symbols(function: func.FuncOp) -> list[str]:
    """Symbols in the shapes of the entry's arguments, in the order in which they are met."""
    found: dict[str, None] = {}
    for argument in function.body.block.args:
        if is_tensor(argument.type):
            for dim in dims_of(argument.type):
                found.update(dict.fromkeys(sorted(dim.symbols)))
    return list(found)


def choose_sizes(module: ModuleOp, function: func.FuncOp, given: Mapping[str, int]) -> dict[str, int]:
    """A size for each symbol of the entry that satisfies all that the program states of them.

    Raises `TilewrightError` for a given size that is refused, a symbol that is not there, and when the search finds
    no sizes.
    """
    symbols = entry_symbols(function)
    for name in given:
        if name not in symbols:
            raise TilewrightError(f"--dim: expected one of {', '.join(symbols) or 'no symbols'}, got {name}")
    declared = {op.symbol: op for op in module.ops if isinstance(op, SymbolOp)}
    relations = [op.relation.data for op in module.walk() if isinstance(op, RequireOp)]
    relations += [r for op in function.walk() if isinstance(op, CastOp) for r in op.obligations()]
    relations = [r for r in relations if r.symbols <= set(symbols)]
    zero = Expr.const(0)
    returned = function.body.block.last_op
    for value in (*function.body.block.args, *(() if returned is None else returned.operands)):
        if is_tensor(value.type):
            dims = [d for d in dims_of(value.type) if d.symbols and d.symbols <= set(symbols)]
            relations += [Relation(d, ">=", zero) for d in dims]
    for name, size in given.items():
        reason = refusal(declared.get(name), size)
        if reason:
            raise TilewrightError(f"--dim {name}={size}: {reason}")
    found = _search(symbols, declared, list(dict.fromkeys(relations)), dict(given))
    if found is None:
        broken = next((r for r in relations if r.symbols <= given.keys() and not r.holds(given)), None)
        if broken is not None:
            values = ", ".join(f"{s} = {given[s]}" for s in sorted(broken.symbols))
            raise TilewrightError(f"the program requires {broken}, got {values}")
        wishes = ", ".join(str(r) for r in relations[:4])
        raise TilewrightError(f"found no sizes that satisfy {wishes}: give some with --dim")
    return found


def refusal(op: SymbolOp | None, size: int) -> str:
    """Why a symbol cannot have this size; empty when it can."""
    low, high, divisor = (0, None, 1) if op is None else (op.lower_bound or 0, op.upper_bound, op.divisor)
    if size < low:
        return f"expected at least {low}"
    if high is not None and size > high:
        return f"expected at most {high}"
    return f"expected a multiple of {divisor}" if size % divisor else ""


def _candidates(op: SymbolOp | None) -> Iterator[int]:
    """Admissible sizes, best first: likely ones, then from 64 up, then from the largest one below 64 down."""
    low, high, divisor = (0, None, 1) if op is None else (op.lower_bound or 0, op.upper_bound, op.divisor)
    likely = () if op is None else op.likely_values
    yield from (size for size in likely if not refusal(op, size))
    first = -(-max(START, low) // divisor) * divisor
    for step in range(CANDIDATES):
        if high is not None and first + step * divisor > high:
            break
        yield first + step * divisor
    below = min(first - divisor, high if high is not None else first) // divisor * divisor
    while below >= low:
        yield below
        below -= divisor


def _search(
    symbols: Sequence[str], declared: Mapping[str, SymbolOp], relations: Sequence[Relation], fixed: dict[str, int]
) -> dict[str, int] | None:
    steps = 0

    def holds(values: Mapping[str, int], changed: str) -> bool:
        for relation in relations:
            if changed in relation.symbols and relation.symbols <= values.keys():
                try:
                    if not relation.holds(values):
                        return False
                except TilewrightError:  # a division by zero
                    return False
        return True

    def extend(values: dict[str, int]) -> dict[str, int] | None:
        nonlocal steps
        missing = [s for s in symbols if s not in values]
        if not missing:
            return values
        solved = solvable(missing, relations, values)
        name, options = solved if solved is not None else (missing[0], _candidates(declared.get(missing[0])))
        for size in islice(options, CANDIDATES * 3):
            steps += 1
            if steps > STEPS:
                return None
            if refusal(declared.get(name), size):
                continue
            tried = {**values, name: size}
            if holds(tried, name):
                found = extend(tried)
                if found is not None:
                    return found
        return None

    if any(not holds(fixed, name) for name in fixed):
        return None
    return extend(fixed)


def solvable(
    missing: Sequence[str], relations: Sequence[Relation], values: Mapping[str, int]
) -> tuple[str, Iterator[int]] | None:
    """A symbol that an equation determines once the others are known, with its one candidate (none if fractional)."""
    for relation in relations:
        unknown = relation.symbols - values.keys()
        if relation.op != "==" or len(unknown) != 1:
            continue
        name = next(iter(unknown))
        parts = linear_parts(relation.lhs - relation.rhs, name)
        if parts is None or name not in missing:
            continue
        factor, rest = parts[0].evaluate(values), parts[1].evaluate(values)
        if factor:
            return name, iter([-rest // factor] if rest % factor == 0 else [])
    return None
