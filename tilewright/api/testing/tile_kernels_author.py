"""What an author of a tile kernel decides again and again: sizes, tiles, how operands get into registers and back."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal, TypeVar

from hypothesis import strategies as st

from tilewright.api.testing.tile_kernels_bodies import FLOATS
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, ModuleText, Place, Size, Strides, Tensor

T = TypeVar("T")
NAMES = "MNKBPQRTUVW"
VALUES = (1, 2, 3, 5, 7, 8, 4, 16, 17, 31, 32, 0)
"""Sizes that are drawn: shrinking goes to the front."""
TILES = (1, 2, 4, 3, 8, 5, 6, 7, 12, 16, 32)
MOST_TURNS = 5
"""Tiles along one dim at most."""
MOST_ELEMENTS = 512
"""Elements of one tile at most: some such tiles, padded, fit the shared memory of every device."""
MOST_POINTS = 4096
"""Points of an iteration space at most."""
Walk = Literal["grid", "loop", "whole"]
Way = Literal["fragment", "shared", "laid"]
"""Straight into registers; through shared memory whose layout is left open; through shared memory laid out by hand."""
PARTS = 2
"""Pieces in which a tile may be put together in shared memory."""


@dataclass(frozen=True)
class Axis:
    """An iteration dim: its size, the tile along it, and who walks the tiles: the grid, a loop, nobody (one tile)."""

    size: Size
    tile: int
    walk: Walk

    @property
    def is_whole(self) -> bool:
        """Whether no tile hangs over, by what the module states."""
        if self.size.constant is not None:
            return self.size.constant % self.tile == 0 and self.size.constant > 0
        return self.walk != "whole" and self.size.divisor % self.tile == 0


def blocks_text(axis: Axis) -> str:
    """The number of tiles along an axis, as an expression."""
    if axis.size.constant is not None:
        return str(-(-axis.size.constant // axis.tile))
    return axis.size.text if axis.tile == 1 else f"{axis.size.factor()} ceildiv {axis.tile}"


class Author:
    """Draws decisions, and writes what follows from them into both texts."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.module = ModuleText()
        self._pool: dict[KernelText, list[Fragment]] = {}

    # Choices.

    def choice(self, options: Sequence[T]) -> T:
        """One of these; shrinks to the first."""
        return self.draw(st.sampled_from(list(options)))

    def seldom(self, odds: int = 4) -> bool:
        """True once in `odds` times; shrinks to False."""
        return self.draw(st.integers(0, odds - 1)) == odds - 1

    def permutation(self, count: int) -> list[int]:
        """An order of `count` things; mostly as they are."""
        return list(range(count)) if count < 2 or not self.seldom(2) else self.draw(st.permutations(range(count)))

    def kernel(self) -> KernelText:
        """The next kernel of the program."""
        made = KernelText(f"main_{len(self.module.kernels)}")
        made.hoists = self.seldom(5)
        self.module.kernels.append(made)
        return made

    # Sizes and tensors.

    def size(self, most: int = MOST_POINTS, *, constant: bool = True) -> Size:
        """A size of at most `most`: a symbol, an expression over one, or a constant."""
        value = self.choice([v for v in VALUES if v <= most])
        known = [Size(n, v) for n, v in self.module.values.items() if v <= most]
        if known and self.seldom(5):
            found = self.choice(known)
            return Size(found.text, found.value, *self._stated(found.text))
        if constant and value and self.seldom(4):
            return Size(str(value), value)
        form = self.choice(["plain", "plain", "plain", "plain", "plus", "twice"])
        if form == "plus" and value >= 1:
            return Size(f"{self.symbol(value - 1)} + 1", value)
        if form == "twice" and value % 2 == 0:
            return Size(f"2*{self.symbol(value // 2)}", value, 2)
        name = self.symbol(value)
        return Size(name, value, *self._stated(name))

    def bounded_size(self, most: int) -> Size:
        """A size that the module bounds, often: one tile may hold all of such a dim."""
        if self.seldom(2):
            value = self.choice([v for v in VALUES if v <= most])
            name = self.symbol(value, limit=self.choice([n for n in (8, 16, 32, 64) if n >= value]))
            return Size(name, value, *self._stated(name))
        return self.size(most)

    def _stated(self, name: str) -> tuple[int, int | None]:
        """What the declaration of a symbol says: its divisor, and its greatest value."""
        words = self.module.symbols[name].strip("{}").split(", ")
        found = {key: int(text) for key, _, text in (w.partition(" = ") for w in words if w)}
        return found.get("multiple_of", 1), found.get("max")

    def symbol(self, value: int, *, limit: int | None = None) -> str:
        """A new symbol of this value; `limit` is the greatest value that is declared."""
        name = next(n for n in (*NAMES, *(f"S{i}" for i in range(99))) if n not in self.module.symbols)
        stated: list[str] = []
        if self.seldom(6):
            stated.append(f"min = {self.choice([0, value])}")
        if limit is not None:
            stated.append(f"max = {limit}")
        divisors = [d for d in (4, 2, 8, 16) if value % d == 0]
        if divisors and self.seldom(3):
            stated.append(f"multiple_of = {self.choice(divisors)}")
        self.module.symbols[name] = f"{{{', '.join(stated)}}}" if stated else ""
        self.module.values[name] = value
        return name

    def tensor(self, dims: Sequence[Size], element: str, place: Place) -> Tensor:
        """A new tensor."""
        stem = {"argument": "x", "result": "y", "scratch": "z"}[place]
        forms: list[Strides] = ["symbols", "symbols", "inner", "contiguous"]
        name = f"{stem}{sum(t.place == place for t in self.module.tensors)}"
        tensor = Tensor(name, tuple(dims), element, place, self.choice(forms))
        self.module.tensors.append(tensor)
        return tensor

    def scalar(self, type_: str) -> str:
        """A new scalar argument of the function."""
        name = f"c{len(self.module.scalars)}"
        self.module.scalars.append((name, type_))
        return name

    def element(self) -> str:
        """An element type."""
        return self.choice(["f32", "f32", "f32", "bf16", "f16", "i32"])

    # Iteration.

    def axis(self, size: Size, walks: Sequence[Walk] = ("grid", "grid", "loop", "whole"), most: int = 64) -> Axis:
        """How one dim is walked, with at most `most` elements of a tile."""
        walk = self.choice(walks)
        if walk == "whole":
            limit = size.constant if size.constant is not None else size.limit
            fitting = [t for t in TILES if limit is not None and limit <= t <= most]
            if fitting:
                return Axis(size, self.choice(fitting), "whole")
            walk = "loop" if "loop" in walks else "grid"
        allowed = [t for t in TILES if t <= most]
        fitting = [t for t in allowed if ceil(size.value / t) <= MOST_TURNS]
        return Axis(size, self.choice(fitting or [max(allowed)]), walk)

    def axes(
        self,
        sizes: Sequence[Size],
        walks: Sequence[Walk] = ("grid", "grid", "loop", "whole"),
        room: int = MOST_ELEMENTS,
    ) -> list[Axis]:
        """How several dims are walked, with a tile of at most `room` elements."""
        found: list[Axis] = []
        if "grid" in walks and self.seldom(4):
            walks = ("grid",)
        for size in sizes:
            most = max(1, room // prod(a.tile for a in found))
            axis = self.axis(size, walks, most)
            # Equal tiles here and there, so that operands of different dims may share a buffer.
            if found and axis.walk != "whole" and found[-1].tile <= most and self.seldom(4):
                tile = found[-1].tile if ceil(size.value / found[-1].tile) <= MOST_TURNS else axis.tile
                axis = Axis(size, tile, axis.walk)
            found.append(axis)
        return found

    @contextmanager
    def walking(self, kernel: KernelText, axes: Sequence[Axis]) -> Generator[list[str]]:
        """The loops around what is added inside; gives the offset of the tile along each axis, empty for 0."""
        offsets = [""] * len(axes)
        for n in self.permutation(len(axes)):
            axis = axes[n]
            if axis.walk == "grid":
                place = kernel.coordinate(blocks_text(axis))
                offsets[n] = place if axis.tile == 1 else kernel.apply(f"{axis.tile}*i", i=place)
        with ExitStack() as stack:
            for n in self.permutation(len(axes)):
                if axes[n].walk == "loop":
                    offsets[n] = stack.enter_context(self.loop(kernel, axes[n]))
            yield offsets

    @contextmanager
    def loop(self, kernel: KernelText, axis: Axis) -> Generator[str]:
        """`tile.for` over the tiles of an axis; gives its variable."""
        name = kernel.fresh("k")
        turns = None if axis.size.constant is None else -(-axis.size.constant // axis.tile)
        unroll = f" unroll {turns}" if turns and self.seldom() else ""
        with kernel.block(f"tile.for {name} = 0 to {axis.size.text} step {axis.tile}{unroll}"):
            yield name

    # Buffers.

    def load(
        self,
        kernel: KernelText,
        tensor: Tensor,
        dims: Sequence[int | None],
        axes: Sequence[Axis],
        offsets: Sequence[str],
        *,
        other: str | None = None,
        ways: Sequence[Way] = ("fragment", "fragment", "shared", "laid"),
    ) -> Fragment:
        """A fragment with the tile of a tensor; `dims` is the axis of each of its dims, None where size 1 is broadcast.

        `other` is what clipped elements become; anything if None.
        """
        way = self.choice(ways)
        sizes = [1 if d is None else axes[d].tile for d in dims]
        if other is None:
            numbers = ["0", "7"] if tensor.element == "i32" else ["0.0", "1.5"]
            other = self.choice(numbers)
        fill = f" other {other} : {tensor.element}"
        source = kernel.use(tensor) + self.place(kernel, dims, offsets)
        bounds = self.bounds(dims, axes)
        if way == "fragment":
            fragment = kernel.alloc("f", sizes, tensor.element)
            kernel.add(f"tile.copy {source} to {fragment.name}{bounds}{fill}{self.via()}")
            return fragment
        staged = self.shared(kernel, sizes, tensor.element, way)
        fragment = kernel.alloc("f", sizes, tensor.element)
        even = [n for n, d in enumerate(dims) if d is not None and sizes[n] % PARTS == 0]
        if even and self.seldom(5):
            self.assemble(kernel, tensor, dims, offsets, staged, self.choice(even), fill)
        else:
            kernel.add(f"tile.copy {source} to {staged.name}{bounds}{fill}{self.via()}{self.dist(sizes)}")
        self.sync(kernel)
        kernel.add(f"tile.copy {staged.name} to {fragment.name}{self.via()}")
        return fragment

    def assemble(
        self,
        kernel: KernelText,
        tensor: Tensor,
        dims: Sequence[int | None],
        offsets: Sequence[str],
        staged: Fragment,
        along: int,
        fill: str,
    ) -> None:
        """Puts a tile together in shared memory, a piece a turn, each by way of registers."""
        step = staged.sizes[along] // PARTS
        variable = kernel.fresh("p")
        with kernel.block(f"tile.for {variable} = 0 to {staged.sizes[along]} step {step}"):
            places = ["" if d is None else offsets[d] for d in dims]
            places[along] = kernel.apply("o + p", o=places[along], p=variable) if places[along] else variable
            at = ", ".join(place or kernel.apply("0") for place in places)
            piece = kernel.alloc("f", [step if n == along else s for n, s in enumerate(staged.sizes)], staged.element)
            bounds = ", ".join(["clip"] * len(dims))
            kernel.add(f"tile.copy {kernel.use(tensor)}[{at}] to {piece.name} bounds [{bounds}]{fill}{self.via()}")
            into = ", ".join(variable if n == along else kernel.apply("0") for n in range(len(dims)))
            kernel.add(f"tile.copy {piece.name} to {staged.name}[{into}]{self.via()}")

    def store(
        self,
        kernel: KernelText,
        fragment: Fragment,
        tensor: Tensor,
        dims: Sequence[int | None],
        axes: Sequence[Axis],
        offsets: Sequence[str],
    ) -> None:
        """Writes a fragment to its place in a tensor, perhaps by way of shared memory."""
        if self.seldom(5):
            staged = self.shared(kernel, fragment.sizes, fragment.element, self.choice(["shared", "laid"]))
            kernel.add(f"tile.copy {fragment.name} to {staged.name}{self.via()}")
            self.sync(kernel)
            fragment = kernel.alloc("f", fragment.sizes, fragment.element)
            kernel.add(f"tile.copy {staged.name} to {fragment.name}{self.via()}")
        target = kernel.use(tensor) + self.place(kernel, dims, offsets)
        kernel.add(f"tile.copy {fragment.name} to {target}{self.bounds(dims, axes)}{self.via()}")

    def place(self, kernel: KernelText, dims: Sequence[int | None], offsets: Sequence[str]) -> str:
        """`[%o0, %o1]`: where a tile starts; nothing where all offsets are 0, sometimes."""
        own = ["" if d is None else offsets[d] for d in dims]
        if not any(own) and (not own or self.seldom(2)):
            return ""
        return f"[{', '.join(o or kernel.apply('0') for o in own)}]"

    def bounds(self, dims: Sequence[int | None], axes: Sequence[Axis]) -> str:
        """` bounds [clip, proved]`, proved only where the module's facts say so."""
        if not dims:
            return ""
        words = ["proved" if (d is None or axes[d].is_whole) and self.seldom(3) else "clip" for d in dims]
        return f" bounds [{', '.join(words)}]"

    def via(self) -> str:
        """Decisions that an author may write on a copy."""
        return self.choice(["", "", "", " via thread", " via thread width 1"])

    def sync(self, kernel: KernelText) -> None:
        """A barrier written by hand, where one is needed; often left to the passes."""
        if self.seldom(3):
            kernel.add("tile.sync")

    def shared(self, kernel: KernelText, sizes: Sequence[int], element: str, way: Way) -> Fragment:
        """A shared buffer: a new one, or one that was used before."""
        pool = self._pool.setdefault(kernel, [])
        fitting = [s for s in pool if s.sizes == tuple(sizes) and s.element == element]
        if fitting and self.draw(st.integers(0, 2)):
            return self.choice(fitting)
        made = kernel.alloc_first("s", sizes, element, self.strided(sizes) if way == "laid" else "")
        pool.append(made)
        return made

    def strided(self, sizes: Sequence[int]) -> str:
        """A layout of shared memory: dims in any order, each row padded or not."""
        strides, step = [1] * len(sizes), 1
        for d in reversed(self.draw(st.permutations(range(len(sizes))))):
            strides[d] = step
            step = step * sizes[d] + (self.choice([0, 1, 0, 3]) if sizes[d] > 1 else 0)
        return f"#tile.strided<[{', '.join(map(str, strides))}]>"

    def dist(self, sizes: Sequence[int]) -> str:
        """Which thread moves what, as an author writes it on a copy into shared memory; mostly left open."""
        if not sizes or not self.seldom(4):
            return ""
        threads, vectors, room = list[int](), list[int](), 32
        for size in sizes:
            threads.append(self.choice([t for t in (1, 2, 4, 8) if size % t == 0 and t <= room]))
            room //= threads[-1]
            vectors.append(self.choice([v for v in (1, 2) if size % (threads[-1] * v) == 0]))
        strides, step = [1] * len(sizes), 1
        for d in self.permutation(len(sizes)):
            strides[d] = step
            step *= threads[d]
        return f" dist #tile.distributed<threads {threads} strides {strides} vector {vectors}>"


def is_float(element: str) -> bool:
    """Whether an element type is a float."""
    return element in FLOATS
