"""Random scalar bodies, written twice: for `lin.generic`, and for `tile.map`, which counts coordinates in the tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

FLOATS = ("f32", "bf16", "f16")
UNARY = ("arith.negf", "math.absf")
BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minimumf")
INTEGER = ("arith.addi", "arith.subi", "arith.muli", "arith.maxsi", "arith.minsi", "arith.xori", "arith.andi")
CURVES = ("math.exp", "math.tanh", "math.erf")
"""Functions of any f32, drawn seldom: their bounds are wide."""
CONSTANTS = (1.0, 0.5, -2.0, 0.0, 3.25)


@dataclass(frozen=True)
class Value:
    """A scalar of a body: its name and type."""

    name: str
    type: str


@dataclass(frozen=True)
class Coordinate:
    """The index along iteration dim `dim` of the whole tensor, under a name."""

    name: str
    dim: int


@dataclass
class Body:
    """Arguments and ops of a body; `values` are those that later ops may take."""

    arguments: list[Value]
    lines: list[str | Coordinate] = field(default_factory=list["str | Coordinate"])
    values: list[Value] = field(default_factory=list[Value])
    stem: str = "v"

    @staticmethod
    def of(types: Sequence[str], stem: str = "a") -> Body:
        """A body that takes scalars of these types."""
        arguments = [Value(f"%{stem}{n}", t) for n, t in enumerate(types)]
        return Body(arguments, values=list(arguments), stem=f"{stem}v")

    def _name(self) -> str:
        return f"%{self.stem}{len(self.lines)}"

    def op(self, text: str, type_: str) -> Value:
        """An op that gives one value of this type; `text` is what stands right of `=`."""
        value = Value(self._name(), type_)
        self.lines.append(f"{value.name} = {text}")
        return value

    def constant(self, number: float, type_: str) -> Value:
        """A constant; integers take the floor."""
        written = str(int(number // 1)) if type_ == "i32" else repr(float(number))
        return self.op(f"arith.constant {written} : {type_}", type_)

    def coordinate(self, dim: int) -> Value:
        """The index along an iteration dim, an `index`."""
        line = Coordinate(self._name(), dim)
        self.lines.append(line)
        return Value(line.name, "index")

    def convert(self, value: Value, type_: str) -> Value:
        """A value in another type; a float becomes an integer by its sign."""
        source = value.type
        if source == type_:
            return value
        if source == "index":
            return self.convert(self.op(f"arith.index_cast {value.name} : index to i32", "i32"), type_)
        if source == "i32":
            return self.convert(self.op(f"arith.sitofp {value.name} : i32 to f32", "f32"), type_)
        if type_ == "i32":
            zero = self.constant(0.0, source)
            positive = self.op(f"arith.cmpf ogt, {value.name}, {zero.name} : {source}", "i1")
            return self.op(f"arith.extui {positive.name} : i1 to i32", "i32")
        if source != "f32":
            return self.convert(self.op(f"arith.extf {value.name} : {source} to f32", "f32"), type_)
        return self.op(f"arith.truncf {value.name} : f32 to {type_}", type_)

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """A binary op on two values, the second one converted."""
        b = self.convert(b, a.type)
        return self.op(f"{name} {a.name}, {b.name} : {a.type}", a.type)

    def select_below(self, index: Value, limit: str, inside: Value, outside: Value) -> Value:
        """`inside` where an index is below an expression over symbols, else `outside`."""
        bound = self.op(f"sym.apply {limit}", "index")
        below = self.op(f"arith.cmpi slt, {index.name}, {bound.name} : index", "i1")
        outside = self.convert(outside, inside.type)
        return self.op(f"arith.select {below.name}, {inside.name}, {outside.name} : {inside.type}", inside.type)

    def _block(self, lines: Sequence[str], results: Sequence[Value], word: str) -> list[str]:
        arguments = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        head = [f"^bb0({arguments}):"] if self.arguments else []
        names = ", ".join(v.name for v in results)
        types = f" : {', '.join(v.type for v in results)}" if word == "lin.yield" else ""
        return [*head, *(f"  {line}" for line in lines), f"  {word} {names}{types}"]

    def lin(self, result: Value) -> list[str]:
        """The block of a `lin.generic` that yields this value."""
        lines = [
            f"{line.name} = lin.index {line.dim} : index" if isinstance(line, Coordinate) else line
            for line in self.lines
        ]
        return self._block(lines, [result], "lin.yield")

    def tile(self, results: Sequence[Value], offsets: Sequence[str]) -> list[str]:
        """The block of a `tile.map`; `offsets` are where the tile starts along each iteration dim, empty for 0."""
        lines: list[str] = []
        for line in self.lines:
            if isinstance(line, str):
                lines.append(line)
            elif not offsets[line.dim]:
                lines.append(f"{line.name} = tile.index {line.dim} : index")
            else:
                place = f"{line.name}t"
                lines.append(f"{place} = tile.index {line.dim} : index")
                lines.append(f"{line.name} = sym.apply o + i where o = {offsets[line.dim]}, i = {place}")
        return self._block(lines, results, "tile.yield")


def draw_step(draw: st.DrawFn, body: Body, a: Value) -> Value:
    """One random op on a value, perhaps with another one of the body; the type stays."""
    if a.type == "index":
        a = body.convert(a, "i32")
    if a.type == "i32":
        name = draw(st.sampled_from(INTEGER))
    else:
        names = (*BINARY, *UNARY, *(CURVES if a.type == "f32" else ()))
        name = draw(st.sampled_from(names))
    if name in UNARY or name in CURVES:
        return body.op(f"{name} {a.name} : {a.type}", a.type)
    others: list[Value | float] = [*body.values, *CONSTANTS]
    other = draw(st.sampled_from(others))
    b = other if isinstance(other, Value) else body.constant(other, a.type)
    return body.binary(name, a, b)


def draw_body(
    draw: st.DrawFn,
    types: Sequence[str],
    targets: Sequence[str],
    *,
    dims: int = 0,
    limits: Sequence[str] = (),
    most: int = 3,
    stem: str = "a",
) -> tuple[Body, list[Value]]:
    """A body over scalars of `types`, and one value of each of `targets`.

    Every argument takes part. With `dims` iteration dims it may use their indices, and compare them with `limits`,
    expressions over symbols.
    """
    body = Body.of(types, stem)
    if dims and draw(st.integers(0, 3)) == 3:
        index = body.coordinate(draw(st.integers(0, dims - 1)))
        if limits and len(body.arguments) and draw(st.booleans()):
            first = body.arguments[0]
            zero = body.constant(0.0, first.type)
            body.values.append(body.select_below(index, draw(st.sampled_from(list(limits))), first, zero))
        else:
            body.values.append(body.convert(index, "i32"))
    if not body.values:
        body.values.append(body.constant(1.0, targets[0]))
    current = body.values[0]
    for other in body.values[1:]:
        name = draw(st.sampled_from(INTEGER[:3] if current.type == "i32" else BINARY))
        current = body.binary(name, current, other)
    for _ in range(draw(st.integers(0, most))):
        current = draw_step(draw, body, current)
        body.values.append(current)
    results: list[Value] = []
    for number, target in enumerate(targets):
        value = current if number == 0 else draw_step(draw, body, draw(st.sampled_from(body.values)))
        results.append(body.convert(value, target))
    return body, results
