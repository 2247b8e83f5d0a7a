"""Faults in what a kernel is made of: masks, barriers, start values, ops, operands, the text that is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from tests.mutants.operators import Edit, Operator, replaced, twins
from tests.mutants.source import Place, Source

EMITTERS: Final = re.compile(r"simt_to_cuda|lowering\.targets")
"""Files that speak of these write the text of kernels."""


class DroppedMask(Operator):
    """A mask, limit or clipped bound that is left out: what hangs over the edge is read, written or counted."""

    name = "dropped-mask"
    quota = 6
    KEYWORDS: Final = frozenset({"mask", "valid", "masks", "limits"})
    NAMES: Final = frozenset({"mask", "valid", "limits", "condition", "kept"})

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            if not place.in_function:
                continue
            match place.node:
                case ast.keyword(arg=str(name), value=value) if name in self.KEYWORDS:
                    if not isinstance(value, ast.Constant):
                        yield Edit(*source.span(value), "None", place)
                case ast.Name(id=name, ctx=ast.Load()) if name in self.NAMES and isinstance(place.parent, ast.Call):
                    if place.node in place.parent.args:
                        yield replaced(source, place, "None")
                case ast.Call(func=ast.Attribute(attr="both"), args=[a, _]):
                    yield replaced(source, place, source.words(a))
                case ast.Constant(value="clip"):
                    yield replaced(source, place, '"proved"')
                case ast.Call(func=ast.Name(id="first_copy")):
                    yield replaced(source, place, "None")
                case _:
                    pass


class DroppedBarrier(Operator):
    """A barrier that is not put there, or is taken away though it is needed."""

    name = "dropped-barrier"
    quota = 3
    WORDS: Final = re.compile(r"[bB]arrier|[sS]ync\b|SyncOp|insert_op_(before|after)\((before|after)\b")

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            if isinstance(place.node, ast.Expr) and isinstance(place.node.value, ast.Call):
                text = source.words(place.node)
                arguments = place.node.value.args
                names = [text, *(n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name))]
                if self.WORDS.search(" ".join(names)):
                    yield replaced(source, place, "pass")


class WrongIdentity(Operator):
    """A start value, or what stands for masked elements, that is not neutral: 1 for 0, infinity with the wrong sign."""

    name = "wrong-identity"
    quota = 4

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            words = source.head(place)
            match place.node:
                case ast.UnaryOp(op=ast.USub(), operand=ast.Attribute(attr="inf") | ast.Constant(value=0.0)):
                    yield replaced(source, place, source.words(place.node.operand))
                case ast.Attribute(attr="inf") if not isinstance(place.parent, ast.UnaryOp):
                    yield replaced(source, place, f"-{source.words(place.node)}")
                case ast.Constant(value=0 | 1 | 1.0 as value) if not isinstance(value, bool):
                    start = re.search(r"\bother=|identity|bits = |values = |Expr\.const\(|neutral|unit", words)
                    around = place.parent
                    value_of = isinstance(around, ast.Dict) and place.node in around.values
                    if start and (value_of or isinstance(around, ast.Call)) and "Relation" not in words:
                        yield replaced(source, place, str(1 - value))
                case ast.Call(func=ast.Name(id="identity_attribute"), args=[_, element]):
                    yield replaced(source, place, f"constant_attribute(0, {source.words(element)})")
                case _:
                    pass


class WrongOp(Operator):
    """An op taken for its neighbour in the manual: signed for unsigned, quotient for remainder, before for after."""

    name = "wrong-op"
    quota = 3
    NAMES: ClassVar[Mapping[str, str]] = twins(
        ("AddiOp", "SubiOp"),
        ("AddfOp", "SubfOp"),
        ("MulfOp", "DivfOp"),
        ("DivUIOp", "RemUIOp"),
        ("FloorDivSIOp", "CeilDivSIOp"),
        ("ExtSIOp", "ExtUIOp"),
        ("ShRSIOp", "ShRUIOp"),
        ("AndIOp", "OrIOp"),
        ("div_unsigned", "mod_unsigned"),
        ("insert_op_before", "insert_op_after"),
        ("signed", "unsigned"),
    ) | {"insert_ops_before": "insert_ops_after", "floor_div": "div_unsigned"}

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Attribute(value=value, attr=name) if name in self.NAMES:
                    yield replaced(source, place, f"{source.words(value)}.{self.NAMES[name]}")
                case ast.Name(id="signed" | "unsigned" as name, ctx=ast.Load()):
                    if f"def {self.NAMES[name]}(" in source.text:
                        yield replaced(source, place, self.NAMES[name])
                case _:
                    pass


class EmittedSign(Operator):
    """The text of a kernel with the wrong sign in it: what the emitter prints is C++, but other C++."""

    name = "emitted-sign"
    quota = 4
    SIGNS: ClassVar[Mapping[str, str]] = {
        **twins(("<", "<="), (">", ">="), ("==", "!="), ("&&", "||"), ("+", "-"), ("&", "|"), ("<<", ">>"), ("%", "/")),
        "*": "+",
    }
    MANY: Final = re.compile(r"(?<=[\w})] )(<=|>=|==|!=|&&|\|\||<<|>>|<|>|\+|-|\*|/|%|&|\|)(?= [\w{(])")

    def sites(self, source: Source) -> Iterator[Edit]:
        if not EMITTERS.search(source.text):
            return
        for place in source.places:
            match place.node:
                case ast.Constant(value=str(text)) if text in self.SIGNS and isinstance(place.parent, ast.Call):
                    yield replaced(source, place, f'"{self.SIGNS[text]}"')
                case ast.JoinedStr() | ast.Constant(value=str()):
                    if isinstance(place.parent, ast.JoinedStr):
                        continue
                    start, end = source.span(place.node)
                    for m in self.MANY.finditer(source.text[start:end]):
                        new = self.SIGNS.get(m[0], m[0])
                        yield Edit(start + m.start(), start + m.end(), new, place)
                case _:
                    pass


class Twins(Operator):
    """One of two for the other: source for target, left for right, lower for upper, load for store."""

    name = "twins"
    quota = 5
    NAMES: ClassVar[Mapping[str, str]] = twins(
        ("source", "target"),
        ("lhs", "rhs"),
        ("lower", "upper"),
        ("left", "right"),
        ("low", "high"),
        ("load", "store"),
        ("source_offsets", "target_offsets"),
        ("source_map", "target_map"),
        ("inputs", "outputs"),
        ("rows", "columns"),
        ("producer", "consumer"),
        ("before", "after"),
        ("first", "last"),
        ("a", "b"),
    )

    def sites(self, source: Source) -> Iterator[Edit]:
        for place in source.places:
            match place.node:
                case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in self.NAMES:
                    yield replaced(source, place, f"{source.words(value)}.{self.NAMES[name]}")
                case ast.JoinedStr() if EMITTERS.search(source.text):
                    start, end = source.span(place.node)
                    for m in re.finditer(r"(?<=op\.)(lhs|rhs)\b", source.text[start:end]):
                        yield Edit(start + m.start(), start + m.end(), self.NAMES[m[0]], place)
                case ast.Name(id=name, ctx=ast.Load()) if name in self.NAMES:
                    if self._is_local(place, self.NAMES[name]):
                        yield replaced(source, place, self.NAMES[name])
                case _:
                    pass

    @staticmethod
    def _is_local(place: Place, name: str) -> bool:
        """Whether the function around the place has a value of this name too."""
        for around in place.parents:
            if isinstance(around, ast.FunctionDef | ast.Lambda):
                names = {a.arg for a in (*around.args.args, *around.args.kwonlyargs)}
                stored = {n.id for n in ast.walk(around) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                return name in names | stored
        return False
