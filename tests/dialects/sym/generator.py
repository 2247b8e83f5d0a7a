"""Random questions about symbolic expressions: a scope of declared symbols and facts, and a relation to prove.

One generator serves two sources of chance: a seeded `random.Random` for bulk runs (`seeded_case`), and Hypothesis,
which shrinks what it finds (`cases`). Expressions are trees that know nothing of the algebra under test; `to_expr`
hands one to the algebra, and the oracles read the tree itself.

Where the sizes come from: symbols have a window of at most 32 values when an oracle enumerates them, most symbols are
sizes or indices (from 0 or 1), divisors are tile sizes or other sizes, and questions are of the kinds lowering asks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from hypothesis import strategies as st

from tilewright.dialects.sym import Expr, Facts, Relation, ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.sym.relation import RELATION_OPS, RelationOp

NAMES: Final = ("a", "b", "c")
WINDOW: Final = range(-8, 24)
"""Values of a symbol that the enumerating oracle looks at; declared bounds lie inside."""
MAX_DEPTH: Final = 4
OPERATORS: Final = ("+", "-", "*", "floordiv", "ceildiv", "mod", "min", "max")

T = TypeVar("T")


class Chance(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """An integer between `low` and `high`, both included."""
        ...

    def choose(self, options: Sequence[T]) -> T:
        """One of the options."""
        ...


@dataclass(frozen=True, slots=True)
class Tree:
    """`op` is one of `OPERATORS`, or "symbol" or "integer" for a leaf with `name` or `value`."""

    op: str
    args: tuple[Tree, ...] = ()
    name: str = ""
    value: int = 0

    def nodes(self) -> Iterator[Tree]:
        """This node and all below it."""
        yield self
        for arg in self.args:
            yield from arg.nodes()

    def __str__(self) -> str:
        if not self.args:
            return self.name or (str(self.value) if self.value >= 0 else f"({self.value})")
        if self.op in ("min", "max"):
            return f"{self.op}({self.args[0]}, {self.args[1]})"
        return f"({self.args[0]} {self.op} {self.args[1]})"


@dataclass(frozen=True, slots=True)
class Question:
    """`lhs op rhs`."""

    lhs: Tree
    op: RelationOp
    rhs: Tree

    def nodes(self) -> Iterator[Tree]:
        """All nodes of both sides."""
        yield from self.lhs.nodes()
        yield from self.rhs.nodes()

    def __str__(self) -> str:
        return f"{self.lhs} {self.op} {self.rhs}"


@dataclass(frozen=True, slots=True)
class Declared:
    """A symbol with its bounds, None for no bound, and a divisor."""

    name: str
    low: int | None
    high: int | None
    multiple: int = 1

    @property
    def bounded(self) -> bool:
        """Whether both bounds are declared; they lie in `WINDOW`."""
        return self.low is not None and self.high is not None

    def window(self) -> range:
        """The values in `WINDOW` that are declared possible."""
        low = WINDOW.start if self.low is None else self.low
        high = WINDOW.stop - 1 if self.high is None else self.high
        return range(low + -low % self.multiple, high + 1, self.multiple)


@dataclass(frozen=True, slots=True)
class Case:
    """One question in a scope."""

    symbols: tuple[Declared, ...]
    facts: tuple[Question, ...]
    query: Question

    @property
    def bounded(self) -> bool:
        """Whether enumeration of the windows decides the question."""
        return all(s.bounded for s in self.symbols)

    def scope(self) -> Facts:
        """The facts, for the algebra."""
        facts = Facts()
        for s in self.symbols:
            facts.declare(s.name, s.low, s.high, s.multiple, reason=f"symbol {s.name}")
        for i, fact in enumerate(self.facts):
            facts.add(to_relation(fact), f"fact {i}")
        return facts

    def classes(self) -> frozenset[str]:
        """Operator classes of the query: its operators, products and divisions with a symbolic side told apart."""
        found: set[str] = {f"relation {self.query.op}"}
        for node in self.query.nodes():
            if node.op not in OPERATORS:
                continue
            symbolic = all(any(n.op == "symbol" for n in a.nodes()) for a in node.args)
            if node.op == "*":
                found.add("product of symbols" if symbolic else "multiple")
            elif node.op in ("floordiv", "ceildiv", "mod"):
                by_symbol = any(n.op == "symbol" for n in node.args[1].nodes())
                found.add(f"{node.op} by a symbol" if by_symbol else node.op)
            else:
                found.add(node.op)
        return frozenset(found)

    def __str__(self) -> str:
        symbols = ", ".join(f"{s.low} <= {s.name} <= {s.high} by {s.multiple}" for s in self.symbols)
        return f"{symbols}; {'; '.join(map(str, self.facts)) or 'no facts'} |- {self.query}"


def integer(value: int) -> Tree:
    """A leaf."""
    return Tree("integer", value=value)


def symbol(name: str) -> Tree:
    """A leaf."""
    return Tree("symbol", name=name)


def binary(op: str, left: Tree, right: Tree) -> Tree:
    """An inner node."""
    return Tree(op, (left, right))


_BUILD: Final = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "min": smin,
    "max": smax,
}


_VALUE: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "floordiv": operator.floordiv,
    "ceildiv": lambda x, y: (x + y - 1) // y,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
_HOLDS: Final = {"==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def to_expr(tree: Tree) -> Expr:
    """The expression of the algebra under test that the tree spells."""
    if tree.op == "integer":
        return Expr.const(tree.value)
    if tree.op == "symbol":
        return Expr.symbol(tree.name)
    return _BUILD[tree.op](to_expr(tree.args[0]), to_expr(tree.args[1]))


def to_relation(question: Question) -> Relation:
    """The relation of the algebra under test that the question spells."""
    return Relation(to_expr(question.lhs), question.op, to_expr(question.rhs))


def _leaf(chance: Chance, names: Sequence[str]) -> Tree:
    if chance.integer(0, 2) == 0:
        return integer(chance.integer(-4, 9))
    return symbol(chance.choose(names))


def _divisor(chance: Chance, names: Sequence[str]) -> Tree:
    if chance.integer(0, 3) == 0:
        return symbol(chance.choose(names))
    return integer(chance.choose((1, 2, 3, 4, 5, 6, 7, 8, 16)))


def expression(chance: Chance, names: Sequence[str], depth: int) -> Tree:
    """A tree of at most `depth` operators on any path; each operator equally often."""
    if depth == 0 or chance.integer(0, 4) == 0:
        return _leaf(chance, names)
    op = chance.choose(OPERATORS)
    left = expression(chance, names, depth - 1)
    if op in ("floordiv", "ceildiv", "mod"):
        return binary(op, left, _divisor(chance, names))
    return binary(op, left, expression(chance, names, depth - 1))


def _declared(chance: Chance, name: str, bounded: bool) -> Declared:
    low: int | None = chance.choose((-3, 0, 0, 0, 1, 1, 2))
    high: int | None = min(low + chance.choose((0, 1, 2, 3, 4, 6, 8, 12, 15, 20)), WINDOW.stop - 1)
    multiple = chance.choose((1, 1, 1, 1, 2, 3, 4))
    if low + -low % multiple > high:
        multiple = 1
    if not bounded:
        if chance.integer(0, 1):
            high = None
        if chance.integer(0, 3) == 0:
            low = None
    return Declared(name, low, high, multiple)


def _fact(chance: Chance, names: Sequence[str]) -> Question:
    x, y, z = (symbol(chance.choose(names)) for _ in range(3))
    match chance.choose(("range", "congruence", "equality", "coefficients", "product", "inequality", "inequality")):
        case "range":
            return Question(x, chance.choose((">=", "<=", ">", "<")), integer(chance.integer(-2, 20)))
        case "congruence":
            size = chance.integer(2, 6)
            of = chance.choose((x, binary("+", x, y), binary("*", x, y)))
            return Question(binary("mod", of, integer(size)), "==", integer(chance.integer(0, size - 1)))
        case "equality":
            return Question(x, "==", expression(chance, names, 2))
        case "coefficients":
            left = binary("*", integer(chance.integer(1, 4)), x)
            return Question(left, "==", binary("*", integer(chance.integer(1, 4)), y))
        case "product":
            return Question(binary("*", x, y), "==", z)
        case _:
            return Question(
                expression(chance, names, 2), chance.choose((">=", "<=", ">", "<")), expression(chance, names, 1)
            )


def value(tree: Tree, point: Mapping[str, int]) -> int | None:
    """The integer that the tree is at a point; None where it divides by zero."""
    if not tree.args:
        return point[tree.name] if tree.op == "symbol" else tree.value
    left, right = (value(a, point) for a in tree.args)
    if left is None or right is None or (right == 0 and tree.op in ("floordiv", "ceildiv", "mod")):
        return None
    return _VALUE[tree.op](left, right)


def holds(question: Question, point: Mapping[str, int]) -> bool:
    """Whether the relation has a value at a point and is true."""
    left, right = value(question.lhs, point), value(question.rhs, point)
    return left is not None and right is not None and _HOLDS[question.op](left, right)


def _facts(chance: Chance, symbols: Sequence[Declared]) -> tuple[Question, ...]:
    """Up to four facts. All but one case in ten keep to those true at one point, lest most scopes be empty."""
    names = [s.name for s in symbols]
    witness = {s.name: chance.choose(s.window()) for s in symbols}
    anything = chance.integer(0, 9) == 0
    result: list[Question] = []
    for _ in range(chance.choose((0, 0, 1, 1, 2, 3, 4))):
        for _ in range(6):
            fact = _fact(chance, names)
            if anything or holds(fact, witness):
                result.append(fact)
                break
    return tuple(result)


def _free(chance: Chance, names: Sequence[str]) -> Question:
    return Question(expression(chance, names, MAX_DEPTH), chance.choose(RELATION_OPS), expression(chance, names, 2))


def _lemma(chance: Chance, names: Sequence[str]) -> Question:
    """A relation that holds for all values, about expressions of any shape; divisors are at least 1."""
    e = expression(chance, names, 3)
    f = expression(chance, names, 2)
    size = integer(chance.choose((2, 3, 4, 5, 8, 16)))
    match chance.integer(0, 9):
        case 0:
            return Question(binary("*", binary("ceildiv", e, size), size), ">=", e)
        case 1:
            return Question(binary("*", binary("floordiv", e, size), size), "<=", e)
        case 2:
            return Question(binary("mod", e, size), "<", size)
        case 3:
            return Question(binary("min", e, f), "<=", f)
        case 4:
            return Question(binary("max", e, f), ">=", e)
        case 5:
            return Question(binary("+", binary("min", e, f), binary("max", e, f)), "==", binary("+", e, f))
        case 6:
            return Question(binary("mod", binary("+", binary("*", f, size), e), size), "==", binary("mod", e, size))
        case 7:
            return Question(binary("-", binary("ceildiv", e, size), binary("floordiv", e, size)), "<=", integer(1))
        case 8:
            both = binary("+", binary("ceildiv", e, size), binary("ceildiv", f, size))
            return Question(both, ">=", binary("ceildiv", binary("+", e, f), size))
        case _:
            twice = binary("floordiv", binary("floordiv", e, size), integer(3))
            return Question(twice, "==", binary("floordiv", e, integer(3 * size.value)))


def _bound(chance: Chance, names: Sequence[str]) -> Question:
    e = expression(chance, names, 3)
    return Question(
        e, chance.choose((">=", "<=", ">", "<")), integer(chance.choose((-64, -16, -4, -1, 0, 1, 8, 30, 100)))
    )


def _multiple(chance: Chance, names: Sequence[str]) -> Question:
    size = chance.choose((2, 3, 4, 6, 8))
    e = binary("*", integer(size), expression(chance, names, 2))
    if chance.integer(0, 1):
        e = binary("+", e, expression(chance, names, 1))
    return Question(binary("mod", e, integer(chance.choose((2, size)))), "==", integer(0))


def case(chance: Chance) -> Case:
    """One question: half free, the rest bounds, divisibility and lemmas on expressions of any shape."""
    names = NAMES[: chance.choose((1, 2, 2, 3))]
    bounded = chance.integer(0, 3) > 0
    symbols = tuple(_declared(chance, name, bounded) for name in names)
    facts = _facts(chance, symbols)
    kind = chance.choose((_free, _free, _free, _free, _bound, _multiple, _lemma, _lemma))
    return Case(symbols, facts, kind(chance, names))


class _Seeded:
    def __init__(self, random: Random) -> None:
        self.random = random

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def choose(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]


def seeded_case(seed: int) -> Case:
    """The case of this seed, the same everywhere."""
    return case(_Seeded(Random(seed)))


class _Drawn:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def choose(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Hypothesis's strategy of the same cases."""
    return case(_Drawn(draw))
