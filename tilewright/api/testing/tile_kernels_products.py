"""Kernels that multiply and add along summed dims with `tile.mma`, and compute on what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tilewright.api.testing.tile_kernels_author import Author, Axis, Way, is_float
from tilewright.api.testing.tile_kernels_bodies import Body, draw_body
from tilewright.api.testing.tile_kernels_operands import (
    Loaded,
    Operand,
    Plain,
    ins,
    load_all,
    map_text,
    more_operands,
    plain,
    types_of,
    write_map,
)
from tilewright.api.testing.tile_kernels_pointwise import generic
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, Place, Size, Tensor

MOST_STEPS = 4096
"""Multiplications of one product at most."""


class Product:
    """One such kernel. Iteration dims: those of the result first, then the summed ones."""

    def __init__(self, author: Author, source: Tensor | None, place: Place) -> None:
        self.author = author
        self.place: Place = place
        summed = author.choice([1, 1, 1, 2])
        batch = author.choice([0, 0, 1])
        if source is not None and len(source.dims) > summed and source.element != "index":
            # The source is the left operand: its last dims are summed.
            left_sizes = list(source.dims)
            batch = min(batch, len(left_sizes) - summed)
            outer = left_sizes[: len(left_sizes) - summed]
            points = max(1, MOST_STEPS // max(1, _product(left_sizes)))
            self.sizes = [*outer, author.size(points), *left_sizes[len(outer) :]]
            kept = len(outer) + 1
            element = source.element
        else:
            source = None
            points, self.sizes = MOST_STEPS, list[Size]()
            for n in range(batch + 2 + summed):
                self.sizes.append(author.size(max(1, min(points, 33 if n >= batch else 3))))
                points //= max(1, self.sizes[-1].value)
            kept = batch + 2
            element = author.choice(["f32", "f32", "bf16", "f16", "i32", "i32"])
        self.kept = kept
        every = list(range(len(self.sizes)))
        self.summed = every[kept:]
        right = kept - 1
        shared = every[: min(batch, kept - 1)]
        left_dims = [d for d in every[:kept] if d != right] + self.summed
        right_dims = [*shared, right, *self.summed]
        other = "i32" if element == "i32" else author.choice([element, element, "f32", "bf16"])
        if source is None:
            self.left = plain(author, self.sizes, [left_dims[n] for n in author.permutation(len(left_dims))], element)
        else:
            self.left = Plain(source, tuple(left_dims))
        self.right = plain(author, self.sizes, [right_dims[n] for n in author.permutation(len(right_dims))], other)
        if author.seldom():
            self.left, self.right = self.right, self.left
        self.element = "i32" if element == "i32" else "f32"
        tiles = author.axes(self.sizes[:kept])
        depth = 16 if summed == 1 else 4
        steps = [author.axis(s, ("loop", "loop", "whole"), depth) for s in self.sizes[kept:]]
        self.axes: list[Axis] = [*tiles, *steps]
        self.order = author.permutation(kept)
        """The order of the accumulator's dims."""
        self.ends = author.choice(["plain", "rows"])
        sizes = [self.sizes[d] for d in self.order]
        count = sum(line.startswith("%i") for line in author.module.meaning_lines)
        inner = Tensor(f"i{count}", tuple(sizes), self.element, "scratch")
        self.result = author.tensor(sizes, self.element, place) if self.ends == "plain" else inner

    def run(self, kernel: KernelText) -> list[Tensor]:
        """Both texts."""
        author = self.author
        self._mean()
        with author.walking(kernel, self.axes[: self.kept]) as offsets:
            acc = kernel.alloc("acc", [self.axes[d].tile for d in self.order], self.element)
            kernel.add(f"tile.fill {acc.name} with {'0.0' if is_float(self.element) else '0'} : {self.element}")
            places = [*offsets, *[""] * len(self.summed)]
            with ExitStack() as loops:
                for n in author.permutation(len(self.summed)):
                    d = self.kept + n
                    if self.axes[d].walk == "loop":
                        places[d] = loops.enter_context(author.loop(kernel, self.axes[d]))
                self._multiply(kernel, acc, places)
            if self.ends == "plain":
                author.store(kernel, acc, self.result, self.order, self.axes, offsets)
                return [self.result]
            return [self._computed_on(kernel, acc, offsets)]

    def _mean(self) -> None:
        operands: list[Operand] = [self.left, self.right]
        body = Body.of(types_of(operands))
        a, b = (body.convert(v, self.element) for v in body.values)
        name = "arith.mulf" if is_float(self.element) else "arith.muli"
        value = body.op(f"{name} {a.name}, {b.name} : {self.element}", self.element)
        out = map_text(self.order) + " combine sum"
        count = len(self.sizes)
        generic(self.author, self.result.name, count, ins(operands), out, self.result.type, body.lin(value))

    def _multiply(self, kernel: KernelText, acc: Fragment, offsets: Sequence[str]) -> None:
        """One tile of both operands into the accumulator."""
        author = self.author
        zero = {True: "0.0", False: "0"}
        ways: list[Way] = ["fragment", "shared", "laid"]
        sides: list[Loaded] = []
        sliced = len(self.summed) == 1 and self.axes[self.summed[0]].tile > 1 and author.seldom(4)
        if sliced:
            self._slices(kernel, acc, offsets)
            return
        for operand in (self.left, self.right):
            fill = zero[is_float(operand.tensor.element)]
            sides += operand.load(author, kernel, self.axes, offsets, other=fill, ways=ways)
        self._mma(kernel, sides, acc)

    def _mma(self, kernel: KernelText, sides: Sequence[Loaded], acc: Fragment) -> None:
        names = ", ".join(f"d{n}" for n in range(len(self.axes)))
        inst = self.author.choice(["", "", " inst fma"])
        into = f"{acc.name}{map_text(self.order)}"
        kernel.add(f"tile.mma ({names}) {sides[0].text}, {sides[1].text} into {into}{inst}")

    def _slices(self, kernel: KernelText, acc: Fragment, offsets: Sequence[str]) -> None:
        """Both tiles staged whole, and read from shared memory slice by slice along the summed dim."""
        author, summed = self.author, self.summed[0]
        depth = self.axes[summed].tile
        step = author.choice([n for n in (1, 2) if depth % n == 0])
        staged: list[tuple[Plain, Fragment]] = []
        for operand in (self.left, self.right):
            sizes = [1 if d is None else self.axes[d].tile for d in operand.dims]
            buffer = author.shared(kernel, sizes, operand.tensor.element, author.choice(["shared", "laid"]))
            if staged and buffer == staged[0][1]:
                buffer = kernel.alloc_first("s", sizes, operand.tensor.element, "")
            source = kernel.use(operand.tensor) + author.place(kernel, operand.dims, offsets)
            fill = f"{'0.0' if is_float(operand.tensor.element) else '0'} : {operand.tensor.element}"
            kernel.add(
                f"tile.copy {source} to {buffer.name}{author.bounds(operand.dims, self.axes)} other {fill}"
                f"{author.via()}{author.dist(sizes)}"
            )
            staged.append((operand, buffer))
        author.sync(kernel)
        variable = kernel.fresh("kk")
        unroll = f" unroll {depth // step}" if author.seldom(2) else ""
        with kernel.block(f"tile.for {variable} = 0 to {depth} step {step}{unroll}"):
            sides: list[Loaded] = []
            for operand, buffer in staged:
                sizes = [step if d == summed else n for d, n in zip(operand.dims, buffer.sizes, strict=True)]
                part = kernel.alloc("f", sizes, buffer.element)
                at = ", ".join(variable if d == summed else kernel.apply("0") for d in operand.dims)
                kernel.add(f"tile.copy {buffer.name}[{at}] to {part.name}{author.via()}")
                sides.append(Loaded(part.name, operand.dims))
            self._mma(kernel, sides, acc)

    def _computed_on(self, kernel: KernelText, acc: Fragment, offsets: Sequence[str]) -> Tensor:
        """The result is computed from the products, element by element."""
        author, sizes, axes = self.author, self.sizes[: self.kept], self.axes[: self.kept]
        operands: list[Operand] = [Plain(self.result, tuple(self.order)), *more_operands(author, sizes)]
        target = author.choice([self.element, self.left.tensor.element, author.element()])
        body, (value,) = draw_body(author.draw, types_of(operands), [target], dims=len(sizes), stem="e")
        out = author.permutation(self.kept)
        result = author.tensor([sizes[d] for d in out], target, self.place)
        generic(author, result.name, self.kept, ins(operands), map_text(out), result.type, body.lin(value))
        inputs = [Loaded(acc.name, tuple(self.order)), *load_all(author, kernel, operands[1:], axes, offsets)]
        made = kernel.alloc("f", [axes[d].tile for d in out], target)
        write_map(kernel, self.kept, inputs, [(made, out)], body.tile([value], offsets))
        author.store(kernel, made, result, out, axes, offsets)
        return result


def _product(sizes: Sequence[Size]) -> int:
    total = 1
    for size in sizes:
        total *= size.value
    return total


def product(author: Author, kernel: KernelText, source: Tensor | None, place: Place) -> list[Tensor]:
    """Draws one kernel into both texts; returns its results."""
    return Product(author, source, place).run(kernel)
