"""Text of a tile module that grows line by line: sizes and tensors, kernels, the host function, and the same in `lin`.

No decision is made here: the families (`tile_kernels_*.py`) choose, this writes. Two texts grow side by side: the tile
module, and a `lin` module of the same function, which says what the first one means.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Place = Literal["argument", "result", "scratch"]
Strides = Literal["symbols", "inner", "contiguous"]
"""How a kernel writes a tensor's strides: all open, the inner one 1, or those of a contiguous tensor."""

INDENT = "  "


@dataclass(frozen=True)
class Size:
    """A size as the text spells it, and its value; `divisor` divides it by what the module declares."""

    text: str
    value: int
    divisor: int = 1
    limit: int | None = None
    """The greatest value that the module allows, if it says one."""

    @property
    def constant(self) -> int | None:
        """The value of a size that is no expression over symbols."""
        return self.value if self.text.isdecimal() else None

    def factor(self) -> str:
        """The text as a factor of a product."""
        return self.text if self.text.isalnum() else f"({self.text})"


@dataclass(frozen=True)
class Tensor:
    """A tensor of the program: an argument, a result, or scratch between two kernels."""

    name: str
    dims: tuple[Size, ...]
    element: str
    place: Place
    strides: Strides = "symbols"

    @property
    def type(self) -> str:
        """Its tensor type."""
        shape = "".join(f"{'?' if d.constant is None else d.constant}x" for d in self.dims)
        return f"tensor<{shape}{self.element}, #sym.dims<{', '.join(d.text for d in self.dims)}>>"

    @property
    def stride_symbols(self) -> list[str]:
        """The symbols that `host.bind` gives its strides."""
        return [f"{self.name}_s{d}" for d in range(len(self.dims))]

    @property
    def buffer(self) -> str:
        """Its type as a kernel's argument."""
        strides = self.stride_symbols
        if self.strides == "inner" and strides and self.place != "scratch":
            strides[-1] = "1"
        elif self.strides == "contiguous" or self.place == "scratch":
            strides = [
                "*".join(d.factor() for d in self.dims[n + 1 :] if d.text != "1") or "1" for n in range(len(self.dims))
            ]
        sizes = ", ".join(d.text for d in self.dims)
        return f"!tile.buf<[{sizes}], {self.element}, global, #tile.strided<[{', '.join(strides)}]>>"


@dataclass(frozen=True)
class Fragment:
    """A fragment or shared buffer of a kernel."""

    name: str
    sizes: tuple[int, ...]
    element: str


def _buffer(sizes: Sequence[int], element: str, space: str, layout: str) -> str:
    """The type of a buffer on chip."""
    return f"!tile.buf<[{', '.join(map(str, sizes))}], {element}, {space}{', ' + layout if layout else ''}>"


class KernelText:
    """One `tile.kernel` under way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: list[Tensor] = []
        self.scalars: list[tuple[str, str]] = []
        """Name and type of each scalar argument."""
        self.grid: list[tuple[str, str]] = []
        """Name and size of each grid coordinate."""
        self.tail = ""
        """Decisions written on the kernel, with a leading space."""
        self.hoists = False
        """Whether fragments too are made before everything else, once for all turns of the loops around."""
        self.first: list[str] = []
        """Lines before all others: buffers that every loop may use."""
        self.lines: list[str] = []
        self._depth = 1
        self._count = 0

    def fresh(self, stem: str) -> str:
        """A name of an SSA value that is not taken, with its `%`."""
        self._count += 1
        return f"%{stem}{self._count}"

    def add(self, line: str) -> None:
        """One line in the innermost block."""
        self.lines.append(INDENT * self._depth + line)

    def use(self, tensor: Tensor) -> str:
        """The kernel's argument for a tensor."""
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        return f"%{tensor.name}"

    def use_scalar(self, name: str, type_: str) -> str:
        """The kernel's argument for a scalar of the host function."""
        if (name, type_) not in self.scalars:
            self.scalars.append((name, type_))
        return f"%{name}"

    def coordinate(self, size: str) -> str:
        """A new dim of the grid."""
        name = f"%g{len(self.grid)}"
        self.grid.append((name, size))
        return name

    def apply(self, expression: str, **where: str) -> str:
        """`sym.apply` of an expression; returns the value."""
        name = self.fresh("n")
        named = ", ".join(f"{k} = {v}" for k, v in where.items())
        self.add(f"{name} = sym.apply {expression}" + (f" where {named}" if named else ""))
        return name

    def alloc(
        self, stem: str, sizes: Sequence[int], element: str, space: str = "fragment", layout: str = ""
    ) -> Fragment:
        """A new buffer; `layout` is an attribute, or empty while undecided."""
        name = self.fresh(stem)
        self.add(f"{name} = tile.alloc : {_buffer(sizes, element, space, layout)}")
        return Fragment(name, tuple(sizes), element)

    def alloc_first(self, stem: str, sizes: Sequence[int], element: str, layout: str) -> Fragment:
        """A new shared buffer, made before everything else; `layout` is an attribute, or empty while undecided."""
        name = self.fresh(stem)
        self.first.append(f"{INDENT}{name} = tile.alloc : {_buffer(sizes, element, 'shared', layout)}")
        return Fragment(name, tuple(sizes), element)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """`head {` around what is added inside."""
        self.add(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    def text(self) -> str:
        """The whole op."""
        arguments = [f"%{t.name}: {t.buffer}" for t in self.tensors] + [f"%{n}: {t}" for n, t in self.scalars]
        names, sizes = ", ".join(n for n, _ in self.grid), ", ".join(s for _, s in self.grid)
        bases = ["0" if t.place == "scratch" else f"{t.name}_base" for t in self.tensors] + ["0"] * len(self.scalars)
        listed = f" bases [{', '.join(bases)}]" if bases else ""
        head = f"tile.kernel @{self.name}({', '.join(arguments)}) grid ({names}) = [{sizes}]{self.tail}{listed} {{"
        return "\n".join([head, *self.first, *self.lines, "}"])


def _bind(tensor: Tensor) -> str:
    """Names the strides and the base address of an argument or result."""
    return f"host.bind %{tensor.name} strides [{', '.join(tensor.stride_symbols)}] base {tensor.name}_base"


@dataclass
class ModuleText:
    """Both texts of a program under way."""

    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """Name to the properties that are declared, such as `{multiple_of = 4}`."""
    values: dict[str, int] = field(default_factory=dict[str, int])
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    scalars: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    kernels: list[KernelText] = field(default_factory=list[KernelText])
    meaning_lines: list[str] = field(default_factory=list[str])

    def at(self, *places: Place) -> list[Tensor]:
        """The tensors of these places, in order."""
        return [t for t in self.tensors if t.place in places]

    def _arguments(self) -> str:
        """The arguments of both functions."""
        named = [f"%{t.name}: {t.type}" for t in self.at("argument")] + [f"%{n}: {t}" for n, t in self.scalars]
        return ", ".join(named)

    def tile(self) -> str:
        """The tile module: symbols, kernels, one `host.func @main` as lin-to-tile leaves it."""
        lines = [f"sym.symbol @{n}{' ' + p if p else ''}" for n, p in self.symbols.items()]
        for tensor in self.at("argument", "result"):
            lines += [f'sym.symbol @{s} {{source = "stride"}}' for s in tensor.stride_symbols]
            lines.append(f'sym.symbol @{tensor.name}_base {{source = "base"}}')
        lines += [kernel.text() for kernel in self.kernels]
        results = self.at("result")
        lines.append(f"host.func @main({self._arguments()}) -> ({', '.join(t.type for t in results)}) {{")
        body = [_bind(tensor) for tensor in self.at("argument")]
        for number, tensor in enumerate(results):
            body += [f"%{tensor.name} = host.output {number} : {tensor.type}", _bind(tensor)]
        body += [f"%{t.name} = host.alloc : {t.type}" for t in self.at("scratch")]
        for kernel in self.kernels:
            names = [f"%{t.name}" for t in kernel.tensors] + [f"%{n}" for n, _ in kernel.scalars]
            body.append(f"host.launch @{kernel.name}({', '.join(names)})")
        return "\n".join([*lines, *(INDENT + line for line in body), "}", ""])

    def meaning(self) -> str:
        """The `lin` module: the same symbols, one `func.func @main` with the same arguments and results."""
        lines = [f"sym.symbol @{n}{' ' + p if p else ''}" for n, p in self.symbols.items()]
        results = self.at("result")
        types = ", ".join(t.type for t in results)
        lines.append(f"func.func @main({self._arguments()}) -> ({types}) {{")
        lines += [INDENT + line for line in self.meaning_lines]
        lines.append(f"{INDENT}func.return {', '.join(f'%{t.name}' for t in results)} : {types}")
        return "\n".join([*lines, "}", ""])
