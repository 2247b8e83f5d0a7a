"""The grammar of expressions and relations, once, over any source of tokens; and the reader of plain strings.

    relation := sum ("==" | ">=" | "<=" | ">" | "<") sum
    sum      := product (("+" | "-") product)*
    product  := factor (("*" | "floordiv" | "ceildiv" | "mod") factor)*
    factor   := "-" factor | integer | name | "(" sum ")" | ("min" | "max") "(" sum ("," sum)* ")"

The IR parser feeds the same grammar from its own lexer (`attributes.parse_expr_from`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import KEYWORDS, MAX_NESTING, MAX_TERMS, Expr, total
from tilewright.dialects.sym.operators import ceildiv, floordiv, mod, smax, smin
from tilewright.dialects.sym.relation import RELATION_OPS, Relation, RelationOp

_DIVISIONS: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {"floordiv": floordiv, "ceildiv": ceildiv, "mod": mod}
_EXTREMA: Final[dict[str, Callable[..., Expr]]] = {"min": smin, "max": smax}
_TOKEN: Final = re.compile(r"\s*(?:(?P<integer>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>==|>=|<=|[-+*(),<>]))")
MAX_WORK: Final = 4 * MAX_TERMS
"""Terms that the products, divisions and extrema of one text may go through."""
_MAX_DIGITS: Final = 78


class SymSyntaxError(TilewrightError):
    """A text that is no expression; `column` counts from 1 within the text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"column {column}: {message}")
        self.column = column


class Tokens(Protocol):
    """What the grammar asks of a lexer: each `take` consumes a token or leaves everything as it was."""

    def take(self, mark: str) -> bool:
        """Consume this punctuation or keyword, if it comes next."""
        ...

    def take_relation(self) -> RelationOp | None:
        """Consume one of `==`, `>=`, `<=`, `>` and `<`, if one comes next."""
        ...

    def take_integer(self) -> int | None:
        """Consume a natural number, if one comes next."""
        ...

    def take_name(self) -> str | None:
        """Consume an identifier, if one comes next."""
        ...

    def mark(self) -> int:
        """The place of the next token, for `fail`."""
        ...

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise the error of this source, at the next token or at a marked place."""
        ...


class ExprReader:
    """Reads expressions off a token source, stopping at the first token that does not continue them."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self._operand = tokens.mark()
        self._terms = 0
        self._work = 0

    def relation(self) -> Relation:
        """Read `sum op sum`."""
        lhs = self.expression()
        op = self.tokens.take_relation()
        if op is None:
            self.tokens.fail(f"expected one of {' '.join(RELATION_OPS)}")
        return Relation(lhs, op, self.expression())

    def expression(self) -> Expr:
        """Read one sum; errors of the algebra, such as a zero divisor, point at the operand last begun."""
        try:
            return self._sum(0)
        except SymSyntaxError:
            raise
        except TilewrightError as error:
            self.tokens.fail(error.message, self._operand)

    def _sum(self, depth: int) -> Expr:
        take = self.tokens.take
        summands = [self._product(depth)]
        while True:
            if take("+"):
                summands.append(self._product(depth))
            elif take("-"):
                summands.append(-self._product(depth))
            else:
                return summands[0] if len(summands) == 1 else total(summands)

    def _product(self, depth: int) -> Expr:
        take = self.tokens.take
        result = self._factor(depth)
        while True:
            if take("*"):
                factor = self._factor(depth)
                self._spend(len(result.terms) * len(factor.terms))
                result = result * factor
                continue
            division = next((f for word, f in _DIVISIONS.items() if take(word)), None)
            if division is None:
                return result
            divisor = self._factor(depth)
            self._spend(result.size + divisor.size)
            result = division(result, divisor)

    def _spend(self, terms: int) -> None:
        """Count the terms that products and divisions go through: a short text must not take long."""
        self._work += terms
        if self._work > MAX_WORK:
            self.tokens.fail(f"expression too large: expected at most {MAX_WORK} terms to multiply out", self._operand)

    def _factor(self, depth: int) -> Expr:
        tokens = self.tokens
        negative = False
        while tokens.take("-"):
            negative = not negative
        result = self._primary(depth)
        return -result if negative else result

    def _primary(self, depth: int) -> Expr:
        tokens = self.tokens
        if depth > MAX_NESTING:
            tokens.fail(f"expression nested too deeply: expected at most {MAX_NESTING} levels")
        self._operand = tokens.mark()
        self._terms += 1
        if self._terms > MAX_TERMS:
            tokens.fail(f"expression too large: expected at most {MAX_TERMS} terms, got more")
        if tokens.take("("):
            result = self._sum(depth + 1)
            self._close()
            return result
        if (value := tokens.take_integer()) is not None:
            return Expr.const(value)
        for word, function in _EXTREMA.items():
            if tokens.take(word):
                if not tokens.take("("):
                    tokens.fail(f"expected '(' after '{word}'")
                operands = [self._sum(depth + 1)]
                while tokens.take(","):
                    operands.append(self._sum(depth + 1))
                self._close()
                self._spend(sum(o.size for o in operands))
                return function(*operands)
        name = tokens.take_name()
        if name is None:
            tokens.fail("expected an integer, a symbol, '(', '-', min or max")
        if name in KEYWORDS:
            tokens.fail(f"expected an operand, got '{name}'", self._operand)
        return Expr.symbol(name)

    def _close(self) -> None:
        if not self.tokens.take(")"):
            self.tokens.fail("expected ')'")


class _StringTokens:
    """Tokens of a plain string, found as they are asked for: what follows an error is not looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text.rstrip())
        self.position = 0
        self.token = self._token()

    def _token(self) -> tuple[str, str, int]:
        """The next token: its kind, its text and its column."""
        if self.position >= self.end:
            return "end", "", self.end + 1
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            found = self.text[self.position : self.end].lstrip()
            raise SymSyntaxError(f"unexpected character {found[0]!r}", self.text.index(found[0], self.position) + 1)
        self.position = match.end()
        kind = match.lastgroup or ""
        return kind, match.group(kind), match.start(kind) + 1

    def take(self, mark: str) -> bool:
        kind, text, _ = self.token
        if text != mark or kind in ("end", "integer"):
            return False
        self.token = self._token()
        return True

    def take_relation(self) -> RelationOp | None:
        return next((op for op in RELATION_OPS if self.take(op)), None)

    def take_integer(self) -> int | None:
        kind, text, _ = self.token
        if kind != "integer":
            return None
        if len(text) > _MAX_DIGITS:
            self.fail(f"integer too large: expected at most {_MAX_DIGITS} digits, got {len(text)}")
        self.token = self._token()
        return int(text)

    def take_name(self) -> str | None:
        kind, text, _ = self.token
        if kind != "name":
            return None
        self.token = self._token()
        return text

    def mark(self) -> int:
        return self.token[2]

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        kind, text, column = self.token
        if at is not None:
            raise SymSyntaxError(message, at)
        found = "the end" if kind == "end" else f"'{text[:40]}'"
        raise SymSyntaxError(f"{message}, got {found}" if "got " not in message else message, column)

    def finish(self) -> None:
        if self.token[0] != "end":
            self.fail("expected an operator or the end")


def parse_expr(text: str) -> Expr:
    """The expression that `text` spells; raises `SymSyntaxError` with the column of the fault."""
    tokens = _StringTokens(text)
    result = ExprReader(tokens).expression()
    tokens.finish()
    return result


def parse_relation(text: str) -> Relation:
    """The relation that `text` spells; raises `SymSyntaxError` with the column of the fault."""
    tokens = _StringTokens(text)
    result = ExprReader(tokens).relation()
    tokens.finish()
    return result
