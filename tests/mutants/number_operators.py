"""Faults in numbers and arithmetic: bounds, rounding, pitches, dims."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from tests.mutants.headers import Header
from tests.mutants.operators import SYMMETRIC, Edit, Operator, alike, between, guarded, replaced, twins
from tests.mutants.source import Place, Source, called


class Boundary(Operator):
    """`<` for `<=`, `>` for `>=` and the reverse, also in relations and predicates: the last element is in or out."""

    name = "boundary"
    quota = 7
    SIGNS: ClassVar[Mapping[type[ast.cmpop], tuple[str, str]]] = {
        ast.Lt: ("<", "<="),
        ast.LtE: ("<=", "<"),
        ast.Gt: (">", ">="),
        ast.GtE: (">=", ">"),
    }
    TEXTS: ClassVar[Mapping[str, str]] = twins(("<", "<="), (">", ">="), *((f"{u}lt", f"{u}le") for u in "su")) | twins(
        *((f"{u}gt", f"{u}ge") for u in "su")
    )

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Compare(left=left, ops=ops, comparators=rights):
                    for a, op, b in zip([left, *rights], ops, rights, strict=False):
                        if type(op) in self.SIGNS:
                            yield from between(source, place, a, b, *self.SIGNS[type(op)])
                case ast.Constant(value=str(text)) if text in self.TEXTS and not isinstance(place.parent, ast.Compare):
                    yield replaced(source, place, f'"{self.TEXTS[text]}"')
                case _:
                    pass

    def header_sites(self, header: Header) -> Iterator[Edit]:
        for m in header.found(r"(?<= )(<=|>=|<|>)(?= )"):
            yield Edit(m.start(), m.end(), self.TEXTS[m[0]])


class _Shifted(Operator):
    """A whole number in arithmetic, a comparison or an argument, moved by one."""

    by: ClassVar[int]

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Constant(value=int(value)) if not isinstance(value, bool) and self._counts(place):
                    yield replaced(source, place, guarded(str(value + self.by)))
                case _:
                    pass

    @staticmethod
    def _counts(place: Place) -> bool:
        parent = place.parent
        if isinstance(parent, ast.UnaryOp):
            parent = place.parents[1]
        if isinstance(parent, ast.Call):
            return called(parent.func) not in ("get_args", "lru_cache")
        return isinstance(parent, ast.BinOp | ast.Compare | ast.keyword | ast.Assign | ast.AugAssign | ast.IfExp)

    def header_sites(self, header: Header) -> Iterator[Edit]:
        for m in header.found(r"(?<![\w.<])\d+(?![\w.>])"):
            yield Edit(m.start(), m.end(), guarded(str(int(m[0]) + self.by)))


class PlusOne(_Shifted):
    """A number one too large: a bound that lets one more in, a count that is off."""

    name = "plus-one"
    quota = 6
    by = 1


class MinusOne(_Shifted):
    """A number one too small: a bound that leaves the last out, an empty start that is not."""

    name = "minus-one"
    quota = 6
    by = -1


class SwappedOperands(Operator):
    """The operands of a subtraction, division, shift or call in the wrong order, where both are of one type."""

    name = "swapped-operands"
    quota = 7
    ORDERED: ClassVar = (ast.Sub, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.BinOp(left=a, op=op, right=b) if isinstance(op, self.ORDERED):
                    yield from self._swapped(source, place, a, b)
                case ast.Call(func=function, args=[a, b, *_]) if called(function) in alike() - SYMMETRIC:
                    if ast.dump(a) != ast.dump(b) and not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred):
                        yield from self._swapped(source, place, a, b)
                case _:
                    pass

    def _swapped(self, source: Source, place: Place, a: ast.expr, b: ast.expr) -> Iterator[Edit]:
        (start, first_end), (second_start, end) = source.span(a), source.span(b)
        middle = source.text[first_end:second_start]
        if middle.count("(") == middle.count(")") == 0:
            wrap = guarded if isinstance(place.node, ast.BinOp) else str
            yield Edit(start, end, wrap(source.words(b)) + middle + wrap(source.words(a)), place)


class WrongArithmetic(Operator):
    """`+` for `-`, `-` for `+`, `+` for `*`: an offset on the wrong side, a size added that should scale."""

    name = "wrong-arithmetic"
    quota = 6
    SIGNS: ClassVar[Mapping[type[ast.operator], tuple[str, str]]] = {
        ast.Add: ("+", "-"),
        ast.Sub: ("-", "+"),
        ast.Mult: ("*", "+"),
        ast.LShift: ("<<", "*"),
        ast.Mod: ("%", "//"),
    }
    ASSIGNING: ClassVar[Mapping[type[ast.operator], tuple[str, str]]] = {
        op: (f"{old}=", f"{new}=") for op, (old, new) in SIGNS.items()
    }

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.BinOp(left=left, op=op, right=right) if type(op) in self.SIGNS:
                    if not any(isinstance(x, ast.List | ast.Tuple | ast.JoinedStr) for x in (left, right)):
                        yield from between(source, place, left, right, *self.SIGNS[type(op)])
                case ast.AugAssign(target=target, op=op, value=value) if type(op) in self.ASSIGNING:
                    yield from between(source, place, target, value, *self.ASSIGNING[type(op)])
                case _:
                    pass

    def header_sites(self, header: Header) -> Iterator[Edit]:
        for m in header.found(r"(?<=\w |\) )(\+|-|\*)(?= [\w(])"):
            yield Edit(m.start(), m.end(), {"+": "-", "-": "+", "*": "+"}[m[0]])


class Rounding(Operator):
    """A division that rounds down where it must round up, or the reverse: a partial tile is lost or done twice."""

    name = "rounding"
    quota = 4

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.UnaryOp(op=ast.USub(), operand=ast.BinOp(left=left, op=ast.FloorDiv(), right=b)):
                    a = left.operand if isinstance(left, ast.UnaryOp) else ast.UnaryOp(ast.USub(), left)
                    yield replaced(source, place, f"({ast.unparse(a)} // {guarded(source.words(b))})")
                case ast.BinOp(left=a, op=ast.FloorDiv(), right=b) if not isinstance(place.parent, ast.UnaryOp):
                    yield replaced(source, place, f"(-(-{guarded(source.words(a))} // {guarded(source.words(b))}))")
                case ast.Call(func=ast.Name(id="ceildiv"), args=[a, b]):
                    yield replaced(source, place, f"({guarded(source.words(a))} // {guarded(source.words(b))})")
                case _:
                    pass


class Pitch(Operator):
    """A pitch, stride, step or width that is one short: rows overlap, the last column is skipped."""

    name = "pitch"
    quota = 5
    NAMES: Final = re.compile(r"(?:.*_)?(?:stride|pitch|step|width|size|count|run|each|vector|threads|depth|capacity)")

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            node, parent = place.node, place.parents[0] if place.parents else None
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            name = called(node)
            if self.NAMES.fullmatch(name) and place.in_function:
                arithmetic = isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Mod | ast.FloorDiv)
                passed = isinstance(parent, ast.Call) and node in parent.args and called(parent.func) == "constant"
                if arithmetic or passed:
                    yield replaced(source, place, f"({source.words(node)} - 1)")


class MinMax(Operator):
    """The lesser for the greater, in the compiler or in what it writes."""

    name = "min-max"
    quota = 5
    NAMES: ClassVar[Mapping[str, str]] = twins(
        ("min", "max"),
        ("minimum", "maximum"),
        ("smin", "smax"),
        *((f"Min{kind}Op", f"Max{kind}Op") for kind in ("SI", "UI", "imumf", "numf")),
    )

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Name(id=name) if name in self.NAMES and isinstance(place.parent, ast.Call):
                    if place.parent.func is place.node:
                        yield replaced(source, place, self.NAMES[name])
                case ast.Attribute(value=value, attr=name) if name in self.NAMES:
                    yield replaced(source, place, f"{source.words(value)}.{self.NAMES[name]}")
                case _:
                    pass


class WrongDim(Operator):
    """The first for the second or the last, all but the last for all but the first: a dim taken for its neighbour."""

    name = "wrong-dim"
    quota = 5
    INDICES: ClassVar[Mapping[str, str]] = {**twins(("0", "1"), (":-1", "1:")), "-1": "0", ":2": "1:", "-2:": ":2"}

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Subscript(value=of, slice=index, ctx=ast.Load()) if source.words(index) in self.INDICES:
                    if called(of) == "results":
                        continue  # ops have one: any other index ends every test at once
                    yield Edit(*source.span(index), self.INDICES[source.words(index)], place)
                case _:
                    pass


class WrongWidth(Operator):
    """32 bits for 64, or 64 for 32."""

    name = "wrong-width"
    quota = 3

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Name(id="I32" | "I64" as name, ctx=ast.Load()):
                    yield replaced(source, place, {"I32": "I64", "I64": "I32"}[name])
                case ast.Constant(value=32 | 64 as value) if "width" in source.head(place).lower():
                    yield replaced(source, place, str(96 - value))
                case _:
                    pass
