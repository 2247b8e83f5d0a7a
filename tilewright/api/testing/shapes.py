"""Sizes worth a test: none, one, a tile less one, a tile, a tile and one, primes, and rarely more than a grid holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

import hypothesis.strategies as st
from hypothesis import assume
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.cli.sizes import entry_symbols, refusal, solvable
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import CastOp, Expr, Relation, RequireOp, SymbolOp, dims_of

TILE = 32
"""Edge of the small tiles, and the width of a warp."""
MAX_ELEMENTS = 1 << 14
"""Elements of one tensor that the strategies draw at most: the reference and the simulator stay at milliseconds."""
BEYOND_GRID = 65537
"""More blocks than the y and z dims of a CUDA grid have (65535), and a prime."""
_PRIMES = (5, 7, 13, 17, 37, 67, 101)


@cache
def _table(tile: int, low: int, high: int | None, multiple_of: int, huge: bool) -> tuple[int, ...]:
    """Sizes in ascending order, those worth most standing often: a smaller place is a smaller size."""
    least = -(-low // multiple_of) * multiple_of
    weights = dict.fromkeys(range(TILE + 2), 1)
    for size, weight in ((0, 2), (1, 5), (2, 3), (3, 3), (tile - 1, 4), (tile, 4), (tile + 1, 4), (2 * tile, 2)):
        weights[size] = weights.get(size, 0) + weight
    for size in (*_PRIMES, 4 * tile + 2):
        weights[size] = weights.get(size, 0) + 1
    # What is small among the admissible, which may all lie above the table.
    for step in range(4):
        weights[least + step * multiple_of] = weights.get(least + step * multiple_of, 0) + 2
    for size in [s for s in weights if s % multiple_of]:
        rounded = -(-size // multiple_of) * multiple_of
        weights[rounded] = weights.get(rounded, 0) + weights.pop(size)
    if huge:
        weights[-(-BEYOND_GRID // multiple_of) * multiple_of] = 1
    if high is not None:
        weights[high // multiple_of * multiple_of] = 2
    admissible = sorted(s for s in weights if s >= low and (high is None or s <= high))
    return tuple(s for s in admissible for _ in range(weights[s]))


def size_table(
    tile: int = TILE, *, low: int = 0, high: int | None = None, multiple_of: int = 1, huge: bool = False
) -> tuple[int, ...]:
    """The sizes that `sizes` draws from, ascending, each as often as its weight. TilewrightError if there is none."""
    found = _table(tile, max(low, 0), high, multiple_of, huge)
    if not found:
        raise TilewrightError(f"expected a multiple of {multiple_of} from {low} to {high}, found none")
    return found


def sizes(
    tile: int = TILE, *, low: int = 0, high: int | None = None, multiple_of: int = 1, huge: bool = False
) -> st.SearchStrategy[int]:
    """Values of one symbol: 0, 1, around `tile`, primes, and small numbers; with `huge` rarely 65537.

    All lie from `low` to `high` (unbounded if None) and are multiples of `multiple_of`. Shrinks to the least.
    """
    return st.sampled_from(size_table(tile, low=low, high=high, multiple_of=multiple_of, huge=huge))


def symbol_sizes(
    module: ModuleOp,
    entry: str | None = None,
    *,
    tile: int = TILE,
    max_elements: int = MAX_ELEMENTS,
    huge: bool = False,
) -> st.SearchStrategy[dict[str, int]]:
    """A size for each symbol of a function's arguments that satisfies all that the module states of them.

    `entry` names the function (the first one if None). What `sym.symbol` says (min, max, multiple_of) is kept by
    construction; a `sym.require` that is an equation linear in the symbol drawn last is solved, any other filters the
    choices. No argument or result has more than `max_elements` elements. An example that cannot be completed is
    rejected (`hypothesis.assume`). TilewrightError if there is no such function.
    """
    function = _function(module, entry)
    names = entry_symbols(function)
    declared = {op.symbol: op for op in module.ops if isinstance(op, SymbolOp) and op.symbol in names}
    options = {
        name: size_table(tile, low=op.lower_bound or 0, high=op.upper_bound, multiple_of=op.divisor, huge=huge)
        for name, op in declared.items()
    }
    relations = _relations(module, function, frozenset(names))
    return _solutions(_Scope(declared, options, relations, _shapes(function, frozenset(names)), max_elements))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What sizes are drawn for. Its `repr` is short: Hypothesis prints that of every argument."""

    declared: Mapping[str, SymbolOp] = field(repr=False)
    options: Mapping[str, Sequence[int]] = field(repr=False)
    """Admissible sizes of each symbol, ascending."""
    relations: Sequence[Relation] = field(repr=False)
    shapes: Sequence[Sequence[Expr]] = field(repr=False)
    max_elements: int = field(repr=False)

    def fitting(self, values: Mapping[str, int]) -> tuple[str, list[int]]:
        """The next symbol, one that an equation determines if there is any, and the sizes that it can have."""
        missing = [name for name in self.options if name not in values]
        solved = solvable(missing, self.relations, values)
        if solved is None:
            name, options = missing[0], self.options[missing[0]]
        else:
            # What is solved need not stand in the table.
            name = solved[0]
            options = [size for size in solved[1] if not refusal(self.declared[name], size)]
        return name, [n for n in options if self._possible({**values, name: n})]

    def _possible(self, values: Mapping[str, int]) -> bool:
        """Whether what these values decide holds, and no shape is too large already, the unknown dims counting 1."""
        try:
            if not all(r.holds(values) for r in self.relations if r.symbols <= values.keys()):
                return False
            known = [[d.evaluate(values) for d in shape if d.symbols <= values.keys()] for shape in self.shapes]
        except TilewrightError:  # a division by zero
            return False
        return all(prod(shape) <= self.max_elements for shape in known)


@st.composite
def _solutions(draw: st.DrawFn, scope: _Scope) -> dict[str, int]:
    values: dict[str, int] = {}
    while len(values) < len(scope.options):
        name, fitting = scope.fitting(values)
        assume(fitting)
        values[name] = draw(st.sampled_from(fitting))
    return {name: values[name] for name in scope.options}


def _function(module: ModuleOp, entry: str | None) -> func.FuncOp:
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    found = next((f for f in functions if entry is None or f.sym_name.data == entry), None)
    if found is None:
        raise TilewrightError(f"expected a function {'' if entry is None else f'@{entry} '}in the module, got none")
    return found


def _relations(module: ModuleOp, function: func.FuncOp, names: frozenset[str]) -> list[Relation]:
    relations = [op.relation.data for op in module.walk() if isinstance(op, RequireOp)]
    relations += [r for op in function.walk() if isinstance(op, CastOp) for r in op.obligations()]
    relations += [Relation(d, ">=", Expr.const(0)) for shape in _shapes(function, names) for d in shape if d.symbols]
    return [r for r in dict.fromkeys(relations) if r.symbols <= names]


def _shapes(function: func.FuncOp, names: frozenset[str]) -> list[tuple[Expr, ...]]:
    returned = function.body.block.last_op
    values = (*function.body.block.args, *(() if returned is None else returned.operands))
    shapes = [dims_of(value.type) for value in values if is_tensor(value.type)]
    return [shape for shape in shapes if all(d.symbols <= names for d in shape)]
