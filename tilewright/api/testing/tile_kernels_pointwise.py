"""Kernels that compute each element of their results from elements of their operands."""

from __future__ import annotations

from copy import deepcopy

from tilewright.api.testing.tile_kernels_author import Author, is_float
from tilewright.api.testing.tile_kernels_bodies import Body, Value, draw_body, draw_step
from tilewright.api.testing.tile_kernels_operands import (
    Loaded,
    Operand,
    Plain,
    ins,
    load_all,
    map_text,
    more_operands,
    plain,
    remaining,
    types_of,
    write_map,
)
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, Place, Size, Tensor

MOST_POINTS = 2048


def free_sizes(author: Author, least: int, most: int, points: int = MOST_POINTS) -> list[Size]:
    """Sizes of an iteration space of bounded size."""
    found: list[Size] = []
    for _ in range(author.choice(range(least, most + 1))):
        found.append(author.size(max(1, points)))
        points //= max(1, found[-1].value)
    return found


def names(count: int) -> str:
    """`(d0, d1)`."""
    return f"({', '.join(f'd{n}' for n in range(count))})"


def generic(author: Author, result: str, count: int, operands: str, out: str, type_: str, body: list[str]) -> None:
    """`%result = lin.generic ...` in the meaning; `out` may go on with ` combine sum`."""
    lines = author.module.meaning_lines
    lines.append(f"%{result} = lin.generic {names(count)} {operands} out{out} : {type_} {{")
    lines += [f"  {line}" for line in body]
    lines.append("}")


class Pointwise:
    """One such kernel. `source` is a tensor of an earlier kernel that it reads."""

    def __init__(self, author: Author, source: Tensor | None, place: Place) -> None:
        self.author = author
        if source is None:
            self.sizes = free_sizes(author, 1, 3)
            order = author.permutation(len(self.sizes))
            first = plain(author, self.sizes, order, author.element())
        else:
            order = author.permutation(len(source.dims))
            self.sizes = [source.dims[order.index(d)] for d in range(len(order))]
            first = Plain(source, tuple(order))
        self.operands: list[Operand] = [first, *more_operands(author, self.sizes)]
        self.axes = author.axes(self.sizes)
        count = 1 if place == "scratch" else author.choice([1, 1, 2, 3])
        self.targets = [author.element() for _ in range(count)]
        limits = [s.text for s in self.sizes] + [f"{s.factor()} - 1" for s in self.sizes] + ["3"]
        self.body, self.results = draw_body(
            author.draw, types_of(self.operands), self.targets, dims=len(self.sizes), limits=limits
        )
        self.mask = self._mask(limits)
        self.outs = [author.permutation(len(self.sizes)) for _ in self.targets]
        self.tensors = [
            author.tensor([self.sizes[d] for d in out], target, place)
            for out, target in zip(self.outs, self.targets, strict=True)
        ]
        self.turns, self.step, self.stepped = self._repeated()

    def _mask(self, limits: list[str]) -> tuple[int, str, str] | None:
        """An iteration dim, the limit below which results are computed, and what they are above it."""
        if not self.sizes or not self.author.seldom(4):
            return None
        return self.author.choice(range(len(self.sizes))), self.author.choice(limits), self.author.choice(["1", "-2"])

    def _repeated(self) -> tuple[int, Body, Value]:
        """How often the first result is computed on from itself, and how."""
        turns = self.author.choice([2, 3]) if self.author.seldom(3) else 0
        body = Body.of([self.targets[0]], "r")
        value = body.values[0]
        if turns:
            value = body.convert(draw_step(self.author.draw, body, value), self.targets[0])
        return turns, body, value

    def mean(self) -> None:
        """The same in `lin`: one generic a result, and one a turn."""
        for number, (value, tensor, out) in enumerate(zip(self.results, self.tensors, self.outs, strict=True)):
            body = deepcopy(self.body)
            if self.mask is not None:
                dim, limit, fill = self.mask
                value = body.select_below(body.coordinate(dim), limit, value, body.constant(float(fill), value.type))
            turns = self.turns if number == 0 else 0
            last = f"{tensor.name}_0" if turns else tensor.name
            count = len(self.sizes)
            generic(self.author, last, count, ins(self.operands), map_text(out), tensor.type, body.lin(value))
            for turn in range(1, turns + 1):
                name = tensor.name if turn == turns else f"{tensor.name}_{turn}"
                straight = map_text(range(count))
                operand = f"ins(%{last}{straight} : {tensor.type})"
                generic(self.author, name, count, operand, straight, tensor.type, self.step.lin(self.stepped))
                last = name

    def write(self, kernel: KernelText) -> None:
        """The kernel."""
        author, axes = self.author, self.axes
        with author.walking(kernel, axes) as offsets:
            inputs = load_all(author, kernel, self.operands, axes, offsets)
            fragments = [
                kernel.alloc("f", [axes[d].tile for d in out], target)
                for out, target in zip(self.outs, self.targets, strict=True)
            ]
            valid = ""
            if self.mask is not None:
                dim, limit, fill = self.mask
                for fragment in fragments:
                    written = f"{fill}.0" if is_float(fragment.element) else fill
                    kernel.add(f"tile.fill {fragment.name} with {written} : {fragment.element}")
                valid = f" valid(d{dim} < {remaining(kernel, limit, offsets[dim])})"
            outputs = list(zip(fragments, self.outs, strict=True))
            write_map(kernel, len(axes), inputs, outputs, self.body.tile(self.results, offsets), valid)
            if self.turns:
                self._turn(kernel, fragments[0])
            for fragment, tensor, out in zip(fragments, self.tensors, self.outs, strict=True):
                author.store(kernel, fragment, tensor, out, axes, offsets)

    def _turn(self, kernel: KernelText, fragment: Fragment) -> None:
        """A loop that computes a fragment on from itself."""
        unroll = f" unroll {self.turns}" if self.author.seldom(2) else ""
        count = len(fragment.sizes)
        dims = tuple(range(count))
        with kernel.block(f"tile.for {kernel.fresh('r')} = 0 to {self.turns} step 1{unroll}"):
            body = self.step.tile([self.stepped], [""] * count)
            write_map(kernel, count, [Loaded(fragment.name, dims)], [(fragment, dims)], body)


def pointwise(author: Author, kernel: KernelText, source: Tensor | None, place: Place) -> list[Tensor]:
    """Draws one kernel into both texts; returns its results."""
    made = Pointwise(author, source, place)
    made.mean()
    made.write(kernel)
    return made.tensors
