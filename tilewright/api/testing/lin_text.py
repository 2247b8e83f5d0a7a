"""The text of a `lin` program while it grows: symbols with sizes, arguments, values and their lines.

The sizes are known from the start, so that an op whose requirements would not hold, or that would take too long, is
never written: nothing is rejected afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.dialects.sym import Expr
from tilewright.runtime.binding import linear_parts

FLOATS = ("f32", "f16", "bf16")
DTYPES = (*FLOATS, "i32", "i1")
"""Element types of tensors that `lin` computes with (`index` is for scalars)."""

MAX_WORK = 1 << 18
"""Points of one op's iteration space at most."""
MAGNITUDE = {"f32": 1e6, "bf16": 1e6, "f16": 1e3, "i32": 2.0**31, "i1": 1.0, "index": 2.0**31}
"""Values of the ordinary lane stay below: nothing overflows, so that the reference's bounds mean something."""
ARGUMENT_MAGNITUDE = {"f32": 3.0, "bf16": 3.0, "f16": 3.0, "i32": 8.0, "i1": 1.0, "index": 4.0}
"""What `make_inputs` gives in the ordinary lane."""
_ARGUMENT_NAMES = ("x", "y", "z", "w", "u", "v", "a", "b")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the program."""

    name: str
    """With its `%`."""
    dims: tuple[Expr, ...] | None
    """None for a scalar by value."""
    element: str
    magnitude: float
    """No element of the ordinary lane is beyond."""
    exact: bool = True
    """Whether the reference's bound is 0: inputs, moved, compared, converted. What is not exact picks no row."""

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Its dims, none for a scalar."""
        return self.dims or ()

    @property
    def rank(self) -> int:
        """How many dims it has."""
        return len(self.shape)

    @property
    def type(self) -> str:
        """Its type in IR."""
        return self.element if self.dims is None else tensor_type(self.dims, self.element)


def tensor_type(dims: Sequence[Expr], element: str) -> str:
    """`tensor<?x4xf32, #sym.dims<M, 4>>`; without the encoding where every size is a number."""
    sizes = ["?" if d.constant is None else str(d.constant) for d in dims]
    shape = "x".join([*sizes, element])
    if all(d.constant is not None for d in dims):
        return f"tensor<{shape}>"
    return f"tensor<{shape}, #sym.dims<{', '.join(map(str, dims))}>>"


class LinText:
    """A function that grows op by op. `sizes` are the symbols' values, `bound` the symbols that arguments bind."""

    def __init__(self, dtypes: Sequence[str] = DTYPES, max_elements: int = 1 << 14) -> None:
        self.dtypes = tuple(dtypes)
        self.max_elements = max_elements
        self.sizes: dict[str, int] = {}
        self.declared: dict[str, str] = {}
        self.requires: list[tuple[frozenset[str], str]] = []
        self.arguments: list[Value] = []
        self.values: list[Value] = []
        self.bound: dict[str, None] = {}
        self.ops: list[str] = []
        self.mentioned: set[str] = set()
        """Symbols that ops name beside the dims of their operands."""
        self._lines: list[str] = []
        self._used: set[str] = set()

    def symbol(self, name: str, size: int, properties: str = "") -> Expr:
        """Declare a symbol that has this size; `properties` as in `{multiple_of = 8}`."""
        self.sizes[name] = size
        self.declared[name] = f"sym.symbol @{name}{' ' if properties else ''}{properties}"
        return Expr.symbol(name)

    def size(self, dim: Expr) -> int:
        """The value of a size."""
        found = dim.constant
        return dim.evaluate(self.sizes) if found is None else found

    def count(self, dims: Sequence[Expr]) -> int:
        """How many elements a shape has."""
        return prod(self.size(d) for d in dims)

    def fits(self, dims: Sequence[Expr], *more: Expr) -> bool:
        """Whether a tensor of these dims is small enough; `more` are dims that are only computed over."""
        elements = self.count(dims)
        return len(dims) <= 5 and elements <= self.max_elements and elements * self.count(more) <= MAX_WORK

    def argument(self, dims: Sequence[Expr] | None, element: str) -> Value:
        """A new argument; its plain dims bind their symbols."""
        number = len(self.arguments)
        name = _ARGUMENT_NAMES[number] if number < len(_ARGUMENT_NAMES) else f"x{number}"
        made = Value(f"%{name}", None if dims is None else tuple(dims), element, ARGUMENT_MAGNITUDE[element])
        self.arguments.append(made)
        if dims is not None:
            self.values.append(made)
            self.bound.update(dict.fromkeys(d for dim in dims for d in sorted(symbols_bound_by([dim]))))
        return made

    def define(
        self,
        op: str,
        text: str,
        operands: Sequence[Value],
        dims: Sequence[Expr],
        element: str,
        magnitude: float,
        exact: bool = False,
    ) -> Value:
        """A new value: `text` is what stands to the right of the `=`, from the op's name on."""
        number = len(self._lines)
        if element == "i32":
            # It wraps.
            magnitude = min(magnitude, MAGNITUDE["i32"])
        made = Value(f"%t{number}", tuple(dims), element, magnitude, exact)
        self._used.update(operand.name for operand in operands)
        self._lines.append(f"  {made.name} = {text}")
        self.values.append(made)
        self.ops.append(op)
        return made

    def require(self, relation: str, symbols: frozenset[str]) -> None:
        """State a relation that the sizes satisfy; it is written if the arguments bind its symbols."""
        self.requires.append((symbols, relation))

    @property
    def computed(self) -> list[Value]:
        """The values that ops made, in order."""
        return [v for v in self.values if v not in self.arguments]

    @property
    def unused(self) -> list[Value]:
        """Those of them that no op reads."""
        return [v for v in self.computed if v.name not in self._used]

    def finish(self, returned: Sequence[Value]) -> tuple[str, dict[str, int]]:
        """The text of the module, and the sizes of the symbols that it declares.

        Arguments that nothing reads are left out, unless a symbol has its value from them alone, and so are symbols and
        requirements that no argument speaks of.
        """
        kept = self._kept_arguments({*self._used, *(v.name for v in returned)})
        named = {symbol for a in kept for dim in a.shape for symbol in dim.symbols}
        lines = [text for name, text in self.declared.items() if name in named]
        lines += [f"sym.require {text}" for symbols, text in self.requires if symbols <= named]
        types = ", ".join(v.type for v in returned)
        head = ", ".join(f"{a.name}: {a.type}" for a in kept)
        lines.append(f"func.func @f({head}) -> {f'({types})' if len(returned) > 1 else types} {{")
        lines += self._lines
        lines += [f"  func.return {', '.join(v.name for v in returned)} : {types}", "}", ""]
        return "\n".join(lines), {name: size for name, size in self.sizes.items() if name in named}

    def _kept_arguments(self, read: set[str]) -> list[Value]:
        kept = [a for a in self.arguments if a.name in read]
        binding = {symbol for a in kept for symbol in symbols_bound_by(a.shape)}
        for a in self.arguments:
            new = symbols_bound_by(a.shape) - binding
            if a not in kept and new & self._named():
                kept.append(a)
                binding |= new
        return [a for a in self.arguments if a in kept]

    def _named(self) -> set[str]:
        """Symbols that occur in the dims of any value that is not an argument nothing reads."""
        shapes = [v.shape for v in self.values if v.name in self._used or v not in self.arguments]
        return {*(s for shape in shapes for d in shape for s in d.symbols), *self.mentioned}


def symbols_bound_by(dims: Sequence[Expr]) -> set[str]:
    """The symbols to which sizes of these dims give their values: alone in a dim, and linear there."""
    alone = ((next(iter(d.symbols)), d) for d in dims if len(d.symbols) == 1)
    return {symbol for symbol, d in alone if linear_parts(d, symbol) is not None}
