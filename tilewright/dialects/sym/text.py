"""The text of an expression: what IR prints and `parse_expr` reads back to the same object.

The canonical form knows only floor division; this module recognises `a ceildiv b` and `a mod b` in it, so that a text
comes back as it was written. The rules only regroup terms: the text always means exactly the expression given.
"""

from __future__ import annotations

from tilewright.dialects.sym.expr import Atom, Expr, Monomial, divide_monomial
from tilewright.dialects.sym.remainders import take_remainder


def expression_text(expr: Expr) -> str:
    """`expr` in the grammar of `parse_expr`, with `*`, `floordiv`, `ceildiv` and `mod` binding alike, left to right."""
    if not expr.terms:
        return "0"
    rest = dict(expr.terms)
    pieces: list[tuple[int, str]] = []
    for monomial, _ in expr.terms:
        if monomial not in rest:
            continue
        division = next((a for a in monomial if a.kind == "floordiv"), None)
        if division is not None:
            piece = _mod_piece(rest, monomial, division) or _symbolic_ceildiv_piece(rest, monomial, division)
            if piece is not None:
                pieces.append(piece)
    # Terms that nothing absorbed, in canonical order; the recognised remainders come first, being of higher degree.
    pieces.extend(_term_piece(m, rest[m]) for m, _ in expr.terms if m in rest)
    if () in rest and expr.constant_term == 0:
        pieces.append(_term_piece((), rest[()]))
    text = ""
    for coefficient, body in sorted(pieces, key=lambda p: p[1] == ""):
        magnitude = abs(coefficient)
        piece = str(magnitude) if not body else body if magnitude == 1 else f"{magnitude}*{body}"
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + piece
    return text or "0"


def _term_piece(monomial: Monomial, coefficient: int) -> tuple[int, str]:
    alone = len(monomial) == 1 and abs(coefficient) == 1
    return coefficient, "*".join(_atom_text(a, alone and coefficient == 1) for a in monomial)


def _mod_piece(rest: dict[Monomial, int], monomial: Monomial, division: Atom) -> tuple[int, str] | None:
    """Take `f mod d`, perhaps times a product, out of `rest` where every term of it is there."""
    piece = take_remainder(rest, monomial, division)
    if piece is None:
        return None
    text = f"{_operand(piece.numerator)} mod {_operand(piece.denominator)}"
    return piece.scale, _product_text(piece.others, text, piece.scale)


def _symbolic_ceildiv_piece(rest: dict[Monomial, int], monomial: Monomial, division: Atom) -> tuple[int, str] | None:
    """Take `c*R*((f - 1) floordiv d) + c*R` out of `rest` as `c*R*(f ceildiv d)`, for a divisor that is no constant."""
    numerator, denominator = division.args
    others = divide_monomial(monomial, (division,))
    coefficient = rest[monomial]
    if denominator.constant is not None or numerator.constant_term != -1 or others is None:
        return None
    if rest.get(others) != coefficient:
        return None
    del rest[monomial], rest[others]
    return coefficient, _product_text(others, f"{_operand(numerator + 1)} ceildiv {_operand(denominator)}", coefficient)


def _product_text(others: Monomial, division: str, coefficient: int) -> str:
    if not others and coefficient == 1:
        return division
    return "*".join([*(_atom_text(a, False) for a in others), f"({division})"])


def _atom_text(atom: Atom, alone: bool) -> str:
    """Text of a factor; a division stands in parentheses unless it is a whole summand."""
    if atom.kind == "symbol":
        return atom.name
    if atom.kind != "floordiv":
        return f"{atom.kind}({', '.join(str(a) for a in atom.args)})"
    numerator, denominator = atom.args
    size = denominator.constant
    if size is not None and numerator.constant_term == size - 1:
        text = f"{_operand(numerator - (size - 1))} ceildiv {size}"
    else:
        text = f"{_operand(numerator)} floordiv {_operand(denominator)}"
    return text if alone else f"({text})"


def _operand(expr: Expr) -> str:
    """Text of an operand of a division: in parentheses unless it is a symbol, an extremum or a natural number."""
    if expr.constant is not None and expr.constant >= 0:
        return str(expr)
    if len(expr.terms) == 1:
        monomial, coefficient = expr.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0].kind != "floordiv":
            return str(expr)
    return f"({expr})"
