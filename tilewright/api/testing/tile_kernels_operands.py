"""Operands of a computation over iteration dims: how `lin` reads them, and how a kernel brings their tile on chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.api.testing.tile_kernels_author import Author, Axis, Way, is_float
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, Size, Tensor

FORMS = ("{i} + 1", "{i} - 1", "{i}", "2*{i}", "3 - {i}", "{i} floordiv 2", "{i} mod 3", "min({i}, 2)", "1")
"""Positions along a dim of what is gathered, `{i}` being the index along an iteration dim."""


@dataclass(frozen=True)
class Loaded:
    """What a `tile.map` takes: a fragment with its iteration dims, or a scalar (no dims)."""

    name: str
    dims: tuple[int | None, ...] = ()

    @property
    def text(self) -> str:
        """`%f[d0, 0]`."""
        return self.name + map_text(self.dims) if self.dims else self.name


@dataclass(frozen=True)
class Plain:
    """A tensor that runs along iteration dims, each None being a dim of size 1 that is broadcast."""

    tensor: Tensor
    dims: tuple[int | None, ...]

    @property
    def types(self) -> list[str]:
        """Types of the scalars that a body gets."""
        return [self.tensor.element]

    def lin(self, _first: int) -> list[str]:
        """The operands in `ins(...)` of a `lin.generic`."""
        return [f"%{self.tensor.name}{map_text(self.dims)} : {self.tensor.type}"]

    def load(
        self,
        author: Author,
        kernel: KernelText,
        axes: Sequence[Axis],
        offsets: Sequence[str],
        *,
        other: str | None = None,
        ways: Sequence[Way] = ("fragment", "fragment", "shared", "laid"),
    ) -> list[Loaded]:
        """Copies of the operand's tile into registers."""
        fragment = author.load(kernel, self.tensor, self.dims, axes, offsets, other=other, ways=ways)
        return [Loaded(fragment.name, self.dims)]


@dataclass(frozen=True)
class Scalar:
    """A scalar argument of the function."""

    name: str
    type: str

    @property
    def types(self) -> list[str]:
        """Types of the scalars that a body gets."""
        return [self.type]

    def lin(self, _first: int) -> list[str]:
        """The operands in `ins(...)` of a `lin.generic`."""
        return [f"%{self.name} : {self.type}"]

    def load(self, _author: Author, kernel: KernelText, _axes: Sequence[Axis], _offsets: Sequence[str]) -> list[Loaded]:
        """The kernel's argument."""
        return [Loaded(kernel.use_scalar(self.name, self.type))]


@dataclass(frozen=True)
class Moved:
    """A tensor read at computed positions: `places` has the axis and the form of each of its dims, `dims` are the axes
    that the gathered tile has. Where a position lies outside, `other` is read."""

    tensor: Tensor
    places: tuple[tuple[int, str], ...]
    dims: tuple[int, ...]
    other: str
    ids: Plain | None = None
    """Values that say where to read along the first dim."""

    @property
    def types(self) -> list[str]:
        """Types of the scalars that a body gets."""
        return [*(self.ids.types if self.ids else []), self.tensor.element]

    def lin(self, first: int) -> list[str]:
        """The operands in `ins(...)` of a `lin.generic`, of which this is number `first`."""
        own = [form.format(i=f"d{axis}") for axis, form in self.places]
        head: list[str] = []
        if self.ids is not None:
            own = [f"v{first}", *own]
            head = [f"%{self.ids.tensor.name}{map_text(self.ids.dims)} as v{first} : {self.ids.tensor.type}"]
        fill = f"{self.other} : {self.tensor.element}"
        return [*head, f"%{self.tensor.name} at [{', '.join(own)}] else {fill} : {self.tensor.type}"]

    def load(self, author: Author, kernel: KernelText, axes: Sequence[Axis], offsets: Sequence[str]) -> list[Loaded]:
        """A gather into registers, perhaps through shared memory."""
        found = [] if self.ids is None else self.ids.load(author, kernel, axes, offsets)
        local = {axis: f"d{n}" for n, axis in enumerate(self.dims)}
        where: dict[str, str] = {}
        indices: list[str] = []
        for axis, form in self.places:
            place = local.get(axis, "0")
            if "{i}" in form and offsets[axis]:
                where[f"o{axis}"] = offsets[axis]
                place = f"({place} + o{axis})"
            indices.append(form.format(i=place))
        named = ""
        if self.ids is not None:
            indices = ["v0", *indices]
            names = ", ".join("0" if d is None else local[d] for d in self.ids.dims)
            named = f" with v0 = {found[0].name}[{names}]"
        if where:
            named += f" where {', '.join(f'{k} = {v}' for k, v in where.items())}"
        if self.dims and author.seldom(3):
            n = author.choice(range(len(self.dims)))
            axis = self.dims[n]
            named += f" valid(d{n} < {remaining(kernel, axes[axis].size.text, offsets[axis])})"
        sizes = [axes[d].tile for d in self.dims]
        element = self.tensor.element
        names = ", ".join(local[d] for d in self.dims)
        source, fill = f"{kernel.use(self.tensor)}[{', '.join(indices)}]", f"{self.other} : {element}"
        bounds = ", ".join(["clip"] * len(indices))
        if self.ids is None and author.seldom(2):
            staged = author.shared(kernel, sizes, element, author.choice(["shared", "laid"]))
            kernel.add(f"tile.gather ({names}) {source} to {staged.name}{named} bounds [{bounds}] other {fill}")
            author.sync(kernel)
            fragment = kernel.alloc("f", sizes, element)
            kernel.add(f"tile.copy {staged.name} to {fragment.name}{author.via()}")
        else:
            fragment = kernel.alloc("f", sizes, element)
            kernel.add(f"tile.gather ({names}) {source} to {fragment.name}{named} bounds [{bounds}] other {fill}")
        return [*found, Loaded(fragment.name, self.dims)]


Operand = Plain | Scalar | Moved


def map_text(dims: Sequence[int | None]) -> str:
    """`[d0, 0]`, as both dialects write the dims of an operand; `[]` for rank 0."""
    return f"[{', '.join('0' if d is None else f'd{d}' for d in dims)}]"


def remaining(kernel: KernelText, limit: str, offset: str) -> str:
    """What is left up to a limit from the start of a tile, an index value."""
    return kernel.apply(f"{limit} - o", o=offset) if offset else kernel.apply(limit)


def subset(author: Author, dims: Sequence[int]) -> list[int]:
    """Some of these dims, in any order."""
    kept = list(dims) if author.seldom(4) else [d for d in dims if not author.seldom(3)]
    return [kept[n] for n in author.permutation(len(kept))]


def plain(author: Author, sizes: Sequence[Size], dims: Sequence[int], element: str) -> Plain:
    """A new argument that runs along these dims, with a broadcast dim of size 1 put in sometimes."""
    own: list[int | None] = list(dims)
    if author.seldom(5):
        own.insert(author.choice(range(len(own) + 1)), None)
    one = Size("1", 1)
    tensor = author.tensor([one if d is None else sizes[d] for d in own], element, "argument")
    return Plain(tensor, tuple(own))


def moved(author: Author, sizes: Sequence[Size]) -> Moved:
    """A new argument that is read at positions computed from iteration dims, or from ids."""
    every = range(len(sizes))
    element = author.element()
    other = author.choice(["0.0", "1.5"] if is_float(element) else ["0", "-3"])
    if author.seldom(2):
        ids_dims = subset(author, every) or [author.choice(every)]
        row = subset(author, every)[:2]
        ids = plain(author, sizes, ids_dims, "i32")
        table = author.tensor([author.size(9), *(sizes[d] for d in row)], element, "argument")
        dims = list(dict.fromkeys([*ids_dims, *row]))
        places = tuple((d, "{i}") for d in row)
        return Moved(table, places, tuple(dims[n] for n in author.permutation(len(dims))), other, ids)
    count = author.choice([1, 2])
    places = tuple((author.choice(every), author.choice(FORMS)) for _ in range(count))
    tensor = author.tensor([author.size(33) for _ in range(count)], element, "argument")
    used = list(dict.fromkeys(axis for axis, form in places if "{i}" in form))
    dims = used or [places[0][0]]
    return Moved(tensor, places, tuple(dims[n] for n in author.permutation(len(dims))), other)


def more_operands(author: Author, sizes: Sequence[Size], *, elements: Sequence[str] = ()) -> list[Operand]:
    """Up to two further operands; `elements`, if any, restricts their types to these, as plain tensors."""
    found: list[Operand] = []
    for _ in range(author.choice([0, 1, 2])):
        kind = author.choice(["plain", "plain", "scalar", "moved", "moved"])
        if elements or kind == "plain" or not sizes:
            element = author.choice(elements) if elements else author.element()
            found.append(plain(author, sizes, subset(author, range(len(sizes))), element))
        elif kind == "scalar":
            type_ = author.choice(["f32", "i32"])
            found.append(Scalar(author.scalar(type_), type_))
        else:
            found.append(moved(author, sizes))
    return found


def ins(operands: Sequence[Operand]) -> str:
    """`ins(...)` of a `lin.generic`."""
    parts: list[str] = []
    for operand in operands:
        parts += operand.lin(len(parts))
    return f"ins({', '.join(parts)})"


def types_of(operands: Sequence[Operand]) -> list[str]:
    """Types of the arguments of a body over these operands."""
    return [t for operand in operands for t in operand.types]


def load_all(
    author: Author, kernel: KernelText, operands: Sequence[Operand], axes: Sequence[Axis], offsets: Sequence[str]
) -> list[Loaded]:
    """The tiles of all operands, as inputs of a `tile.map`."""
    return [loaded for operand in operands for loaded in operand.load(author, kernel, axes, offsets)]


def write_map(
    kernel: KernelText,
    count: int,
    inputs: Sequence[Loaded],
    outputs: Sequence[tuple[Fragment, Sequence[int | None]]],
    body: Sequence[str],
    valid: str = "",
) -> None:
    """A `tile.map` over `count` iteration dims; `valid` has a leading space."""
    names = ", ".join(f"d{n}" for n in range(count))
    outs = ", ".join(f.name + (map_text(d) if d else "") for f, d in outputs)
    with kernel.block(f"tile.map ({names}) ins({', '.join(i.text for i in inputs)}) outs({outs}){valid}"):
        for line in body:
            kernel.add(line)
