"""Facts about symbols in a scope, and questions about expressions over them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.bounds import Interval
from tilewright.dialects.sym.expr import Expr, as_expr, check_name, combine, from_terms
from tilewright.dialects.sym.forms import Statement, as_congruence, content
from tilewright.dialects.sym.knowledge import Knowledge
from tilewright.dialects.sym.operators import replace_atom
from tilewright.dialects.sym.prove import Answer, best_range, decided, never_zero, nonnegative
from tilewright.dialects.sym.relation import Relation

REFUTE_DEPTH: Final = 2
"""Facts combined to show a relation false everywhere. An UNKNOWN costs both searches, and DISPROVED saves a mask less
often than PROVED does."""
SHORT: Final = 1
"""Facts combined in the proofs that are tried first."""
MAX_QUERY_TERMS: Final = 512
"""Terms of a question above which its form and its interval are all that is looked at."""
MAX_NAMED: Final = 12
"""Statements that a contradiction spells out, beside the first."""
_DECIDED: Final = {True: Answer.PROVED, False: Answer.DISPROVED}


@dataclass(frozen=True, slots=True)
class Conflict:
    """Statements that cannot all hold."""

    statements: frozenset[str]
    """Each with the reason it was given, such as a location."""
    derived: str
    """What they would give, as in `S1 == 0`; empty where no single value tells."""

    def __str__(self) -> str:
        follows = f": {self.derived} would follow" if self.derived else ""
        if len(self.statements) == 1:
            return f"{next(iter(self.statements))} holds for no value{follows}"
        first, *others = sorted(self.statements)
        if len(others) > MAX_NAMED:
            others = [*others[:MAX_NAMED], f"{len(others) - MAX_NAMED} more"]
        return f"{first} contradicts {' and '.join(others)}{follows}"


class Facts:
    """A scope of facts: what is declared of symbols, and the relations that hold.

    Every answer is about all integer values of the symbols that satisfy the facts. A symbol that was not declared may
    be any integer. Where the facts contradict one another, everything is PROVED; ask `contradiction` first.
    """

    def __init__(self) -> None:
        self._knowledge = Knowledge()
        self._answers: dict[Relation | tuple[Expr, int], Answer] = {}
        self._ranges: dict[Expr, Interval] = {}

    def declare(
        self, name: str, min: int | None = 0, max: int | None = None, multiple_of: int = 1, reason: str = ""
    ) -> None:
        """State that `min <= name <= max` and that `multiple_of`, at least 1, divides it; None is no bound."""
        if multiple_of < 1:
            raise TilewrightError(f"multiple_of of '{name}' expected at least 1, got {multiple_of}")
        check_name(name)
        self._answers.clear()
        self._ranges.clear()
        self._knowledge.declare(name, min, max, multiple_of, reason)

    def add(self, relation: Relation, reason: str = "") -> None:
        """State that the relation holds. `reason` says where that comes from, as in 'kernel.mlir:3:5'."""
        reasons = frozenset((Statement((relation,), reason),))
        self._answers.clear()
        self._ranges.clear()
        if relation.op == "==":
            self._knowledge.add_zero(relation.lhs - relation.rhs, reasons)
        else:
            self._knowledge.add_nonnegative(_as_nonnegative(relation), reasons)

    def child(self) -> Facts:
        """A scope that starts with the facts of this one and keeps its own additions to itself."""
        scope = Facts()
        scope._knowledge = self._knowledge.copy()
        return scope

    def range(self, expr: Expr | int) -> Interval:
        """A least and a greatest value of the expression that are certain; None where none is known."""
        key = as_expr(expr)
        found = self._ranges.get(key)
        if found is None:
            found = self._ranges[key] = best_range(self._knowledge, key)
        return found

    def prove(self, relation: Relation) -> Answer:
        """Whether the relation holds wherever the facts do (PROVED), nowhere they do (DISPROVED), or UNKNOWN."""
        found = self._answers.get(relation)
        if found is None:
            try:
                found = self._prove(relation)
            except TilewrightError:
                # Over the size limits once the facts are put in, or without a value where they hold.
                found = Answer.UNKNOWN
            self._answers[relation] = found
        return found

    def equal(self, a: Expr | int, b: Expr | int) -> Answer:
        """Whether two expressions have the same value."""
        return self.prove(Relation(as_expr(a), "==", as_expr(b)))

    def divisible(self, expr: Expr | int, divisor: int) -> Answer:
        """Whether `divisor`, other than 0, divides the expression."""
        if divisor == 0:
            raise TilewrightError("divisible expected a divisor other than 0, got 0")
        key = (as_expr(expr), abs(divisor))
        found = self._answers.get(key)
        if found is None:
            self._knowledge.settle()
            try:
                found = self._divisible(self._knowledge.normal(key[0]), key[1], splits=2)
            except TilewrightError:
                found = Answer.UNKNOWN
            self._answers[key] = found
        return found

    def reasons(self, relation: Relation) -> frozenset[str] | None:
        """The statements that a proof of the relation rests on, each once; None unless the relation is PROVED.

        The set suffices for the proof. It may name a range that a shorter proof would not need.
        """
        if self.prove(relation) is not Answer.PROVED:
            return None
        knowledge = self._knowledge
        if knowledge.contradiction is not None:
            return frozenset(map(str, knowledge.contradiction))
        sides = [_as_nonnegative(relation)]
        if relation.op == "==":
            sides = [relation.lhs - relation.rhs, relation.rhs - relation.lhs]
        result = knowledge.solution_reasons(sides[0])
        for side in sides:
            found = nonnegative(knowledge, side)
            # A proof by divisibility alone leaves no trail: name everything known.
            result |= knowledge.all_reasons() if found is None else found
        return frozenset(map(str, result))

    def conflict(self) -> Conflict | None:
        """Statements that cannot all hold, or None when none are found."""
        knowledge = self._knowledge
        knowledge.settle()
        if knowledge.contradiction is not None:
            return Conflict(frozenset(map(str, knowledge.contradiction)), knowledge.derived)
        if knowledge.witnesses().any():
            # Everything known holds at a point.
            return None
        for expr, why in knowledge.facts.items():
            # Facts refuted by the others, such as S*T >= W + 1 and W >= S*T.
            found = nonnegative(knowledge, combine(expr, -1, constant=-1), depth=REFUTE_DEPTH)
            if found is not None:
                return Conflict(frozenset(map(str, why | found)), "")
        return None

    def contradiction(self) -> str | None:
        """The statements that cannot all hold, in one line, or None when no contradiction is found."""
        conflict = self.conflict()
        return None if conflict is None else str(conflict)

    def _prove(self, relation: Relation) -> Answer:
        knowledge = self._knowledge
        knowledge.settle()
        if knowledge.contradiction is not None:
            return Answer.PROVED
        if relation.op != "==":
            expr = knowledge.normal(_as_nonnegative(relation))
            if expr.constant is not None:
                return _DECIDED[expr.constant >= 0]
            low, high = knowledge.range_of(expr)
            if low is not None and low >= 0:
                return Answer.PROVED
            if high is not None and high < 0:
                return Answer.DISPROVED
            if expr.size > MAX_QUERY_TERMS or (not knowledge.facts and _is_affine(expr)):
                # Without facts between symbols, the interval of an affine form is all there is to know.
                return Answer.UNKNOWN
            if nonnegative(knowledge, expr, depth=SHORT) is not None:
                return Answer.PROVED
            # Before long searches, points where the facts hold: few relations without a short proof have a long one.
            below, zero, above = knowledge.witnesses().seen(expr)
            if not below and nonnegative(knowledge, expr) is not None:
                return Answer.PROVED
            if (
                not (zero or above)
                and nonnegative(knowledge, combine(expr, -1, constant=-1), depth=REFUTE_DEPTH) is not None
            ):
                return Answer.DISPROVED
            return Answer.UNKNOWN
        stated = relation.lhs - relation.rhs
        congruence = as_congruence(stated)
        if congruence is not None and congruence[2] == 0:
            answer = self._divisible(knowledge.normal(congruence[0]), congruence[1], splits=0)
            if answer is not Answer.UNKNOWN:
                return answer
        expr, _ = decided(knowledge, knowledge.normal(stated))
        if expr.constant is not None:
            return _DECIDED[expr.constant == 0]
        if never_zero(expr):
            return Answer.DISPROVED
        if expr.size > MAX_QUERY_TERMS:
            return Answer.UNKNOWN
        factor = content(expr)
        congruence = as_congruence(from_terms({m: c // factor for m, c in expr.terms}))
        if congruence is not None:
            numerator, size, remainder = congruence
            answer = Answer.DISPROVED
            if 0 <= remainder < size:
                answer = self._divisible(knowledge.normal(numerator - remainder), size, splits=2)
            if answer is not Answer.UNKNOWN:
                return answer
        if (
            nonnegative(knowledge, expr, depth=SHORT) is not None
            and nonnegative(knowledge, -expr, depth=SHORT) is not None
        ):
            return Answer.PROVED
        below, zero, above = knowledge.witnesses().seen(expr)
        at_least = not below and nonnegative(knowledge, expr) is not None
        if not below and not above and at_least and nonnegative(knowledge, -expr) is not None:
            return Answer.PROVED
        # Only expr > 0 or expr < 0 throughout refutes the equality.
        if not zero and not below and nonnegative(knowledge, expr - 1, depth=REFUTE_DEPTH) is not None:
            return Answer.DISPROVED
        if (
            not zero
            and not above
            and nonnegative(knowledge, combine(expr, -1, constant=-1), depth=REFUTE_DEPTH) is not None
        ):
            return Answer.DISPROVED
        return Answer.UNKNOWN

    def _divisible(self, expr: Expr, divisor: int, splits: int) -> Answer:
        rest = from_terms({m: c % divisor for m, c in expr.terms})
        if not rest.terms:
            return Answer.PROVED
        if rest.constant_term % gcd(content(rest), divisor):
            return Answer.DISPROVED
        for known, modulus in self._knowledge.congruences:
            # modulus divides known, so divisor divides times * known when it divides times * modulus.
            times = divisor // gcd(divisor, modulus)
            lead, coefficient = known.terms[0]
            target = dict(rest.terms).get(lead, 0)
            step = coefficient * times
            if target and target % gcd(step, divisor) == 0:
                common = gcd(step, divisor)
                factor = target // common * pow(step // common, -1, divisor // common) if divisor != common else 1
                reduced = rest - known * (times * factor)
                if all(c % divisor == 0 for _, c in reduced.terms):
                    return Answer.PROVED
        if splits > 0:
            for monomial, _ in rest.terms:
                for atom in monomial:
                    if atom.kind in ("min", "max"):
                        cases = [replace_atom(rest, atom, operand) for operand in atom.args]
                        answers = {self._divisible(case, divisor, splits - 1) for case in cases}
                        return answers.pop() if len(answers) == 1 else Answer.UNKNOWN
        return Answer.UNKNOWN


def _as_nonnegative(relation: Relation) -> Expr:
    """The expression that is at least 0 exactly where an inequality of integers holds; one side of an equality."""
    lhs, rhs = relation.lhs, relation.rhs
    match relation.op:
        case ">=" | "==":
            return lhs - rhs
        case ">":
            return combine(lhs, 1, rhs, -1, constant=-1)
        case "<=":
            return rhs - lhs
        case _:
            return combine(rhs, 1, lhs, -1, constant=-1)


def _is_affine(expr: Expr) -> bool:
    """Whether each term is a symbol times an integer."""
    return all(len(m) == 1 and m[0].kind == "symbol" for m, _ in expr.terms if m)
