"""Kernels that combine elements along some dims: in one tile, over chunks into an accumulator, or step by step."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from tilewright.api.testing.tile_kernels_author import MOST_ELEMENTS, Author, is_float
from tilewright.api.testing.tile_kernels_bodies import Body, Value, draw_body
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
from tilewright.api.testing.tile_kernels_pointwise import free_sizes, generic
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, Place, Size, Tensor

COMBINERS = ("sum", "max", "min", "prod")
FLOAT_OPS = {"sum": "arith.addf", "prod": "arith.mulf", "max": "arith.maximumf", "min": "arith.minimumf"}
INTEGER_OPS = {"sum": "arith.addi", "prod": "arith.muli", "max": "arith.maxsi", "min": "arith.minsi"}
INFINITIES = {"f32": ("0xff800000", "0x7f800000"), "bf16": ("0xff80", "0x7f80"), "f16": ("0xfc00", "0x7c00")}
EXTREMES = ("-2147483648", "2147483647")


def identity(combine: str, element: str) -> str:
    """The value that changes nothing, as text."""
    if combine in ("sum", "prod"):
        number = "0" if combine == "sum" else "1"
        return f"{number}.0" if is_float(element) else number
    return INFINITIES.get(element, EXTREMES)[combine == "min"]


def combined(combine: str, body: Body, a: Value, b: Value) -> Value:
    """One step of a combination."""
    table = FLOAT_OPS if is_float(a.type) else INTEGER_OPS
    return body.op(f"{table[combine]} {a.name}, {b.name} : {a.type}", a.type)


class Fold:
    """One such kernel. Iteration dims are the rows first, then the dims that are combined."""

    def __init__(self, author: Author, source: Tensor | None, place: Place) -> None:
        self.author = author
        self.place: Place = place
        if source is None or not source.dims:
            rows = free_sizes(author, 0, 2, 256)
            columns = [author.bounded_size(33) for _ in range(author.choice([1, 1, 2] if len(rows) < 2 else [1]))]
            self.sizes = [*rows, *columns]
            self.rows = len(rows)
            first = None
        else:
            order = author.permutation(len(source.dims))
            self.sizes = [source.dims[order.index(d)] for d in range(len(order))]
            self.rows = author.choice(range(len(self.sizes)))
            first = Plain(source, tuple(order))
        self.combine = author.choice(COMBINERS)
        wide = ["f32", "f32", "i32", *(("bf16", "f16") if self.combine in ("max", "min") else ())]
        self.element = author.choice(wide)
        if first is None:
            element = author.choice([*[self.element] * 4, "f32", "bf16", "f16", "i32"])
            first = plain(author, self.sizes, author.permutation(len(self.sizes)), element)
        self.first = first
        row_axes = author.axes(self.sizes[: self.rows])
        room = max(8, MOST_ELEMENTS // prod(a.tile for a in row_axes))
        column_axes = author.axes(self.sizes[self.rows :], ("loop", "loop", "whole"), room)
        self.axes = [*row_axes, *column_axes]
        self.bare = first.tensor.element == self.element and not author.seldom(2)
        """Whether the elements are combined as they are."""
        self.operands: list[Operand] = [first]
        if not self.bare:
            self.operands += more_operands(author, self.sizes)
        limits = [s.text for s in self.sizes]
        if self.bare:
            self.body = Body.of([self.element])
            self.value = self.body.values[0]
        else:
            count = len(self.sizes)
            self.body, (self.value,) = draw_body(
                author.draw, types_of(self.operands), [self.element], dims=count, limits=limits, most=2
            )
        self.out = author.permutation(self.rows)
        self.style = author.choice(["steps", "chunks"])
        row_sizes = [self.sizes[d] for d in self.out]
        self.ends = author.choice(["plain", "rows", "back"])
        """What becomes of the combined values: the result, computed on, or combined with the elements again."""
        named = author.tensor if self.ends == "plain" else self._inner
        self.folded = named(row_sizes, self.element, place)

    def _inner(self, dims: Sequence[Size], element: str, place: Place) -> Tensor:
        """A tensor that only the meaning has: the kernel keeps it in registers."""
        del place
        count = sum(line.startswith("%i") for line in self.author.module.meaning_lines)
        return Tensor(f"i{count}", tuple(dims), element, "scratch")

    def run(self, kernel: KernelText) -> list[Tensor]:
        """Both texts."""
        author, count = self.author, len(self.sizes)
        combine = f" combine {self.combine}"
        generic(
            author,
            self.folded.name,
            count,
            ins(self.operands),
            map_text(self.out) + combine,
            self.folded.type,
            self.body.lin(self.value),
        )
        with author.walking(kernel, self.axes[: self.rows]) as rows:
            total = self._total(kernel, rows)
            if self.ends == "plain":
                author.store(kernel, total, self.folded, self.out, self.axes, rows)
                return [self.folded]
            return [self._rows(kernel, total, rows) if self.ends == "rows" else self._back(kernel, total, rows)]

    def _identity(self) -> str:
        return identity(self.combine, self.element)

    def _total(self, kernel: KernelText, rows: Sequence[str]) -> Fragment:
        """The combined values of the tile's rows, in a fragment."""
        author, axes = self.author, self.axes
        total = kernel.alloc("t", [axes[d].tile for d in self.out], self.element)
        kernel.add(f"tile.fill {total.name} with {self._identity()} : {self.element}")
        steps = self.style == "steps"
        order = author.permutation(len(axes))
        target = total
        if not steps:
            target = kernel.alloc("acc", [axes[d].tile for d in order], self.element)
            kernel.add(f"tile.fill {target.name} with {self._identity()} : {self.element}")
        with self._columns(kernel, rows) as offsets:
            if steps:
                self._step(kernel, total, offsets)
            else:
                self._chunk(kernel, target, order, offsets)
        if not steps:
            self._reduce(kernel, Loaded(target.name, tuple(order)), total, "")
        return total

    @contextmanager
    def _columns(self, kernel: KernelText, rows: Sequence[str]) -> Generator[list[str]]:
        """The loops over the combined dims, inside those over rows; gives the offsets along all dims."""
        offsets = [*rows, *[""] * (len(self.axes) - self.rows)]
        with ExitStack() as loops:
            for n in self.author.permutation(len(self.axes) - self.rows):
                d = self.rows + n
                if self.axes[d].walk == "loop":
                    offsets[d] = loops.enter_context(self.author.loop(kernel, self.axes[d]))
            yield offsets

    def _valid(self, kernel: KernelText, offsets: Sequence[str]) -> str:
        """` valid(...)` over the combined dims in which the tile may hang over."""
        limits = [
            f"d{d} < {remaining(kernel, self.axes[d].size.text, offsets[d])}"
            for d in range(self.rows, len(self.axes))
            if not self.axes[d].is_whole or self.author.seldom()
        ]
        return f" valid({', '.join(limits)})" if limits else ""

    def _inputs(self, kernel: KernelText, offsets: Sequence[str]) -> tuple[list[Loaded], bool]:
        """The operands' tiles, and whether what hangs over is the identity."""
        filled = self.bare and not self.author.seldom(3)
        if not filled:
            return load_all(self.author, kernel, self.operands, self.axes, offsets), False
        return self.first.load(self.author, kernel, self.axes, offsets, other=self._identity()), True

    def _step(self, kernel: KernelText, total: Fragment, offsets: Sequence[str]) -> None:
        """Combines one tile into the rows' values."""
        author, axes = self.author, self.axes
        inputs, filled = self._inputs(kernel, offsets)
        source = inputs[0]
        if not self.bare:
            order = author.permutation(len(axes))
            made = kernel.alloc("f", [axes[d].tile for d in order], self.element)
            write_map(kernel, len(axes), inputs, [(made, order)], self.body.tile([self.value], offsets))
            source = Loaded(made.name, tuple(order))
        self._reduce(kernel, source, total, "" if filled else self._valid(kernel, offsets))

    def _reduce(self, kernel: KernelText, source: Loaded, total: Fragment, valid: str) -> None:
        names = ", ".join(f"d{n}" for n in range(len(self.axes)))
        into = total.name + (map_text(self.out) if self.out else "")
        kernel.add(f"tile.reduce {self.combine} ({names}) {source.text} into {into}{valid}")

    def _chunk(self, kernel: KernelText, acc: Fragment, order: Sequence[int], offsets: Sequence[str]) -> None:
        """Combines one tile with the accumulator, element by element."""
        inputs, filled = self._inputs(kernel, offsets)
        body = Body([*self.body.arguments, Value("%acc", self.element)], list(self.body.lines), stem="w")
        value = combined(self.combine, body, body.arguments[-1], self.value)
        valid = "" if filled else self._valid(kernel, offsets)
        inputs = [*inputs, Loaded(acc.name, tuple(order))]
        write_map(kernel, len(self.axes), inputs, [(acc, order)], body.tile([value], offsets), valid)

    def _rows(self, kernel: KernelText, total: Fragment, rows: Sequence[str]) -> Tensor:
        """The result is computed from the combined values, row by row."""
        author, sizes = self.author, self.sizes[: self.rows]
        operands: list[Operand] = [Plain(self.folded, tuple(self.out)), *more_operands(author, sizes)]
        target = author.element()
        body, (value,) = draw_body(author.draw, types_of(operands), [target], dims=len(sizes), stem="e")
        out = author.permutation(self.rows)
        result = author.tensor([sizes[d] for d in out], target, self.place)
        generic(author, result.name, self.rows, ins(operands), map_text(out), result.type, body.lin(value))
        axes = self.axes[: self.rows]
        inputs = [Loaded(total.name, tuple(self.out)), *load_all(author, kernel, operands[1:], axes, rows)]
        made = kernel.alloc("f", [axes[d].tile for d in out], target)
        write_map(kernel, self.rows, inputs, [(made, out)], body.tile([value], rows))
        author.store(kernel, made, result, out, axes, rows)
        return result

    def _back(self, kernel: KernelText, total: Fragment, rows: Sequence[str]) -> Tensor:
        """The result has all dims: the elements, read again, and their rows' combined values."""
        author, count = self.author, len(self.sizes)
        operands: list[Operand] = [self.first, Plain(self.folded, tuple(self.out))]
        target = author.element()
        body, (value,) = draw_body(author.draw, types_of(operands), [target], dims=count, stem="e")
        out = author.permutation(count)
        result = author.tensor([self.sizes[d] for d in out], target, self.place)
        generic(author, result.name, count, ins(operands), map_text(out), result.type, body.lin(value))
        with self._columns(kernel, rows) as offsets:
            inputs = [*operands[0].load(author, kernel, self.axes, offsets), Loaded(total.name, tuple(self.out))]
            made = kernel.alloc("f", [self.axes[d].tile for d in out], target)
            write_map(kernel, count, inputs, [(made, out)], body.tile([value], offsets))
            author.store(kernel, made, result, out, self.axes, offsets)
        return result


def fold(author: Author, kernel: KernelText, source: Tensor | None, place: Place) -> list[Tensor]:
    """Draws one kernel into both texts; returns its results."""
    return Fold(author, source, place).run(kernel)
