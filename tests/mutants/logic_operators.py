"""Faults in what is decided and done: conditions, proofs, order, forgotten steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from tests.mutants.headers import Header
from tests.mutants.operators import Edit, Operator, between, guarded, replaced
from tests.mutants.source import Place, Source, called


class WrongStage(Operator):
    """Two neighbours of a literal list in the wrong order: a pass too early, a rule tried too late."""

    name = "wrong-stage"
    quota = 4

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            if not isinstance(place.node, ast.Tuple | ast.List) or not isinstance(place.node.ctx, ast.Load):
                continue
            if isinstance(place.parent, ast.Call | ast.Subscript | ast.BinOp):
                continue
            for a, b in zip(place.node.elts, place.node.elts[1:], strict=False):
                plain = all(isinstance(e, ast.Constant | ast.Name | ast.Attribute) for e in (a, b))
                if plain and ast.dump(a) != ast.dump(b):
                    start, end = source.span(a)[0], source.span(b)[1]
                    middle = source.text[source.span(a)[1] : source.span(b)[0]]
                    if "#" not in middle or len(place.node.elts) > 2:
                        yield Edit(start, end, source.words(b) + middle + source.words(a), place)


class DroppedGuard(Operator):
    """An early exit that is never taken: a case in which the rewrite must not be done, or nothing is to do."""

    name = "dropped-guard"
    quota = 6

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.If(test=test, body=[ast.Return() | ast.Continue() | ast.Break()], orelse=[]):
                    yield Edit(*source.span(test), "False", place)
                case _:
                    pass


class NegatedCondition(Operator):
    """A condition the wrong way round."""

    name = "negated-condition"
    quota = 6
    WORDS: ClassVar[Mapping[type[ast.cmpop], tuple[str, str]]] = {
        ast.Is: ("is", "is not"),
        ast.IsNot: ("is not", "is"),
        ast.In: ("in", "not in"),
        ast.NotIn: ("not in", "in"),
        ast.Eq: ("==", "!="),
        ast.NotEq: ("!=", "=="),
    }

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in self.WORDS:
                    yield from between(source, place, a, b, *self.WORDS[type(op)])
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    yield replaced(source, place, guarded(source.words(operand)))
                case ast.Name() | ast.Call() | ast.Attribute() if self._is_condition(place):
                    yield replaced(source, place, f"not {source.words(place.node)}")
                case _:
                    pass

    @staticmethod
    def _is_condition(place: Place) -> bool:
        match place.parent:
            case ast.If(test=test) | ast.IfExp(test=test):
                return test is place.node
            case ast.comprehension(ifs=ifs):
                return place.node in ifs
            case _:
                return False

    def header_sites(self, header: Header) -> Iterator[Edit]:
        for m in header.found(r"(?<= )(==|!=)(?= )"):
            yield Edit(m.start(), m.end(), {"==": "!=", "!=": "=="}[m[0]])


class DroppedConjunct(Operator):
    """One of several conditions that must all hold is not asked."""

    name = "dropped-conjunct"
    quota = 6

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.BoolOp(op=ast.And(), values=[*values]):
                    for dropped in values:
                        kept = [guarded(source.words(v)) for v in values if v is not dropped]
                        yield replaced(source, place, " and ".join(kept))
                case _:
                    pass


class AndOr(Operator):
    """`or` for `and`, `and` for `or`; `any` for `all`, `all` for `any`."""

    name = "and-or"
    quota = 3

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.BoolOp(op=op, values=[a, b]):
                    old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                    yield from between(source, place, a, b, old, new)
                case ast.Name(id="any" | "all" as name) if isinstance(place.parent, ast.Call):
                    yield replaced(source, place, {"any": "all", "all": "any"}[name])
                case _:
                    pass


class Believed(Operator):
    """Something taken for proved that is only not refuted, or is not asked at all; or the other way, proved in vain."""

    name = "believed"
    quota = 7
    ASKING: Final = frozenset({"proved", "divides", "_proved", "equal_dims", "is_unit", "is_pure", "only_reads"})

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Attribute(attr=attr) as right]):
                    if attr in ("PROVED", "DISPROVED"):
                        other = {"PROVED": "DISPROVED", "DISPROVED": "PROVED"}[attr]
                        word = "is not" if isinstance(op, ast.Is) else "is"
                        start = source.span(place.node.left)[1]
                        yield Edit(start, source.span(right)[1], f" {word} {source.words(right.value)}.{other}", place)
                case ast.Call(func=function) if called(function) in self.ASKING:
                    for answer in ("True", "False"):
                        yield replaced(source, place, answer)
                case ast.Attribute(attr="PROVED" | "DISPROVED") if not isinstance(place.parent, ast.Compare):
                    yield replaced(source, place, f"{source.words(place.node.value)}.UNKNOWN")
                case ast.Constant(value="proved") if not isinstance(place.parent, ast.Compare):
                    yield replaced(source, place, '"clip"')
                case _:
                    pass


class WrongOrder(Operator):
    """A walk in the other direction, or in no order: the last dim first, the outer before the inner."""

    name = "wrong-order"
    quota = 3

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Call(func=ast.Name(id="reversed" | "sorted"), args=[a, *_]):
                    yield replaced(source, place, f"list({source.words(a)})")
                case ast.List(elts=[ast.Starred() as a, ast.Starred() as b]):
                    yield replaced(source, place, f"[{source.words(b)}, {source.words(a)}]")
                case _:
                    pass


class DroppedCall(Operator):
    """A step that is forgotten: an op not added, a fact not stated, an old op not erased."""

    name = "dropped-call"
    quota = 6

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Expr(value=ast.Call(func=function)) if called(function) not in ("remark", "add_argument"):
                    yield replaced(source, place, "pass")
                case _:
                    pass
